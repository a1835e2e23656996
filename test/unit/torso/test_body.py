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
"""The torso's model and controller against MuJoCo's vertebrae and tendons."""

from dataclasses import replace
import math
from xml.etree import ElementTree

from biped_com_ros.core.errors import ConfigurationError, RobotDescriptionError
from biped_com_ros.core.geometry.pose import Pose, quaternion_from_rotation
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.torso.arc import array_of
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.constant_curvature import make_shape
from examples.torso import Bench, CYCLE, rms_deg
from examples.torso_figures import draw
from examples.torso_power import Servo
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.sim_robot import CONFIG, URDF


@pytest.fixture(scope='module')
def bench():
    return Bench()


@pytest.fixture
def torso(bench):
    """Return a function that brings the simulator's torso to a shape, and its observation."""
    def place(shape, posture='stand', elongation=None):
        bench.plant.reset(posture)
        positions = bench.body.joint_positions(shape)
        tip = (0.0, 0.0, 0.0) if elongation is None else (*positions[:2], elongation)
        bench.plant.tendon_torso.place((*tip, *positions[3:]))
        mujoco.mj_forward(bench.plant.model, bench.plant.data)
        return bench.plant.observation.joint_positions.copy()
    return place


def test_the_experiment(bench):
    record = bench.run(CYCLE)
    assert rms_deg(record.bend_errors) < 0.3
    assert np.abs(np.degrees(record.direction_errors)).max() < 1.0
    assert np.linalg.norm(record.accelerations, axis=1).max() < 36.0
    assert record.tensions.min() > 1.0
    assert np.degrees(np.hypot(*record.bends.T)).max() > 14.5


@pytest.mark.thorough
def test_the_papers_figures_are_drawn(bench, tmp_path):
    pytest.importorskip('matplotlib', reason='figures are drawn with it')
    short = bench.run(1.0)
    files = draw(short, short, (short, short), bench.body, tmp_path)
    assert [file.stem for file in files] == [
        f'torso_{name}' for name in (
            'workspace', 'raw', 'bend', 'load', 'path', 'acceleration', 'power')]
    assert '<!-- closed loop -->' in files[2].read_text()
    again = draw(short, short, (short, short), bench.body, tmp_path / 'again')
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]


@pytest.mark.parametrize('stiffness_error, hand', [(-0.2, 'l_hand'), (0.2, 'r_hand')])
@pytest.mark.thorough
def test_wrong_stiffness_and_a_load_in_one_hand(stiffness_error, hand):
    wrong = Bench(stiffness_error=stiffness_error, errors=(f'{hand} 0.5 0 0 0',))
    record = wrong.run(0.7 * CYCLE)
    assert record.longest_slack < 0.01  # though an unknown load is there at once
    closed = record.after(1.0)
    assert rms_deg(closed.bend_errors) < 0.5
    assert np.linalg.norm(closed.accelerations, axis=1).max() < 36.0
    assert closed.tensions.min() > 1.0  # no tendon slack
    assert closed.tensions.max() < 60.0
    if hand == 'l_hand':
        opened = wrong.run(0.7 * CYCLE, is_closed=False).after(1.0)
        assert rms_deg(opened.bend_errors) > 5.0 * rms_deg(closed.bend_errors)


@pytest.mark.parametrize('shape', [
    np.zeros(4), make_shape(0.2, 0.0), make_shape(0.25, 2.0, 0.0, -0.001), make_shape(0.1, -1.0)])
def test_virtual_joints_and_imus_are_the_simulators(bench, torso, shape):
    plant, body = bench.plant, bench.body
    positions = body.joint_positions(shape)
    # The joint z of the simulator is the elongation, to which the compression is added.
    torso(shape, elongation=shape[3] + plant.tendon_torso.compression)
    np.testing.assert_allclose(plant.tendon_torso.virtual_positions(), positions, atol=1e-4)
    np.testing.assert_allclose(
        plant.data.ten_length, body.backbone.lengths(shape), atol=5e-5)
    lower, upper = (quaternion_from_rotation(plant.data.body(f'link/{name}').xmat.reshape(3, 3))
                    for name in ('pelvis', 'torso'))
    sight = body.imus.read(*(np.concatenate((q, np.zeros(3))) for q in (lower, upper)))
    np.testing.assert_allclose(
        (sight.bend.real, sight.bend.imag, sight.torsion), shape[:3], atol=1e-3)


@pytest.mark.parametrize('shape', [
    np.zeros(4), make_shape(0.2, 0.7, 0.03, -0.001), make_shape(0.26, -2.0, -0.05, 0.0005)])
