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
"""Turns `gravity_compensation` on and off."""

from __future__ import annotations

from biped_com_ros.demo.stage import Commands, Stage
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import GetState

_NODE = 'gravity_compensation'
_RAMP_UP, _RAMP_DOWN = 2.2, 1.2  # s, a little more than the node's ramps take


def ramp_up(stage: Stage, urdf: str = '') -> Commands:
    """
    Ramp torques up, computed with the masses of a URDF; by default the robot's.

    Raises
    ------
    ChapterFailed
        If the node is not running, or refuses.

    """
    yield from ramp_down(stage)
    yield from stage.set_parameters(_NODE, urdf=urdf)
    yield from stage.activate(_NODE)
    yield from stage.wait(_RAMP_UP)


def ramp_down(stage: Stage) -> Commands:
    """Ramp torques down, if there are any, and clean the node up."""
    response = yield from stage.call(GetState, f'{_NODE}/get_state', GetState.Request())
    state = response.current_state.id
    if state == State.PRIMARY_STATE_ACTIVE:
        yield from stage.change_state(_NODE, Transition.TRANSITION_DEACTIVATE)
        yield from stage.wait(_RAMP_DOWN)
    if state != State.PRIMARY_STATE_UNCONFIGURED:
        yield from stage.change_state(_NODE, Transition.TRANSITION_CLEANUP)
