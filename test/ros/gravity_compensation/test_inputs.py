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
"""Inputs that are missing, late or wrong: efforts are held, ramp to zero, and come back."""

import math

from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from support.messages import joint_state, nanoseconds

TALOS = RobotModel.load('talos').joint_names
FAULTS = {
    'no joint states': ({'missing': {'joints'}}, ('joint_states is stale',)),
    'no IMU': ({'missing': {'imu'}}, ('the IMU is stale',)),
    'no wrench': ({'missing': {'left'}}, ("wrench of 'left' is stale",)),
    'one joint is missing': ({'joint_names': TALOS[:-1]}, (TALOS[-1],)),
    'a position is NaN': ({'positions': {3: math.nan}}, (TALOS[3],)),
    'the gyro is NaN': ({'gyro': math.nan}, ('the IMU is stale', 'angular_velocity.x = nan')),
    'the attitude is NaN': ({'length': math.nan}, ('the IMU is stale',)),
    'the attitude is no rotation': ({'length': 2.0}, ('the IMU is stale', 'has length 2')),
    'a force is NaN': ({'shares': (0.5, math.nan)}, ("wrench of 'right' is stale",)),
    'a force is infinite': ({'shares': (0.5, math.inf)}, ("wrench of 'right' is stale",)),
    'another clock of the IMU': (
        {'imu_delay': 0.4}, ('of the IMU', 's behind those of joint_states', 'its clock')),
    'upside down': ({'roll': math.pi}, ('tilted by 180 deg',)),
    'both feet in the air': ({'shares': (0.003, 0.003)}, ('in the air',)),
    'another frame': ({'frame': 'torso_2_link'}, (
        "wrench of 'left' cannot be used", "frame_id is 'torso_2_link'; valid: 'left_sole_link'")),
    'another unit': ({'shares': (4.9, 4.9)}, ('not plausible', 'units of their sensors')),
    # No effort may follow a single support.
    'a dead foot sensor': (
        {'shares': (0.5, 0.0)}, ("sensor of 'right' is dead", 'together 50 % of the weight')),
    'a clock set forward': ({'skew': 30.0}, ('stale',)),
    'a clock set back': ({'skew': -30.0}, ('stale',))}


QUICK = {'no joint states', 'no IMU', 'a position is NaN', 'a force is NaN', 'upside down',
         'another frame', 'a dead foot sensor', 'a clock set back'}


@pytest.mark.parametrize(('fault', 'texts'), [
    pytest.param(*row, id=name, marks=() if name in QUICK else pytest.mark.thorough)
    for name, row in FAULTS.items()])
def test_efforts_are_held_then_ramp_to_zero_and_come_back(rig, fault, texts):
    count, last = len(rig.efforts), rig.last
    rig.stand(**fault)
    rig.until(rig.is_zero, 'zero')
    late = np.array([message.effort for message in rig.efforts[count:]])
    np.testing.assert_allclose(late[0], last, atol=0.02)
    assert len(late) > 5
    assert (np.abs(late) <= np.abs(last) + 0.05).all()
    rig.reports(*texts)
    rig.stand()
    rig.until(rig.is_balanced, 'efforts again')


@pytest.mark.parametrize('velocities', (True, False))
def test_efforts_are_held_while_a_second_node_publishes_the_same_joints(rig, velocities):
    """Zeros, as joint_state_publisher does, in the layout of the driver or another."""
    other, names = Node('gui', namespace=rig.namespace), list(rig.model.joint_names)
    publisher = other.create_publisher(JointState, 'joint_states', 10)
    rig.until(lambda: publisher.get_subscription_count() > 0, 'subscriber')
    rig.until(rig.is_balanced, 'efforts')
    alone, count, last = rig.step, len(rig.efforts), rig.last

    def both(period=None):
        alone(period)
        zeros = np.zeros(len(names))
        publisher.publish(joint_state(
            rig.peer.get_clock().now().to_msg(), names, zeros, zeros if velocities else ()))
    rig.step = both
    rig.until(rig.is_zero, 'zero')
    late = np.array([message.effort for message in rig.efforts[count:]])
    assert len(late) > 5 and (np.abs(late) <= np.abs(last) + 3.0).all()
    rig.reports('is published more than once at a time', '/gui', 'end all but one')
    rig.step = alone
    other.destroy_node()
    rig.until(rig.is_balanced, 'efforts again')


