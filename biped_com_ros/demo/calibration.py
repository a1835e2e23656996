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
"""Chapter: the masses are calibrated, and the CoM is compared before and after."""

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
from biped_com_ros.core.wrench.weight_check import weight_below_sensors
from biped_com_ros.demo.chapter import Chapter, ChapterFailed, ChapterRun, Comparison
from biped_com_ros.demo.stage import Stage
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.qos import LATCHED
from biped_com_ros.ros.topics.stamp import ns_of_msg
from geometry_msgs.msg import PointStamped
from nav_msgs.msg import Odometry
import numpy as np
from std_msgs.msg import Float64MultiArray, String

_TIMEOUT = 300.0  # simulated s, for all poses
_SOLVED, _BACK = re.compile(r'solved: (.*calibrated\.urdf), '), 'is back in posture'
_TEST_DURATION = 12.0  # s of the motion for the comparison
_NEGLIGIBLE = 1e-4  # m; a smaller error needs no calibration
_TAKE_OVER = 1.0  # s, until the nodes use the calibrated URDF


class Calibration(Chapter):
    """`com_calibrator` hoists the robot, takes poses and corrects the URDF."""

    name = 'calibration'
    title = 'Where the masses really are'
    description = (
        'The robot is hoisted and measured at rest in a few well-chosen poses. The '
        'masses that fit all measurements best go into a new URDF, which all nodes '
        'use from then on. Then the centres of mass by the old and by the new URDF are '
        'compared with the true one, in other poses.')

    def missing_for(self, model: RobotModel) -> str:
        """Return whether nothing measures the feet."""
        config = model.config
        return (config.force_z_restriction if config.wrench_sensors or config.has_foot_wrenches
                else 'the robot has no force sensors')

    def run(self, stage: Stage) -> ChapterRun:
        """Calibrate, then compare."""
        stage.measurements.pause()  # it is hoisted, and the URDF is about to change
        path = yield from _calibrate(stage)
        stage.shared['calibrated_urdf'] = str(path)
        found = json.loads(path.with_name('calibration.json').read_text(encoding='utf-8'))
        calibrated = RobotModel(stage.model.config, path.read_text(encoding='utf-8'))
        yield from stage.trigger('com_calibrator/publish')
        stage.set_activity('moves, while its centre of mass is compared with the true one')
        yield from stage.move_to(stage.model.posture(), 1.0)
        yield from stage.wait(_TAKE_OVER)
        stage.measurements.use_calibrated(calibrated)
        stage.measurements.start(stage.stamp_ns)  # without the calibration
        recording = yield from _record(stage)
        before, after = recording.errors(stage.model), recording.errors(calibrated)
        torque = [found['residuals'][when]['torque_rms'] for when in ('before', 'left out')]
        models = (stage.model, calibrated)
        rows = [
            ('centre of mass off by, in 3-D',
             *(f'{1e3 * e.mean():.2f} mm' for e in (before, after))),
            ('at most', *(f'{1e3 * e.max():.2f} mm' for e in (before, after))),
            ('published by com_estimator', '', _published(stage)),
            (f'weight (the truth {recording.weight:.2f} N)',
             *(f'{GRAVITY * model.mass:.2f} N' for model in models)),
            ('of it below the sensors, weighed in the air',
             *(f'{weight_below_sensors(model):.2f} N' for model in models)),
            ('joint torques off by', *(f'{rms:.3f} N m' for rms in torque))]
        return Comparison(
            ('by the URDF', 'calibrated'), rows, f'{_gain(before.mean(), after.mean())}; report: '
            f'{path.with_name("report.html")}')


def _gain(before: float, after: float) -> str:
    if before < _NEGLIGIBLE:
        return f'the URDF was right: the centre of mass is off by {1e3 * before:.2f} mm'
    return (f'error of the centre of mass: {1e3 * before:.2f} mm by the URDF -> '
            f'{1e3 * after:.2f} mm calibrated')


def _published(stage: Stage) -> str:
    distance = stage.measurements.whole_snapshot(0.0, (0, ''), ()).com_distance
    return 'unknown' if math.isnan(distance) else f'{1e3 * distance:.2f} mm'


def _calibrate(stage: Stage) -> Generator[Array | None, None, Path]:
    """Run com_calibrator; return the path of its URDF."""
    progress: list[str] = []

    def on_progress(message: Any) -> None:
        text = message.data
        progress.append(text)
        # What the robot does, as the end of a sentence.
        text = text.split(';')[0] if text.startswith('hoist') else text
        stage.set_activity(f'is being calibrated: {text}')

    stage.subscribe(String, names.CALIBRATION_PROGRESS, on_progress, LATCHED)
    stage.release()
    yield from stage.trigger('com_calibrator/start')
    yield from stage.wait_until(
        lambda: any(map(_SOLVED.match, progress)) and any(_BACK in text for text in progress),
        'end of the calibration', _TIMEOUT)
    match = next(filter(None, map(_SOLVED.match, progress)))
    return Path(match[1])


def _record(stage: Stage) -> Generator[Array | None, None, _Recording]:
    """Move, and record postures with the true centre of mass relative to the base."""
    recording = _Recording(stage)
    motion = KeyframeMotion(stage.model, show_keyframes(stage.model))
    begin, duration = stage.time, min(motion.duration, _TEST_DURATION)
    while stage.time < begin + duration:
        recording.postures[stage.stamp_ns] = stage.positions.copy()
        yield motion.positions(stage.time - begin)
    yield from stage.wait(0.2)
    return recording


class _Recording:
    """
    True centres of mass relative to the base, independent of errors of leg odometry.

    Attributes
    ----------
    postures
        Joint positions (n,) by stamp, ns.

    """

    def __init__(self, stage: Stage) -> None:
        self.postures: dict[int, Array] = {}
        self._coms: dict[int, Array] = {}
        self._bases: dict[int, Pose] = {}
        # Odometry is that of the link, the model's base has the axes of REP 103.
        self._turn = Pose.from_rpy(stage.model.config.base_rpy, np.zeros(3)).rotation
        self._contacts: list[Any] = []
        stage.subscribe(Float64MultiArray, names.TRUE_CONTACTS, self._contacts.append)
        stage.subscribe(PointStamped, names.TRUE_COM, self._on_com)
        stage.subscribe(Odometry, 'odom', self._on_odometry)

    def errors(self, model: RobotModel) -> Array:
        """Return the errors of the model, (k,), m."""
        errors = []
        for ns in self.postures.keys() & self._coms.keys() & self._bases.keys():
            base = self._bases[ns]
            by_model = base.rotation @ self._turn @ model.state(self.postures[ns]).com_in_base
            error = by_model - (self._coms[ns] - base.position)
            errors.append(float(np.linalg.norm(error)))
        if not errors:
            raise ChapterFailed('no true centre of mass from the simulator')
        return np.array(errors)

    @property
    def weight(self) -> float:
        """Mean of the true vertical force of the ground, N; the sensors do not weigh the feet."""
        forces = [sum(message.data) for message in self._contacts]
        return float(np.mean(forces)) if forces else math.nan

    def _on_com(self, message: Any) -> None:
        p = message.point
        self._coms[ns_of_msg(message.header.stamp)] = np.array((p.x, p.y, p.z))

    def _on_odometry(self, message: Any) -> None:
        p, q = message.pose.pose.position, message.pose.pose.orientation
        self._bases[ns_of_msg(message.header.stamp)] = Pose(
            rotation_from_quaternion(np.array((q.x, q.y, q.z, q.w))), np.array((p.x, p.y, p.z)))
