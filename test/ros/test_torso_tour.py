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
The tour of the torso's stick through the real nodes and the simulator, in step with one another.

The simulator goes on as soon as it was told what to do, and not before: what is seen depends
neither on how fast the computer is nor on what else it does.
"""

import math

from biped_com_ros.core.torso.reference import TOUR_PERIOD
from biped_com_ros.nodes.simulator.node import Simulator
from biped_com_ros.nodes.torso_controller.node import TorsoController
from biped_com_ros.nodes.torso_teleop.node import TorsoTeleop
from biped_com_ros.ros.node.executor import make_executor
from geometry_msgs.msg import Vector3Stamped
import numpy as np
import pytest
from rclpy.node import Node
from rclpy.parameter import Parameter
from scipy.spatial.transform import Rotation
from support.ros_rig import ServedNodes

DT = 0.002
#: The controller learns in s what the robot weighs.
SETTLING = 1.0


def parameters(**values):
    return [Parameter(name, value=value) for name, value in values.items()]


class Tour(ServedNodes):
    """
    A robot of other masses than believed, its controller, and a stick on its tour.

    Attributes
    ----------
    bends, gyros, tensions, references
        Of every step: bend times its direction (complex), angular velocity of the upper torso and
        tensions, of MuJoCo; and by stamps, ns, where the torso should be (complex).

    """

    def __init__(self):
        self.bends, self.gyros, self.tensions, self.references = [], [], [], {}
        self.executor = make_executor()
        self.simulator = Simulator(parameter_overrides=parameters(
            robot='biped', virtual_joints=False, seed=1, hidden_com_sigma=0.005,
            hidden_mass_sigma=0.08, real_time_factor=1e-9))  # it is stepped by `step`
        self.controller = TorsoController(
            parameter_overrides=parameters(robot='biped', use_sim_time=True),
            cli_args=['--ros-args', '-r', '~/tendon_lengths:=tendon_controller/commands'])
        self.peer = Node('listener')
        self.peer.create_subscription(
            Vector3Stamped, 'torso_controller/reference', self._on_reference, 1000)
        self.nodes = [self.simulator, self.controller, self.peer]
        for node in self.nodes:
            self.executor.add_node(node)
        self._commands = self.simulator.commands.arrays[-1]
        self.until(self._is_driven, what='the first lengths')
        self.spin(0.3)  # until all is read that came meanwhile: one answer to each step from now

    def _is_driven(self):
        self.simulator.step()
        return self._commands.count

    def _on_reference(self, message):
        stamp, vector = message.header.stamp, message.vector
        self.references[stamp.sec * 10 ** 9 + stamp.nanosec] = vector.x * np.exp(1j * vector.y)

    def start(self):
        teleop = TorsoTeleop(parameter_overrides=parameters(motion='tour', use_sim_time=True))
        self.nodes.append(teleop)
        self.executor.add_node(teleop)
        self.until(lambda: self.peer.count_subscribers('joy'), what='a subscriber of joy')
        for _ in range(round(SETTLING / DT)):
            self.step()

    def step(self):
        """Let the robot go on by one step, once it was told how."""
        count = self._commands.count
        self.simulator.step()
        self.until(lambda: self._commands.count > count, what='lengths')
        assert self.controller.cycle.last_ns == self.now
        plant = self.simulator._plant
        o, names = plant.observation, list(plant.imu_names)
        lower, upper = (names.index(name) for name in ('base', 'torso'))
        x, y, z = (Rotation.from_quat(o.imu_quaternions[lower]).inv() * Rotation.from_quat(
            o.imu_quaternions[upper])).apply((0.0, 0.0, 1.0))
        self.bends.append(math.atan2(math.hypot(x, y), z) * np.exp(1j * math.atan2(y, x)))
        self.gyros.append(o.angular_velocities[upper].copy())
        self.tensions.append(o.tendon_tensions.copy())

    @property
    def now(self):
        return round(1e9 * self.simulator.now())

    def close(self):
        self.executor.shutdown()
        for node in self.nodes:
            node.destroy_node()


@pytest.fixture
def tour(closing):
    return closing(Tour())


@pytest.mark.thorough
def test_the_tour_through_the_nodes(tour):
    tour.start()
    count = round(TOUR_PERIOD / DT)
    for _ in range(count):
        tour.step()
    tour.until(lambda: max(tour.references) >= tour.now, what='the last reference')
    stamps, references = (np.array(list(kept))[-count:] for kept in (
        tour.references, tour.references.values()))
    bends, gyros, tensions = (np.array(kept)[-count:] for kept in (
        tour.bends, tour.gyros, tour.tensions))
    assert (np.diff(stamps) == 1e9 * DT).all()
    # The reference keeps to its limits: 1.5 rad/s and 20 rad/s^2, of the vector.
    speeds = np.diff(references) / DT
    assert 1.3 < np.abs(speeds).max() < 1.5
    assert np.abs(np.diff(speeds)).max() / DT < 20.0 * 1.01
    assert np.degrees(np.abs(references).max()) == pytest.approx(15.0, abs=1e-6)
    # So does the robot, which goes all around.
    angles = np.angle(bends[np.abs(bends) > math.radians(14.0)])
    assert np.ptp(np.unwrap(angles)) > math.radians(350.0)
    assert np.degrees(np.abs(bends).max()) < 15.5
    errors = np.abs(bends) - np.abs(references)
    assert np.degrees(np.sqrt(np.mean(errors ** 2))) < 0.15
    far = np.abs(references) > math.radians(3.0)
    assert np.degrees(np.abs(np.angle(bends[far] / references[far])).max()) < 1.0
    assert np.linalg.norm(np.diff(gyros, axis=0), axis=1).max() / DT < 36.0
    assert tensions.min() > 3.0
