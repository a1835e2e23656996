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
"""The payload over DDS: `payload_estimator` finds it, and gravity_compensation adds it."""

from contextlib import closing

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.payload.carried import CarriedPayload
from biped_com_ros.nodes.payload_estimator.node import PayloadEstimation
from biped_com_ros.ros.topics.input_base import inputs_of
from geometry_msgs.msg import InertiaStamped, WrenchStamped
import numpy as np
import pytest
from support.driven_time import run_ready
from support.gravity_rig import GravityRig
from support.messages import nanoseconds, parameters, payload, wrench_stamped
from support.plant_rig import PlantRig

PERIOD = 0.02
"""Between two messages of the estimator's inputs, s."""


class FedEstimator(PlantRig):
    """The node, fed with the readings of a simulated robot."""

    def __init__(self):
        super().__init__(
            PayloadEstimation(parameter_overrides=parameters(robot='biped')), 0, has_sensors=False)
        self.payloads = self.collect(InertiaStamped, 'payload_estimator/payload')
        self.feet = [self.publisher(WrenchStamped, f'wrench_aggregator/{foot}/wrench')
                     for foot in self.model.config.feet]
        self.spin(0.2)  # publishers look for subscribers ten times a second

    def send_feet(self, stamp, observed):
        wrenches, config = self.plant.truth().sole_wrenches, self.model.config
        for publisher, wrench, foot in zip(self.feet, wrenches, config.feet):
            publisher.publish(wrench_stamped(stamp, config.sole_frame(foot), wrench))
        run_ready(self.executor)

    def mass_after(self, instants):
        """Return the mass that is reported after so many instants, for each of which it is."""
        count = len(self.payloads)
        self.play(instants, every=round(PERIOD / self.plant.dt))
        assert len(self.payloads) == count + instants
        return self.payloads[-1].inertia.m


def test_the_node_reports_a_payload_and_that_it_is_gone():
    with closing(FedEstimator()) as rig:
        assert rig.mass_after(75) == 0.0 and not rig.node.estimator.problem
        rig.plant.put_load('r_gripper', 1.0, (0.0, 0.0, -0.05))
        assert rig.mass_after(100) == pytest.approx(1.0, abs=0.05)
        last = rig.payloads[-1]
        assert last.header.frame_id == 'r_gripper'
        assert nanoseconds(last.header.stamp) == rig.peer.get_clock().now().nanoseconds
        rig.plant.put_load('r_gripper', 0.0, (0.0, 0.0, 0.0))
        assert rig.mass_after(100) == 0.0
        assert rig.trigger('payload_estimator/reset').success
        assert rig.node.estimator.problem
        rig.mass_after(1)
        count = len(rig.payloads)
        rig.node.set_parameters(parameters(rate=0.25 / PERIOD, sensor_timeout=3.0))
        assert {source.timeout for source in inputs_of(rig.node)} == {3.0}
        rig.play(8, every=round(PERIOD / rig.plant.dt))  # every fourth instant is due
        assert len(rig.payloads) == count + 2


def test_gravity_compensation_carries_it_and_lets_it_fade_out():
    """The rig checks that no effort is beyond the clamp or the rate limit."""
    model = RobotModel.load('talos')
    hand, com = model.config.hands['left'].frame, (0.0, 0.0, -0.08)
    with closing(GravityRig(model, support='fixed')) as rig:
        publisher = rig.publisher(InertiaStamped, 'payload_estimator/payload')
        carried = CarriedPayload(model, rate=1000.0)
        expected = {}
        for mass in (0.0, 2.0):
            carried.receive(hand, mass, com, 10 ** 9)
            carried.update(10 ** 9)
            carried.update(10 ** 9 + 50_000_000)
            rig.gravity_model.payload = carried
            rig.gravity_model.use_inertials()
            expected[mass] = rig.load().fixed_base_efforts()

        def has(mass):
            return len(rig.last) > 1 and np.allclose(rig.last, expected[mass], atol=0.05)
        assert not np.allclose(expected[0.0], expected[2.0], atol=1.0)
        rig.until(lambda: has(0.0), what='the efforts of empty hands')

        def carry(mass=2.0, link=hand):
            publisher.publish(payload(rig.peer.get_clock().now().to_msg(), link, mass, com))
        rig.until(lambda: carry() or has(2.0), what='the efforts with the payload')
        rig.until(lambda: has(0.0), what='the fading of the payload')
        # What makes no sense is refused, and changes nothing.
        source = rig.node.payload.input
        for mass, link, named in ((500.0, hand, '500 kg'), (1.0, 'no_link', 'no_link')):
            carry(mass, link)
            run_ready(rig.executor)
            assert named in source.last_error
        rig.play(0.3)
        assert has(0.0)
