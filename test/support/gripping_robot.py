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
"""A robot in MuJoCo whose hands have no sensors and hold on; their forces by joint torques."""

from dataclasses import replace

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.aggregation import AggregationSettings, WrenchAggregation
from biped_com_ros.core.wrench.virtual_hand_forces import VirtualHandForces, VirtualHandSettings
import numpy as np
from support.simulated import SimulatedRobot


def with_virtual_hands(model, feet=None):
    """Return a robot with virtual hands; `feet`: 'virtual' for its feet, too."""
    config = model.config
    hands = {name: replace(hand, source='virtual', wrench_sensors=())
             for name, hand in config.hands.items()}
    changed = {name: replace(foot, source=feet or foot.source, wrench_sensors=(
        () if feet else foot.wrench_sensors)) for name, foot in config.feet.items()}
    return RobotModel(replace(config, hands=hands, feet=changed), model.urdf)


class GrippingRobot(SimulatedRobot):
    """
    A simulated robot that the estimator of the forces on its hands runs for, at 500 Hz.

    Attributes
    ----------
    found
        Of each instant: estimates, deviations, true forces in the hands' frames, (H, 3) each,
        whether each hand touches, and the published forces.

    """

    def __init__(self, name='biped', posture='stand', feet=None, settings=None, **options):
        super().__init__(name, posture=posture, **options)
        self.model = model = with_virtual_hands(self.model, feet)
        self.hands = VirtualHandForces(model, settings or VirtualHandSettings())
        self.aggregation = WrenchAggregation(model, AggregationSettings(low_pass_cutoff=50.0))
        self.frames = [hand.frame for hand in model.config.hands.values()]
        self.command, self.stamp_ns = self.plant.hold(), 10 ** 9
        self.found = []

    def grip(self, hand, share):
        """Let a hand (its index) hold on with at most a share of the weight."""
        self.plant.grip(self.frames[hand], share * self.weight)

    def move(self, **joints):
        """Command positions of joints relative to those of now, rad."""
        for name, change in joints.items():
            self.command.position[self.plant.actuated_joint_names.index(name)] += change

    def true_forces(self):
        """Return the force on each hand in its frame, (H, 3), N."""
        plant, forces = self.plant, np.zeros((len(self.frames), 3))
        for hand, frame in enumerate(self.frames):
            body = plant.body_index(frame)
            if body in plant.grips.forces:
                site = plant.data.xmat[body].reshape(3, 3)
                forces[hand] = site.T @ plant.grips.forces[body]
        return forces

    def step(self):
        observation = self.plant.step(self.command)
        self.stamp_ns += round(1e9 * self.plant.dt)
        attitude, angular_velocity, acceleration = self.inertial(observation)
        state = self.state = self.model.state(
            observation.joint_positions, observation.joint_velocities)
        self.aggregation.set_state(state, attitude)
        others = None
        if self.hands.others:
            for i, wrench in enumerate(observation.wrenches):
                self.aggregation.update(i, wrench, self.stamp_ns)
            others = [body.wrench_values for body in self.aggregation.feet]
        hands = self.hands
        if hands.update(self.stamp_ns, state, observation.joint_efforts, angular_velocity,
                        acceleration, others):
            deviations = np.sqrt(hands.covariance.diagonal()).reshape(-1, 3)
            self.found.append((hands.estimates.copy(), deviations, self.true_forces(),
                               np.array(hands.touching), hands.forces.copy(),
                               hands.covariance.copy()))

    def run(self, seconds, each=None):
        """Go on for a time, calling `each` with the time of every instant."""
        for k in range(round(seconds / self.plant.dt)):
            if each is not None:
                each(k * self.plant.dt)
            self.step()

    def taken(self):
        """Return arrays of what was found since the last call."""
        found, self.found = [np.array(column) for column in zip(*self.found)], []
        return found
