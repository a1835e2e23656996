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
A stand-in for force_torque_sensor_broadcaster of ros2_controllers.

As read in ros2_controllers 4.42.1 (force_torque_sensor_broadcaster.cpp, branch jazzy, ed360c97)
and ros2_control 4.46.0:

- ``on_configure`` makes the publisher of ``~/wrench``, so that it exists while nothing is sent.
- ``update_and_write_commands``, of an active controller only: the stamp is the time of the
  controller manager's update, the frame the parameter ``frame_id``; ``offset.*`` is added first,
  then ``multiplier.*`` is applied.
- Nothing checks the values: of a hardware that has not written its interfaces yet they are NaN
  (``semantic_components/force_torque_sensor.hpp``).
- Its node has no lifecycle services and announces transitions, see `effort_controller`.
"""

from __future__ import annotations

from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import State, TransitionEvent
import numpy as np
from rclpy.node import Node
from support.messages import wrench_stamped


class WrenchBroadcaster:
    """
    The controller, inactive.

    Parameters
    ----------
    executor, namespace, name
        Where it runs, and its name.
    frame_id, offset, multiplier
        Parameters of the controller; the latter two (6,), force first.

    """

    def __init__(self, executor, namespace, name, frame_id, offset=0.0, multiplier=1.0):
        self._executor, self.is_active = executor, False
        self._frame, self._offset, self._multiplier = frame_id, offset, multiplier
        self.node = Node(name, namespace=namespace)
        self._events = self.node.create_publisher(
            TransitionEvent, f'{name}/transition_event', 10)
        self._wrench = self.node.create_publisher(WrenchStamped, f'{name}/wrench', 10)
        executor.add_node(self.node)

    def switch(self, on):
        """Activate or deactivate it."""
        self._announce(State.TRANSITION_STATE_ACTIVATING if on
                       else State.TRANSITION_STATE_DEACTIVATING)
        self.is_active = on
        self._announce(State.PRIMARY_STATE_ACTIVE if on else State.PRIMARY_STATE_INACTIVE)

    def _announce(self, state):
        self._events.publish(TransitionEvent(goal_state=State(id=state)))

    def update(self, stamp, values):
        """Be updated by the controller manager, with values (6,) of the hardware."""
        if self.is_active:
            self._wrench.publish(wrench_stamped(
                stamp, self._frame, (np.asarray(values) + self._offset) * self._multiplier))

    def close(self):
        """End it."""
        self._executor.remove_node(self.node)
        self.node.destroy_node()
