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
"""The demo's chapter of calibration, with a robot and a calibration that are known exactly."""

import json
from types import SimpleNamespace

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.weight_check import weight_below_sensors
from biped_com_ros.demo.calibration import Calibration
from geometry_msgs.msg import PointStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from std_msgs.msg import Float64MultiArray, String

STEP_NS = 100_000_000
#: More mass in the torso and, below the sensors, in a foot, kg.
HIDDEN = {'torso': 0.5, 'l_foot': 0.07}


def with_masses(model, added):
    """Return the same robot with more mass in some links."""
    changed = {}
    for name, mass in added.items():
        i = model.link_names.index(name)
        changed[name] = NewInertial(model.link_masses[i] + mass, model.link_coms_in_link[i])
    return RobotModel(model.config, with_inertials(model.urdf, changed))


class CalibratedStage:
    """Answers the chapter as `com_calibrator` and the simulator would."""

    def __init__(self, directory, hidden=HIDDEN):
        self.model = RobotModel.load('biped')
        self.true = with_masses(self.model, hidden)
        self.shared, self.triggered, self.used, self.activities = {}, [], [], []
        self.stamp_ns, self.positions = 0, self.model.posture()
        self.measurements = SimpleNamespace(
            use_calibrated=self.used.append, start=lambda stamp_ns: None, pause=lambda: None,
            whole_snapshot=lambda *_: SimpleNamespace(com_distance=0.0002))
        self._callbacks = {}
        self.path = directory / 'calibrated.urdf'
        self.path.write_text(self.true.urdf)
        self.path.with_name('calibration.json').write_text(json.dumps({'residuals': {
            'before': {'torque_rms': 0.2}, 'left out': {'torque_rms': 0.01}}}))

    @property
    def time(self):
        return 1e-9 * self.stamp_ns

    def subscribe(self, kind, topic, callback, qos=None):
        self._callbacks[topic] = callback

    def set_activity(self, activity):
        self.activities.append(activity)

    def release(self):
        pass

    def trigger(self, name):
        self.triggered.append(name)
        yield None

    def wait_until(self, condition, what, timeout):
        assert not condition()
        for text in ('pose 8 of 8, on both feet', f'solved: {self.path}, 1 kg',
                     'is back in posture stand'):
            self._callbacks['com_calibrator/progress'](String(data=text))
        assert condition()
        yield None

    def move_to(self, positions, duration):
        yield positions

    def wait(self, seconds):
        yield None

    def follow(self, command):
        """Measure at this instant, then take over the command at the next one."""
        if 'odom' in self._callbacks:
            com, odometry = PointStamped(), Odometry()
            for message in (com, odometry):
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(
                    self.stamp_ns, 1_000_000_000)
            p = self.true.state(self.positions).com_in_base + (1.0, 2.0, 3.0)
            com.point.x, com.point.y, com.point.z = p.tolist()
            position = odometry.pose.pose.position
            position.x, position.y, position.z = 1.0, 2.0, 3.0
            weight = GRAVITY * self.true.mass
            self._callbacks['simulator/truth/com'](com)
            self._callbacks['odom'](odometry)
            self._callbacks['simulator/truth/contacts'](
                Float64MultiArray(data=[0.25 * weight, 0.75 * weight]))
        self.stamp_ns += STEP_NS
        self.positions = self.positions if command is None else command


def play(stage):
    """Return the result of the chapter."""
    run = Calibration().run(stage)
    while True:
        try:
            stage.follow(next(run))
        except StopIteration as end:
            return end.value


def test_the_errors_before_and_after_are_those_of_the_models(tmp_path):
    stage = CalibratedStage(tmp_path)
    assert not np.any(stage.model.config.base_rpy)  # the stage publishes the pose of the base
    result = play(stage)
    rows = {row[0]: row[1:] for row in result.rows}
    before, after = (float(text.split()[0]) for text in rows['centre of mass off by, in 3-D'])
    upright = stage.model.posture()
    shift = stage.true.state(upright).com_in_base - stage.model.state(upright).com_in_base
    assert before == pytest.approx(1e3 * np.linalg.norm(shift), rel=0.5)
    assert before > 1.0 and after == 0.0
    assert result.conclusion == (
        f'error of the centre of mass: {before:.2f} mm by the URDF -> 0.00 mm calibrated; '
        f'report: {tmp_path / "report.html"}')
    # The page makes a sentence of it: 'The robot is ...'.
    assert stage.activities[0] == 'is being calibrated: pose 8 of 8, on both feet'
    assert rows['published by com_estimator'] == ('', '0.20 mm')
    assert rows['joint torques off by'] == ('0.200 N m', '0.010 N m')
    assert stage.triggered == ['com_calibrator/start', 'com_calibrator/publish']
    assert stage.used[0].mass == pytest.approx(stage.true.mass)


def test_the_weight_below_the_sensors_is_a_row_of_its_own(tmp_path):
    """No foot sensor carries it while the robot stands, so that it is weighed in the air."""
    stage = CalibratedStage(tmp_path)
    rows = {row[0]: row[1:] for row in play(stage).rows}
    below = rows['of it below the sensors, weighed in the air']
    assert below == tuple(f'{weight_below_sensors(model):.2f} N'
                          for model in (stage.model, stage.true))
    by_urdf, calibrated = (float(text.split()[0]) for text in below)
    assert calibrated - by_urdf == pytest.approx(GRAVITY * HIDDEN['l_foot'], abs=0.011)
    (label, weights), = ((label, cells) for label, cells in rows.items()
                         if label.startswith('weight (the truth'))
    assert label == f'weight (the truth {GRAVITY * stage.true.mass:.2f} N)'
    assert weights == tuple(f'{GRAVITY * model.mass:.2f} N'
                            for model in (stage.model, stage.true))


def test_an_exact_urdf_needs_no_calibration(tmp_path):
    result = play(CalibratedStage(tmp_path, hidden={}))
    assert result.conclusion.startswith('the URDF was right: the centre of mass is off by 0.00 mm')
