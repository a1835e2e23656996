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
"""The simulator over DDS, as other nodes use it."""

import math
import os
from pathlib import Path
import re
import signal

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.simulator import commands
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.topics.qos import LATCHED
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import (
    InertiaStamped, PointStamped, PoseArray, Vector3Stamped, WrenchStamped)
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState, Temperature
from std_msgs.msg import Float64MultiArray, Header, String
from std_srvs.srv import Trigger
from support.messages import nanoseconds, payload, vector
from support.node_process import start_node
from support.ros_rig import NodeRig
from support.settings import lines
from support.sim_robot import CONFIG, DATA, MASS, URDF
from support.simulator_rig import simulator, SimulatorRig
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
import yaml

DEFAULTS = Path(__file__).resolve().parents[2] / 'config' / 'simulator.yaml'
MODEL = RobotModel(CONFIG, URDF)
ACTUATED = MODEL.actuated_joint_names


@pytest.fixture
def rig(closing):
    return closing(SimulatorRig())


def trajectory(joints, points, stamp=None):
    message = JointTrajectory(header=Header(), joint_names=joints)
    if stamp is not None:
        message.header.stamp = stamp
    for time, positions in points:
        message.points.append(JointTrajectoryPoint(
            positions=positions, time_from_start=Duration(
                sec=int(time), nanosec=round(1e9 * (time % 1.0)))))
    return message


