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
"""A robot walks: simulator, estimators, gravity compensation and gait_player over DDS."""

from __future__ import annotations

import time

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.ros.topics.qos import LATCHED
from geometry_msgs.msg import PointStamped
import numpy as np
import pytest
from rcl_interfaces.srv import SetParameters
import rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray, String
from std_srvs.srv import Trigger
from support.launched import launched
import yaml

LIMIT = 300.0  # s, for starting and walking on a busy machine
pytestmark = pytest.mark.timeout(LIMIT + 60)
#: Slow enough for a busy machine: nobody may be late.
SIMULATOR = {'rate': 100.0, 'real_time_factor': 0.6}


@pytest.fixture
def walk(tmp_path, request):
    """Run all nodes, the simulator at its own pace; efforts are commands, or in trajectories."""
    file = package_share() / 'config' / 'simulator.yaml'
    params = yaml.safe_load(file.read_text())
    params['/**/simulator']['ros__parameters'].update(SIMULATOR)
    (tmp_path / 'simulator.yaml').write_text(yaml.safe_dump(params))
    with launched('gait_simulation.launch.xml', 'hidden:=masses', 'seed:=1',
                  *(['trajectory_rate:=100.0'] if request.param == 'trajectories' else []),
                  f'simulator_params:={tmp_path / "simulator.yaml"}') as process:
        observer = WalkObserver(process)
        yield observer
        observer.close()


class WalkObserver:
    """Asks for a walk and sees what comes of it."""

    def __init__(self, process):
        rclpy.init()
        self.node, self._process, self._end = Node('observer'), process, time.monotonic() + LIMIT
        self.states, self.margins, self._has_margin = [], [], False
        self.points = {name: {} for name in ('gait_player/zmp_reference', 'simulator/truth/zmp',
                                             'simulator/truth/com')}
        self.forces = []
        for topic, kept in self.points.items():
            self.node.create_subscription(
                PointStamped, topic, lambda m, kept=kept: self._keep(m, kept), 500)
        subscribe = self.node.create_subscription
        subscribe(String, 'gait_player/state', lambda m: self.states.append(m.data), LATCHED)
        subscribe(Float64, 'zmp_monitor/margin', self._on_margin, 500)
        subscribe(Float64MultiArray, 'simulator/truth/contacts',
                  lambda m: self.forces.append(list(m.data)), 500)
        self.efforts = []  # the largest one at each instant of the walk, N m
        subscribe(JointState, 'gravity_compensation/effort', self._on_efforts, 500)

    def _keep(self, message, kept):
        stamp = message.header.stamp
        point = message.point
        kept[stamp.sec, stamp.nanosec] = point.x, point.y, point.z

    def _on_margin(self, message):
        self._has_margin = True
        if self.states[-1:] == ['walking']:
            self.margins.append(message.data)

    def _on_efforts(self, message):
        if self.states[-1:] == ['walking']:
            self.efforts.append(np.abs(message.effort).max())

    def until(self, condition, what):
        while not condition():
            assert time.monotonic() < self._end, f'waited in vain for {what}: {self.states}'
            assert self._process.poll() is None, 'the nodes have ended'
            rclpy.spin_once(self.node, timeout_sec=0.05)

    def set_parameters(self, **values):
        """Set parameters of gait_player."""
        client = self.node.create_client(SetParameters, 'gait_player/set_parameters')
        self.until(client.service_is_ready, 'gait_player')
        future = client.call_async(SetParameters.Request(parameters=[
            Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]))
        self.until(future.done, 'an answer')
        assert all(result.successful for result in future.result().results)

    def play(self, service):
        """Ask until the answer is yes, once everything that is measured arrives; then wait."""
        truth = [self.points[f'simulator/truth/{name}'] for name in ('zmp', 'com')]
        self.until(lambda: all(truth) and self.forces and self._has_margin,
                   'the truth and a margin')
        client = self.node.create_client(Trigger, f'gait_player/{service}')
        self.until(client.service_is_ready, 'gait_player')
        while not self._request(client):
            rclpy.spin_once(self.node, timeout_sec=0.5)
        self.until(lambda: 'walking' in self.states, 'the walk')
        begin = self._com()
        self.until(lambda: self.states[-1] != 'walking', 'the end of the walk')
        assert self.states[-1] == 'standing', 'stopped on the way'
        count = len(self.points['simulator/truth/com'])
        self.until(lambda: len(self.points['simulator/truth/com']) > count + 10, 'the truth')
        return self._com() - begin

    def _request(self, client):
        future = client.call_async(Trigger.Request())
        self.until(future.done, 'an answer')
        return future.result().success

    def _com(self):
        return np.array(list(self.points['simulator/truth/com'].values())[-1])

    def zmp_error(self):
        """Return the root mean square of the ZMP's error in the ground plane, (2,), m."""
        planned, true = (self.points[name] for name in list(self.points)[:2])
        both = [stamp for stamp in planned if stamp in true]
        assert len(both) > 60
        errors = np.array([np.subtract(true[stamp], planned[stamp])[:2] for stamp in both])
        return np.sqrt((errors ** 2).mean(axis=0))

    def check_efforts(self):
        """Gravity compensation was on all the time: standing on two feet takes least."""
        assert len(self.efforts) > 60 and self.efforts[0] > 0.1
        assert min(self.efforts) > 0.9 * self.efforts[0]
        assert max(self.efforts) > 1.0  # on one foot

    def close(self):
        self.node.destroy_node()
        rclpy.shutdown()


@pytest.mark.parametrize('walk', ['commands'], indirect=True)
def test_a_step_in_the_simulator(walk):
    moved = walk.play('single_step')
    assert walk.zmp_error().max() < 0.010
    assert min(walk.margins) > 0.005
    forces = np.array(walk.forces)
    assert forces[:, 1].min() < 0.02 * forces.sum(axis=1).mean()  # the right foot was in the air
    assert moved[0] == pytest.approx(0.025, abs=0.003)  # half a step: one foot is ahead
    assert moved[2] == pytest.approx(0.0, abs=0.003)
    walk.check_efforts()


@pytest.mark.parametrize('walk', ['trajectories'], indirect=True)
def test_a_walk_of_several_steps_with_efforts_in_trajectories(walk):
    walk.set_parameters(steps=3)
    moved = walk.play('walk')
    assert walk.zmp_error().max() < 0.010
    assert min(walk.margins) > 0.005
    # The last step brings the feet side by side.
    np.testing.assert_allclose(moved, (0.1, 0.0, 0.0), atol=0.003)
    forces = np.array(walk.forces)
    assert (forces.min(axis=0) < 0.02 * forces.sum(axis=1).mean()).all()  # both were in the air
    walk.check_efforts()
