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
"""Chapter: where the masses really are is found out, and the CoM is right afterwards."""

from __future__ import annotations

from collections.abc import Generator
import json
import math
from pathlib import Path
import re
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array, Pose, rotation_from_quaternion
from biped_com_ros.core.legs.keyframes import KeyframeMotion, show_keyframes
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import Act, Chapter, Comparison, Skipped
from biped_com_ros.demo.stage import Stage
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.stamp import ns_of_msg
from geometry_msgs.msg import PointStamped
from nav_msgs.msg import Odometry
import numpy as np
from std_msgs.msg import Float64MultiArray, String

_PATIENCE = 300.0  # simulated s, for all poses
_SOLVED, _BACK = re.compile(r'solved: (.*calibrated\.urdf), '), 'is back in posture'
_SHOWN = 12.0  # s of the motion on which it is tested
_RIGHT = 1e-4  # m; a URDF that is better needs no calibration


class Calibration(Chapter):
    """`com_calibrator` hoists the robot, takes poses and corrects the URDF."""

    name = 'calibration'
    title = 'Where the masses really are'
    shows = ('The robot is hoisted, takes the poses that tell most, and is measured at rest in '
             'each; the masses that explain it all go into a new URDF. Then its centre of mass by '
             'the old and by the new one is compared with the true one, in other poses.')

    def lacks(self, model: RobotModel) -> str:
        """Return what it cannot be measured with."""
        return '' if model.config.wrench_sensors else 'it has no force sensors'

    def run(self, stage: Stage) -> Act:
        """Calibrate, then compare."""
        path = yield from _calibrate(stage)
        stage.shared['calibrated_urdf'] = str(path)
        found = json.loads(path.with_name('calibration.json').read_text(encoding='utf-8'))
        calibrated = RobotModel(stage.model.config, path.read_text(encoding='utf-8'))
        stage.say('moves: its centre of mass is compared with the true one')
        yield from stage.move_to(stage.model.posture(), 1.0)
        stage.measurements.begin(stage.stamp_ns)  # not while it hung
        test = yield from _compare(stage, calibrated)
        before, after = test.errors(stage.model), test.errors(calibrated)
        torque = [found['residuals'][when]['torque_rms'] for when in ('before', 'left out')]
        weights = [GRAVITY * model.mass for model in (stage.model, calibrated)]
        return Comparison(('by the URDF', 'calibrated'), [
            ('centre of mass off by', *(f'{1e3 * e.mean():.2f} mm' for e in (before, after))),
            ('at most', *(f'{1e3 * e.max():.2f} mm' for e in (before, after))),
            (f'weight (the truth {test.weight:.2f} N)',
             *(f'{weight:.2f} N' for weight in weights)),
            ('joint torques off by', *(f'{rms:.3f} N m' for rms in torque))],
            f'{_gain(before.mean(), after.mean())}; how sure that is: '
            f'{path.with_name("report.html")}')


def _gain(before: float, after: float) -> str:
    if before < _RIGHT:
        return 'the URDF was right'
    return f'{before / max(after, 1e-9):.0f} times nearer to the truth'


def _calibrate(stage: Stage) -> Generator[Array | None, None, Path]:
    """Let com_calibrator do its work; return the URDF that it wrote."""
    told: list[str] = []

    def listen(message: Any) -> None:
        told.append(message.data)
        stage.say(message.data.split(';')[0] if message.data.startswith('hoist')
                  else message.data)

    stage.listen(String, 'com_calibrator/progress', listen, LATCHED)
    stage.release()
    yield from stage.trigger('com_calibrator/start')
    yield from stage.until(lambda: any(_SOLVED.match(words) for words in told) and any(
        _BACK in words for words in told), 'the end of the calibration', _PATIENCE)
    for words in told:
        if match := _SOLVED.match(words):
            return Path(match[1])
    raise Skipped('com_calibrator did not say where the calibrated URDF is')


def _compare(stage: Stage, calibrated: RobotModel) -> Generator[Array | None, None, _Test]:
    """Move, and collect postures with the true centre of mass in the base."""
    test = _Test(stage)
    motion = KeyframeMotion(stage.model, show_keyframes(stage.model))
    begin, duration = stage.time, min(motion.duration, _SHOWN)
    while stage.time < begin + duration:
        test.postures[stage.stamp_ns] = stage.positions.copy()
        yield motion.positions(stage.time - begin)
    yield from stage.wait(0.2)
    return test


class _Test:
    """
    True centres of mass seen from the base: where leg odometry believes to be does not matter.

    Attributes
    ----------
    postures
        Joint positions (n,) by stamp, ns.

    """

    def __init__(self, stage: Stage) -> None:
        self.postures: dict[int, Array] = {}
        self._coms: dict[int, Array] = {}
        self._bases: dict[int, Pose] = {}
        # Odometry is about the link, the model about its base: the axes of REP 103.
        self._turn = Pose.from_rpy(stage.model.config.base_rpy, np.zeros(3)).rotation
        self._carried: list[float] = []
        stage.listen(Float64MultiArray, 'simulator/truth/contacts', self._on_contacts)
        stage.listen(PointStamped, 'simulator/truth/com', self._on_com)
        stage.listen(Odometry, 'odom', self._on_odometry)

    def errors(self, model: RobotModel) -> Array:
        """Return how far the model is off along the ground, (k,), m."""
        errors = []
        for ns in self.postures.keys() & self._coms.keys() & self._bases.keys():
            base = self._bases[ns]
            by_model = base.rotation @ self._turn @ model.state(self.postures[ns]).com_in_base
            apart = by_model - (self._coms[ns] - base.position)
            errors.append(float(np.hypot(apart[0], apart[1])))
        if not errors:
            raise Skipped('nobody told where the true centre of mass is')
        return np.array(errors)

    @property
    def weight(self) -> float:
        """Return what the ground truly carried, on average, N; the sensors miss the feet."""
        return float(np.mean(self._carried)) if self._carried else math.nan

    def _on_contacts(self, message: Any) -> None:
        self._carried.append(sum(message.data))

    def _on_com(self, message: Any) -> None:
        p = message.point
        self._coms[ns_of_msg(message.header.stamp)] = np.array((p.x, p.y, p.z))

    def _on_odometry(self, message: Any) -> None:
        p, q = message.pose.pose.position, message.pose.pose.orientation
        self._bases[ns_of_msg(message.header.stamp)] = Pose(
            rotation_from_quaternion(np.array((q.x, q.y, q.z, q.w))), np.array((p.x, p.y, p.z)))
