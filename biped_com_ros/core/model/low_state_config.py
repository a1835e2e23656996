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
"""Which joints the motors of Unitree's message LowState move, from the robot's YAML."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.errors import ConfigurationError

MESSAGES = 'unitree_hg', 'unitree_go'


@dataclass(frozen=True)
class LowStateConfig:
    """
    The message LowState of a robot of Unitree.

    Attributes
    ----------
    message
        Package of the message: ``unitree_hg`` (G1, H1-2) or ``unitree_go`` (H1).
    motors
        Joint of each motor, in the order of ``motor_state``; empty for motors that the robot does
        not have. Motors beyond the list are not used.
    topic
        Its topic.

    """

    message: str
    motors: tuple[str, ...]
    topic: str = 'lowstate'


def check_low_state(robot: str, config: LowStateConfig | None) -> None:
    """Raise ConfigurationError for an unknown message, and for a joint that is named twice."""
    if config is None:
        return
    if config.message not in MESSAGES:
        raise ConfigurationError(
            f"low_state.message of '{robot}' is '{config.message}'; use {' or '.join(MESSAGES)}")
    joints = [name for name in config.motors if name]
    if not joints:
        raise ConfigurationError(f"low_state.motors of '{robot}' names no joint")
    for name in joints:
        if joints.count(name) > 1:
            raise ConfigurationError(f"low_state.motors of '{robot}' names joint '{name}' twice")
