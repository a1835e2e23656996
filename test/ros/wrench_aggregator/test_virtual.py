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
"""Feet and hands without sensors: what is published for a robot that stands in the simulator."""

from biped_com_ros.core.geometry.pose import rotation_from_quaternion
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.topics import inputs
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, PolygonStamped, WrenchStamped
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from support.messages import parameters, vector, wrench
from support.plant_rig import biped_file, PlantRig


FEET = ('left', 'right')


class VirtualRig(PlantRig):
    """
    The node, and a robot that leans to one side.

    The left foot's sensor is compared, the right foot has none; with `bare` no foot has one.
    """

    def __init__(self, path, bare=False):
        def edit(config):
            if bare:
                del config['wrench_sensors']
                for foot in config['feet'].values():
                    foot['wrench_sensors'] = []
            else:
                config['feet']['left']['source'] = 'both'
        super().__init__(WrenchAggregator(
            namespace=f'virtual_rig_{int(bare)}', parameter_overrides=parameters(
                robot=biped_file(path, 'virtual', edit=edit), low_pass_cutoff=0.0)),
            1000, lean=0.03, has_sensors=not bare)
        self.wrenches = {foot: self.collect(WrenchStamped, f'wrench_aggregator/{foot}/wrench')
                         for foot in FEET}
        self.got = {topic: self.collect(kind, f'wrench_aggregator/{topic}') for topic, kind in (
            ('wrench', WrenchStamped), ('wrench_covariance', Float64MultiArray),
            ('contact_probabilities', JointState), ('contacts', JointState))}
        self.virtual_left = [] if bare else self.collect(
            WrenchStamped, 'wrench_aggregator/left/virtual_wrench')
        self.spin(0.2)  # publishers look for subscribers ten times a second
        self.play(200)

    def assert_virtual(self, received, i):
        """Check the newest virtual wrench of a foot."""
        np.testing.assert_allclose(
            wrench(received[-1]), self.plant.truth().sole_wrenches[i],
            atol=0.02 * 9.81 * self.model.mass)


@pytest.fixture(scope='module')
def rig(tmp_path_factory, closing_later):
    return closing_later(VirtualRig(tmp_path_factory.mktemp('virtual')))


def test_the_virtual_foot_and_the_total_carry_the_simulators_forces(rig):
    rig.play(40)
    weight, truth = 9.81 * rig.model.mass, rig.plant.truth().sole_wrenches
    assert abs(truth[0, 2] - truth[1, 2]) > 0.01 * weight
    rig.assert_virtual(rig.wrenches['right'], 1)
    rig.assert_virtual(rig.virtual_left, 0)
    np.testing.assert_allclose(wrench(rig.wrenches['left'][-1]), truth[0], atol=1e-3 * weight)
    assert wrench(rig.got['wrench'][-1])[2] == pytest.approx(weight, rel=0.01)
    assert rig.wrenches['right'][-1].header.frame_id == 'r_sole'


def test_covariance_and_probabilities_of_all_feet(rig):
    message = rig.got['wrench_covariance'][-1]
    stamps = {(m.header.stamp.sec, m.header.stamp.nanosec) for m in rig.wrenches['right']}
    assert tuple(message.data[:2]) in stamps
    covariance = np.array(message.data[message.layout.data_offset:]).reshape(12, 12)
    assert [d.size for d in message.layout.dim] == [12, 12]
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    probabilities, contacts = rig.got['contact_probabilities'][-1], rig.got['contacts'][-1]
    assert list(probabilities.name) == ['left', 'right'] and min(probabilities.position) > 0.95
    assert list(contacts.position) == [1.0, 1.0]


def test_a_sensor_that_disagrees_with_joint_torques_is_reported(rig):
    def report_after(instants):
        rig.play(instants)
        return rig.report('left foot')

    assert report_after(200)[0] == DiagnosticStatus.OK
    rig.sign = -1.0
    report_after(200)  # it is about the time since the last one
    level, message = report_after(200)
    assert level == DiagnosticStatus.WARN and 'wrench_sensors.left_foot' in message
    rig.sign = 1.0
    rig.until(lambda: report_after(50)[0] == DiagnosticStatus.OK)


def test_without_efforts_nothing_is_published_and_the_reason_is_named(rig):
    rig.with_efforts = False
    rig.play(5)
    rig.wrenches['right'].clear()
    rig.play(50)
    assert not rig.wrenches['right'] and 'no efforts' in rig.report('total wrench')[1]
    rig.with_efforts = True
    rig.play(100)
    assert rig.wrenches['right']


