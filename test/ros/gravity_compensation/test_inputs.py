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

from __future__ import annotations

import math

from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from std_msgs.msg import String
from support.messages import nanoseconds


@pytest.mark.parametrize(('missing', 'texts'), (
    ('joints', ('joint_states is stale',)), ('imu', ('the IMU is stale',)),
    ('left', ("wrench of 'left' is stale",))))
def test_missing_inputs_are_bridged_then_efforts_ramp_to_zero_and_come_back(rig, missing, texts):
    count, last = len(rig.efforts), rig.last
    rig.missing.add(missing)
    rig.until(rig.is_zero, 'zero')
    late = [m.effort for m in rig.efforts[count:]]
    assert np.allclose(late[0], last, atol=0.02)  # held first
    assert len(late) > 5
    rig.until(lambda: rig.has_error(*texts), 'diagnostics')
    rig.missing.clear()
    rig.until(rig.is_balanced, 'efforts again')


@pytest.mark.parametrize('rate', (10.0, 25.0))
def test_a_slow_driver_is_not_late(rig, rate):
    rig.period = 1.0 / rate
    rig.play(50.0 / rate)  # its rate is learned
    rig.until(rig.is_balanced, 'efforts')
    count = len(rig.efforts)
    rig.statuses.clear()
    rig.until(lambda: 'effort' in rig.statuses, 'diagnostics')
    rig.play(20.0 / rate)
    assert rig.status()[0] == DiagnosticStatus.OK, rig.status()
    assert len(rig.efforts) >= count + 15
    assert np.allclose([m.effort for m in rig.efforts[count:]], rig.expected().efforts, atol=0.01)


def test_stamps_do_not_go_back_when_late_joint_states_arrive(rig):
    count = len(rig.efforts)
    for _ in range(3):
        rig.missing.add('joints')
        rig.play(0.1)  # meanwhile the watchdog publishes, with the present time
        rig.missing.clear()
        rig.skew = -0.03
        rig.play(0.1)
        rig.skew = 0.0
    stamps = [nanoseconds(message.header.stamp)
              for message in rig.efforts[count:]]
    assert len(stamps) > 20 and (np.diff(stamps) > 0).all()
    rig.until(rig.is_balanced, 'efforts again')


def test_nan_is_not_used(rig):
    rig.positions = rig.positions.copy()
    good = rig.positions[3]
    rig.positions[3] = math.nan
    rig.until(rig.is_zero, 'zero')
    rig.until(lambda: rig.has_error(rig.model.joint_names[3]), 'diagnostics')
    rig.positions[3] = good
    rig.until(rig.is_balanced, 'efforts again')
    rig.quaternion = [math.nan, 0.0, 0.0, 1.0]
    rig.until(lambda: rig.is_zero() and rig.has_error('the IMU is stale'), 'zero')
    rig.lean(0.0)
    rig.until(rig.is_balanced, 'efforts again')
    rig.forces[1] = math.nan
    rig.until(lambda: rig.is_zero() and rig.has_error("wrench of 'right' is stale"), 'zero')
    rig.forces[1] = math.inf
    rig.play(0.05)
    rig.forces[1] = rig.forces[0]
    rig.until(rig.is_balanced, 'efforts again')
    rig.gyro = math.nan
    rig.until(lambda: rig.is_zero() and rig.has_error(
        'the IMU is stale', 'angular_velocity.x = nan'), 'zero')


def test_an_imu_on_another_clock_is_not_used(rig):
    rig.imu_delay = 0.4
    rig.until(rig.is_zero, 'zero')
    rig.until(lambda: rig.has_error('of the IMU', 's behind those of joint_states', 'its clock'),
              'diagnostics')
    rig.imu_delay = 0.0
    rig.until(rig.is_balanced, 'efforts again')


def test_an_imu_upside_down_is_not_used(rig):
    rig.lean(math.pi)
    rig.until(rig.is_zero, 'zero')
    rig.until(lambda: rig.has_error('tilted by 180 deg'), 'diagnostics')


def test_an_imu_that_jumps_is_not_used_until_it_settles(rig):
    rig.lean(0.2)
    rig.until(lambda: 'jumped by 11.5 deg' in rig.node.supervisor.problem, 'problem')
    rig.statuses.clear()
    rig.lean(0.0)
    rig.until(rig.is_balanced, 'efforts once it is steady')
    # Reported even if it was over before the diagnostics were published.
    rig.until(lambda: rig.has_error('jumped by 11.5 deg'), 'diagnostics')
    rig.until(lambda: rig.status()[0] == DiagnosticStatus.OK, 'diagnostics')


