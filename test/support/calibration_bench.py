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
"""A calibration session with a simulated robot, without ROS and without threads."""

from dataclasses import replace
from functools import cache

from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.captures.stillness import StillnessOptions
from biped_com_ros.core.identification.poses.pose_safety import DesignOptions
from biped_com_ros.core.identification.poses.transfer import HoistMove
from biped_com_ros.core.identification.session import CalibrationSession, SessionOptions
import numpy as np
from support.statics_data import PERFECT, TrueRobot

PERIOD, DURATION = 0.1, 2.0  # s between updates, and of each trajectory


@cache
def true_robot(name, *arguments):
    """Return a robot that differs from its URDF, the same for all benches."""
    return TrueRobot(name, **dict(arguments))


class BenchSession(CalibrationSession):
    """Plans once for the same robot and options: benches differ by what happens then."""

    plans = {}

    def _design(self):
        key = self.model.config.name, self.options.design
        if key not in self.plans:
            self.plans[key] = super()._design()
        return self.plans[key]


class BenchJobs:
    """Does the work when it is polled, so that a test is not at the mercy of threads."""

    def __init__(self):
        self.job = None

    @property
    def is_busy(self):
        return self.job is not None

    def start(self, work, on_result):
        assert self.job is None
        self.job = work, on_result

    def poll(self):
        if self.job is None:
            return False
        (work, on_result), self.job = self.job, None
        on_result(work())
        return True


class BenchDriver:
    """A robot that is where a path ends at once, and a hoist that lifts at once."""

    def __init__(self, positions, has_hoist=True):
        self.positions, self.has_hoist = positions, has_hoist
        self.problem, self.is_lifted, self.moves, self.paths = '', False, [], []
        self.on_the_way, self.slow, self.hoist_works = [], [], True

    def send(self, positions, path, slowly=False):
        assert np.abs(path[0] - positions).max() < 0.5  # no jump
        self.positions = path[-1]
        self.paths.append(path)
        self.slow += [slowly]
        self.on_the_way.extend(path)
        return DURATION

    def request_hoist(self, move):
        if not self.has_hoist:
            return ''
        if not self.moves or self.moves[-1] is not move:
            self.moves.append(move)
        self.is_lifted = move is HoistMove.LIFT and self.hoist_works
        return ''

    def end_hoist(self):
        pass


class CalibrationBench:
    """A session, and the robot that it calibrates; `disturb` changes what is read of it."""

    def __init__(self, directory, true=None, has_hoist=True, **options):
        self.true = true or true_robot('sabian', ('seed', 2))
        design = options.pop('design', {})
        self.driver = BenchDriver(self.true.model.posture('stand'), has_hoist)
        self.jobs = BenchJobs()
        self.texts, self.errors, self.targets, self.infos = [], [], [], []
        self.session = BenchSession(
            self.true.model, SessionOptions(
                directory=directory, design=DesignOptions(**{
                    'count': 3, 'candidates': 6, 'double_support': 1.0, 'torso_bend': 0.0,
                    'hoisted': 0, 'approach': 'shortest', 'margin': 0.015,
                    **design}),
                stillness=StillnessOptions(duration=0.3, force_deviation=50.0),
                **{'move': True, **options}), SensorNoise(**PERFECT), self.driver, self.jobs,
            self)
        self.now, self.disturb = 0.0, lambda capture, i: capture

    def info(self, text):
        self.infos.append(text)

    def progress(self, text, is_error):
        (self.errors if is_error else self.texts).append(text)

    def target(self, pose):
        self.targets.append(pose)

    def read(self):
        """Add readings of the robot as it stands or hangs, for one period."""
        standing = () if self.driver.is_lifted else ('left', 'right')
        exact = self.true.capture(standing, None, self.driver.positions)
        on_the_way = [replace(exact, positions=q) for q in self.driver.on_the_way]
        self.driver.on_the_way.clear()
        at_rest = [self.disturb(exact, i) for i in range(10)]
        for i, c in enumerate(on_the_way + at_rest, -len(on_the_way)):
            self.session.add_readings(
                self.now + 0.01 * max(i, 0), c.positions, c.torques, c.wrenches, c.up)

    def run(self, until, limit=200.0):
        """Update the session until something has happened."""
        end = self.now + limit
        while not until():
            assert self.now < end, (self.session.state, self.texts[-3:], self.errors[-3:])
            self.read()
            self.now += PERIOD
            self.session.update(self.now)

    def run_to(self, state):
        """Update the session until it is in a state."""
        self.run(lambda: self.session.state is state)

    @property
    def captured(self):
        """Return the names of the poses that were captured."""
        return [capture.name for capture in self.session.log.captures]