class TestStandingRobot:
    """Tests that do not change it share one."""

    @pytest.fixture(scope='class')
    def standing(self):
        """Return a simulator whose robot has come to rest, for tests that do not change it."""
        rig = SimulatorRig()
        rig.spin(1.0)
        yield rig
        rig.close()

    def test_all_sensors_have_the_same_stamps(self, standing):
        rig = standing
        topics = {'imu': Imu, 'odom': Odometry,
                  'left_foot/wrench': WrenchStamped, 'right_foot/wrench': WrenchStamped,
                  'simulator/truth/com': PointStamped,
                  'simulator/truth/com_velocity': Vector3Stamped,
                  'simulator/truth/zmp': PointStamped, 'simulator/truth/link_coms': PoseArray}
        got = {topic: rig.collect(kind, topic) for topic, kind in topics.items()}
        rig.joints.clear()
        rig.until(lambda: all(len(messages) > 100 for messages in got.values()))
        stamps = {nanoseconds(message.header.stamp) for message in rig.joints}
        frames = {'imu': 'imu_link', 'left_foot/wrench': 'left_ft',
                  'right_foot/wrench': 'right_ft'}
        for topic, messages in got.items():
            own = [nanoseconds(message.header.stamp) for message in messages]
            assert stamps.issuperset(own), topic
            np.testing.assert_array_equal(np.diff(own), 2_000_000)
            assert messages[0].header.frame_id == frames.get(topic, 'odom')
        assert got['odom'][0].child_frame_id == 'base_link'

    def test_the_readings_of_a_standing_robot(self, standing):
        rig = standing
        left, right = (rig.collect(WrenchStamped, f'{s}_foot/wrench') for s in ('left', 'right'))
        com, zmp = (rig.collect(PointStamped, f'simulator/truth/{n}') for n in ('com', 'zmp'))
        contacts = rig.collect(Float64MultiArray, 'simulator/truth/contacts')
        imu = rig.collect(Imu, 'imu')
        rig.until(lambda: all((left, right, com, zmp, contacts, imu)))
        rig.spin(0.2)
        # The sensors' z point down; the right one reports robot on environment.
        carried = -left[-1].wrench.force.z + right[-1].wrench.force.z
        assert carried == pytest.approx(9.81 * (MASS - 2 * 0.6), rel=1e-3)
        assert [dim.label for dim in contacts[-1].layout.dim] == ['left', 'right']
        assert sum(contacts[-1].data) == pytest.approx(9.81 * MASS, rel=1e-3)
        np.testing.assert_allclose(vector(zmp[-1].point)[:2], vector(com[-1].point)[:2], atol=5e-4)
        assert np.linalg.norm(vector(imu[-1].linear_acceleration)) == pytest.approx(9.81, abs=0.02)
        joints = rig.joints[-1]
        assert tuple(joints.name) == MODEL.joint_names
        assert len(joints.velocity) == len(joints.effort) == len(joints.name)
        knee = joints.name.index('left_knee')
        assert joints.position[knee] == pytest.approx(0.6, abs=0.01)
        assert abs(joints.effort[knee]) > 1.0

    def test_the_truth_of_each_link(self, standing):
        rig = standing
        coms = rig.collect(PoseArray, 'simulator/truth/link_coms')
        total = rig.collect(PointStamped, 'simulator/truth/com')
        rig.until(lambda: len(coms) > 10 and len(total) > 10)
        names = rig.node.get_parameter('link_names').value
        assert tuple(names) == MODEL.link_names
        at = {nanoseconds(m.header.stamp): vector(m.point) for m in total}
        message = next(m for m in coms if nanoseconds(m.header.stamp) in at)
        points = np.array([vector(pose.position) for pose in message.poses])
        np.testing.assert_allclose(MODEL.link_masses @ points / MODEL.mass,
                                   at[nanoseconds(message.header.stamp)], atol=1e-6)
        assert not rig.node.set_parameters([Parameter('link_names', value=['a'])])[0].successful

    def test_late_nodes_get_the_description(self, standing):
        descriptions = standing.collect(String, 'robot_description', LATCHED)
        standing.until(lambda: descriptions)
        assert descriptions[0].data == URDF

    def test_the_clock(self, standing):
        clock = standing.collect(Clock, '/clock')
        standing.until(lambda: len(clock) > 30)
        times = [nanoseconds(message.clock) for message in clock]
        np.testing.assert_array_equal(np.diff(times), 10_000_000)
        assert abs(times[-1] - nanoseconds(standing.joints[-1].header.stamp)) <= 20_000_000

    def test_it_keeps_real_time(self, standing):
        begun = standing.node.now()
        standing.spin(2.0)
        assert standing.node.now() - begun == pytest.approx(2.0, abs=0.01)
        assert standing.node.pacer.lost == 0.0
        assert '1.00 of real time' in standing.health('simulation')[1]
        assert standing.health('robot') == (DiagnosticStatus.OK, f'sim_robot, {MASS:.3f} kg')

    @pytest.mark.parametrize('message, text_part', [
        (trajectory(['elbo'], [(1.0, [0.0])]), "did you mean 'elbow'"),
        (trajectory(['elbow'], []), 'no points'),
        (trajectory(['elbow'], [(1.0, [0.0, 1.0])]), 'a point has 2 positions for 1 joint_names'),
        (trajectory(['elbow'], [(1.0, [float('inf')])]), 'not finite'),
        (trajectory(['elbow'], [(1.0, [0.0]), (0.5, [0.1])]), 'must ascend'),
    ])
    def test_bad_trajectories_are_refused(self, standing, message, text_part):
        out = standing.publisher(JointTrajectory, 'joint_trajectory_controller/joint_trajectory')
        before = standing.node.commands.refused
        out.publish(message)
        standing.until(lambda: standing.node.commands.refused > before, what='the refusal')
        level, text = standing.health('commands')
        assert level == DiagnosticStatus.WARN
        assert text_part in text


def test_position_commands(rig, monkeypatch):
    command = rig.publisher(Float64MultiArray, 'position_controller/commands')
    positions = rig.hold()
    positions[ACTUATED.index('elbow')] = 0.5
    command.publish(Float64MultiArray(data=positions))
    rig.until(lambda: rig.joints and rig.position('elbow') > 0.45)
    for bad in (positions[:-1], [*positions[:-1], float('nan')]):
        command.publish(Float64MultiArray(data=bad))
    rig.until(lambda: rig.health('commands')[0] == DiagnosticStatus.WARN)
    assert '2 commands refused' in rig.health('commands')[1]
    rig.spin(0.5)
    assert rig.position('elbow') == pytest.approx(0.5, abs=0.05)
    # What was refused long ago, as while the robot lay, is no warning; its count and age stay.
    monkeypatch.setattr(commands, 'steady_time', lambda: steady_time() + 60.0)
    rig.until(lambda: rig.health('commands')[0] == DiagnosticStatus.OK)
    assert re.match(r'2 commands refused; last, 6\d s ago: ', rig.health('commands')[1])


