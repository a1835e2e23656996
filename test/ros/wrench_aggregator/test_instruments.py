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
Known errors of instruments in the robot's YAML are taken out of every reading, once.

The drivers of the rig measure with them; the true forces come from ``wrench_oracle``, which knows
nothing of corrections.
"""

from __future__ import annotations

from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.ros.topics.qos import LATCHED
import numpy as np
import pytest
from rclpy.duration import Duration
from rclpy.time import Time
from scipy.spatial.transform import Rotation
from std_msgs.msg import String
from support.messages import wrench
from support.wrench_aggregator_rig import WrenchAggregatorRig
from support.wrench_oracle import SENSORS, TiltedRobot, YAML
import yaml

RNG = np.random.default_rng(5)
TILT = (0.05, -0.08, 0.03)
MATRICES = {name: np.eye(6) + 0.02 * RNG.normal(size=(6, 6)) for name in SENSORS}
BIASES = {name: RNG.normal(size=6) * (4, 4, 4, 0.4, 0.4, 0.4) for name in SENSORS}


class FaultyInstruments(TiltedRobot):
    """A robot whose drivers have constant errors."""

    def __init__(self, *args):
        super().__init__(*args)
        self.joint_errors = 0.02 * RNG.normal(size=len(self.joints)).round(3)
        self.joints = self.joints + self.joint_errors  # as they are published

    def reading(self, sensor, contacts, offset=0.0):
        sign = SENSORS[sensor][1]
        true = sign * super().reading(sensor, contacts)
        return sign * (MATRICES[sensor] @ true + BIASES[sensor] + offset)

    def imu_quaternion(self, heading_error=0.0):
        level = Rotation.from_quat(super().imu_quaternion(heading_error))
        return (level * Rotation.from_rotvec(TILT).inv()).as_quat()

    def corrections(self, sensors=SENSORS):
        """Return the mapping that the robot's YAML has to hold."""
        return {
            'joint_offsets': dict(zip(self.joint_names, self.joint_errors.tolist())),
            'tilts': {'imu_link': list(TILT)},
            'wrench_sensors': {name: {
                'correction': np.linalg.inv(MATRICES[name]).tolist(),
                'bias': BIASES[name].tolist()} for name in sensors}}


@pytest.fixture
def faulty(tmp_path):
    robot, path = FaultyInstruments.somewhere(0), tmp_path / 'faulty.yaml'
    path.write_text(yaml.safe_dump({
        **yaml.safe_load(YAML.read_text()), 'instruments': robot.corrections()}, sort_keys=False))
    rig = WrenchAggregatorRig(robot, robot_file=str(path))
    yield rig
    rig.close()


def test_forces_are_the_true_ones(faulty):
    faulty.contacts = faulty.robot.standing(0)
    faulty.play(5)
    faulty.assert_forces(atol=1e-6)


def test_a_tare_replaces_the_configured_bias(faulty):
    drift = {name: np.arange(1.0, 7.0) * 0.1 for name in SENSORS}
    faulty.offsets, faulty.noise = drift, 0.0
    faulty.play(60)  # it hangs
    response = faulty.tare('tare')
    assert response.success, response.message
    faulty.contacts = faulty.robot.standing(0)
    faulty.play(5)
    faulty.assert_forces(atol=1e-6)
    assert 'set to those of the YAML' in faulty.tare('untare').message
    faulty.offsets = {}
    faulty.play(5)
    faulty.assert_forces(atol=1e-6)


def test_without_the_corrections_they_are_not(shared_rig):
    """The errors above are large enough that the other tests mean something."""
    shared_rig.reset()
    robot, shared_rig.robot = shared_rig.robot, FaultyInstruments.somewhere(0)
    shared_rig.contacts = shared_rig.robot.standing(0)
    shared_rig.play(5)
    with pytest.raises(AssertionError):
        shared_rig.assert_forces(atol=1.0)
    shared_rig.robot = robot


def test_calibrated_weights_of_feet_and_hands_are_subtracted(own_rig):
    """The true robot is heavier than the URDF until the calibrated URDF arrives."""
    rig = own_rig()
    robot = rig.robot
    robot.links = {link: (1.2 * mass, com + 0.01) for link, (mass, com) in robot.links.items()}
    last = Time.from_msg(rig.play(5))  # it hangs
    assert np.linalg.norm(wrench(rig.got['right/wrench'][-1])) > 0.2
    model = rig.node.model
    publisher = rig.peer.create_publisher(String, 'calibrated_description', LATCHED)
    publisher.publish(String(data=with_inertials(model.urdf, {
        link: NewInertial(mass, com) for link, (mass, com) in robot.links.items()})))
    rig.until(lambda: model.mass > 1.1 * 0.99 * robot.mass)
    rig.clear()
    for name in SENSORS:
        rig.publish_wrench(name, (last + Duration(nanoseconds=1_000_000)).to_msg())
    assert not rig.got['wrench'] and not rig.got['right/wrench'], 'weights are not known yet'
    rig.play(5)
    rig.assert_forces(atol=1e-6)
    weight = rig.node.aggregation.body_weight
    assert weight == pytest.approx(9.81 * sum(mass for mass, _ in robot.links.values()))
