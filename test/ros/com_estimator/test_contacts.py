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
"""Contacts of the feet, and the comparison of the model with their wrenches."""

from biped_com_ros.core.geometry.pose import footprint_position, Pose
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.simulator.node import Simulator
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from std_msgs.msg import String
from support.com_estimator_rig import SENSING
from support.driven_time import run_ready
from support.messages import joint_state, parameters, stamp_of, vector, wrench_stamped
from support.ros_rig import NodeRig
from support.stance_motion import BOTH, LEFT, NONE, RIGHT
from visualization_msgs.msg import Marker


OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN


@pytest.mark.parametrize('changes, remedy', (
    (SENSING, 'nothing received on {}: start wrench_aggregator'),
    ({}, 'the robot has no wrench sensors: publish its contacts on {}')))
def test_without_contacts_the_lowest_soles_are_assumed(own_rig, changes, remedy):
    rig = own_rig(changes=changes, sensor_timeout=0.2)
    rig.silent.add('contacts')
    rig.warm_up()
    message = rig.health('base', WARN)
    assert 'assuming that the lowest soles are in contact (' in message
    assert remedy.format(f'{rig.space}/wrench_aggregator/contacts') in message
    rig.silent.clear()
    assert rig.health('base', OK) == 'base from imu; feet in contact: left'


def test_in_the_air_the_base_is_held_and_there_is_no_velocity(rig):
    rig.contacts = NONE
    rig.play(3)
    rig.clear()
    rig.play(10)
    assert rig.got['com'] and rig.got['link_coms']
    assert not rig.got['com_velocity'] and not rig.got['dcm']
    actions = {(m.ns, m.id): m.action for m in rig.got['markers'][-1].markers}
    assert actions['robot_com', 2] == actions['robot_com', 3] == Marker.DELETE
    assert actions['robot_com', 0] == Marker.ADD
    assert rig.health('base', WARN) == (
        'position of the base held: no foot is in contact; if the robot stands, see weight of '
        'wrench_aggregator')


def test_after_a_fall_the_world_begins_anew_at_the_origin(rig):
    motion, keep = rig.motion, (rig.motion.foot, rig.motion.sole_in_world)

    def put(position, roll):
        base = Pose(Rotation.from_euler('ZYX', (0.4, 0.0, roll)).as_matrix(), np.array(position))
        motion.nail(0, base @ motion.sole_in_base(rig.t, 0))
    put((0.5, 0.2, 0.3), 1.4)
    for rig.contacts in (LEFT, NONE):  # it rolls over its feet, and off them
        rig.play(3)
    put((3.0, 2.0, 0.8), 0.0)
    for rig.contacts in (NONE, LEFT):
        rig.step(dt=0.0)
        assert not rig.node.last.located.restarted, 'not on all feet yet'
    rig.contacts = BOTH
    rig.step(dt=0.0)
    assert rig.node.last.located.restarted
    soles = rig.truth()[0].soles_in_world
    rig.contacts = LEFT
    rig.play(3)
    rig.assert_truth(footprint_position(soles, BOTH))
    com = vector(rig.got['com'][-1].point)
    put((5.0, 2.0, 0.8), 0.3)  # leaning is not lying: it is the same foot that stands
    rig.play(3)
    assert np.linalg.norm((vector(rig.got['com'][-1].point) - com)[:2]) < 0.5
    assert not rig.node.last.located.restarted
    motion.nail(*keep)


class StampedContacts:
    """Publishes which feet are in contact, early or late, as wrench_aggregator does."""

    def __init__(self, rig):
        self.rig = rig
        self.publisher = rig.feet
        self.first_ns = rig.peer.get_clock().now().nanoseconds
        self.step = 0
        rig.silent.add('contacts')

    def stamp(self, step):
        return stamp_of(self.first_ns + 4_000_000 * step)

    def publish(self, step, *contacts):
        """Publish which feet are in contact from a step on, and from those that follow it."""
        for i, each in enumerate(contacts):
            self.publisher.publish(joint_state(
                self.stamp(step + i), ['right', 'left'], each[::-1], efforts=[0.0, 0.0]))
            run_ready(self.rig.executor)

    def play(self, steps):
        for _ in range(steps):
            self.step += 1
            self.rig.step(stamp=self.stamp(self.step))
        self.rig.spin(0.05)


@pytest.mark.parametrize('late', [6, 0, -6])
def test_contacts_hold_from_their_stamp_on_whenever_they_come(own_rig, late):
    rig = own_rig(changes=SENSING)
    contacts = StampedContacts(rig)
    contacts.publish(0, LEFT)
    contacts.play(5)
    origin = rig.motion.sole_in_world.position.copy()
    change = contacts.step + max(-late, 0) + 1
    if late < 0:  # before what happens then
        contacts.publish(change, BOTH, RIGHT)
        contacts.play(-late)
        rig.assert_truth(origin)
    contacts.play(1)
    rig.motion.step_onto(1, rig.t)
    if late == 0:
        contacts.publish(change, BOTH, RIGHT)
    contacts.play(max(late, 1))
    if late > 0:
        with pytest.raises(AssertionError):
            rig.assert_truth(origin, atol=1e-4)  # the left foot is assumed in contact
        contacts.publish(change, BOTH, RIGHT)
    contacts.play(3)
    rig.assert_truth(origin)
    located = rig.node.last.located
    assert located.contacts_measured and located.stance.in_contact == RIGHT


