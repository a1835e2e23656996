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
"""Measurements of the demo."""

from dataclasses import replace
import math
import time
from xml.etree import ElementTree

from biped_com_ros.core.geometry.pose import Pose, quaternion_from_rotation
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.calibration import Calibration
from biped_com_ros.demo.measurements import Health, Measurements
from biped_com_ros.demo.push import Push
from biped_com_ros.demo.rail import Rail
from biped_com_ros.demo.slope import Slope
from biped_com_ros.ros.fast.compat import callback_of
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, WARN
from biped_com_ros.ros.topics.stamp import stamp_to_msg
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Quaternion, TransformStamped, Vector3, WrenchStamped
import numpy as np
import pytest
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from std_msgs.msg import Header
from support.ros_rig import NodeRig
from support.sim_robot import CONFIG, URDF
from tf2_msgs.msg import TFMessage


@pytest.fixture
def measurements(closing):
    found = Measurements(
        closing(Node('subscriber')), RobotModel(CONFIG, URDF), exact_sensors=True)
    found.start(0)
    return found


ORIGIN = Pose.identity()


def locate(found, ns, base=ORIGIN, true_base=ORIGIN):
    """Receive an instant's pose of the root link, which is the base, and of the true base."""
    found.on_root(ns, base)
    found.on_true_base(ns, true_base.position, quaternion_from_rotation(true_base.rotation),
                       np.zeros(6))


def measure(found, instants, error, force, contact=None):
    """Receive some instants with an error of the CoM and a force at each foot."""
    for foot in CONFIG.feet if contact is not None else ():
        found.on_contact(foot, instants[0], contact)
    for ns in instants:
        for foot in CONFIG.feet:
            found.on_foot(foot, ns, np.array((0.0, 0.0, force, 0.0, 0.0, 0.0)))
        locate(found, ns)
        found.on_truth(ns, np.array((0.1, 0.2, 0.9)))
        found.on_com(ns, np.array((0.1, 0.2, 0.9 + error)))


def snapshot(found):
    return found.period_snapshot('stands', 500.0, (0, ''), ())


def test_pads_under_the_feet_are_weighed_and_no_total_wrench_is_waited_for(closing):
    """The total wrench is not published then, and the moments of a foot are NaN."""
    sensors = {name: replace(sensor, measures='force_z')
               for name, sensor in CONFIG.wrench_sensors.items()}
    node = closing(Node('subscriber'))
    found = Measurements(node, RobotModel(
        replace(CONFIG, wrench_sensors=sensors), URDF), exact_sensors=True)
    assert not any('wrench' in name for name in found.inputs)
    found.start(0)
    message = WrenchStamped(header=Header(frame_id='l_sole', stamp=stamp_to_msg(10**9)))
    message.wrench.force = Vector3(x=math.nan, y=math.nan, z=17.0)
    message.wrench.torque = Vector3(x=math.nan, y=math.nan, z=math.nan)
    (foot,) = (each for each in node.subscriptions if each.topic_name.endswith('left/wrench'))
    callback_of(foot)(bytes(serialize_message(message)))
    assert snapshot(found).contacts['left'][0] == 17.0


@pytest.mark.parametrize('chapter', (Calibration, Push, Rail, Slope))
def test_chapters_that_need_the_wrench_of_the_ground_are_skipped_for_pads(chapter):
    pads = replace(CONFIG, wrench_sensors={
        name: replace(sensor, measures='force_z')
        for name, sensor in CONFIG.wrench_sensors.items()})
    assert 'vertical force alone' in chapter().missing_for(RobotModel(pads, URDF))


RECOVERED = 6 * 10**9  # ns after a disturbance


