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
"""Every chapter that fits a robot succeeds on it; one robot in each run of CI, by turns."""

from __future__ import annotations

import os
import re
import time

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.story import chosen_chapters
import pytest
from support.demo_run import run

ROBOTS = ('biped', 'talos', 'g1', 'icub', 'romeo', 'g1_as_sold')
EVERY = 'BIPED_COM_ROS_ALL_ROBOTS'
"""Environment variable that has all robots tested."""

LIMIT = 1000.0
"""For all chapters on a busy machine, s; about 150 s of simulated time."""


def is_due(robot):
    """Return whether it is this robot's day."""
    return bool(os.environ.get(EVERY)) or robot == ROBOTS[
        int(time.time() / 86400.0) % len(ROBOTS)]


@pytest.mark.timeout(LIMIT + 20.0)
@pytest.mark.parametrize('robot', ROBOTS)
def test_all_chapters_that_fit_the_robot_succeed(robot):
    if not is_due(robot):
        pytest.skip(f'another robot is due today; {EVERY}=1 tests all')
    try:
        model = RobotModel.load(robot)
    except BipedComError as error:
        pytest.skip(str(error))
    # Half as often as by default: twice as fast where the processors are busy.
    output = run(f'robot:={robot}', 'once:=true', 'rate:=250', limit=LIMIT)
    summary = output[output.rindex('\nmeasure: '):]
    for chapter in chosen_chapters('all'):
        reason = chapter.missing_for(model)
        expected = f'skipped: {reason}' if reason else 'shown'
        assert f'\n{chapter.name}: {expected}' in summary, output[-3000:]
    if '\ncalibration: shown' in summary:
        calibrated, published = calibrated_and_published(output)
        assert published == pytest.approx(calibrated, abs=0.5), output[-3000:]


def calibrated_and_published(output):
    """Return how far off the calibrated URDF's CoM is, and that of com_estimator with it, mm."""
    calibrated = re.search(r'centre of mass off by +[0-9.]+ mm +([0-9.]+) mm', output)
    published = re.search(r'published by com_estimator +([0-9.]+) mm', output)
    return float(calibrated[1]), float(published[1])
