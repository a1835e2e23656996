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

    python doc/pictures/draw_page.py [ROBOT [LAUNCH FILE [TAB ...]]]

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

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / 'test'))
from browser import Browser  # noqa: E402, I100, I202

LAUNCH = [sys.executable, '-m', 'biped_com_ros.standalone.launch']
SIZE = (1500, 940)
SETTLE = 30.0  # s: as long as the charts are


def main(robot: str = 'biped', file: str = 'torso_demo.launch.xml', *tabs: str) -> None:
    """Start the robot and the viewer, look, write the file."""
    with tempfile.TemporaryDirectory() as directory:
        processes = [subprocess.Popen(
            [*LAUNCH, *arguments], stdout=(Path(directory) / f'{i}.log').open('w'),
            env={**os.environ, 'ROS_DOMAIN_ID': '93'}) for i, arguments in enumerate((
                [file, f'robot:={robot}', 'hidden:=masses'],
                ['viewer.launch.xml', f'robot:={robot}', 'port:=0']))]
        try:
            browser = Browser(Path(directory), SIZE, scale=1.0)
            browser.visit(browser.until(
                lambda: re.search(r'http://127\S+', (Path(directory) / '1.log').read_text()),
                'the address')[0])
            browser.wait_for('mm to the edge', timeout=150.0)
            browser.dismiss()
            for tab in tabs:
                browser.tab(tab)
            time.sleep(SETTLE)
            write(browser.screenshot(), HERE / f'page_{robot}.png')
            browser.close()
        finally:
            for process in processes:
                process.send_signal(signal.SIGINT)
                process.wait()


def write(png: bytes, path: Path) -> None:
    """Write a picture; with all its colours, which mean something."""
    Image.open(io.BytesIO(png)).convert('RGB').save(path, optimize=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
