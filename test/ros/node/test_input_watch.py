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

from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.gravity_compensation.node import GravityCompensation
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.node.input_watch import InputWatch
import pytest
from rclpy.parameter import Parameter
from support.ros_rig import NodeRig


class Source:
    """An input that never receives a message while it is `silent`."""

    topic, silent = '/imu', True

    def stale(self):
        return self.silent

    def report(self):
        return 2, 'nobody publishes it', {}


class LoggingNode:
    """A node that keeps its log; its timer is called by hand."""

    def __init__(self):
        self.log = []
        self.warning = self.info = self.log.append

    def get_logger(self):
        return self

    def create_timer(self, period, callback, clock=None):
        self.check = callback


def pass_time(time, nodes, seconds):
    for _ in range(int(2 * seconds)):
        time.advance(0.5)
        for node in nodes:
            node.check()


def test_reminders_become_rare_and_an_arrival_is_logged_once(driven_time):
    node, source = LoggingNode(), Source()
    InputWatch(node, {'orientation': source}, Throttle(1.0))
    pass_time(driven_time, [node], 300.0)
    assert [line.split(' s:')[0].rsplit(' ', 1)[1] for line in node.log] == [
        '5', '10', '20', '40', '80', '140', '200', '260']
    assert node.log[0] == 'waiting for orientation for 5 s: nobody publishes it'
    node.log.clear()
    source.silent = False
    pass_time(driven_time, [node], 5.0)
    assert node.log == ["received orientation on '/imu'"]
    source.silent = True
    pass_time(driven_time, [node], 1.0)
    assert len(node.log) == 2, 'a stale input is logged at once'


def test_of_several_nodes_of_a_process_one_logs_what_they_wait_for(driven_time):
    one, other, source, throttle = LoggingNode(), LoggingNode(), Source(), Throttle(1.0)
    InputWatch(one, {'orientation': source}, throttle)
    InputWatch(other, {'/imu': source}, throttle)
    pass_time(driven_time, [one, other], 30.0)
    assert len(one.log) == 3 and not other.log
    source.silent = False
    pass_time(driven_time, [one, other], 1.0)
    assert other.log == ["received messages on '/imu'"]


@pytest.mark.parametrize('node_class', [WrenchAggregator, ComEstimator, GravityCompensation])
def test_nodes_log_what_they_wait_for(node_class, capfd):
    rig = NodeRig(node=node_class(namespace='/waits', parameter_overrides=[
        Parameter('robot', value='biped')]))
    rig.spin(5.6)
    rig.close()
    log = capfd.readouterr().err
    assert "on '/waits/joint_states' yet: no publisher" in log and "on '/waits/imu' yet" in log
