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
"""Chapter: feedforward removes the arms' sag; the weight is shifted to one foot and back."""

from __future__ import annotations

from collections.abc import Generator
import math
from typing import Any

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.legs.com_shift import ComShift
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.legs.keyframes import minimum_jerk
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import Chapter, ChapterFailed, ChapterRun, Comparison
from biped_com_ros.demo.stage import Stage
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.stamp import ns_of_msg
import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

_UPDATE = 0.002  # s, between two torques
_SETTLING_TIME = 2.5  # s
_POSTURES = 'arms_out', 'arms_forward', 'arms_up'
"""The arms sag most in the first of these that a robot has; without any it stands."""
_WHEN = {'without': 'without feedforward', 'feedforward': 'with it',
         'calibrated': 'with calibrated masses'}
Sag = tuple[float, float]


class Gravity(Chapter):
    """`gravity_compensation` on a robot with position controllers."""

    name = 'gravity'
    title = 'Held against gravity'
    description = (
        'Outstretched arms sag with position control alone. Torques computed from '
        "the URDF's masses, or better from the calibrated ones, remove the sag. Then "
        'the weight is shifted to one foot, the other one is lifted, and back, with '
        'continuous torques.')

    def missing_for(self, model: RobotModel) -> str:
        """Return whether the robot does not have two feet."""
        return '' if len(model.config.feet) == 2 else 'the robot does not have two feet'

    def run(self, stage: Stage) -> ChapterRun:
        """Sag, hold, shift the weight."""
        model = stage.model
        posture = next((name for name in _POSTURES if name in model.config.postures), 'stand')
        stage.set_activity(f'moves to the posture {posture}, with position control alone')
        yield from stage.move_to(model.posture(posture), 2.0)
        yield from stage.wait(_SETTLING_TIME)
        sags = {'without': _sag(stage)}
        stage.set_activity(f'sags ({_text(sags["without"])}); feedforward starts')
        calibrated = stage.shared.get('calibrated_urdf')
        # The nodes use the calibrated masses: the URDF's are read again.
        sags['feedforward'] = yield from _sag_with_feedforward(
            stage, model.config.urdf if calibrated else '')
        stage.set_activity(f'stands with feedforward ({_text(sags["feedforward"])})')
        yield from stage.wait(1.5)
        if calibrated:
            stage.set_activity('restarts feedforward with the calibrated masses')
            sags['calibrated'] = yield from _sag_with_feedforward(stage, str(calibrated))
            stage.set_activity(f'stands with calibrated feedforward ({_text(sags["calibrated"])})')
            yield from stage.wait(1.5)
        yield from stage.move_to(model.posture(), 2.0)
        rows = [('largest joint error', *(f'{degrees:.3f} deg' for degrees, _ in sags.values()))]
        if model.config.hands:
            rows.append(('largest error of a hand', *(f'{mm:.3f} mm' for _, mm in sags.values())))
        try:
            path, step = _shift(model)
        except InputError as error:
            problem = f'the weight was not shifted: {error}'
        else:
            problem, last = '', [''] * (len(sags) - 1)
            torques = yield from self._follow(stage, path, step)
            rows += [('weight left on the lifted foot', *last,
                      f'{100.0 * torques.least_share:.1f} %'),
                     ('largest jump of a torque in 2 ms', *last,
                      f'{100.0 * torques.largest_step:.2f} % of its limit')]
        yield from stage.ramp_down()
        return Comparison(tuple(sags), rows, 'largest joint error: ' + ', '.join(
            f'{degrees:.3f} deg {_WHEN[when]}' for when, (degrees, _) in sags.items()), problem)

    def _follow(self, stage: Stage, path: Array,
                step: list[Array]) -> Generator[Array | None, None, _Torques]:
        """Stand on the first foot, lift the other one, and back; return the torques' extremes."""
        foot, other = list(stage.model.config.feet)[:2]
        torques = _Torques(stage.model)
        stage.subscribe(JointState, names.FEEDFORWARD, torques.on_effort)
        stage.subscribe(Float64MultiArray, names.ASSUMED_SHARES, torques.on_shares)
        stage.set_activity(f'shifts its weight to the {foot} foot')
        yield from stage.follow(path, 3.0)
        yield from stage.wait(0.5)
        stage.set_activity(f'lifts the {other} foot')
        yield from stage.follow(step, 1.5)
        yield from stage.wait(0.5)
        stage.set_activity('puts it down, and shifts its weight back')
        yield from stage.follow(step[::-1], 1.5)
        yield from stage.follow(path[::-1], 3.0)
        yield from stage.wait(1.0)
        return torques


