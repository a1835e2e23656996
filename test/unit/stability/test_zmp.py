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
"""ZMP, momentum, and the live model against a motion that is known."""

from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.wrench import centre_of_pressure
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.zmp import ModelWrench, Momentum
from biped_com_ros.core.state.stance import Twist
import numpy as np
from numpy.testing import assert_allclose
import pinocchio as pin
import pytest
from support.known_motion import known_sway
from support.stance_motion import SwayingMotion


@pytest.fixture(scope='module')
def motion():
    return SwayingMotion(5)


@pytest.fixture(scope='module')
def known(motion):
    return known_sway(motion)


def world_state(motion, t):
    """Return the state in the world and the base's twist."""
    return motion.state(t).in_world(motion.base(t)), Twist(*motion.base_twist(t))


def zmp_on(plane, wrench):
    return np.array(centre_of_pressure(wrench, plane.normal, plane.height))


@pytest.mark.parametrize('t', [0.3, 1.7])
def test_momentum_against_links_one_by_one(motion, known, t):
    q, v, _ = known.motion(t)
    model = motion.model.pin_model
    data = model.createData()
    pin.forwardKinematics(model, data, q, v)
    full = np.zeros(6)
    for i in range(1, model.njoints):
        inertia, placement = model.inertias[i], data.oMi[i]
        com = placement.act(inertia.lever)
        in_joint = data.v[i].linear + np.cross(data.v[i].angular, inertia.lever)
        momentum = inertia.mass * placement.rotation @ in_joint
        spin = placement.rotation @ inertia.inertia @ data.v[i].angular
        full += np.concatenate((momentum, np.cross(com, momentum) + spin))
    state, twist = world_state(motion, t)
    assert_allclose(Momentum(motion.model).of(state, twist), full, atol=1e-5)


def test_live_model_follows_inverse_dynamics_within_its_delay(motion, known):
    """Against the truth of `delay` ago; the measured wrench comes out of the same filter."""
    live, dt, errors = ModelWrench(motion.model, cutoff=20.0), 0.002, []
    assert live.delay == pytest.approx(0.01125, abs=1e-4)
    plane = Plane.with_normal(np.array((0.1, -0.05, 1.0)), np.array((0.6, -0.3, 0.25)))
    for step in range(400):
        t = step * dt
        found = live.update(*world_state(motion, t), dt, known.wrench(t))
        if t > 0.2 and step % 20 == 0:
            late, now, ours, measured = (zmp_on(plane, wrench) for wrench in (
                known.wrench(t - live.delay), known.wrench(t), found.model, found.measured))
            errors.append(np.linalg.norm((ours - late, now - late, ours - measured), axis=1))
    late, delay, compared = np.max(errors, axis=0)
    assert delay > 5e-3, 'the motion is fast enough to show a delay'
    assert late < 2e-4
    assert compared < 1e-5


def test_without_motion_it_is_the_projection_of_the_com(motion):
    live = ModelWrench(motion.model, 15.0)
    found = live.update(*world_state(motion, 0.4), 0.0)
    assert found.measured is None
    zmp = zmp_on(Plane.level(0.1), found.model)
    assert_allclose(zmp, (*world_state(motion, 0.4)[0].com_in_world[:2], 0.1), atol=1e-12)


def test_a_known_delay_of_measured_wrenches_is_undone():
    model, dt, omega, delay = RobotModel.load('biped'), 0.004, 5.0, 0.005
    state, still = model.state(model.posture()), Twist(np.zeros(3), np.zeros(3))
    undone, late, exact = (ModelWrench(model, wrench_delay=d) for d in (delay, 0.0, 0.0))
    moments = []
    for i in range(600):
        now, before = (np.array((0.0, 0.0, 30.0, np.sin(omega * t), 0.0, 0.0))
                       for t in (dt * i, dt * i - delay))
        moments.append([wrench.update(state, still, dt, measured).measured[3]
                        for wrench, measured in ((undone, before), (late, before), (exact, now))])
    errors = np.abs(np.array(moments)[200:, :2] - np.array(moments)[200:, 2:]).max(axis=0)
    assert errors[0] < 1e-3, 'half of the square of the phase'
    assert errors[1] == pytest.approx(omega * delay, rel=0.05)
