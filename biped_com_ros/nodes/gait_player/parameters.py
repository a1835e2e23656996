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
"""Parameters of `gait_player`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from biped_com_ros.core.legs.balance import BalanceSettings, stepping
from biped_com_ros.core.legs.footsteps import time_scale
from biped_com_ros.core.legs.gait import GaitOptions, QUICK
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import setting
from biped_com_ros.ros.node.common_parameters import RobotNodeParameters
from biped_com_ros.ros.node.parameters import read_only

FOLLOW_TIME = 0.3
"""Time for which the distance from the gait may exceed follow_tolerance, s."""
LEAD = 0.25
"""Time between a request and the first motion that it causes: longer than the delay of a
trajectory, s."""
POSTURE_TOLERANCE = 0.05
"""Largest distance of the joints from the posture when a walk begins, and from the end of a shift
that is reached, rad."""
QUASI_STATIC, PREVIEW = 'quasi-static', 'preview'
_PATTERNS = {QUASI_STATIC: GaitOptions(), PREVIEW: QUICK}


def _timing(description: str) -> Any:
    return setting(
        0.0, f'{description}; 0: that of the pattern, times the time_scale of the '
        "robot's YAML", 's', 0.0, 60.0)


@dataclass(frozen=True)
class GaitPlayerParameters(RobotNodeParameters):
    """Parameters of `gait_player`."""

    posture: str = read_only(
        'stand', "Posture of the robot's YAML in which it stands before a walk")
    joints: list[str] = read_only([], 'Joints of the controller; empty: those of the legs')
    steps: int = setting(10, 'Steps of ~/walk', '', 1, 200)
    step_length: float = setting(
        0.05, 'Distance by which a foot lands ahead of the other one; negative: backwards', 'm',
        -1.0, 1.0)
    first_foot: str = setting(
        '', 'Foot that steps first where both are side by side; empty: the second of the YAML')
    shift_foot: str = setting(
        '', 'Foot over which ~/shift_com moves the centre of mass, or hand of shift_holding (as '
        'left_hand, if there is a foot of that name) below which; empty: the first foot of the '
        'YAML')
    shift_holding: list[str] = setting(
        [], 'Hands that hold on to something and stay where they are while ~/shift_com moves '
        'the centre of mass; their arms must be in joints')
    shift_share: float = setting(
        1.0, 'Share of the way to the foot or hand by which ~/shift_com moves the centre of mass',
        '', 0.0, 1.0)
    shift_time: float = setting(
        2.0, 'Duration of a shift of the centre of mass', 's', 0.5, 60.0)
    pattern: str = setting(
        QUASI_STATIC, 'Gait: quasi-static (slow, the centre of mass always above the soles) or '
        'preview (quick, by preview control of the zero-moment point)', options=tuple(_PATTERNS))
    single_support: float = _timing('Duration of the swing of a foot')
    double_support: float = _timing('Duration of the shift of weight between two steps')
    start_stop: float = _timing('Duration of the first and the last shift of weight')
    lift: float = setting(
        0.0, 'Height to which a foot is lifted; 0: that of the pattern', 'm', 0.0, 0.3)
    crouch: float = setting(
        -1.0, 'By how much the hips are lowered, as a share of the length of a leg; negative: as '
        "in the robot's YAML", '', -1.0, 0.5)
    ramp: float = read_only(
        0.5, 'Duration of slowing down for a pause or stop, and of speeding up again', 's', 0.05,
        5.0)
    use_fused_com: bool = setting(
        True, 'Whether to plan with the centre of mass that com_estimator measured by the forces '
        "of the feet, instead of the URDF's")
    settling_time: float = setting(
        1.0, 'Time for which the centre of mass is measured before a walk is planned', 's', 0.0,
        10.0)
    max_com_offset: float = setting(
        0.03, "Largest distance of the measured centre of mass from the URDF's with which the"
        ' robot may walk', 'm', 0.0, 0.5)
    feedback: bool = setting(
        False, 'Whether walks, and a robot that balances (~/balance), react to the measured tilt '
        'of the ground, centre of mass and foot wrenches')
    feedback_timeout: float = setting(
        0.1, 'Age from which inputs of the feedback are stale: its increments then fade out; '
        'while the robot balances they are kept', 's', 0.01, 10.0)
    max_step_adjustment: float = setting(
        0.0, 'With feedback: how far from its planned place a foot may land after a push; the '
        'walk also waits for a robot that was pushed. 0: places and times stay', 'm', 0.0, 0.5)
    monitor: str = read_only('zmp_monitor', 'Node that monitors stability; empty: not monitored')
    monitor_timeout: float = setting(
        5.0, 'Time without diagnostics of the monitor after which it counts as stopped', 's', 1.5,
        60.0)
    follow_tolerance: float = setting(
        0.2, 'Largest distance of the joints from the gait while walking', 'rad', 0.01, 2.0)
    rate: float = setting(
        50.0, 'Rate of the reference and of checking the robot', 'Hz', 5.0, 1000.0)
    input_timeout: float = setting(0.25, 'Age from which joint states are stale', 's', 0.01, 10.0)

    def balance(self) -> BalanceSettings | None:
        """Return the settings of the feedback; None without."""
        if not self.feedback:
            return None
        return stepping(self.max_step_adjustment)

    def options(self, model: RobotModel) -> GaitOptions:
        """Return the settings of the gait of a robot."""
        options = _PATTERNS[self.pattern]
        usual = options.timing.slowed(time_scale(model))
        given = {'single_support': self.single_support, 'double_support': self.double_support,
                 'start': self.start_stop, 'stop': self.start_stop, 'lift': self.lift}
        if usual.rest and self.start_stop:
            given['rest'] = self.start_stop
        timing = replace(usual, **{k: v for k, v in given.items() if v})
        return replace(options, timing=timing, crouch=self.crouch if self.crouch >= 0.0 else None)
