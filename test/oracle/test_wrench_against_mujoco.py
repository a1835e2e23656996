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
Foot wrenches, total and the line of the CoM from MuJoCo's sensors against MuJoCo's contacts.

The robot stands and is pushed sideways all the time, so that its feet carry unequal weights and
feel friction; nothing but the URDF and the robot's YAML is shared.
"""

from biped_com_ros.core.geometry.pose import footprint_pose, Pose
from biped_com_ros.core.geometry.wrench import com_line, wrench_adjoint
from biped_com_ros.core.wrench.aggregation import AggregationSettings, WrenchAggregation
from biped_com_ros.sim.interface import SensorOptions
import numpy as np
import pytest
from support.simulated import SimulatedRobot

ROBOTS = ('biped', 'talos', 'g1', 'icub')


def stand(robot, push, **options):
    """Let a robot stand while it is pushed by `push` (share of its weight, world axes)."""
    standing = SimulatedRobot(robot, **options)
    standing.push(push, 3.0)
    return standing, standing.run(1.5)


def aggregate(robot, observation, offsets=None):
    """Return wrenches by foot and the total."""
    aggregation = WrenchAggregation(robot.model, AggregationSettings(low_pass_cutoff=0.0))
    feet, total = {}, None
    aggregation.set_state(robot.model.state(observation.joint_positions),
                          robot.inertial(observation)[0])
    for i, wrench in enumerate(observation.wrenches):
        if offsets is not None:
            aggregation.channels[i].set_offset(offsets[i])
        body = aggregation.update(i, wrench, 1)
        if body is not None and body.detector is not None:
            feet[body.name] = body.wrench
        if body is not None:
            total = aggregation.total(body, 1)
    return feet, total


@pytest.mark.parametrize('name', ROBOTS)
def test_foot_wrenches_total_and_line(name):
    robot, observation = stand(name, (0.01, 0.02, 0.0))
    truth, weight = robot.plant.truth(), robot.weight
    feet, total = aggregate(robot, observation)
    forces = truth.sole_wrenches[:, 2]
    assert abs(forces[0] - forces[1]) > 0.01 * weight  # the push is felt
    for found, true in zip(feet.values(), truth.sole_wrenches):
        np.testing.assert_allclose(found, true, atol=1e-5 * weight)
    base = robot.true_base()
    state = robot.model.state(observation.joint_positions).in_world(base)
    placements = state.placements_in_base(robot.model.soles)
    footprint = footprint_pose(base, base.apply(placements[:, 3]), [True, True])
    expected = np.zeros(6)
    for row, true in zip(placements, truth.sole_wrenches):
        sole = footprint.inverse() @ base @ Pose(row[:3].T, row[3])
        expected += wrench_adjoint(sole.rotation, sole.position) @ true
    np.testing.assert_allclose(total, expected, atol=1e-5 * weight)
    assert total[2] == pytest.approx(weight, rel=1e-5)


@pytest.mark.parametrize('name', ROBOTS)
def test_line_holds_the_true_com_of_a_robot_at_rest(name):
    robot, observation = stand(name, (0.0, 0.0, 0.0))
    _, total = aggregate(robot, observation)
    base, state = robot.true_base(), robot.model.state(observation.joint_positions)
    soles = base.apply(state.placements_in_base(robot.model.soles)[:, 3])
    com = footprint_pose(base, soles, [True, True]).inverse().apply(robot.plant.truth().com)
    np.testing.assert_allclose(com_line(total).at_height(com[2]), com, atol=5e-5)


def test_biased_sensors_are_put_right_by_their_offsets():
    sensors = SensorOptions(force_bias=3.0, torque_bias=0.2)
    robot, observation = stand('talos', (0.01, 0.02, 0.0), sensors=sensors)
    _, clean = stand('talos', (0.01, 0.02, 0.0))
    offsets = observation.wrenches - clean.wrenches
    assert np.abs(offsets[:, :3]).max() > 1.0
    feet, _ = aggregate(robot, observation, offsets)
    for found, true in zip(feet.values(), robot.plant.truth().sole_wrenches):
        np.testing.assert_allclose(found, true, atol=1e-5 * robot.weight)