def test_a_robot_without_any_sensor(tmp_path, closing):
    """All feet are virtual: there are no offsets, and nothing fails."""
    bare = closing(VirtualRig(tmp_path, bare=True))
    assert len(bare.got['wrench']) > 20
    for i, foot in enumerate(FEET):
        bare.assert_virtual(bare.wrenches[foot], i)
    assert bare.report('callbacks')[0] == DiagnosticStatus.OK
    assert bare.report('virtual feet') == (DiagnosticStatus.OK, 'the feet carry the robot')


def test_that_it_hangs_is_reported(tmp_path, closing):
    bare = closing(VirtualRig(tmp_path, bare=True))
    bare.plant.hoist.lift()
    bare.play(1200)
    level, message = bare.report('virtual feet')
    assert level == DiagnosticStatus.OK and message.endswith('the robot hangs')
    assert list(bare.got['contacts'][-1].position) == [0.0, 0.0]
    assert abs(wrench(bare.got['wrench'][-1])[2]) < 0.05 * 9.81 * bare.model.mass


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
def hands(request, tmp_path_factory, closing_later):
    return closing_later(HandsRig(tmp_path_factory.mktemp('hands'), request.param))


def test_an_idle_hand_publishes_exactly_zero_and_is_no_sensor_that_hangs(hands, monkeypatch):
    monkeypatch.setattr(inputs, 'FROZEN_AFTER', 0.2)
    monkeypatch.setattr(inputs, 'FROZEN_COUNT', 10)
    hands.play(100)
    hands.hand.clear()
    hands.play(200)
    assert len(hands.hand) > 50 and hands.hand[-1].header.frame_id == HAND
    for message in hands.hand:
        np.testing.assert_array_equal(wrench(message), np.zeros(6))
    assert hands.report('virtual hands') == (DiagnosticStatus.OK, 'no hand touches')
    line, = (name for name in hands.monitor.diagnostics.names
             if name.startswith('input ') and name.endswith('left_hand/wrench'))
    level, text = hands.report(line, hands.monitor)
    assert level == DiagnosticStatus.OK, text


def test_a_hand_that_holds_on_is_in_total_zmp_and_support(hands):
    hands.play(50)
    alone, zmp, true_zmp = hands.spread(), hands.measured_zmp(), hands.true_zmp()
    hands.hold_on()
    force, tolerance = hands.true_force(), 0.03 * hands.weight
    assert np.linalg.norm(force) > 0.1 * hands.weight
    found = wrench(hands.hand[-1])
    np.testing.assert_allclose(found[:3], force, atol=tolerance)
    np.testing.assert_array_equal(found[3:], np.zeros(3))
    covariance = np.array(hands.covariances[-1].data[2:]).reshape(3, 3)
    error = found[:3] - force
    assert error @ np.linalg.solve(covariance, error) < 9.0
    assert wrench(hands.total[-1])[2] == pytest.approx(
        hands.plant.truth().sole_wrenches[:, 2].sum() + hands.plant.grips.forces[
            hands.plant.body_index(HAND)][2], abs=tolerance)
    # The region with a grip reaches further to all sides.
    assert (hands.spread() > alone + 0.02).all()
    assert hands.monitor.monitor.hands.touching[0].name == 'left'
    # At rest the ZMP of all contacts is below the centre of mass; that of the feet alone is not.
    moved, truly_moved = hands.measured_zmp() - zmp, hands.true_zmp() - true_zmp
    assert np.linalg.norm(hands.true_zmp(with_hand=False) - true_zmp) > 0.03
    np.testing.assert_allclose(moved, truly_moved, atol=0.008)
    assert 'touching: left' in hands.report('virtual hands')[1]
    assert 'hands left' in hands.report('support', hands.monitor)[1]
    hands.release()
    np.testing.assert_array_equal(wrench(hands.hand[-1]), np.zeros(6))
    np.testing.assert_allclose(hands.spread(), alone, atol=2e-3)


def test_without_efforts_no_hand_is_published_and_the_reason_is_named(hands):
    hands.with_efforts = False
    hands.play(20)
    for topic in (hands.hand, hands.total):
        topic.clear()
    hands.play(50)
    assert not hands.hand and not hands.total
    level, message = hands.report('virtual hands')
    assert level == DiagnosticStatus.ERROR and 'no efforts' in message
    assert 'no efforts' in hands.report('total wrench')[1]
    hands.with_efforts = True
    hands.play(50)
    assert hands.hand and hands.total
