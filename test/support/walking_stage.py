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
"""A stage of the demo whose robot walks: with messages of gait_player and zmp_monitor."""

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.chapter import ChapterFailed
from biped_com_ros.demo.stage import Stage
from geometry_msgs.msg import PointStamped
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import GetParameters
from rclpy.parameter import Parameter, parameter_value_to_python
from std_msgs.msg import Float64, Int32, String


class WalkingStage:
    """Answers the chapter as the nodes would, with the ZMP off by given millimetres."""

    has_fallen = False
    set_parameters = Stage.set_parameters
    get_parameter = Stage.get_parameter
    change_state, activate = Stage.change_state, Stage.activate
    ramp_up, ramp_down = Stage.ramp_up, Stage.ramp_down
    shared = {'calibrated_urdf': 'better.urdf'}
    _moves = {Transition.TRANSITION_CONFIGURE: 'inactive',
              Transition.TRANSITION_ACTIVATE: 'active',
              Transition.TRANSITION_DEACTIVATE: 'inactive',
              Transition.TRANSITION_CLEANUP: 'unconfigured'}

    def __init__(self, error=(0.003, 0.004), end='standing', gravity='unconfigured', stop=None,
                 robot='biped'):
        self.model = RobotModel.load(robot)
        self.error, self.end, self.calls, self.released = error, end, [], False
        self.stop, self._steps = stop, 0
        self.gravity, self.urdf = gravity, ''
        self.floor, self.feedback, self.on_floor, self.pace = 0.01, False, 0.01, 1.0
        self._callbacks, self._next = {}, [lambda: self.receive('state', String(data='standing'))]

    def subscribe(self, kind, topic, callback, qos=None):
        self._callbacks[topic.split('/')[-1]] = callback

    def receive(self, topic, message):
        self._callbacks[topic](message)

    def set_activity(self, activity):
        self.calls.append(activity)

    def release(self):
        self.released = True

    def wait(self, seconds):
        yield None

    def reset_robot(self):
        self.calls.append('reset')
        self.on_floor = self.floor
        yield None

    def wait_until(self, condition, what, timeout):
        while not condition():
            if not self._next:
                raise ChapterFailed(what)
            self._next.pop(0)()
            yield None

    def call(self, kind, name, request):
        yield None
        if kind is GetState:
            ids = {'unconfigured': 1, 'inactive': 2, 'active': 3}
            return GetState.Response(current_state=State(id=ids[self.gravity]))
        if kind is ChangeState:
            self.gravity = self._moves[request.transition.id]
            return ChangeState.Response(success=True)
        if name == 'simulator/get_parameters':
            value = {'floor_pitch': self.floor, 'real_time_factor': self.pace}[request.names[0]]
            value = Parameter('', value=value).get_parameter_value()
            return GetParameters.Response(values=[value])
        values = {p.name: parameter_value_to_python(p.value) for p in request.parameters}
        if name == 'gravity_compensation/set_parameters':
            assert self.gravity == 'unconfigured'  # it reads the URDF when it is configured
            self.urdf = values['urdf']
        else:
            self.calls.append((name, values))
            self._steps = values.get('steps', self._steps)
            self.floor = values.get('floor_pitch', self.floor)
            self.pace = values.get('real_time_factor', self.pace)
            self.feedback = values.get('feedback', self.feedback)
        return None

    def trigger(self, name):
        assert self.released
        assert self.gravity == 'active' and self.urdf == 'better.urdf'
        self.calls.append(name)
        self._next = [lambda: self.receive('state', String(data='walking')), self._walk,
                      lambda: self.receive('state', String(data=self.end))]
        yield None

    def _walk(self):
        x, y = self.error
        done = self._steps if self.stop is None else min(self.stop, self._steps)
        self.receive('steps_done', Int32(data=done))
        for i, margin in enumerate((0.03, 0.012, 0.04)):
            self.receive('margin', Float64(data=margin))
            self.receive('zmp_reference', point(i, 0.1 * i, 0.02))
            self.receive('zmp', point(i, 0.1 * i + x, 0.02 + y))
            self.receive('zmp', point(i + 500, 5.0, 5.0))  # of another instant: not compared


def point(milliseconds, x, y):
    message = PointStamped()
    message.header.stamp.nanosec = milliseconds * 1_000_000
    message.point.x, message.point.y = x, y
    return message


def play(chapter, stage):
    run = chapter.run(stage)
    while True:
        try:
            next(run)
        except StopIteration as end:
            return end.value
