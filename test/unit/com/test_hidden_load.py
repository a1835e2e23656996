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
"""The equation of an unknown load, against inverse dynamics of a robot that carries it."""

from biped_com_ros.core.com.carrier import CarrierFrame
from biped_com_ros.core.com.hidden_load import LoadWrench, SETTLED
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.state.stance import Twist
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pinocchio as pin
import pytest
from support.known_motion import KnownMotion

DT, LINK = 0.004, 'torso'
LOAD, AT = 0.3, np.array((0.08, -0.06, 0.12))
"""kg, and where from the centre of mass of the torso, m."""


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


def swaying(model, load=LOAD, inertia=(0.0, 0.0, 0.0), roll=0.0):
    """Return a robot whose base is carried along sines, nodding; the torso pitches, slowly."""
    torso, true = model.joint_index(['torso_pitch'])[0], model.pin_model.copy()
    frames = model.frames((LINK,))
    in_joint, com = (f.poses_in_joint()[0] for f in (frames, CarrierFrame(model, LINK).frames))
    R = in_joint.rotation
    true.inertias[int(frames.joints[0])] += pin.Inertia(
        load, com.position + R @ AT, R @ np.diag(inertia) @ R.T)

    def q_at(t):
        positions = model.posture()
        positions[torso] += 0.02 * np.sin(4.0 * t)
        q = model.configuration(positions)
        base = pin.SE3(pin.rpy.rpyToMatrix(roll * np.sin(2.5 * t), 0.05 * np.sin(3.0 * t), 0.4),
                       np.array((100.0, -50.0, 2.4)) + (
                           0.03 * np.sin(6.0 * t), 0.02 * np.cos(5.0 * t), 0.0))
        q[:7] = pin.SE3ToXYZQUAT(base * pin.XYZQUATToSE3(q[:7]))
        return q
    return KnownMotion(model, q_at, true)


def equations(model, seconds, push=(0.0, 0.0, 0.0), covariance=None, **options):
    robot, wrench = swaying(model, **options), LoadWrench(model)
    carrier = CarrierFrame(model, LINK)
    for i in range(round(seconds / DT)):
        state, twist = robot.located(i * DT)
        yield wrench.update(state, twist, carrier.motion(state, twist), DT, robot.wrench(i * DT),
                            np.array(push), covariance=covariance)


def found_of(*arguments, **options):
    return [equation for equation in equations(*arguments, **options) if equation is not None]


def test_the_load_solves_it_and_is_found_height_and_all(model):
    found = found_of(model, 3.0)
    rows = np.concatenate([equation.rows for equation in found])
    residual = np.concatenate([equation.residual for equation in found])
    truth = np.append(LOAD * AT, LOAD) / model.mass
    # What is left out by design, at the largest angular acceleration of base and torso.
    inertia = LOAD * AT @ AT * (0.05 * 3.0 ** 2 + 0.02 * 4.0 ** 2)
    assert_allclose(rows @ truth, residual, atol=inertia / ((model.mass + LOAD) * 9.81))
    assert np.abs(residual).max() > 2e-3
    # Its mass is better told by weight; the moments then tell where it is.
    where, *_ = np.linalg.lstsq(rows[:, :3], residual - rows[:, 3] * truth[3], rcond=None)
    assert_allclose(where[:2], truth[:2], atol=2e-5)
    assert where[2] == pytest.approx(truth[2], rel=0.05), 'which is what its inertia feigns'


def test_an_equation_is_as_uncertain_as_the_moments_about_the_centre_of_mass(model):
    """Forces that are certain of their line through the CoM leave the load certain."""
    com = swaying(model).located(0.0)[0].com_in_world
    about_com = pin.SE3(np.eye(3), np.array(com)).act(
        pin.Force(np.array((3.0, -5.0, 40.0, 0.0, 0.0, 0.0)))).vector

    def uncertainty(root):
        last = found_of(model, 1.0, covariance=np.outer(root, root))[-1]
        return last.uncertainty * ((model.mass + LOAD) * 9.81) ** 2
    assert uncertainty(about_com) < 10.0  # it has moved by a few centimetres
    moment = np.array((0.0, 0.0, 0.0, 0.8, 0.6, 0.0))
    assert uncertainty(moment) == pytest.approx(0.5, rel=0.1)