def test_the_robots_kinematics_with_virtual_joints_are_the_backbones(bench, shape):
    body, model = bench.body, bench.model
    positions = model.posture('stand')
    positions[model.joint_index(body.joint_names)] = body.joint_positions(shape)
    state = model.state(positions)
    foot = state.pose_in_base('pelvis') @ body.lower_to_base
    tip = foot.inverse() @ state.pose_in_base('torso')
    expected = body.backbone.tip(shape)
    np.testing.assert_allclose(tip.position, expected.position, atol=1e-12)
    np.testing.assert_allclose(tip.rotation, expected.rotation, atol=1e-12)
    np.testing.assert_allclose(body.shape(body.joint_positions(shape)), shape, atol=1e-9)


def test_gyroscopes_give_the_rate_of_the_virtual_joints(bench):
    body, model = bench.body, bench.model
    shape, rate = make_shape(0.2, 0.7, 0.03, -0.001), np.array((0.5, -0.8, 0.2, 0.0))
    positions = body.joint_positions(shape)
    step = 1e-5
    velocities = (body.joint_positions(shape + step * rate)
                  - body.joint_positions(shape - step * rate)) / (2.0 * step)
    arc, rates = body.backbone.arc_of(shape), (complex(*rate[:2]), rate[2])
    np.testing.assert_allclose(
        body.velocities(arc, rates, body.positions(arc)), velocities, atol=1e-5)
    # By the robot's own kinematics: what a gyroscope on a pelvis at rest and on the torso read.
    q, v = model.posture(), np.zeros(len(model.joint_names))
    index = model.joint_index(body.joint_names)
    q[index], v[index] = positions, velocities
    frames = model.frames(('imu_link', 'torso_imu_link'))
    state = model.state(q, v)
    imus = [np.concatenate((quaternion_from_rotation(pose[:3].T), pose[:3] @ twist[1]))
            for pose, twist in zip(
                state.placements_in_base(frames), state.twists_in_base(frames))]
    sight = body.imus.read(*imus)
    assert (sight.bend, sight.torsion) == pytest.approx((arc.bend, arc.torsion), abs=1e-9)
    assert sight.rates(arc) == pytest.approx(rates, abs=1e-8)
    turned = Rotation.from_euler('z', 0.7) * Rotation.from_quat(imus[1][:4])
    sight = body.imus.read(imus[0], np.concatenate((turned.as_quat(), imus[1][4:])), 0.7)
    assert (sight.bend, sight.torsion) == pytest.approx((arc.bend, arc.torsion), abs=1e-9)


def test_the_upper_body_is_what_mujoco_carries(bench):
    plant, body, model = bench.plant, bench.body, bench.model
    plant.reset('arms_forward')
    state = model.state(plant.observation.joint_positions)
    weight, inertia = body.upper_body(state, (0j, -9.81))
    torso = plant.data.body('link/torso')
    com = plant.data.subtree_com[torso.id] - torso.xpos
    np.testing.assert_allclose(
        torso.xmat.reshape(3, 3) @ array_of(weight.com_in_tip), com, atol=2e-4)
    assert weight.mass == pytest.approx(plant.model.body_subtreemass[torso.id])
    assert com[0] > 0.01 and 0.01 < inertia < 0.06


def test_gravity_leans_with_the_pelvis(bench):
    tilted = Pose.from_rpy((0.1, 0.0, 0.7), np.zeros(3)).rotation
    lower = np.concatenate((quaternion_from_rotation(tilted), np.zeros(3)))
    sight = bench.body.imus.read(1.01 * lower)  # of a norm that is not quite 1
    np.testing.assert_allclose(array_of(sight.up), tilted.T @ (0.0, 0.0, 1.0), atol=1e-12)
    assert sight.bend is None and sight.rates(bench.body.backbone.arc(0.1j)) == (0.0, 0.0)


