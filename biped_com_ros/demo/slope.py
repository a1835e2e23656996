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
"""Chapter: the robot walks down a slope, without and with feedback."""

from __future__ import annotations

from collections.abc import Generator
import math

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.balance import MAX_TILT_ACCELERATION
from biped_com_ros.core.legs.ik import legs_of
from biped_com_ros.core.legs.kinematics import JOINTS, RobotLeg
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import and_then, Chapter, ChapterRun, Comparison
from biped_com_ros.demo.stage import Commands, Stage
from biped_com_ros.demo.walks import missing_gait, Walks

STEPS = 6
LARGEST_SLOPE = math.radians(6.0)
LEAN_SHARE = 0.63
PACE = 0.4
"""Real-time factor of the walks: with feedback, messages that are late on a busy computer would
let the robot fall."""

ANKLE_BEND = 0.47
"""What quick steps on level ground need of Romeo's ankles, rad; a slope needs its angle more."""
_ANKLE_PITCH = JOINTS.index('ankle pitch')


class Slope(Chapter):
    """The floor tilts; `gait_player` lets the robot walk with `feedback` off and on."""

    name = 'slope'
    title = 'Down a slope, without and with feedback'
    description = (
        'The floor tilts, and the gait is planned for a level one. First the robot '
        'walks as planned, leaning with the slope. Then gait_player turns the soles to the '
        'ground and reacts to the measured zero-moment point. In slow motion, so that no '
        'message is late.')

    def missing_for(self, model: RobotModel) -> str:
        """Return whether there is no gait, nothing to feed back, or too stiff an ankle."""
        if not model.config.imus or not model.config.has_foot_wrenches:
            return 'feedback needs an IMU and measured feet'
        return (model.config.force_z_restriction or missing_gait(model) or _untried_legs(model)
                or _missing_bend(model))

    def run(self, stage: Stage) -> ChapterRun:
        """Walk twice from the same stance; the floor is as before afterwards."""
        floor = yield from stage.get_parameter('simulator', 'floor_pitch')
        pace = yield from stage.get_parameter('simulator', 'real_time_factor')
        before = {'floor_pitch': floor, 'real_time_factor': pace}
        return (yield from and_then(self._compare(stage, slope_for(stage.model)),
                                    lambda: self._end(stage, before)))

    def _end(self, stage: Stage, before: dict[str, float]) -> Commands:
        """Ramp the torques down, and reset the robot to its stance on the former floor."""
        yield from stage.ramp_down()
        yield from stage.set_parameters('gait_player', feedback=False)
        yield from stage.set_parameters('simulator', **before)
        stage.set_activity('is reset to its initial stance')
        yield from stage.reset_robot()

    def _compare(self, stage: Stage, slope: float) -> ChapterRun:
        self._problem = ''
        walks = Walks(stage)
        yield from walks.wait()
        yield from stage.set_parameters('simulator', floor_pitch=slope, real_time_factor=PACE)
        degrees = f'{math.degrees(slope):.1f} deg'
        rows = []
        for feedback in (False, True):
            rows.append((yield from self._walk(stage, walks, degrees, feedback)))
        return Comparison(('steps', 'ZMP error (rms)', 'least ZMP margin'), rows,
                          problem=self._problem)

    def _walk(self, stage: Stage, walks: Walks, degrees: str,
              feedback: bool) -> Generator[Array | None, None, tuple[str, ...]]:
        """Walk down from the initial stance; return a row of the table."""
        how = 'with feedback' if feedback else 'without feedback'
        stage.set_activity(f'stands on a slope of {degrees}')
        yield from stage.ramp_down()
        yield from stage.reset_robot()
        yield from stage.ramp_up(str(stage.shared.get('calibrated_urdf', '')))
        stage.set_activity(f'walks down {how}')
        result = yield from walks.walk(
            'walk', pattern='preview', steps=STEPS, feedback=feedback)
        done = f'{result.steps} of {STEPS}' + ('' if result.has_ended else ', then fell')
        # Without feedback it may fall, but not be refused a walk or stopped.
        is_done = result.steps == STEPS if result.has_ended else not feedback
        if not is_done:
            self._problem = self._problem or (
                f'{how}: {done} steps; the reason is in the log of gait_player')
        return f'{degrees} down, {how}', done, *result.cells


def slope_for(model: RobotModel) -> float:
    """
    Return a slope on which a robot stands without feedback, rad.

    On it the zero-moment point is at most :data:`LEAN_SHARE` of the way from below the centre of
    mass to the front edge of the soles: the robot leans with the slope, and then comes upright
    with an acceleration about its feet. The slope is at most :data:`LARGEST_SLOPE`.
    """
    state = model.state(model.posture())
    placements = state.placements_in_base(model.soles)
    com_in_soles = [row[:3] @ (state.com_in_base - row[3]) for row in placements]
    ahead = min(max(x for x, _ in foot.polygon) - com[0]
                for foot, com in zip(model.config.feet.values(), com_in_soles))
    height = float(min(com[2] for com in com_in_soles))
    upright = MAX_TILT_ACCELERATION * height ** 2 / GRAVITY
    lean = max(LEAN_SHARE * float(ahead) - upright, 0.0)
    return min(LARGEST_SLOPE, math.atan(lean / height))


def _untried_legs(model: RobotModel) -> str:
    """Return whether the legs are of a kind that no measured walk down a slope had."""
    if all(isinstance(leg, RobotLeg) for leg in legs_of(model).values()):
        return ''
    return "walks down a slope were tried with legs of Wang's kinematics only"


def _missing_bend(model: RobotModel) -> str:
    """Return whether ankles bend too little to turn the rear sole to the ground as well."""
    needed = ANKLE_BEND + slope_for(model)
    standing = model.posture()
    for leg in legs_of(model).values():
        is_negative = standing[leg.index[_ANKLE_PITCH]] < 0.0
        bend = -leg.lower[_ANKLE_PITCH] if is_negative else leg.upper[_ANKLE_PITCH]
        if bend < needed:
            return (f'its ankles bend by {math.degrees(bend):.0f} deg, steps down a slope need '
                    f'{math.degrees(needed):.0f}')
    return ''
