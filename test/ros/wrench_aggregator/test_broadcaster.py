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
"""A foot whose sensor is behind ros2_control: force_torque_sensor_broadcaster."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from support.driven_time import run_ready
from support.effort_controller import ControllerManager
from support.wrench_broadcaster import WrenchBroadcaster

OFFSET = np.array([3.0, -2.0, 5.0, 0.2, -0.1, 0.3])


@pytest.fixture
def broadcaster(rig):
    """Return the broadcaster of the right foot, which reports what the foot exerts."""
    rig.silent = {'right_foot'}
    broadcaster = WrenchBroadcaster(
        rig.executor, rig.namespace, 'right_foot', 'r_ft', OFFSET, -1.0)
    rig.until(lambda: broadcaster._wrench.get_subscription_count() > 0, what='the aggregator')
    yield broadcaster
    broadcaster.close()


def play(rig, broadcaster, instants, values=None):
    """Let the controller manager update the broadcaster beside the other drivers."""
    reading = rig.robot.reading('right_foot', rig.contacts, 0.0)
    for _ in range(instants):
        broadcaster.update(rig.play(1), -reading - OFFSET if values is None else values)
    run_ready(rig.executor)


def test_wrenches_of_an_active_broadcaster_reach_the_sole(rig, broadcaster):
    rig.clear()
    play(rig, broadcaster, 5)
    assert not rig.got['right/wrench'] and not rig.got['wrench']
    broadcaster.switch(on=True)
    play(rig, broadcaster, 5)
    rig.assert_forces()
    broadcaster.switch(on=False)
    rig.clear()
    play(rig, broadcaster, 5)
    assert not rig.got['right/wrench'] and not rig.got['wrench']


def test_hardware_that_has_not_written_its_interfaces_is_named(rig, broadcaster):
    broadcaster.switch(on=True)
    rig.clear()
    play(rig, broadcaster, 5, np.full(6, np.nan))
    assert not rig.got['right/wrench'] and not rig.got['wrench']
    assert 'wrench.force.x = nan' in rig.node.sensors[2].last_error
    play(rig, broadcaster, 5)
    rig.assert_forces()


def test_an_inactive_broadcaster_is_named_with_the_command_that_activates_it(rig, broadcaster):
    manager = ControllerManager(rig, right_foot='inactive')
    try:
        remedy = (f'/{rig.namespace}/right_foot publishes it but is an inactive controller: '
                  'ros2 control switch_controllers --activate right_foot')
        rig.until(lambda: remedy in rig.node.sensors[2].report()[1], what='the remedy')
        assert rig.node.sensors[2].report()[0] == DiagnosticStatus.ERROR
        count = manager.count
        rig.until(lambda: manager.count > count, what='the next question')
        rig.spin(0.2)  # until it is answered: the next one comes a second later
    finally:
        manager.close()