def test_the_model_is_compared_with_the_feet(own_rig):
    rig = own_rig(changes=SENSING)
    publisher = rig.publisher(WrenchStamped, 'wrench_aggregator/resting_wrench')
    moving, rest = rig.motion.rate, np.zeros_like(rig.motion.rate)

    def compare(line, level, forward=0.0, weight=1.0, rate=rest):
        """Publish the mean wrench so far ahead of the true CoM, m; return what is reported."""
        rig.motion.rate = rate
        rig.play(3)
        for _ in range(5):
            stamp, base = rig.step(dt=0.0), rig.motion.base(rig.t)
            heading = np.arctan2(base.rotation[1, 0], base.rotation[0, 0])
            com = rig.truth()[0].com_in_world - rig.motion.sole_in_world.position
            x, y, _ = Rotation.from_euler('z', heading).inv().apply(com)
            force = 9.81 * weight * rig.motion.model.mass
            publisher.publish(wrench_stamped(stamp, 'base_footprint', (
                0.0, 0.0, force, y * force, -(x + forward) * force, 0.0)))
            rig.spin(0.01)
        return rig.health(line, level)

    rig.motion.rate = rest
    rig.warm_up()
    assert 'not compared' in rig.health('centre of mass', OK)
    assert 'not compared' in rig.health('weight', OK)
    assert 'within 0.0 mm (forward' in compare('centre of mass', OK)
    assert '(ratio 1.0000)' in compare('weight', OK)
    # By the time that the mean arrives the robot has set off: its CoM is no longer that of rest.
    assert 'within 0.0 mm (forward' in compare('centre of mass', OK, 0.02, rate=moving)
    message = compare('centre of mass', WARN, 0.02)
    assert 'centre of pressure is 20.0 mm (forward +20.0, left' in message
    assert 'tare with the feet in the air' in message and 'calibration.launch.py' in message
    message = compare('weight', WARN, weight=1.1)
    assert '(ratio 1.100, weight_tolerance 0.03): tare' in message
    assert 'calibration.launch.py' in message


def test_a_robot_without_wrench_sensors_is_not_compared(rig):
    rig.health('base', OK)
    assert not {'weight', 'centre of mass'} & set(rig.statuses)


EXTRA, FORWARD = 0.3, 0.08  # kg more in the torso, and its centre of mass so far ahead, m
TIMED = parameters(use_sim_time=True, max_stamp_age=0.0)


def calibrated_description(model):
    """Return the URDF of the robot with its load."""
    torso = model.link_names.index('torso')
    mass, com = model.link_masses[torso], model.link_coms_in_link[torso]
    # The load is at the torso's centre of mass, which is ahead (sim.hidden).
    new = NewInertial(mass + EXTRA, com + np.array((FORWARD, 0.0, 0.0)))
    return with_inertials(model.urdf, {'torso': new})


@pytest.mark.thorough
def test_a_hidden_load_is_reported_with_the_remedy_until_the_masses_are_calibrated():
    model, lines = RobotModel.load('biped'), {}
    rig = NodeRig(node=Simulator(parameter_overrides=parameters(
        rate=200.0, hidden_errors=[f'torso {EXTRA} {FORWARD} 0 0'])))
    others = [kind(parameter_overrides=TIMED) for kind in (WrenchAggregator, ComEstimator)]
    names = 'com_estimator: centre of mass', 'com_estimator: weight'

    def found(level):
        """Return the line of each and its value once they are of this level; else nothing."""
        reports = [lines.get(name) for name in names]
        if all(report is not None and report.level == level
               and not report.message.startswith('not compared') for report in reports):
            return [(report.message, float(report.values[0].value)) for report in reports]
        return []
    try:
        for node in others:
            rig.executor.add_node(node)
        rig.peer.create_subscription(DiagnosticArray, '/diagnostics', lambda array: lines.update(
            {status.name: status for status in array.status}), 10)
        rig.until(lambda: found(DiagnosticStatus.WARN), what='a warning')
        (offset, distance), (weight, ratio) = found(DiagnosticStatus.WARN)
        publisher = rig.peer.create_publisher(String, 'calibrated_description', LATCHED)
        publisher.publish(String(data=calibrated_description(model)))
        rig.until(lambda: others[1].model.is_calibrated, what='the calibrated inertials')
        lines.clear()
        remedies = []
        rig.until(lambda: remedies.extend(
            report.message for name in names if (report := lines.get(name)) is not None
            and 'calibration.launch.py' in report.message) or found(DiagnosticStatus.OK),
            what='OK after the calibration')
        assert not remedies
        (_, distance_after), (_, ratio_after) = found(DiagnosticStatus.OK)
    finally:
        for node in others:
            node.destroy_node()
        rig.close()
    torso = model.link_names.index('torso')
    state = model.state(model.posture())
    shift = ((model.link_masses[torso] + EXTRA) * FORWARD + EXTRA * (
        state.link_coms_in_base[torso, 0] - state.com_in_base[0])) / (model.mass + EXTRA)
    assert distance == pytest.approx(abs(shift), abs=1e-3)
    assert ratio == pytest.approx(1.0 + EXTRA / model.mass, abs=2e-3)
    assert 'forward +' in offset and 'calibration.launch.py' in offset
    assert 'tare' in weight and 'calibration.launch.py' in weight
    assert distance_after < 1e-3 and ratio_after == pytest.approx(1.0, abs=2e-3)
