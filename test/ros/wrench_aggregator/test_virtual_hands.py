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
"""A robot without sensors in its hands, over DDS: wrenches, ZMP and support with what it holds."""

from __future__ import annotations

from biped_com_ros.core.geometry.pose import rotation_from_quaternion
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.topics import inputs
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, PolygonStamped, WrenchStamped
import numpy as np
import pytest
from std_msgs.msg import Float64MultiArray
from support.messages import parameters, vector, wrench
from support.plant_rig import biped_file, PlantRig

HAND = 'l_gripper'


class HandsRig(PlantRig):
    """
    Both nodes, and a robot in the simulator whose left hand has no sensors.

    Its feet have sensors, or with `feet` 'virtual' none.
    """

    def __init__(self, path, feet):
        options = {
            'namespace': f'virtual_hands_{feet}',
            'cli_args': ['--ros-args', '-r', '/diagnostics:=diagnostics'],
            'parameter_overrides': parameters(
                robot=biped_file(path, feet, {'source': 'virtual', 'contact': 'grip'}),
                max_stamp_age=0.0)}
        super().__init__(WrenchAggregator(**options), 500)
        self.monitor = ZmpMonitor(**options)
        self.executor.add_node(self.monitor)
        self.weight = 9.81 * self.model.mass
        self.hand = self.collect(WrenchStamped, 'wrench_aggregator/left_hand/wrench')
        self.total = self.collect(WrenchStamped, 'wrench_aggregator/wrench')
        self.covariances = self.collect(Float64MultiArray, 'wrench_aggregator/hand_covariance')
        self.zmp = self.collect(PointStamped, 'zmp_monitor/zmp')
        self.region = self.collect(PolygonStamped, 'zmp_monitor/com_region')
        self.until(lambda: self.play(5) or (
            self.hand and self.total and self.zmp and self.region and self.covariances))

    def close(self):
        super().close()
        self.monitor.destroy_node()

    def hold_on(self):
        """Grip, and pull on what is gripped."""
        self.plant.grip(HAND, 0.15 * self.weight)
        self.command.position[self.plant.actuated_joint_names.index('l_shoulder_pitch')] += 0.4
        self.play(150)

    def release(self):
        self.plant.grip(HAND, 0.0)
        self.command = self.plant.hold()
        self.play(150)

    def true_force(self):
        """Return the force on the hand in its frame, N."""
        body = self.plant.body_index(HAND)
        axes = self.plant.data.xmat[body].reshape(3, 3)
        return axes.T @ self.plant.grips.forces[body]

    def measured_zmp(self):
        """Return the ZMP on the ground, as published, m."""
        return vector(self.zmp[-1].point)[:2]

    def true_zmp(self, with_hand=True):
        """Return the ZMP of the contacts, from the mean of the soles, in the simulator's axes."""
        truth, plant, model = self.plant.truth(), self.plant, self.model
        state = model.state(plant.observation.joint_positions)
        R = rotation_from_quaternion(truth.base_quaternion)
        points, forces, moments = [], [], []
        for placement, its in zip(state.placements_in_base(model.soles), truth.sole_wrenches):
            axes = R @ placement[:3].T
            points.append(R @ placement[3] + truth.base_position)
            forces.append(axes @ its[:3])
            moments.append(axes @ its[3:])
        body = plant.body_index(HAND)
        points.append(plant.data.xpos[body])
        forces.append(with_hand * plant.grips.forces.get(body, np.zeros(3)))
        origin = np.mean(points[:2], axis=0)
        force, moment = sum(forces), sum(moments) + sum(
            np.cross(point - origin, each) for point, each in zip(points, forces))
        return np.array((-moment[1], moment[0])) / force[2]

    def spread(self):
        """Return how wide the region of the CoM is, m."""
        return np.ptp([[p.x, p.y] for p in self.region[-1].polygon.points], axis=0)


