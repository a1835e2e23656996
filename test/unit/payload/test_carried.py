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
"""The payload that is added to a model: its laws, against a URDF in which it is a part."""

from biped_com_ros.core.com.estimate import ComEstimate
from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.geometry.wrench import sum_wrenches
from biped_com_ros.core.gravity.compensation import CompensationSettings, GravityCompensator
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.payload.carried import CarriedPayload, without_load
from biped_com_ros.core.stability.zmp import ModelWrench, Momentum
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.stance import Twist
import numpy as np
from numpy.testing import assert_allclose
import pinocchio as pin
import pytest
from support.contact_balance import residual

LINK, MASS, COM = 'r_gripper', 1.7, np.array((0.03, -0.02, -0.11))
SECOND = 10 ** 9


def heavier():
    """Return the robot whose Pinocchio model contains the payload as a point mass."""
    model = RobotModel.load('biped')
    frame = model.pin_model.frames[model.pin_model.getFrameId(LINK)]
    model.pin_model.appendBodyToJoint(
        frame.parentJoint, pin.Inertia(MASS, COM, np.zeros((3, 3))), frame.placement)
    model.mass += MASS
    return model


def carry(model, mass=MASS, link=LINK, com=COM):
    """Return the payload when all of it has been added."""
    carried = CarriedPayload(model, rate=1000.0)
    carried.receive(link, mass, com, SECOND)
    for step in range(3):
        carried.update(SECOND + step * 10_000_000)
    return carried


def moving(model, seed=0):
    generator = np.random.default_rng(seed)
    n = len(model.joint_names)
    base = Pose.from_rpy(generator.uniform(-0.3, 0.3, 3), np.array((0.4, -0.2, 0.9)))
    state = model.state(generator.uniform(-0.2, 0.2, n), generator.uniform(-1.0, 1.0, n))
    return state.in_world(base), Twist(*generator.uniform(-0.5, 0.5, (2, 3)))


def velocity_of(state, twist):
    """Return the velocity of the CoM along the axes of the base."""
    return twist.linear + np.cross(twist.angular, state.com_in_base) + state.com_velocity_in_base


def test_com_velocity_and_momentum_are_those_of_a_robot_with_a_heavier_hand(model):
    (state, twist), (truth, _), load = moving(model), moving(heavier()), carry(model)
    motion, turn = load.motion(state), state.base.turn
    located = LocatedState(0, state, None, True, lambda _: twist)
    assert_allclose(ComEstimate(located, 9.81, motion).position, truth.com_in_world, atol=1e-12)
    expected, without = turn(*velocity_of(truth, twist)), velocity_of(state, twist)
    assert_allclose(turn(*motion.velocity_with(model.mass, without, twist)), expected, atol=1e-12)
    com, velocity = motion.joined_with(
        model.mass, state.com_in_world, turn(*without), state, twist)
    assert_allclose(com, truth.com_in_world, atol=1e-12)
    assert_allclose(velocity, expected, atol=1e-12)
    linear = state.base.rotation.dot(motion.momentum_along_base(twist))
    found = Momentum(model).of(state, twist) + np.concatenate((
        linear, np.cross(motion.place(state), linear)))
    assert_allclose(found, Momentum(heavier()).of(truth, twist), atol=1e-10)


def test_the_wrench_of_the_motion_contains_its_weight(model):
    base, still = moving(model, 2)[0].base, Twist(np.zeros(3), np.zeros(3))
    state = model.state(np.zeros(len(model.joint_names))).in_world(base)
    load, dynamics = carry(model).motion(state), ModelWrench(model)
    for _ in range(400):
        wrench = dynamics.update(state, still, 0.002, None, load).model
    weight = 9.81 * (model.mass + MASS)
    x, y, _ = state.base.place(*load.com_with(model.mass, state.com_in_base).tolist())
    assert_allclose(wrench[2:5], (weight, y * weight, -x * weight), rtol=1e-9)


@pytest.mark.parametrize('shares', [None, (0.5, 0.5), (1.0, 0.0)])
def test_gravity_compensation_balances_it_as_if_the_hand_were_heavier(model, shares):
    state, _ = moving(model, 3)
    up = state.base.rotation[2]
    gravity = GravityModel(model)
    gravity.payload = carry(model)
    gravity.use_inertials()
    found = gravity.load(state, up)
    truth = GravityModel(heavier()).load(moving(heavier(), 3)[0], up)
    assert_allclose(found.com, truth.com, atol=1e-12)
    if shares is None:
        assert_allclose(found.fixed_base_efforts(), truth.fixed_base_efforts(), atol=1e-10)
        return
    balanced = found.on_contacts(shares)
    assert_allclose(balanced.efforts, truth.on_contacts(shares).efforts, atol=1e-9)
    assert_allclose(residual(balanced), 0.0, atol=1e-9)


