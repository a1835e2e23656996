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
"""
Stand-ins for an effort controller of ros2_control and its controller manager.

As read in ros2_control 4.46.0 and ros2_controllers 4.42.1 (branches jazzy, 9ffbf97f and ed360c97)
and in rcl_lifecycle 9.2.0:

- ``controller_interface_base.cpp``: the node of a controller has no lifecycle services
  (``false`` in its constructor); ``rcl_lifecycle.c`` then makes the publisher of
  ``~/transition_event`` alone, and announces the intermediate state ``activating`` or
  ``deactivating``, and then the one that is reached.
- ``forward_controllers_base.cpp``: ``on_configure`` subscribes to ``~/commands``, so that inactive
  controllers receive, too; a message with a value that is not finite is dropped; ``on_activate``
  forgets what was received before, and nothing is written until the next command; commands of
  another size are an error and not written.
- ``forward_command_controller.cpp``: the parameter ``joints`` gives the order, ``interface_name``
  what the values are.
- ``joint_group_effort_controller.cpp``: ``on_init`` sets ``interface_name`` to ``effort``;
  ``on_deactivate`` writes 0 to all joints.
- ``controller_manager.cpp``: ``~/list_controllers`` has name and state of each controller; names
  are without the namespace, which is that of the manager.
"""

from lifecycle_msgs.msg import State, TransitionEvent
import numpy as np
import pytest
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray


class EffortController:
    """
    The controller, which applies no effort when it is activated, and to which none may be a jump.

    Parameters
    ----------
    rig
        The robot with the node under test.
    joints, name, interface
        Parameter of the controller, its name, and what its commands are.
    is_active
        Whether it is active and announces nothing; else it is inactive, and the node knows that.

    Attributes
    ----------
    efforts
        What its joints get, (n,).
    applied
        The efforts by each command and after each deactivation; None for commands that were
        received while it was inactive.

    """

    def __init__(self, rig, joints, name='effort_controller', interface='effort',
                 is_active=False):
        self.rig, self.applied, self.is_active = rig, [], is_active
        self.efforts = np.zeros(len(joints))
        self.node = Node(name, namespace=rig.namespace)
        self.node.declare_parameter('joints', list(joints))
        self.node.declare_parameter('interface_name', interface)
        self._events = self.node.create_publisher(
            TransitionEvent, f'{name}/transition_event', 10)
        self.node.create_subscription(
            Float64MultiArray, 'gravity_compensation/commands', self._on_commands, 1000)
        self._limits = rig.gravity_model.effort_limits[rig.model.joint_index(joints)]
        rig.has_controller = True
        if not is_active:
            rig.settle()
        rig.executor.add_node(self.node)
        if not is_active:
            rig.until(lambda: self._events.get_subscription_count() > 0, 'the watch')
            rig.step()

    def switch(self, on):
        """Activate or deactivate it."""
        self._announce(State.TRANSITION_STATE_ACTIVATING if on
                       else State.TRANSITION_STATE_DEACTIVATING)
        if self.is_active and not on:
            self.efforts = np.zeros(len(self.efforts))
            self.applied.append(self.efforts)
        self.is_active = on
        self._announce(State.PRIMARY_STATE_ACTIVE if on else State.PRIMARY_STATE_INACTIVE)
        self.rig.step()

    def _announce(self, state):
        self._events.publish(TransitionEvent(goal_state=State(id=state)))

    def _on_commands(self, message):
        command = np.array(message.data)
        assert command.shape == self.efforts.shape, 'commands of another size are an error'
        if not np.isfinite(command).all():
            return
        if self.is_active:
            self.rig.check(self._limits, command, self.efforts)
            self.efforts = command
        self.applied.append(command if self.is_active else None)

    @property
    def got_nothing(self):
        """Whether it never applied a command."""
        return all(efforts is None for efforts in self.applied)

    def activate(self):
        """Activate it, and play until it applies what balances gravity."""
        self.switch(on=True)
        self.rig.until(lambda: self.applied and self.applied[-1] is not None
                       and self.rig.is_balanced(), 'efforts')
        return self

    def unload(self):
        """End it."""
        self.rig.executor.remove_node(self.node)
        self.node.destroy_node()
        self.rig.step()


class ControllerManager:
    """
    Lists controllers.

    Parameters
    ----------
    rig
        The robot with the node under test.
    name
        Of its node.
    states
        State of each controller by name.

    """

    def __init__(self, rig, name='controller_manager', **states):
        srv = pytest.importorskip('controller_manager_msgs.srv')
        msg = pytest.importorskip('controller_manager_msgs.msg')
        self.states, self.count, self._rig, self._state = states, 0, rig, msg.ControllerState
        self.node = Node(name, namespace=rig.namespace)
        self.node.create_service(srv.ListControllers, '~/list_controllers', self._list)
        rig.executor.add_node(self.node)

    def _list(self, _, response):
        self.count += 1
        response.controller = [
            self._state(name=name, state=state) for name, state in self.states.items()]
        return response

    def close(self):
        """End it."""
        self._rig.executor.remove_node(self.node)
        self.node.destroy_node()
