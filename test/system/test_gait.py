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
"""A robot steps: simulator, estimators, gravity compensation and gait_player over DDS."""

from __future__ import annotations

import time

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.ros.topics.qos import LATCHED
from geometry_msgs.msg import PointStamped
import numpy as np
import pytest
import rclpy
from rclpy.node import Node
from std_msgs.msg import Float64, Float64MultiArray, String
from std_srvs.srv import Trigger
from support.launched import launched
import yaml

LIMIT = 300.0  # s, for starting and walking on a busy machine
pytestmark = pytest.mark.timeout(LIMIT + 60)
#: Slow enough for a busy machine: nobody may be late.
SIMULATOR = {'rate': 100.0}


@pytest.fixture(params=['', '100.0'], ids=['commands', 'trajectories'])
def robot(tmp_path, request):
    """Run all nodes, the simulator at its own pace; efforts are commands, or in trajectories."""
    file = package_share() / 'config' / 'simulator.yaml'
    params = yaml.safe_load(file.read_text())
    factor = 0.4 if request.param else 0.6  # what is late delays positions, too, in trajectories
    params['/**/simulator']['ros__parameters'].update(SIMULATOR, real_time_factor=factor)
    (tmp_path / 'simulator.yaml').write_text(yaml.safe_dump(params))
    with launched('gait_simulation.launch.xml', 'hidden:=masses', 'seed:=1',
                  *([f'trajectory_rate:={request.param}'] if request.param else []),
                  f'simulator_params:={tmp_path / "simulator.yaml"}') as process:
        yield process


class StepObserver:
    """Asks for a step and sees what comes of it."""

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
        self._step = self.node.create_client(Trigger, 'gait_player/single_step')

    def _keep(self, message, kept):
        stamp = message.header.stamp
        point = message.point
        kept[stamp.sec, stamp.nanosec] = point.x, point.y, point.z

    def _on_margin(self, message):
        self._has_margin = True
        if self.states[-1:] == ['walking']:
            self.margins.append(message.data)

    def until(self, condition, what):
        while not condition():
            assert time.monotonic() < self._end, f'waited in vain for {what}: {self.states}'
            assert self._process.poll() is None, 'the nodes have ended'
            rclpy.spin_once(self.node, timeout_sec=0.05)

    def request_steps(self):
        """Ask until the answer is yes, once everything that is measured arrives."""
        truth = [self.points[f'simulator/truth/{name}'] for name in ('zmp', 'com')]
        self.until(lambda: all(truth) and self.forces and self._has_margin,
                   'the truth and a margin')
        while True:
            self.until(self._step.service_is_ready, 'gait_player')
            future = self._step.call_async(Trigger.Request())
            self.until(future.done, 'an answer')
            if future.result().success:
                return
            rclpy.spin_once(self.node, timeout_sec=0.5)


def test_a_step_in_the_simulator(robot):
    observer = StepObserver(robot)
    try:
        observer.request_steps()
        observer.until(lambda: 'walking' in observer.states, 'the walk')
        begin = list(observer.points['simulator/truth/com'].values())[-1]
        observer.until(lambda: observer.states[-1] != 'walking', 'the end of the walk')
        assert observer.states[-1] == 'standing', 'stopped on the way'
        observer.until(lambda: len(observer.points['simulator/truth/com']) > 10, 'the truth')
    finally:
        observer.node.destroy_node()
        rclpy.shutdown()
    planned, true = (observer.points[name] for name in list(observer.points)[:2])
    both = [stamp for stamp in planned if stamp in true]
    errors = np.array([np.subtract(true[stamp], planned[stamp])[:2] for stamp in both])
    assert len(both) > 60
    assert np.sqrt((errors ** 2).mean(axis=0)).max() < 0.010
    assert min(observer.margins) > 0.005
    forces = np.array(observer.forces)
    assert forces[:, 1].min() < 0.02 * forces.sum(axis=1).mean()  # the right foot was in the air
    end = list(observer.points['simulator/truth/com'].values())[-1]
    assert end[0] - begin[0] == pytest.approx(0.025, abs=0.003)  # half a step: one foot is ahead
    assert end[2] == pytest.approx(begin[2], abs=0.003)