def test_a_stall_of_the_machine_leaves_time_to_respond():
    """After a stall, each reading is answered within a few steps."""
    rig = SimulatorRig(command_timeout=1.0)
    command = rig.publisher(Float64MultiArray, 'position_controller/commands')
    response, received = Float64MultiArray(data=rig.hold()), rig.node.commands.arrays[0]
    step, at_step = rig.node.step, []
    rig.node.step = lambda: (at_step.append(received.count), step())
    rig.peer.create_subscription(
        JointState, 'joint_states', lambda _: command.publish(response), 10)
    rig.until(lambda: received.count > 50)
    before = len(at_step), len(rig.joints)
    for _ in range(5):
        rig.time.advance(0.05)
        rig.spin(0.1)
    _, steps_on_one_command = np.unique(at_step[before[0]:], return_counts=True)
    assert steps_on_one_command.max() <= 4
    stamps = [nanoseconds(message.header.stamp) for message in rig.joints[before[1]:]]
    np.testing.assert_array_equal(np.diff(stamps), 2_000_000)  # all of them arrived, in order
    assert len(at_step) - before[0] > 250
    rig.close()


def test_the_pace_changes_at_run_time(rig):
    for factor, count in ((0.01, 5), (2.0, 1000)):
        rig.node.set_parameters([Parameter('real_time_factor', value=factor)])
        rig.spin(0.2)
        rig.joints.clear()
        rig.spin(1.0)
        assert len(rig.joints) == pytest.approx(count, rel=0.05, abs=1)


def test_effort_commands_add_to_the_drives(rig):
    command = rig.publisher(Float64MultiArray, 'effort_controller/commands')
    rig.until(lambda: rig.joints)
    efforts = [0.0] * len(ACTUATED)
    efforts[ACTUATED.index('neck')] = 2.0
    command.publish(Float64MultiArray(data=efforts))
    rig.until(lambda: rig.position('neck') > 0.1, what='the neck to turn')
    assert abs(rig.position('elbow')) < 0.1


def test_trajectories(rig):
    out = rig.publisher(JointTrajectory, 'joint_trajectory_controller/joint_trajectory')
    rig.until(lambda: rig.joints)
    out.publish(trajectory(['elbow', 'neck'], [(0.2, [0.2, -0.1]), (0.5, [0.4, 0.3])]))
    rig.until(lambda: rig.position('elbow') > 0.37 and rig.position('neck') > 0.25)


def test_pushes(rig):
    out = rig.publisher(WrenchStamped, 'simulator/push')
    velocity = rig.collect(Vector3Stamped, 'simulator/truth/com_velocity')
    rig.node.set_parameters([Parameter('push_duration', value=0.05)])
    push = WrenchStamped(header=Header(frame_id='chest'))
    push.wrench.force.x = 60.0
    rig.until(lambda: velocity)
    out.publish(push)
    rig.until(lambda: max(v.vector.x for v in velocity) > 0.05, what='the effect of the push')
    push.header.frame_id = 'chst'
    out.publish(push)
    rig.until(lambda: rig.node.commands.refused, what='the refusal')
    assert "did you mean 'chest'" in rig.health('commands')[1]


def test_reset_puts_the_robot_back_and_time_goes_on(rig):
    out = rig.publisher(WrenchStamped, 'simulator/push')
    push = WrenchStamped(header=Header(frame_id='chest'))
    push.wrench.force.x = 400.0
    out.publish(push)
    rig.until(lambda: rig.health('simulation')[0] == DiagnosticStatus.ERROR, what='the fall')
    assert 'call /simulator/reset' in rig.health('simulation')[1]
    response = rig.call(rig.peer.create_client(Trigger, 'simulator/reset'), Trigger.Request())
    assert response.success and 'was reset to posture stand' in response.message
    rig.spin(0.5)
    assert rig.health('simulation')[0] != DiagnosticStatus.ERROR
    assert (np.diff([nanoseconds(m.header.stamp) for m in rig.joints]) > 0).all()


