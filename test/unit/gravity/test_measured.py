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
"""Efforts by measured wrenches: g - J^T F by Pinocchio, and without lasting internal forces."""

import math

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.gravity.compensation import (
    CompensationSettings, GravityCompensator, MEASURED)
from biped_com_ros.core.gravity.effort_limiter import SafetySettings
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin
import pytest

STEP_NS = 2_000_000
TURN = Pose.from_rpy((0.1, -0.07, 0.8), np.zeros(3)).rotation


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('talos')


def compensator(model, **options):
    return GravityCompensator(model, CompensationSettings(
        distribution=MEASURED, safety=SafetySettings(clamp=1.0), **options))


def efforts(found, model, q, wrenches, seconds=2.0, begin=0):
    """Feed wrenches (2, 6) for a while; return the last efforts."""
    load = found.gravity_model.load(model.state(q), TURN[2])
    for k in range(begin, begin + max(round(1e9 * seconds) // STEP_NS, 1)):
        for foot, wrench in enumerate(wrenches):
            found.update_wrench(foot, wrench.tolist(), 10**9 + k * STEP_NS)
        last = found.efforts(load, 10**9 + k * STEP_NS)
    return last


def expected(model, q, wrenches):
    """Return g - sum J^T F of the joints, by Pinocchio alone."""
    pin_model = model.pin_model
    data, full = pin_model.createData(), model.configuration(q)
    full[:3], full[3:7] = 0.0, pin.Quaternion(TURN).coeffs()
    result = pin.computeGeneralizedGravity(pin_model, data, full)
    pin.computeJointJacobians(pin_model, data, full)
    for foot, wrench in zip(model.config.feet.values(), wrenches):
        frame = pin_model.getFrameId(foot.sole)
        J = pin.getFrameJacobian(pin_model, data, frame, pin.LOCAL)
        result = result - J.T @ wrench
    names = list(pin_model.names)[2:]
    # Grippers have mimicking joints, whose share their leaders get.
    return np.array([np.nan if 'gripper' in name else result[6 + names.index(name)]
                     for name in model.joint_names])


def on_left(force):
    """Return wrenches of a robot that stands on its left foot."""
    wrenches = np.zeros((2, 6))
    wrenches[0, 2] = force
    return wrenches


def assert_equal(found, reference, atol=1e-6):
    known = np.isfinite(reference)
    assert known.sum() >= 30
    np.testing.assert_allclose(found[known], reference[known], atol=atol)


def posture(model, seed):
    return model.posture() + 0.1 * np.random.default_rng(seed).normal(size=len(model.joint_names))


@pytest.mark.parametrize('foot', [0, 1])
@pytest.mark.parametrize('seed', range(3))
def test_on_one_foot_it_is_what_the_sensor_measures(model, foot, seed):
    """The robot need not be in balance: the centre of pressure may be anywhere."""
    rng, q = np.random.default_rng(seed), posture(model, seed)
    wrenches = np.zeros((2, 6))
    wrenches[foot] = rng.normal(size=6) * (80.0, 80.0, 50.0, 40.0, 40.0, 5.0)
    wrenches[foot, 2] += 9.81 * model.mass
    found = efforts(compensator(model), model, q, wrenches)
    assert_equal(found, expected(model, q, wrenches))
    assert np.nanmax(np.abs(found - expected(model, q, -wrenches))) > 50.0


def test_on_two_feet_changes_are_measured_ones_and_lasting_internal_forces_fade(model):
    q, rng = posture(model, 1), np.random.default_rng(1)
    wrenches = rng.normal(size=(2, 6)) * (30.0, 30.0, 30.0, 10.0, 10.0, 3.0)
    wrenches[:, 2] += 0.5 * 9.81 * model.mass
    one = compensator(model, wrench_cutoff=1000.0)
    before = efforts(one, model, q, wrenches)
    state = model.state(q)
    poses = [state.pose_in_base(foot.sole) for foot in model.config.feet.values()]
    squeeze = np.array((0.0, 40.0, 0.0))  # the feet push each other
    pushed = wrenches.copy()
    for foot, (sign, pose) in enumerate(zip((1.0, -1.0), poses)):
        force = sign * squeeze
        at_middle = 0.5 * (poses[0].position + poses[1].position)
        moment = np.cross(at_middle - pose.position, force)
        pushed[foot, :3] += pose.rotation.T @ force
        pushed[foot, 3:] += pose.rotation.T @ moment
    expected_change = expected(model, q, pushed) - expected(model, q, wrenches)
    largest = np.nanmax(np.abs(expected_change))
    assert largest > 5.0
    changed = efforts(one, model, q, pushed, seconds=0.006, begin=1000) - before
    assert_equal(changed, expected_change, 0.1 * largest)
    later = efforts(one, model, q, pushed, seconds=2.0, begin=1003) - before
    assert np.abs(later).max() < 0.35 * largest
    total = sum(one.support.wrench_values[k][1] for k in range(2))
    forces = [pose.rotation @ wrench[:3] for pose, wrench in zip(poses, pushed)]
    assert total == pytest.approx(sum(force[1] for force in forces), abs=1e-6)


def test_wrenches_are_low_passed_and_after_a_gap_the_past_is_cleared(model):
    q, found = model.posture(), compensator(model, wrench_cutoff=5.0)
    low, high = on_left(700.0), on_left(1000.0)
    start, end = expected(model, q, low), expected(model, q, high)
    efforts(found, model, q, low)
    last = efforts(found, model, q, high, seconds=0.02, begin=1000)
    share = 1.0 - math.exp(-2.0 * math.pi * 5.0 * 0.02)
    assert_equal(last, start + share * (end - start))
    assert_equal(efforts(found, model, q, high, seconds=0.0, begin=10_000), end)


@pytest.mark.parametrize('force, words', [(0.0, 'in the air'), (1e5, 'not plausible')])
def test_what_no_contact_can_measure_is_refused(model, force, words):
    wrenches = np.zeros((2, 6))
    wrenches[:, 2] = force
    with pytest.raises(InputError, match=words):
        efforts(compensator(model), model, model.posture(), wrenches, seconds=0.0)


def test_it_needs_the_measured_support(model):
    with pytest.raises(ConfigurationError, match="'measured' needs support 'auto'.*'fixed'"):
        compensator(model, support='fixed')