def test_while_the_robot_hangs_nothing_is_measured(measurements):
    """Nor while it is lifted and put down, when the feet carry a part of the weight."""
    measure(measurements, range(10), 0.003, 100.0, contact=True)
    stands = snapshot(measurements)
    measure(measurements, range(5, 10), 0.003, 60.0, contact=True)
    measure(measurements, range(10, 90), -0.1, 0.0, contact=False)
    hangs = snapshot(measurements)
    whole_while_hanging = measurements.whole_snapshot(500.0, (0, ''), ())
    measure(measurements, range(90, 100), 0.003, 60.0, contact=True)
    measure(measurements, range(RECOVERED, RECOVERED + 10), 0.003, 100.0, contact=True)
    for shot in (stands, snapshot(measurements), measurements.whole_snapshot(500.0, (0, ''), ())):
        np.testing.assert_allclose(shot.com_error, (0.0, 0.0, 0.003), atol=1e-12)
        assert shot.com_error_largest == pytest.approx(0.003)
        assert shot.weight == pytest.approx(200.0)
    assert np.isnan(hangs.com_distance) and np.isnan(hangs.weight)
    assert np.isnan([hangs.time, whole_while_hanging.real_time_factor]).all()
    assert not hangs.has_fallen
    assert hangs.contacts == dict.fromkeys(CONFIG.feet, (0.0, False))


def test_a_pushed_robot_is_measured_once_it_stands_again(closing):
    rig = closing(NodeRig())
    found = Measurements(rig.node, RobotModel(CONFIG, URDF), exact_sensors=True)
    found.start(0)
    found.use_calibrated(RobotModel(CONFIG, URDF))
    measure(found, range(10), 0.003, 130.0, contact=True)
    assert 'still wrong' in found.whole_snapshot(500.0, (0, ''), ()).conclusion
    push = rig.peer.create_publisher(WrenchStamped, 'simulator/push', 10)
    rig.until(push.get_subscription_count)
    push.publish(WrenchStamped())
    rig.until(lambda: np.isnan(found.whole_snapshot(500.0, (0, ''), ()).com_distance))
    measure(found, range(10, 20), 0.003, 130.0, contact=True)
    assert not found.whole_snapshot(500.0, (0, ''), ()).has_results
    measure(found, range(RECOVERED, RECOVERED + 10), 0.0, 100.0, contact=True)
    assert snapshot(found).com_distance == pytest.approx(0.0)


def test_what_joint_torques_give_is_no_measured_weight(closing):
    """It contains the URDF's own; the verdict is on the centre of mass alone."""
    rig = closing(NodeRig())
    found = Measurements(rig.node, RobotModel.load('g1_as_sold'), exact_sensors=True)
    found.start(0)
    measure(found, range(10), 0.003, 130.0, contact=True)
    shot = found.whole_snapshot(500.0, (0, ''), ())
    assert np.isnan(shot.weight) and shot.com_error_largest == pytest.approx(0.003)
    assert shot.conclusion.startswith('wrong in the URDF: the centre of mass;')


def test_a_pause_clears_and_measures_nothing_until_the_next_start(measurements):
    """A fall is no error of the URDF, and the robot stands again before the next start."""
    measure(measurements, range(10), -0.1, 100.0)
    measurements.pause()
    measure(measurements, range(10, 20), -0.1, 100.0)
    shot = measurements.whole_snapshot(500.0, (0, ''), ())
    assert np.isnan([shot.com_distance, shot.time]).all()
    measurements.start(20)
    measure(measurements, range(15, 30), 0.003, 100.0)
    shot = measurements.whole_snapshot(500.0, (0, ''), ())
    assert shot.com_error_largest == pytest.approx(0.003)


def test_drift_of_leg_odometry_is_no_error_of_the_centre_of_mass(measurements):
    """Put down elsewhere and turned, the robot is still as heavy where it was."""
    drift = Pose.from_rpy((0.0, 0.0, 0.3), (0.03, -0.04, 0.0))
    true_base = Pose.from_rpy((0.02, 0.01, -0.1), (0.5, 0.1, 0.9))
    true_com, error = true_base.apply(np.array((0.02, 0.01, 0.1))), np.array((0.0, 0.0, 0.003))
    for ns in range(10):
        measurements.on_com(ns, drift.apply(true_com) + error)
        locate(measurements, ns, drift @ true_base, true_base)
        measurements.on_truth(ns, true_com)
    shot = snapshot(measurements)
    np.testing.assert_allclose(shot.com_error, error, atol=1e-12)
    moved = drift.apply(true_base.position) - true_base.position
    assert shot.base_drift == pytest.approx(np.linalg.norm(moved))