def test_both_feet_in_the_air_ramp_to_zero(rig):
    rig.forces[:] = 3.0
    rig.until(rig.is_zero, 'zero')
    rig.until(lambda: rig.has_error('in the air'), 'diagnostics')
    rig.forces[:] = 0.5 * rig.gravity_model.weight
    rig.until(rig.is_balanced, 'efforts again')


def test_wrenches_in_another_frame_are_not_used(rig):
    rig.frame = 'torso_2_link'
    rig.until(rig.is_zero, 'zero')
    rig.until(lambda: rig.has_error(
        "wrench of 'left' cannot be used", "frame_id is 'torso_2_link'; valid: 'left_sole_link'"),
        'diagnostics')
    rig.frame = ''
    rig.until(rig.is_balanced, 'efforts again')


def test_forces_in_another_unit_are_not_used(rig):
    rig.forces[:] = 9.81 * 0.5 * rig.gravity_model.weight
    rig.until(rig.is_zero, 'zero')
    rig.until(lambda: rig.has_error('not plausible', 'units of their sensors'), 'diagnostics')
    rig.forces[:] = 0.5 * rig.gravity_model.weight
    rig.until(rig.is_balanced, 'efforts again')


def test_lifting_a_foot_that_cannot_be_lifted_is_refused(rig):
    """The centre of mass is between the feet: one foot alone would topple."""
    rig.forces[:] = rig.gravity_model.weight, 0.0
    rig.until(rig.is_zero, 'zero')
    rig.until(lambda: rig.has_error("centre of pressure of 'left'", 'outside'), 'diagnostics')


def test_missing_joint_is_named(rig):
    rig.joint_names = rig.joint_names[:-1]
    rig.until(rig.is_zero, 'zero')
    rig.until(lambda: rig.has_error(rig.model.joint_names[-1]), 'diagnostics')


@pytest.mark.parametrize('jump', (30.0, -30.0))
def test_clock_jump(rig, jump):
    rig.skew = jump
    rig.until(rig.is_zero, 'zero')
    rig.until(lambda: rig.has_error('stale'), 'diagnostics')
    rig.skew = 0.0
    rig.until(rig.is_balanced, 'efforts again')


@pytest.mark.parametrize('to', (900.0, 2.0))
def test_simulated_clock_that_is_set_anew(make, to):
    """Forward it is a timeout, back it is a new start; never a jump of efforts."""
    rig = make(use_sim_time=True)
    rig.sim_time = 100.0
    rig.until(rig.is_balanced, 'efforts')
    rig.sim_time = to
    count = len(rig.efforts)
    rig.until(lambda: len(rig.efforts) > count + 20, 'efforts')
    rig.until(rig.is_balanced, 'efforts again')


def test_quaternion_that_is_no_rotation_is_not_used(rig):
    rig.quaternion = [2.0 * value for value in rig.quaternion]
    rig.until(rig.is_zero, 'zero')
    rig.until(lambda: rig.has_error('the IMU is stale', 'has length 2'), 'diagnostics')


def test_a_foot_sensor_that_reads_zero_is_not_used(rig):
    """The other foot carries half of the weight: no effort may follow a single support."""
    count, before = len(rig.efforts), np.array(rig.last)
    rig.forces[1] = 0.0
    rig.until(lambda: rig.has_error("sensor of 'right' is dead", 'together 50 % of the weight'),
              'diagnostics')
    rig.until(rig.is_zero, 'zero')
    for message in rig.efforts[count:]:  # held, then less and less
        assert (np.abs(message.effort) <= np.abs(before) + 0.05).all()
    rig.forces[1] = rig.forces[0]
    rig.until(rig.is_balanced, 'efforts again')


def test_calibrated_masses_are_balanced_without_a_step(rig):
    """The rig checks that no effort jumps."""
    rig.until(rig.is_balanced, 'balance')
    before, model = rig.last, rig.model
    urdf = with_inertials(model.urdf, {
        name: NewInertial(1.1 * mass, com + (0.01, 0.0, 0.0)) for name, mass, com in zip(
            model.link_names, model.link_masses, model.link_coms_in_link)})
    rig.model = RobotModel(model.config, urdf)
    rig.gravity_model = GravityModel(rig.model)
    assert not rig.is_balanced()
    rig.forces = 0.5 * rig.gravity_model.weight * np.ones(2)
    publisher = rig.peer.create_publisher(String, 'calibrated_description', LATCHED)
    publisher.publish(String(data=urdf))
    rig.until(rig.is_balanced, 'balance of the calibrated masses')
    assert np.abs(rig.last - before).max() > 1.0
    assert rig.node.model.mass == pytest.approx(1.1 * model.mass)
