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
import pinocchio as pin
import pytest
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


def world_q(motion, t):
    base, q = motion.base(t), motion.state(t).q.copy()
    root = pin.SE3(pin.Quaternion(q[3:7]).matrix(), q[:3])
    q[:7] = pin.SE3ToXYZQUAT(pin.SE3(base.rotation, base.position) * root)
    return q


def loaded(motion, load):
    model = motion.model.pin_model.copy()
    model.inertias[1] = model.inertias[1] + pin.Inertia(load, PLACE, np.zeros((3, 3)))
    model.gravity.linear = GRAVITY_VECTOR
    return model


@pytest.fixture(scope='module')
def instants(motion, load):
    """Return (located state, contact wrench about the origin, true CoM and its velocity)."""
    model, found = loaded(motion, load), []
    data = model.createData()
    for k in range(COUNT):
        t = DT * k
        before, q, after = (world_q(motion, t + s) for s in (-H, 0.0, H))
        forward, backward = pin.difference(model, q, after), pin.difference(model, q, before)
        v, a = (forward - backward) / (2.0 * H), (forward + backward) / (H * H)
        at_root = pin.Force(pin.rnea(model, data, q, v, a)[:6])
        com = pin.centerOfMass(model, data, q, v).copy()
        wrench = (data.oMi[1] * at_root).vector
        found.append((located(motion, t), wrench, com, data.vcom[0].copy()))
    return found


def located(motion, t):
    base, state = motion.base(t), motion.state(t)
    imu = [motion.base(t + s) @ motion.state(t + s).pose_in_base(motion.imu)
           for s in (-H, 0.0, H)]
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
    axes, origin = now.state.sole_placements_in_world[0][:3], (
        now.state.sole_placements_in_world[0][3])
    force = axes @ wrench[:3]
    moment = axes @ (wrench[3:] - np.cross(origin, wrench[:3]))
    return [[*force.tolist(), *moment.tolist()], [0.0] * 6]


def run(motion, instants, push=None, late=0, forces=None, **settings):
    """
    Run the estimator; `push` (3,) acts on the robot in the last 0.3 s. Its joints are exact.

    `forces` gets what it takes for external forces.
    """
    estimator = WalkingComEstimator(motion.model, WalkingComSettings(**{
        'wrench_delay': DT * late, 'foot_deviation': 1e-5, **settings}))
    for k, (now, _, _, _) in enumerate(instants):
        then = max(k - late, 0)
        wrench = instants[then][1].copy()
        if push is not None and COUNT - then <= 60:
            com = instants[then][2]
            wrench -= np.concatenate((push, np.cross(com, push)))
        now.wrenches = at_sole(instants[k][0], wrench) if not late else at_sole(
            instants[then][0], wrench)
        estimator.update(DT, now)
        if forces is not None:
            forces.append(estimator.external_force)
    return estimator


def test_load_and_centre_of_mass_are_found(motion, instants, load):
    estimator = run(motion, instants)
    _, _, com, velocity = instants[-1]
    before = instants[-1][0].state.com_in_world
    assert np.abs(before - com).max() > 5e-3
    assert estimator.load[0] == pytest.approx(load, rel=0.01)
    found, speed = estimator.now()
    np.testing.assert_allclose(found, com, atol=5e-4)
    np.testing.assert_allclose(speed, velocity, atol=3e-3)
    np.testing.assert_allclose(estimator.bias, before - found)
    assert np.abs(estimator.external_force).max() < 0.01 * GRAVITY * motion.model.mass


def test_the_errors_are_within_their_deviations(motion, instants, load):
    estimator = run(motion, instants)
    deviations = np.sqrt(np.diag(estimator.load_covariance))
    error = estimator.load - load * np.array((1.0, *PLACE))
    assert (np.abs(error) < 2.0 * deviations).all()
    assert deviations[0] < 0.1 * load
    position = np.sqrt(np.diag(estimator.com_covariance))
    assert (np.abs(estimator.now()[0] - instants[-1][2]) < 2.0 * position).all()
    assert (position < 5e-3).all()