def turned_base():
    """Return a robot whose base link is turned from REP 103, and not the root of its URDF."""
    urdf = ElementTree.fromstring(URDF)
    ElementTree.SubElement(urdf, 'link', name='hull')
    joint = ElementTree.SubElement(urdf, 'joint', name='hull_joint', type='fixed')
    ElementTree.SubElement(joint, 'parent', link='hull')
    ElementTree.SubElement(joint, 'child', link='base_link')
    ElementTree.SubElement(joint, 'origin', xyz='0.1 0.05 -0.2', rpy='0.1 0.2 0.5')
    return RobotModel(replace(CONFIG, base_rpy=(0.0, 0.0, math.pi)),
                      ElementTree.tostring(urdf, encoding='unicode'))


def test_the_root_link_is_taken_from_tf_also_if_it_is_not_the_base():
    """Of the own robot only; a root's true pose is no drift and no error."""
    node = Node('subscriber', parameter_overrides=[Parameter('frame_prefix', value='own/')])
    node.declare_parameter('frame_prefix', '')
    sender = node.create_publisher(TFMessage, '/tf', 10)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        found = Measurements(node, turned_base(), exact_sensors=True)
        found.start(0)
        base = Pose.from_rpy((0.05, -0.1, 0.8), (0.5, 0.1, 0.9))
        hull = base @ Pose.from_rpy((0.1, 0.2, 0.5), (0.1, 0.05, -0.2)).inverse()
        com = base.apply(np.array((0.04, 0.01, 0.1)))
        ns = 7 * 10**9 + 5
        found.on_com(ns, com)
        found.on_truth(ns, com)
        found.on_true_base(ns, base.position, base.quaternion, np.zeros(6))
        message = TFMessage(transforms=[
            transform('odom', 'own/com', Pose(np.eye(3), com), ns),
            transform('odom', 'other/hull', Pose.identity(), ns),
            transform('odom', 'own/hull', hull, ns)])
        end = time.monotonic() + 10.0
        while np.isnan(found.whole_snapshot(500.0, (0, ''), ()).com_distance):
            assert time.monotonic() < end, 'no comparison'
            sender.publish(message)
            executor.spin_once(timeout_sec=0.05)
        shot = found.whole_snapshot(500.0, (0, ''), ())
        np.testing.assert_allclose(shot.com_error, 0.0, atol=1e-9)
        assert shot.base_drift < 1e-9
    finally:
        executor.shutdown()
        node.destroy_node()


def transform(parent, child, pose, ns):
    x, y, z = pose.position.tolist()
    result = TransformStamped(header=Header(frame_id=parent, stamp=stamp_to_msg(ns)),
                              child_frame_id=child)
    result.transform.translation = Vector3(x=x, y=y, z=z)
    x, y, z, w = pose.quaternion.tolist()
    result.transform.rotation = Quaternion(x=x, y=y, z=z, w=w)
    return result


def test_values_have_an_age_when_none_arrive(measurements, driven_time):
    measure(measurements, range(10), 0.003, 100.0, contact=True)
    shot = snapshot(measurements)
    assert shot.contacts['left'] == (100.0, True) and not shot.ages
    driven_time.advance(5.0)
    shot = snapshot(measurements)
    assert shot.ages == pytest.approx(dict.fromkeys(('com', *CONFIG.feet), 5.0))
    assert np.isnan(shot.com_distance) and np.isnan(shot.weight)


def test_the_weight_is_compared_above_the_sensors_only(measurements):
    """What is wrong below them is in no reading: it must not turn the sign of the rest."""
    model = RobotModel(CONFIG, URDF)
    sensors = CONFIG.wrench_sensors.values()
    below = 9.81 * sum(
        sum(model.link_masses[model.subtree_links(sensor.link or sensor.frame)])
        for sensor in sensors)
    assert below > 0.0
    above = 9.81 * model.mass - below
    measure(measurements, range(10), 0.0, (1.02 * above + below) / len(CONFIG.feet))
    shot = snapshot(measurements)
    assert shot.unmeasured == pytest.approx(below)
    assert shot.weight_error == pytest.approx(0.02, rel=1e-9)