def test_it_enters_and_leaves_by_its_rate_and_never_steps(model):
    carried = CarriedPayload(model, rate=4.0 / model.mass)
    times, masses = SECOND + 2_000_000 * np.arange(1, 1800), []
    for stamp in times.tolist():
        if stamp < 2 * SECOND:
            carried.receive(LINK, 2.0, COM, stamp)
        carried.update(stamp)
        masses.append(carried.mass)
    masses = np.array(masses)
    assert np.abs(np.diff(masses)).max() <= 4.0 * 0.002 + 1e-12
    assert masses.max() == 2.0 and masses[260] == 2.0  # half a second
    # It fades out one second after the last message.
    assert (masses[times < 2.98 * SECOND][300:] == 2.0).all()
    assert (masses[times > 3.52 * SECOND] == 0.0).all()


def test_from_hand_to_hand_it_goes_through_zero(model):
    carried, links = CarriedPayload(model, rate=10.0 / model.mass), []
    for step in range(400):
        stamp = SECOND + 2_000_000 * step
        carried.receive(LINK if step < 150 else 'l_gripper', 1.0, COM, stamp)
        carried.update(stamp)
        links.append((carried.link, carried.mass))
    assert (LINK, 1.0) in links and links[-1] == ('l_gripper', 1.0)
    change = next(i for i, (link, _) in enumerate(links) if link == 'l_gripper')
    assert links[change - 1][1] <= 0.02 and links[change][1] <= 0.02


def test_a_zero_of_the_clock_or_a_message_of_the_future_is_no_payload_for_ever(model):
    carried = carry(model)
    for step in range(200):
        carried.update(step * 10_000_000 - 5 * SECOND)
    assert carried.mass == 0.0


@pytest.mark.parametrize(('link', 'mass', 'com', 'kind', 'problem'), [
    *((LINK, mass, com, InputError, None) for mass, com in (
        (-0.1, COM), (float('nan'), COM), (200.0, COM), (1.0, COM * 100.0),
        (1.0, (0.0, float('nan'), 0.0)))),
    ('r_griper', 1.0, COM, UnknownNameError, 'r_gripper')])
def test_what_is_not_plausible_is_refused(model, link, mass, com, kind, problem):
    carried = CarriedPayload(model)
    with pytest.raises(kind, match=problem):
        carried.receive(link, mass, com, SECOND)
    carried.update(SECOND)
    assert carried.mass == 0.0 and carried.motion(model.state(model.posture('stand'))) is None


def test_the_feet_without_the_load_have_the_other_weight_and_moments(model):
    state = model.state(model.posture('stand')).in_world(Pose(np.eye(3), np.array((0., 0., 0.8))))
    soles = state.sole_placements_in_world
    wrenches = [[1.0, 2.0, 100.0, 0.3, 0.2, 0.1], [0.0, 1.0, 60.0, 0.1, 0.5, 0.0]]
    place = np.array((0.3, 0.2, 0.7))
    found = sum_wrenches(without_load(wrenches, soles, place, 20.0), soles.tolist())
    expected = np.array(sum_wrenches(wrenches, soles.tolist()))
    expected[2] -= 20.0
    expected[3:] -= np.cross(place, (0.0, 0.0, 20.0))
    assert_allclose(found, expected, atol=1e-9)


def test_efforts_follow_it_within_the_rate_limit(model):
    """The last line before a motor is the same: each step is at most what the limiter permits."""
    compensator = GravityCompensator(model, CompensationSettings(support='fixed'))
    payload = compensator.gravity_model.payload = CarriedPayload(model, rate=1000.0)
    compensator.imu.update(np.array((0.0, 0.0, 0.0, 1.0)))
    compensator.limiter.start()
    positions, efforts = model.posture('stand'), []
    for step in range(2500):
        stamp = SECOND + 2_000_000 * step
        if step >= 1500:
            payload.receive(LINK, 3.0, COM, stamp)
        compensator.update_payload(stamp)
        efforts.append(compensator.limiter.update(compensator.efforts_at(positions, stamp), 0.002))
    changes = np.abs(np.diff(efforts[1490:], axis=0))
    limiter = compensator.limiter
    limits = limiter.settings.max_rate * compensator.gravity_model.effort_limits * 0.002
    assert np.abs(np.subtract(efforts[-1], efforts[1490])).max() > 0.5
    assert (changes <= limits + 1e-9).all()
