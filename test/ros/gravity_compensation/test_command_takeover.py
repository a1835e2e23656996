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
"""A node that commands is killed: the next one begins with what the controller applies."""

from __future__ import annotations

import numpy as np
import pytest
from support.effort_controller import EffortController


@pytest.fixture
def killed(make, talos):
    """Return a rig whose node was killed while a controller applies its efforts, and both."""
    rig = make()
    controller = EffortController(rig, talos.actuated_joint_names, is_active=True)
    rig.until(lambda: np.any(controller.efforts) and rig.is_balanced(), 'efforts')
    rig.kill()
    rig.play(0.3)
    return rig, controller


def test_a_restarted_node_begins_with_the_efforts_that_are_applied(killed):
    rig, controller = killed
    count, applied = len(controller.applied), np.abs(controller.efforts).sum()
    rig.restart()
    rig.until(lambda: len(controller.applied) > count, 'its first command')
    assert np.abs(controller.applied[count]).sum() > 0.9 * applied
    rig.until(rig.is_balanced, 'efforts')
    controller.unload()


def test_a_controller_that_was_restarted_meanwhile_begins_at_zero(killed, talos):
    rig, controller = killed
    controller.unload()
    controller = EffortController(rig, talos.actuated_joint_names, is_active=True)
    rig.restart()
    rig.until(lambda: np.any(controller.efforts) and rig.is_balanced(), 'efforts')
    controller.unload()


def test_a_restarted_node_without_sensors_ramps_to_zero(killed):
    rig, controller = killed
    rig.stand(missing={'joints', 'imu'})
    rig.restart()
    rig.until(lambda: not controller.efforts.any(), 'zero')
    controller.unload()
