# Copyright 2026 biped_com_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""
Takes the pictures of the page in doc/viewer.rst, with Chromium, of simulated robots.

::

    python doc/pictures/draw_page.py biped torso_demo.launch.py Torso Health
    python doc/pictures/draw_page.py talos simulation.launch.py

Writes ``page_<robot>.png`` beside this file. Needs chromium, chromium-driver and selenium, as the
tests of the page do.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import tempfile
import time

from PIL import Image
from rcl_interfaces.srv import SetParameters
import rclpy
from rclpy.parameter import Parameter

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / 'test'))
from support.browser import Browser  # noqa: E402, I100, I202

LAUNCH = [sys.executable, '-m', 'biped_com_ros.launching.run']
# Without the fused CoM: while a torso bends, its height is wrong (doc/viewer.rst, Limits).
VIEWER = [sys.executable, '-m', 'biped_com_ros.nodes.viewer.node', '--ros-args',
          '-r', 'com_estimator/com_fused:=not_shown', '-p', 'port:=0']
# Not one of those that `make demo` takes; slow enough to draw without a graphics card beside it.
DOMAIN, PACE = 101, 0.04
SIZE = (1500, 940)
SETTLE = 34.0  # s: longer than the charts are
ROUND = 900.0  # s: longer than the torso's tour takes at that pace
BENT = 14.0  # deg: what the torso is to be bent by


def main(robot: str = 'biped', file: str = 'torso_demo.launch.py', *tabs: str) -> None:
    """Start the robot and the viewer, look, write the file."""
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    with tempfile.TemporaryDirectory() as directory:
        processes = [subprocess.Popen(
            command, stdout=(Path(directory) / f'{i}.log').open('w'),
            stderr=subprocess.STDOUT,
            env={**os.environ, 'ROS_DOMAIN_ID': str(DOMAIN)}) for i, command in enumerate((
                [*LAUNCH, file, f'robot:={robot}', 'hidden:=masses'],
                [*VIEWER, '-p', f'robot:={robot}']))]
        try:
            browser = Browser(Path(directory), SIZE, scale=1.0, every=10.0)
            browser.visit(browser.until(
                lambda: re.search(r'http://127\S+', (Path(directory) / '1.log').read_text()),
                'the address')[0])
            browser.wait_for('mm to the edge', timeout=150.0)
            let_time_pass_slowly()
            browser.dismiss()
            for tab in tabs:
                browser.tab(tab)
            browser.turn()  # with it the page sends its size, for which it is framed
            time.sleep(SETTLE)
            if 'Torso' in tabs:  # as soon as it has been straight
                browser.until(lambda: bend(browser.text) < 1.0, 'a straight torso', ROUND)
                browser.until(lambda: bend(browser.text) > BENT, 'a bent torso', ROUND)
            # The browser draws in several frames what came before: they are of one moment then.
            processes[1].send_signal(signal.SIGSTOP)
            write(browser.screenshot(), HERE / f'page_{robot}.png')
            browser.close()
        finally:
            processes[1].send_signal(signal.SIGCONT)
            for process in processes:
                process.send_signal(signal.SIGINT)
                process.wait()


def bend(text: str) -> float:
    """Return by how much the page says that the torso is bent, deg."""
    return float(re.search(r'torso is bent by\s+([0-9.]+)', text)[1])


def let_time_pass_slowly() -> None:
    """Slow the simulator down: to draw without a graphics card takes what the nodes need."""
    rclpy.init(domain_id=DOMAIN)
    node = rclpy.create_node('photographer')
    client = node.create_client(SetParameters, 'simulator/set_parameters')
    client.wait_for_service(timeout_sec=20.0)
    future = client.call_async(SetParameters.Request(parameters=[
        Parameter('real_time_factor', value=PACE).to_parameter_msg()]))
    rclpy.spin_until_future_complete(node, future, timeout_sec=20.0)
    node.destroy_node()
    rclpy.shutdown()


def write(png: bytes, path: Path) -> None:
    """Write a picture; with all its colours, which mean something."""
    Image.open(io.BytesIO(png)).convert('RGB').save(path, optimize=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