def test_tendons():
    rig = SimulatorRig(tendons=True)
    states = rig.collect(JointState, 'tendon_states')
    out = rig.publisher(Float64MultiArray, 'tendon_controller/commands')
    rig.until(lambda: len(states) > 100)
    lengths = np.array(states[-1].position)
    assert tuple(states[-1].name) == ('tendon_0', 'tendon_1', 'tendon_2', 'tendon_3')
    assert min(states[-1].effort) > 10.0
    out.publish(Float64MultiArray(data=(lengths + (0.004, 0.0, -0.004, 0.0)).tolist()))
    rig.until(lambda: rig.position('torso_pitch') > 0.05, what='the torso to bend')
    out.publish(Float64MultiArray(data=[0.0] * 4))
    rig.until(lambda: rig.node.commands.refused)
    assert 'within half of' in rig.health('commands')[1]
    rig.close()


def test_hidden_errors_and_noise_reach_the_topics():
    rig = SimulatorRig(hidden_errors=['chest 1.0 0.02 0 0'], errors=['encoder_noise 0.001'])
    contacts = rig.collect(Float64MultiArray, 'simulator/truth/contacts')
    rig.spin(1.5)
    assert sum(contacts[-1].data) == pytest.approx(9.81 * (MASS + 1.0), rel=0.01)
    knee = [m.position[m.name.index('left_knee')] for m in rig.joints[-300:]]
    assert np.std(knee) == pytest.approx(1e-3, rel=0.2)
    rig.close()


def test_a_sensor_that_warms_up_publishes_its_temperature(tmp_path, closing):
    robot = tmp_path / 'warm.yaml'
    robot.write_text((DATA / 'sim_robot.yaml').read_text().replace(
        'topic: left_foot/wrench', 'topic: left_foot/wrench, temperature_topic: left_foot/heat'))
    rig = closing(SimulatorRig(robot=str(robot), errors=lines(warming=20.0, warming_time=2.0)))
    found = rig.collect(Temperature, 'left_foot/heat')
    rig.until(lambda: len(found) >= 4, what='temperatures')
    now = found[-1]
    assert now.header.frame_id == 'left_ft'
    assert np.diff([nanoseconds(m.header.stamp) for m in found]).min() >= 500_000_000
    time = 1e-9 * nanoseconds(now.header.stamp)
    assert now.temperature == pytest.approx(40.0 - 20.0 * math.exp(-0.5 * time), abs=0.1)
    assert not rig.peer.count_publishers('right_foot/heat')


@pytest.mark.parametrize('parameters, text_part', [
    ({'rate': -1.0}, "parameter 'rate': -1.0 is out of range; valid: 10 to 2000 Hz"),
    ({'rate': 300.0}, 'must be a multiple of the physics timestep'),
    ({'posture': 'sit'}, "unknown posture 'sit'"),
    ({'hidden_errors': ['chest heavy']}, 'four finite numbers'),
    ({'hidden_errors': ['chst 1 0 0 0']}, "did you mean 'chest'"),
    ({'errors': ['force_noise nan']}, "'force_noise' is nan; it must be 0 to 1e.06 N"),
    ({'errors': ['force_noise much']}, "has to be 'force_noise <number>'"),
    ({'errors': ['force_nois 1']}, "did you mean 'force_noise'"),
    ({'instrument_errors': ['left_foot gain 1']}, "'<name> gain <value> <value>"),
    ({'instrument_errors': ['left_knee frction 1']}, "did you mean 'friction'"),
    ({'instrument_errors': ['left_kne friction 1']}, "did you mean 'left_knee'"),
    ({'wrench_faults': ['left_foot ded']}, "did you mean 'dead'"),
    ({'floor_roll': 1.0}, "'floor_roll': 1.0 is out of range; valid: -0.3 to 0.3 rad"),
])
def test_nonsense_is_refused_by_name(parameters, text_part):
    with pytest.raises(ConfigurationError, match=text_part):
        simulator(**parameters)


def test_a_robot_without_a_urdf_is_refused_instead_of_waited_for(tmp_path):
    config = yaml.safe_load((DATA / 'sim_robot.yaml').read_text()) | {'urdf': ''}
    file = tmp_path / 'mine.yaml'
    file.write_text(yaml.safe_dump(config))
    with pytest.raises(ConfigurationError, match=r'mine\.yaml.* parameter urdf'):
        simulator(robot=str(file), urdf='')