@pytest.fixture(scope='module', params=[
    'virtual', pytest.param('sensor', marks=pytest.mark.thorough)])
def rig(request, tmp_path_factory):
    rig = HandsRig(tmp_path_factory.mktemp('hands'), request.param)
    yield rig
    rig.close()


def test_an_idle_hand_publishes_exactly_zero_and_is_no_sensor_that_hangs(rig, monkeypatch):
    monkeypatch.setattr(inputs, 'FROZEN_AFTER', 0.2)
    monkeypatch.setattr(inputs, 'FROZEN_COUNT', 10)
    rig.play(100)
    rig.hand.clear()
    rig.play(200)
    assert len(rig.hand) > 50 and rig.hand[-1].header.frame_id == HAND
    for message in rig.hand:
        np.testing.assert_array_equal(wrench(message), np.zeros(6))
    assert rig.report('virtual hands') == (DiagnosticStatus.OK, 'no hand touches')
    line, = (name for name in rig.monitor.diagnostics.names
             if name.startswith('input ') and name.endswith('left_hand/wrench'))
    level, text = rig.report(line, rig.monitor)
    assert level == DiagnosticStatus.OK, text


def test_a_hand_that_holds_on_is_in_total_zmp_and_support(rig):
    rig.play(50)
    alone, zmp, true_zmp = rig.spread(), rig.measured_zmp(), rig.true_zmp()
    rig.hold_on()
    force, tolerance = rig.true_force(), 0.03 * rig.weight
    assert np.linalg.norm(force) > 0.1 * rig.weight
    found = wrench(rig.hand[-1])
    np.testing.assert_allclose(found[:3], force, atol=tolerance)
    np.testing.assert_array_equal(found[3:], np.zeros(3))
    covariance = np.array(rig.covariances[-1].data[2:]).reshape(3, 3)
    error = found[:3] - force
    assert error @ np.linalg.solve(covariance, error) < 9.0
    assert wrench(rig.total[-1])[2] == pytest.approx(
        rig.plant.truth().sole_wrenches[:, 2].sum() + rig.plant.grips.forces[
            rig.plant.body_index(HAND)][2], abs=tolerance)
    # The region with a grip reaches further to all sides.
    assert (rig.spread() > alone + 0.02).all()
    assert rig.monitor.monitor.hands.touching[0].name == 'left'
    # At rest the ZMP of all contacts is below the centre of mass; that of the feet alone is not.
    moved, truly_moved = rig.measured_zmp() - zmp, rig.true_zmp() - true_zmp
    assert np.linalg.norm(rig.true_zmp(with_hand=False) - true_zmp) > 0.03
    np.testing.assert_allclose(moved, truly_moved, atol=0.008)
    assert 'touching: left' in rig.report('virtual hands')[1]
    assert 'hands left' in rig.report('support', rig.monitor)[1]
    rig.release()
    np.testing.assert_array_equal(wrench(rig.hand[-1]), np.zeros(6))
    np.testing.assert_allclose(rig.spread(), alone, atol=2e-3)


def test_other_deviations_take_effect_at_once(rig):
    before = rig.covariances[-1].data[2]
    for deviation, least in ((0.2, 4.0), (0.02, 0.0)):
        set_, = rig.node.set_parameters(parameters(virtual_hand_effort_deviation=deviation))
        assert set_.successful
        rig.play(50)
        assert rig.covariances[-1].data[2] > least * before


def test_without_efforts_nothing_is_published_and_the_reason_is_named(rig):
    rig.with_efforts = False
    rig.play(20)
    for topic in (rig.hand, rig.total):
        topic.clear()
    rig.play(50)
    assert not rig.hand and not rig.total
    level, message = rig.report('virtual hands')
    assert level == DiagnosticStatus.ERROR and 'no efforts' in message
    assert 'no efforts' in rig.report('total wrench')[1]
    rig.with_efforts = True
    rig.play(50)
    assert rig.hand and rig.total