def test_moments_of_inertia_act_about_the_axes_of_the_link(model):
    inertia = np.array((0.02, 0.05, 0.03))
    found = found_of(model, 3.0, load=0.0, inertia=inertia, roll=0.06)
    residual = np.concatenate([equation.residual for equation in found])
    expected = np.concatenate([equation.inertia @ inertia / model.mass for equation in found])
    # Products of angular velocities are left out.
    assert_allclose(residual, expected, atol=0.03 * np.abs(residual).max())
    assert (np.abs(residual).max() > 5e-4).all()


def test_no_equation_until_the_filter_has_settled_nor_in_the_air(model):
    has_equation = [equation is not None for equation in equations(model, 0.6)]
    settled = SETTLED * np.sqrt(2.0) / (2.0 * np.pi * 3.0)
    assert has_equation.index(True) * DT == pytest.approx(settled, abs=2 * DT)
    assert set(np.diff(np.flatnonzero(has_equation))) == {10}, 'then twice within a delay'
    wrench, (state, twist) = LoadWrench(model), swaying(model).located(0.0)
    carrier = CarrierFrame(model, LINK).motion(state, twist)
    for _ in range(200):
        assert wrench.update(state, twist, carrier, DT, np.zeros(6), np.zeros(3)) is None


def test_a_push_is_estimated_through_the_same_filter(model):
    last = found_of(model, 0.8, push=(4.0, -7.0, 1.0))[-1]
    assert last.push == pytest.approx(7.0 / ((model.mass + LOAD) * 9.81), rel=0.02)


def test_noise_of_one_equation_and_of_many_is_what_they_scatter(model):
    """That of the momentum, whose rate counts, averages out sooner than white noise."""
    rng, wrench = np.random.default_rng(3), LoadWrench(model)
    still, carries = Twist(np.zeros(3), np.zeros(3)), CarrierFrame(model, LINK)
    found, posture = [], model.posture()
    for _ in range(7000):
        state = model.state(posture, 0.02 * rng.standard_normal(len(posture)))
        force = np.array((0.0, 0.0, 9.81 * model.mass)) + 0.1 * rng.standard_normal(3)
        moment = np.cross(state.com_in_world, force) + 0.05 * rng.standard_normal(3)
        found.append(wrench.update(state, still, carries.motion(state, still), DT,
                                   np.concatenate((force, moment)), np.zeros(3)))
    first, *later = [equation for equation in found if equation is not None]
    later = later[29:]
    assert first.noise / first.span == pytest.approx(first.scatter)
    residuals = np.array([equation.residual for equation in later])
    scatter = np.mean([equation.scatter for equation in later])
    assert scatter == pytest.approx((residuals ** 2).mean(), rel=0.25)
    # Over half a second the mean of them scatters less than white noise would, as is claimed.
    many = round(0.5 / later[0].span)
    means = residuals[:len(residuals) // many * many].reshape(-1, many, 2).mean(axis=1)
    claimed = np.mean([equation.noise for equation in later]) / 0.5
    assert 0.4 * claimed < (means ** 2).mean() < 1.2 * claimed


@pytest.mark.parametrize(('robot', 'link'), [
    ('biped', 'torso'), ('talos', 'torso_2_link'), ('g1', 'torso_link'), ('icub', 'chest')])
def test_the_trunk_carries_by_default(robot, link):
    model = RobotModel.load(robot)
    state, still = model.state(model.posture()), Twist(np.zeros(3), np.zeros(3))
    default, named = (CarrierFrame(model, name).motion(state, still) for name in ('', link))
    assert_array_equal(default.point, named.point)
    com = state.link_coms_in_base[model.link_names.index(link)]
    assert_allclose(named.point, com, atol=1e-12)