def test_the_place_of_a_foot_is_not_taken_for_a_load(motion, instants, load):
    """By a sensor that is 6 mm beside its place, one deviation, the robot seems 6 mm beside."""
    errors, com = [], instants[-1][2]
    for deviation in (1e-5, 0.006):
        estimator = WalkingComEstimator(motion.model, WalkingComSettings(
            wrench_delay=0.0, foot_deviation=deviation))
        for now, wrench, _, _ in instants:
            force = wrench[:3]
            forwards = 0.006 * now.state.base.rotation[:, 0]
            now.wrenches = at_sole(now, wrench + np.concatenate(
                (np.zeros(3), np.cross(forwards, force))))
            estimator.update(DT, now)
        errors.append(np.linalg.norm((estimator.now()[0] - com)[:2]))
        deviations = np.sqrt(np.diag(estimator.com_covariance))
    assert errors[1] < 0.8 * errors[0]
    assert 0.0 < estimator.foot_offsets[0] < 0.008
    assert (np.abs(estimator.now()[0] - com) < 2.0 * deviations).all()


@pytest.mark.parametrize('impact', [0.0, 2.0])
def test_a_push_is_found_within_30_ms_also_at_an_impact_and_noise_is_none(
        motion, instants, impact):
    rng, weight = np.random.default_rng(3), GRAVITY * motion.model.mass
    push, found = 0.15 * weight * np.array((1.0, 0.0, 0.0)), []
    estimator = WalkingComEstimator(motion.model, WalkingComSettings(
        wrench_delay=0.0, foot_deviation=1e-5))
    for k, (now, wrench, com, _) in enumerate(instants):
        acting = push * (k >= 600)
        spurious = impact * weight * (float(k == 599) - float(k == 601)) * np.array(
            (0.5, 0.2, 1.0))
        noise = np.concatenate((0.01 * weight * rng.standard_normal(3) + spurious, np.zeros(3)))
        now.wrenches = at_sole(now, wrench + noise - np.concatenate(
            (acting, np.cross(com, acting))))
        estimator.update(DT, now)
        found.append(estimator.external_force)
    assert found[614][0] == pytest.approx(push[0], rel=0.1)
    assert np.std(found[300:590]) < 0.5 * 0.01 * weight


def test_a_push_is_measured_and_is_no_load(motion, instants, load):
    push = 0.12 * GRAVITY * motion.model.mass * np.array((0.8, -0.6, 0.0))
    estimator = run(motion, instants, push)
    np.testing.assert_allclose(
        estimator.external_force, push, atol=0.05 * np.linalg.norm(push))
    assert estimator.load[0] == pytest.approx(load, rel=0.03)


def test_wrenches_that_are_late_are_compared_with_the_motion_that_they_belong_to(
        motion, instants, load):
    on_time = run(motion, instants)
    late, aligned, misaligned = run(motion, instants, late=3, forces=(found := [])), found, []
    run(motion, instants, late=3, forces=misaligned, wrench_delay=0.0)
    np.testing.assert_allclose(late.load, on_time.load, atol=0.01 * load)
    errors = [np.std(forces[COUNT // 2:], axis=0).max() for forces in (aligned, misaligned)]
    assert errors[0] < 0.5 * errors[1]


def test_after_a_gap_the_load_is_kept_and_after_a_reset_removed(motion, instants, load):
    estimator = run(motion, instants)
    estimator.update(1.0, instants[0][0])
    assert estimator.load[0] == pytest.approx(load, rel=0.01)
    assert not estimator.external_force.any() and estimator.is_credible
    np.testing.assert_allclose(estimator.now()[0], instants[0][2], atol=5e-4)
    estimator.reset()
    assert not estimator.load.any() and not estimator.is_started


def test_without_wrenches_it_is_the_kinematic_one(motion, instants):
    estimator = WalkingComEstimator(motion.model)
    now = instants[0][0]
    now.wrenches = None
    estimator.update(np.inf, now)
    np.testing.assert_allclose(estimator.now()[0], now.state.com_in_world, atol=1e-12)
    assert estimator.mass == motion.model.mass
    assert np.sqrt(estimator.com_covariance[2, 2]) == pytest.approx(0.015, rel=0.3)


def test_wrenches_of_virtual_feet_do_not_measure_a_load(motion, instants):
    """They come from the model: a small residual would make a wrong mass certain."""
    virtual = SwayingMotion(5)
    config = virtual.model.config
    feet = {name: replace(foot, source='virtual') for name, foot in config.feet.items()}
    virtual.model = RobotModel(replace(config, feet=feet), virtual.model.urdf)
    estimator = run(virtual, instants[:100])
    assert not estimator.load.any() and not estimator.external_force.any()
    assert estimator.load_covariance[0, 0] == pytest.approx((0.1 * virtual.model.mass) ** 2)
