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
"""The launch file that plays the paper's postures: the robot stands in the simulator."""

import os
import re
import signal
import subprocess
import sys
import time

from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest

pytest.importorskip('rclpy')

LIMIT = 240.0  # s
L_W = 1e3 * (2.0 * 0.95 * 0.2 + 2.0 * 1.16 * 0.65 + 0.94 * 0.9) / (2.0 * (0.95 + 1.16) + 0.94)


def test_postures_a_b_and_c_are_played_and_the_centre_of_mass_logged(tmp_path):
    log = tmp_path / 'log'
    with log.open('wb') as out:
        process = subprocess.Popen(
            [sys.executable, '-m', 'biped_com_ros.launch_runner.launch', 'two_pose.launch.xml',
             f'directory:={tmp_path}'], start_new_session=True, stdout=out,
            stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + LIMIT
        while 'back in posture stand' not in log.read_text():
            assert time.monotonic() < end and process.poll() is None, log.read_text()[-3000:]
            time.sleep(0.2)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(20.0)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    model = RobotModel.load('three_link')
    captures = CaptureLog(tmp_path / 'three_link' / 'captures.json', model).captures
    assert [capture.name for capture in captures] == ['posture a', 'posture b', 'posture c']
    for capture, name in zip(captures, 'abc'):
        np.testing.assert_allclose(capture.positions, model.posture(name), atol=0.01)
    result = re.search(
        r'r_w = (\S+) .*q_w = (\S+) .*l_w = (\S+) .*total (\S+) and', log.read_text())
    assert result, log.read_text()[-3000:]
    r_w, q_w, l_w, height = map(float, result.groups())
    # Printed in hundredths of a millimetre.
    assert (r_w, q_w, l_w) == pytest.approx((0.0, 0.0, L_W), abs=0.0151)
    assert height == pytest.approx(
        (2.0 * 6.72 * 26.32 + 5.16 * (100.0 + L_W)) / 18.6, abs=0.0151)