def test_virtual_joints_may_stand_in_the_order_yaw_pitch_roll():
    """The URDF with two joints exchanged: the robot's own kinematics have to agree."""
    tree = ElementTree.fromstring(URDF)
    _, _, _, roll, _, yaw = CONFIG.torso.joints
    first, last = (tree.find(f"joint[@name='{name}']") for name in (roll, yaw))
    first.set('name', yaw), last.set('name', roll)
    axes = [joint.find('axis').get('xyz') for joint in (first, last)]
    first.find('axis').set('xyz', axes[1]), last.find('axis').set('xyz', axes[0])
    model = RobotModel(CONFIG, ElementTree.tostring(tree, encoding='unicode'))
    body, config = TorsoBody(model), CONFIG.torso
    shape, rate = make_shape(0.2, 0.7, 0.03, -0.001), np.array((0.3, -0.2, 0.1, 0.0))
    positions = np.zeros(len(model.joint_names))
    positions[model.joint_index(body.joint_names)] = body.joint_positions(shape)
    state = model.state(positions)
    tip = (state.pose_in_base(config.lower) @ body.lower_to_base).inverse() @ (
        state.pose_in_base(config.upper))
    np.testing.assert_allclose(tip.rotation, body.backbone.tip(shape).rotation, atol=1e-12)
    np.testing.assert_allclose(body.shape(body.joint_positions(shape)), shape, atol=1e-9)
    arc, step = body.backbone.arc_of(shape), 1e-5 * rate
    np.testing.assert_allclose(
        body.velocities(arc, (complex(*rate[:2]), rate[2]), body.positions(arc)),
        (body.joint_positions(shape + step) - body.joint_positions(shape - step)) / 2e-5,
        atol=1e-8)


def test_other_robots():
    body = TorsoBody(RobotModel(CONFIG, URDF))
    assert body.backbone.count == len(CONFIG.torso.attachment_angles_deg)
    with pytest.raises(ConfigurationError,
                       match='has no tendon-driven torso; choose biped or sabian, or '):
        TorsoBody(RobotModel(replace(CONFIG, torso=None), URDF))
    joints = CONFIG.torso.joints
    swapped = replace(CONFIG, torso=replace(CONFIG.torso, joints=(joints[1], joints[0],
                                                                  *joints[2:])))
    with pytest.raises(RobotDescriptionError, match='must follow one another'):
        TorsoBody(RobotModel(swapped, URDF))
    with pytest.raises(ConfigurationError, match='fixed to the torso'):
        Bench().body.use_imus('torso_imu_link', 'imu_link')


def test_a_bend_moves_the_centre_of_mass_as_in_the_simulator(bench, torso):
    """The whole-body link: virtual joints by the model, and the CoM is the simulator's."""
    plant, model, body = bench.plant, bench.model, bench.body
    shape = make_shape(math.radians(12.0), 0.6)
    positions = torso(shape)
    positions[model.joint_index(body.joint_names)] = body.joint_positions(
        shape - (0.0, 0.0, 0.0, plant.tendon_torso.compression))
    base = plant.data.body('link/pelvis')
    moved = base.xpos + base.xmat.reshape(3, 3) @ model.state(positions).com_in_base
    np.testing.assert_allclose(moved, plant.data.subtree_com[0], atol=5e-4)


def test_a_bend_changes_what_the_arms_have_to_hold_as_in_the_simulator(bench, torso):
    """Gravity compensation by the virtual joints, against MuJoCo's vertebrae."""
    plant, model, body = bench.plant, bench.model, bench.body
    positions, held = torso(make_shape(0.25, 1.2), 'arms_forward'), []
    arms = [*model.config.groups['left_arm'], *model.config.groups['right_arm']]
    true = [plant.data.joint(f'joint/{name}').qfrc_bias[0] for name in arms]
    gravity, index = GravityModel(model), model.joint_index(arms)
    up = plant.data.body('link/pelvis').xmat.reshape(3, 3)[2]
    for shape in (make_shape(0.25, 1.2), np.zeros(4)):
        positions[model.joint_index(body.joint_names)] = body.joint_positions(shape)
        held.append(gravity.load(model.state(positions), up).fixed_base_efforts()[index])
    np.testing.assert_allclose(held[0], true, atol=2e-3)
    assert np.abs(held[1] - true).max() > 0.05


def test_the_power_of_the_servos_is_what_tendons_take_and_losses():
    servo, tension = Servo(idle=0.0), np.array((20.0, 20.0, 20.0, 0.0))
    wound, held, slow, loose = servo.power(tension, np.array((0.05, 0.0, -0.001, 0.05)))
    current = 20.0 * servo.spool / servo.efficiency * servo.stall_current / servo.stall_torque
    heat = current ** 2 * servo.voltage / servo.stall_current
    assert wound == pytest.approx(20.0 * 0.05 / servo.efficiency + heat)
    assert 0.0 < slow < held < wound and loose == 0.0
    # At its stall torque it takes what the supply gives at its stall current.
    stalled = servo.power(servo.stall_torque * servo.efficiency / servo.spool, 1e-9)
    assert stalled == pytest.approx(servo.voltage * servo.stall_current)
    # A tendon that pulls the spool round pays for the heat, and nothing flows back.
    assert servo.power(20.0, -1.0) == 0.0
