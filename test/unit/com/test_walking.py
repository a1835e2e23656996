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
Load, CoM and external force of a moving robot, against Newton and Euler by Pinocchio.

The robot that carries the load is a second Pinocchio model; its contact wrench comes from inverse
dynamics about the world's origin, in which the estimator's equations do not occur.
"""

from dataclasses import replace

from biped_com_ros.core.com.walking import WalkingComEstimator, WalkingComSettings
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.base_filter import FilteredBase
from biped_com_ros.core.state.stance import Stance, Twist
import numpy as np
from numpy.testing import assert_allclose
import pinocchio as pin
import pytest
from support.known_motion import known_sway
from support.stance_motion import LEFT, SwayingMotion

DT, COUNT = 0.005, 700
H = 1e-4
PLACE = np.array((0.04, -0.03, 0.11))
GRAVITY_VECTOR = np.array((0.0, 0.0, -GRAVITY))


@pytest.fixture(scope='module')
def motion():
    return SwayingMotion(5)


@pytest.fixture(scope='module')
def load(motion):
    return 0.08 * motion.model.mass


@pytest.fixture(scope='module')
def instants(motion, load):
    """Return (located state, contact wrench about the origin, true CoM and its velocity)."""
    true = motion.model.pin_model.copy()
    true.inertias[1] += pin.Inertia(load, PLACE, np.zeros((3, 3)))
    known = known_sway(motion, true)
    return [(located(motion, DT * k), *known.truth(DT * k)) for k in range(COUNT)]


def located(motion, t):
    base, state = motion.base(t), motion.state(t)
    imu = [motion.base(t + s) @ motion.state(t + s).pose_in_base(motion.imu) for s in (-H, 0.0, H)]
    acceleration = (imu[0].position - 2.0 * imu[1].position + imu[2].position) / (H * H)
    R = imu[1].rotation
    filtered = FilteredBase(
        base, base.position - imu[1].position, R, np.zeros(3), np.zeros((21, 21)), slice(15, 18),
        motion.gyro(t), R.T @ (acceleration - GRAVITY_VECTOR), False)
    placed = state.in_world(base)
    twist = Twist(*motion.base_twist(t))
    return LocatedState(round(1e9 * t), placed, Stance(
        placed.sole_placements_in_world[:, 3], LEFT), True, lambda _: twist, filtered=filtered)


def at_sole(now, wrench):
    """Return a wrench about the world's origin as those of the feet in their soles; the left's."""
    sole = now.state.sole_placements_in_world[0]
    moment = wrench[3:] - np.cross(sole[3], wrench[:3])
    return [[*(sole[:3] @ wrench[:3]).tolist(), *(sole[:3] @ moment).tolist()], [0.0] * 6]


def run(motion, instants, external=None, late=0, forces=None, **settings):
    """
    Run the estimator with exact joints; `forces` gets what it takes for external forces.

    `external` returns a wrench about the origin, beside that of the ground, of an instant's
    number, state and CoM.
    """
    estimator = WalkingComEstimator(motion.model, WalkingComSettings(**{
        'wrench_delay': DT * late, 'foot_deviation': 1e-5, **settings}))
    for k, (now, *_) in enumerate(instants):
        then, wrench, com, _ = instants[max(k - late, 0)]
        if external is not None:
            wrench = wrench + external(k, then, com)
        now.wrenches = at_sole(then, wrench)
        estimator.update(DT, now)
        if forces is not None:
            forces.append(estimator.external_force)
    return estimator


def pushed(force, com):
    """Return what a force on the robot at its CoM takes from the ground."""
    return -np.concatenate((force, np.cross(com, force)))


@pytest.fixture(scope='module')
def on_time(motion, instants):
    return run(motion, instants)


def test_load_and_centre_of_mass_are_found_within_their_deviations(
        motion, instants, load, on_time):
    _, _, com, velocity = instants[-1]
    before = instants[-1][0].state.com_in_world
    assert np.abs(before - com).max() > 5e-3
    assert on_time.load[0] == pytest.approx(load, rel=0.01)
    found, speed = on_time.now()
    assert_allclose(found, com, atol=5e-4)
    assert_allclose(speed, velocity, atol=3e-3)
    assert_allclose(on_time.bias, before - found)
    assert np.abs(on_time.external_force).max() < 0.01 * GRAVITY * motion.model.mass
    deviations = np.sqrt(np.diag(on_time.load_covariance))
    assert (np.abs(on_time.load - load * np.array((1.0, *PLACE))) < 2.0 * deviations).all()
    assert deviations[0] < 0.1 * load
    position = np.sqrt(np.diag(on_time.com_covariance))
    assert (np.abs(found - com) < 2.0 * position).all() and (position < 5e-3).all()


def test_the_place_of_a_foot_is_not_taken_for_a_load(motion, instants):
    """By a sensor that is 6 mm beside its place, one deviation, the robot seems 6 mm beside."""
    def moved(k, now, com):
        forwards = 0.006 * now.state.base.rotation[:, 0]
        return np.concatenate((np.zeros(3), np.cross(forwards, instants[k][1][:3])))
    believing, doubting = (run(motion, instants, moved, foot_deviation=deviation)
                           for deviation in (1e-5, 0.006))
    misled, error = (each.now()[0] - instants[-1][2] for each in (believing, doubting))
    assert np.linalg.norm(error[:2]) < 0.8 * np.linalg.norm(misled[:2])
    assert 0.0 < doubting.foot_offsets[0] < 0.008
    assert (np.abs(error) < 2.0 * np.sqrt(np.diag(doubting.com_covariance))).all()


@pytest.mark.parametrize('impact', [0.0, 2.0])
def test_a_push_is_found_within_30_ms_also_at_an_impact_and_noise_is_none(
        motion, instants, impact):
    rng, weight = np.random.default_rng(3), GRAVITY * motion.model.mass
    push, found = 0.15 * weight * np.array((1.0, 0.0, 0.0)), []

    def disturbed(k, now, com):
        spurious = impact * weight * (float(k == 599) - float(k == 601)) * np.array(
            (0.5, 0.2, 1.0))
        noise = 0.01 * weight * rng.standard_normal(3) + spurious
        return np.concatenate((noise, np.zeros(3))) + pushed(push * (k >= 600), com)
    run(motion, instants, disturbed, forces=found)
    assert found[614][0] == pytest.approx(push[0], rel=0.1)
    assert np.std(found[300:590]) < 0.5 * 0.01 * weight


def test_a_push_is_measured_and_is_no_load(motion, instants, load):
    """It acts in the last 0.3 s."""
    push = 0.12 * GRAVITY * motion.model.mass * np.array((0.8, -0.6, 0.0))
    estimator = run(motion, instants, lambda k, now, com: pushed(push * (COUNT - k <= 60), com))
    assert_allclose(estimator.external_force, push, atol=0.05 * np.linalg.norm(push))
    assert estimator.load[0] == pytest.approx(load, rel=0.03)


def test_wrenches_that_are_late_are_compared_with_the_motion_that_they_belong_to(
        motion, instants, load, on_time):
    aligned, misaligned = [], []
    late = run(motion, instants, late=3, forces=aligned)
    run(motion, instants, late=3, forces=misaligned, wrench_delay=0.0)
    assert_allclose(late.load, on_time.load, atol=0.01 * load)
    errors = [np.std(forces[COUNT // 2:], axis=0).max() for forces in (aligned, misaligned)]
    assert errors[0] < 0.5 * errors[1]


def test_after_a_gap_the_load_is_kept_and_after_a_reset_removed(motion, instants, load):
    estimator = run(motion, instants)
    estimator.update(1.0, instants[0][0])
    assert estimator.load[0] == pytest.approx(load, rel=0.01)
    assert not estimator.external_force.any() and estimator.is_credible
    assert_allclose(estimator.now()[0], instants[0][2], atol=5e-4)
    estimator.reset()
    assert not estimator.load.any() and not estimator.is_started


def test_without_wrenches_it_is_the_kinematic_one(motion, instants):
    estimator = WalkingComEstimator(motion.model)
    now = instants[0][0]
    now.wrenches = None
    estimator.update(np.inf, now)
    assert_allclose(estimator.now()[0], now.state.com_in_world, atol=1e-12)
    assert estimator.mass == motion.model.mass
    assert np.sqrt(estimator.com_covariance[2, 2]) == pytest.approx(0.015, rel=0.3)


def test_wrenches_of_virtual_feet_do_not_measure_a_load(instants):
    """They come from the model: a small residual would make a wrong mass certain."""
    virtual = SwayingMotion(5)
    config = virtual.model.config
    feet = {name: replace(foot, source='virtual') for name, foot in config.feet.items()}
    virtual.model = RobotModel(replace(config, feet=feet), virtual.model.urdf)
    estimator = run(virtual, instants[:100])
    assert not estimator.load.any() and not estimator.external_force.any()
    assert estimator.load_covariance[0, 0] == pytest.approx((0.1 * virtual.model.mass) ** 2)
