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
"""A client of FollowJointTrajectory for tests; needs control_msgs."""

from action_msgs.msg import GoalStatus as STATUS, GoalStatusArray
from rclpy.action import ActionClient
from rclpy.qos import qos_profile_action_status_default

__all__ = ['STATUS', 'GoalClient']


class Goal:
    """A goal that was accepted."""

    def __init__(self, rig, handle, feedback):
        self._rig, self.goal_handle, self.feedback = rig, handle, feedback
        self._result = handle.get_result_async()

    def wait(self):
        """Return status and result."""
        self._rig.until(self._result.done, what='the result of a goal')
        return self._result.result()

    def cancel(self):
        """Cancel it; return status and result."""
        future = self.goal_handle.cancel_goal_async()
        self._rig.until(future.done, what='the response to a cancel')
        return self.wait()


class GoalClient:
    """Sends goals to an action, while a rig runs."""

    def __init__(self, rig, action):
        from control_msgs.action import FollowJointTrajectory
        from control_msgs.msg import JointTolerance
        self._rig, self._type, self._tolerance = rig, FollowJointTrajectory, JointTolerance
        self._client = ActionClient(rig.peer, FollowJointTrajectory, action)
        self._statuses = {}
        rig.peer.create_subscription(GoalStatusArray, f'{action}/_action/status', self._on_status,
                                     qos_profile_action_status_default)
        rig.until(self._client.server_is_ready, what=action)

    def send(self, trajectory, path=()):
        """Send a goal; return it, or None if it is rejected."""
        goal, feedback = self._type.Goal(trajectory=trajectory, path_tolerance=[
            self._tolerance(name=name, position=position) for name, position in path]), []
        future = self._client.send_goal_async(
            goal, lambda message: feedback.append(message.feedback))
        self._rig.until(future.done, what='the response to a goal')
        handle = future.result()
        return Goal(self._rig, handle, feedback) if handle.accepted else None

    def status_of(self, goal):
        """Return the last status that was published of a goal."""
        return self._statuses.get(bytes(goal.goal_handle.goal_id.uuid))

    def _on_status(self, message):
        for status in message.status_list:
            self._statuses[bytes(status.goal_info.goal_id.uuid)] = status.status

    def close(self):
        self._client.destroy()