def test_the_calibrated_weight_is_compared_once_nodes_use_it(measurements):
    heavier = RobotModel(CONFIG, URDF.replace('<mass value="', '<mass value="1', 1))
    measurements.use_calibrated(heavier)
    shot = snapshot(measurements)
    assert shot.model_weight == pytest.approx(9.81 * heavier.mass)
    assert shot.is_calibrated and shot.urdf == 'calibrated URDF'


def report(*names):
    return DiagnosticArray(status=[
        DiagnosticStatus(name=name, message='well', level=b'\0') for name in names])


def test_nodes_that_do_not_report_are_named(driven_time, closing):
    """Neither those that never did nor those that were killed count as well."""
    node = closing(Node('subscriber'))
    health = Health(node, ('simulator', 'com_estimator'))
    assert health.worst() == (1, 'no diagnostics yet')
    health.on_array(report('simulator: clock', 'com_estimator: com', 'zmp_monitor: zmp'))
    assert health.worst() == (0, 'all 3 checks OK')
    driven_time.advance(10.0)
    health.on_array(report('simulator: clock'))
    level, text = health.worst()
    assert level == 2
    assert text == 'no diagnostics from com_estimator for 10 s, zmp_monitor for 10 s: ' \
        'ended, or hangs'
    driven_time.advance(60.0)
    never = Health(node, ('com_estimator',))
    driven_time.advance(30.0)
    assert 'com_estimator for 15 s' in never.worst()[1]


@pytest.mark.parametrize(('namespace', 'text'), [
    ('', 'no diagnostics from zmp_monitor for 10 s'),
    ('robot2', 'no diagnostics from com_estimator for 10 s')])
def test_another_robot_does_not_count_for_ones_own(driven_time, namespace, text, closing):
    node = closing(Node('subscriber', namespace=namespace))
    health = Health(node)
    health.on_array(report('zmp_monitor: zmp', 'robot2/com_estimator: com'))
    assert health.worst() == (0, 'all 1 checks OK')
    driven_time.advance(10.0)
    health.on_array(report('robot2/zmp_monitor: zmp') if not namespace else
                    report('com_estimator: com', 'robot2/zmp_monitor: zmp'))
    assert text in health.worst()[1]


def test_another_robot_on_the_same_topic_is_left_out(closing):
    rig = closing(NodeRig(namespace='robot1'))
    other = closing(Node('com_estimator', namespace='robot2'))
    rig.executor.add_node(other)
    health = Health(rig.peer, ('node',))
    Diagnostics(other, period=0.05).add('com', lambda: (ERROR, 'of another robot', {}))
    received = rig.collect(DiagnosticArray, '/diagnostics')
    rig.until(lambda: any(s.level == ERROR for m in received for s in m.status))
    assert health.worst() == (1, 'no diagnostics yet')
    Diagnostics(rig.node, period=0.05).add('zmp', lambda: (WARN, 'of this robot', {}))
    rig.until(lambda: health.worst()[0] == 1 and 'robot1' in health.worst()[1])
    assert health.worst() == (1, 'robot1/node: zmp: of this robot')


def test_a_robot_without_contact_states_is_measured(measurements):
    measure(measurements, range(10), 0.003, 100.0)
    assert snapshot(measurements).com_distance == pytest.approx(0.003)


def test_a_fallen_robot_is_not_measured_until_it_stands_again(measurements):
    measure(measurements, range(10), 0.003, 100.0)
    for ns in range(10, 20):
        measurements.on_truth(ns, np.array((0.5, 0.2, 0.1)))
        assert measurements.has_fallen
        locate(measurements, ns)
        measurements.on_com(ns, np.array((0.1, 0.2, 0.9)))
    measure(measurements, range(20, 30), 0.003, 100.0)
    assert not measurements.has_fallen
    assert snapshot(measurements).com_error_largest == pytest.approx(0.003)