def test_as_a_process():
    """It starts with its defaults file, gives way to others, and ends cleanly at ctrl-C."""
    process = start_node('simulator', '-r', '__ns:=/alone', '--params-file', str(DEFAULTS),
                         '-p', f'robot:={DATA / "sim_robot.yaml"}',
                         '-p', f'urdf:={DATA / "sim_robot.urdf"}')
    try:
        rig = NodeRig('listener')
        joints = rig.collect(JointState, '/alone/joint_states')
        rig.until(lambda: len(joints) > 20, what='the process')
        rig.close()
        assert os.getpriority(os.PRIO_PROCESS, process.pid) >= min(os.nice(0) + 10, 19)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=100.0)
    finally:
        process.kill()
    assert process.returncode == 0, output
    assert 'Traceback' not in output


def test_a_hand_grips_until_it_is_released(rig):
    """A chest that is held by up to 200 N is moved less by a push of 60 N than a free one."""
    grips, pushes = (rig.publisher(WrenchStamped, f'simulator/{k}') for k in ('grip', 'push'))
    velocity = rig.collect(Vector3Stamped, 'simulator/truth/com_velocity')
    rig.node.set_parameters([Parameter('push_duration', value=0.05)])

    def publish(out, force, link='chest'):
        message = WrenchStamped(header=Header(frame_id=link))
        message.wrench.force.y = force
        out.publish(message)

    def largest_speed_after_push():
        velocity.clear()
        publish(pushes, 60.0)
        rig.spin(0.4)
        return max(v.vector.y for v in velocity)
    rig.until(lambda: velocity)
    publish(grips, -200.0)
    rig.spin(0.2)
    held = largest_speed_after_push()
    publish(grips, 0.0)
    rig.spin(0.5)
    assert held < 0.5 * largest_speed_after_push()
    publish(grips, 1.0, 'no_link')
    rig.until(lambda: 'no_link' in rig.node.commands.last_error, what='a refusal')
    publish(grips, math.inf)
    rig.until(lambda: 'must be finite' in rig.node.commands.last_error, what='a refusal')


def test_a_load_is_carried_and_taken_off(rig):
    """The feet carry it, too; a link that does not exist is refused."""
    contacts = rig.collect(Float64MultiArray, 'simulator/truth/contacts')
    publisher = rig.publisher(InertiaStamped, 'simulator/load')

    def put(mass, link):
        publisher.publish(payload(Time(), link, mass))

    def carries(mass):
        weight = 9.81 * (MASS + mass)
        return bool(contacts) and abs(sum(contacts[-1].data) - weight) < 0.01 * weight
    rig.until(lambda: carries(0.0), what='standing')
    put(1.5, CONFIG.base_link)
    rig.until(lambda: carries(1.5), what='the load')
    put(0.0, CONFIG.base_link)
    rig.until(lambda: carries(0.0), what='no load')
    put(1.0, 'no_link')
    rig.until(lambda: 'no_link' in rig.node.commands.last_error, what='a refusal')


def test_a_slow_computer_gets_fewer_readings_and_an_explanation(closing, monkeypatch):
    """At 0.3 of real time, half of them after 5 s, and no fewer than permitted."""
    rig = closing(SimulatorRig(least_rate=200.0, rate=500.0))
    pacer = rig.node.pacer
    monkeypatch.setattr(type(pacer), 'achieved', 0.3, raising=False)
    monkeypatch.setattr(type(pacer), 'due', lambda pacer: 10)
    full = distance_of_stamps(rig)
    for _ in range(12):
        pacer.seconds += 1
        rig.spin(0.01)
    assert (full, distance_of_stamps(rig)) == (2_000_000, 4_000_000)
    _, values = rig.node._report()[1:]
    assert (values['rate [Hz]'], values['rate without slowing down [Hz]']) == (250.0, 500.0)


def distance_of_stamps(rig):
    """Return the time between joint states from now on, ns."""
    rig.joints.clear()
    rig.until(lambda: len(rig.joints) > 10, what='joint states')
    stamps = [nanoseconds(message.header.stamp) for message in rig.joints]
    return int(np.median(np.diff(stamps)))
