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
"""Gives the torso to `torso_controller` once the chapters are over."""

from __future__ import annotations

from typing import Any

from biped_com_ros.demo.stage import Commands, Stage
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.qos import STATE_OUTPUT
from lifecycle_msgs.msg import Transition
from std_msgs.msg import String

_NODE = 'torso_controller'


def control_torso(stage: Stage) -> Commands:
    """
    Activate `torso_controller`, until a calibration bends the torso itself.

    Both at a time would pull the tendons to different lengths.

    Raises
    ------
    ChapterFailed
        If the node is not running, or refuses.

    """
    yield from stage.change_state(_NODE, Transition.TRANSITION_CONFIGURE)
    yield from stage.change_state(_NODE, Transition.TRANSITION_ACTIVATE)
    progress: list[str] = []

    def on_progress(message: Any) -> None:
        progress.append(message.data)

    # Not the last message of the calibration that was a chapter: only what comes from now on.
    stage.subscribe(String, names.CALIBRATION_PROGRESS, on_progress, STATE_OUTPUT)
    while not progress:
        yield stage.commanded
    yield from stage.change_state(_NODE, Transition.TRANSITION_DEACTIVATE)
    yield from stage.change_state(_NODE, Transition.TRANSITION_CLEANUP)