class _Torques:
    """
    Records extremes of torques and of the feet's shares of the weight.

    Attributes
    ----------
    largest_step
        Of a torque within 2 ms, as a share of the joint's limit.
    least_share
        Of a foot.

    """

    def __init__(self, model: RobotModel) -> None:
        self._limits = GravityModel(model).effort_limits[
            model.joint_index(model.actuated_joint_names)]
        self._last: Array | None = None
        self._last_ns = 0
        self.largest_step, self.least_share = 0.0, 1.0

    def on_effort(self, message: Any) -> None:
        efforts, ns = np.array(message.effort), ns_of_msg(message.header.stamp)
        if self._last is not None and ns > self._last_ns:
            # Messages may be lost on a busy machine; the step is that per 2 ms.
            periods = max(1e-9 * (ns - self._last_ns) / _UPDATE, 1.0)
            step = float(np.max(np.abs(efforts - self._last) / self._limits)) / periods
            self.largest_step = max(self.largest_step, step)
        self._last, self._last_ns = efforts, ns

    def on_shares(self, message: Any) -> None:
        self.least_share = min(self.least_share, *message.data)


def _sag_with_feedforward(stage: Stage, urdf: str = '') -> Generator[Array | None, None, Sag]:
    """Ramp torques up, with the masses of a URDF; return the sag."""
    acts = set[bool]()
    stage.subscribe(JointState, names.FEEDFORWARD, lambda message: acts.add(any(message.effort)))
    yield from stage.ramp_up(urdf)
    yield from stage.wait(_SETTLING_TIME)
    if True not in acts:
        raise ChapterFailed('gravity_compensation sent no torques; its entries on /diagnostics '
                            'have the reason')
    return _sag(stage)


def _shift(model: RobotModel) -> tuple[Array, list[Array]]:
    """Return positions (n,) that bring the weight over the first foot, and that lift the other."""
    foot, other = list(model.config.feet)[:2]
    path = ComShift(model, model.posture()).path(foot, 300)
    return path, _raise(model, path[-1], list(model.config.feet).index(other))


def _raise(model: RobotModel, start: Array, foot: int) -> list[Array]:
    """Return positions (n,) that raise a foot straight up by 3 % of the height of the base."""
    ik = PostureIk(model, start)
    height = -float(model.state(start).placements_in_base(model.soles)[foot, 3, 2])

    def raised(share: float) -> list[Pose]:
        lift = Pose.translation((0.0, 0.0, 0.03 * height * minimum_jerk(share)))
        return [lift @ end if i == foot else end for i, end in enumerate(ik.ends)]

    return [ik.positions(Pose.identity(), raised(i / 100)) for i in range(101)]


def _sag(stage: Stage) -> Sag:
    """Return the largest error of an actuated joint, deg, and of a hand, mm; nan without any."""
    model, commanded = stage.model, stage.positions.copy()
    index = model.joint_index(model.actuated_joint_names)
    assert stage.commanded is not None
    commanded[index] = stage.commanded[index]
    degrees = float(np.degrees(np.abs(stage.positions - commanded).max()))
    hands = model.frames(hand.frame for hand in model.config.hands.values())
    if not hands.names:
        return degrees, math.nan
    found, ideal = (model.state(q).placements_in_base(hands)[:, 3]
                    for q in (stage.positions, commanded))
    return degrees, 1e3 * float(np.linalg.norm(found - ideal, axis=1).max())


def _text(sag: Sag) -> str:
    degrees, mm = sag
    return f'joint error up to {degrees:.4f} deg' + (
        '' if math.isnan(mm) else f', hand {mm:.4f} mm')