def test_a_slow_driver_is_not_late(rig):
    rig.period = 0.1
    rig.play(5.0)  # its rate is learned
    rig.until(rig.is_balanced, 'efforts')
    count = len(rig.efforts)
    rig.statuses.clear()
    rig.play(2.0)
    rig.until(lambda: 'effort' in rig.statuses, 'diagnostics')
    assert rig.status()[0] == DiagnosticStatus.OK, rig.status()
    assert len(rig.efforts) >= count + 15
    assert np.allclose([m.effort for m in rig.efforts[count:]], rig.expected().efforts, atol=0.01)


def test_stamps_do_not_go_back_when_late_joint_states_arrive(rig):
    count = len(rig.efforts)
    for _ in range(3):
        rig.stand(missing={'joints'})
        rig.play(0.1)  # meanwhile the watchdog publishes, with the present time
        rig.stand(skew=-0.03)
        rig.play(0.1)
        rig.stand()
    rig.until(rig.is_balanced, 'efforts again')
    stamps = [nanoseconds(message.header.stamp) for message in rig.efforts[count:]]
    assert len(stamps) > 20 and (np.diff(stamps) > 0).all()


def test_an_imu_that_jumps_is_not_used_until_it_settles(rig):
    rig.lean(0.2)
    rig.until(lambda: 'jumped by 11.5 deg' in rig.node.supervisor.problem, 'problem')
    rig.statuses.clear()
    rig.lean(0.0)
    rig.until(rig.is_balanced, 'efforts once it is steady')
    rig.reports('jumped by 11.5 deg')  # even if it was over before the diagnostics
    rig.until(lambda: rig.status()[0] == DiagnosticStatus.OK, 'diagnostics')


def test_simulated_time_that_is_set_anew_or_stands_still(make):
    """Forward it is a timeout, back it is a new start, and efforts end when it stands still."""
    rig = make(use_sim_time=True)
    rig.sim_time = 100.0
    rig.until(rig.is_balanced, 'efforts')
    for time in (900.0, 2.0):
        rig.sim_time, count = time, len(rig.efforts)
        rig.until(lambda count=count: len(rig.efforts) > count + 20, 'efforts')
        rig.until(rig.is_balanced, 'efforts again')
    rig.spin(0.3)  # neither /clock nor anything else arrives
    assert not rig.is_zero()
    rig.spin(2.0)
    assert rig.is_zero()
    rig.until(rig.is_balanced, 'efforts when it goes on')


def test_calibrated_masses_are_balanced_without_a_step(make):
    """The rig checks that no effort jumps."""
    rig = make()
    rig.until(rig.is_balanced, 'balance')
    before, model = rig.last, rig.model
    urdf = with_inertials(model.urdf, {
        name: NewInertial(1.1 * mass, com + (0.01, 0.0, 0.0)) for name, mass, com in zip(
            model.link_names, model.link_masses, model.link_coms_in_link)})
    rig.model = RobotModel(model.config, urdf)
    rig.gravity_model = GravityModel(rig.model)
    assert not rig.is_balanced()
    publisher = rig.peer.create_publisher(String, 'calibrated_description', LATCHED)
    publisher.publish(String(data=urdf))
    rig.until(rig.is_balanced, 'balance of the calibrated masses')
    assert np.abs(rig.last - before).max() > 1.0
    assert rig.node.model.mass == pytest.approx(1.1 * model.mass)
