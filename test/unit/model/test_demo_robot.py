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
"""The demo robot at three sizes: physically consistent, as tall and as heavy as asked for."""

from functools import cache

from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.urdf_oracle import GRAVITY, Tree
import xacro

SIZES = ((0.85, 3.6), (1.2, 20.0), (1.5, 64.0))
SMALL = SIZES[0]
TORSO = ('torso_x', 'torso_y', 'torso_z', 'torso_roll', 'torso_pitch', 'torso_yaw')
LEG = ('hip_yaw', 'hip_roll', 'hip_pitch', 'knee', 'ankle_pitch', 'ankle_roll')
SIDEWAYS = ('roll', 'yaw', 'torso_y')  # These change sign in a mirror.
MIRROR = np.diag((1.0, -1.0, 1.0))
WANG_ROS = np.array(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))  # Wang's y is forward.


@cache
def biped(**size):
    """Return the robot at a size, the small one by default."""
    path = package_share() / 'urdf/biped.urdf.xacro'
    return Tree(xacro.process_file(
        str(path), mappings={key: str(value) for key, value in size.items()}).toxml())


def sized_biped(height, mass):
    return biped(height=height, mass=mass)


@cache
def bioloid():
    """Wang's legs with the paper's lengths."""
    return Tree((package_share() / 'urdf/bioloid_legs.urdf').read_text())


POSTURES = load_robot_config('biped').postures


def mirrored(name):
    """Return the name of the same thing on the other side."""
    return {'l_': 'r_', 'r_': 'l_'}.get(name[:2], name[:2]) + name[2:]


def mirror_sign(joint):
    return -1.0 if any(word in joint for word in SIDEWAYS) else 1.0


def random_positions(robot, seed):
    """Positions of all joints within their limits."""
    random = np.random.default_rng(seed)
    return {name: random.uniform(j.lower, j.upper) for name, j in robot.joints.items()
            if j.kind != 'fixed'}


@pytest.fixture(params=SIZES, ids=[f'{h} m {m} kg' for h, m in SIZES])
def sized(request):
    """Return a size and the robot of that size."""
    return *request.param, sized_biped(*request.param)


# ---- as asked for


def test_has_the_requested_size(sized):
    height, mass, robot = sized
    assert robot.mass == pytest.approx(mass, rel=1e-12)
    top, bottom = robot.highest_and_lowest({})
    assert top - bottom == pytest.approx(height, rel=1e-9)
    assert robot.poses({})['l_sole'][2, 3] == pytest.approx(bottom, abs=1e-9)


def test_has_the_dimensions_of_larmbot():
    """Russo et al. 2021, Tables 1 and 2: backbone 129 mm, torso 200 mm x 300 mm, 1.2 kg."""
    robot, poses = biped(), biped().poses({})
    first = robot.joints['torso_x'].origin[:3, 3] - (0.0, 0.0, 0.06)
    assert first == pytest.approx((0.0, 0.0, 0.129))
    assert poses['head'][2, 3] - poses['pelvis'][2, 3] == pytest.approx(0.300)
    assert robot.links['pelvis'].mass + robot.links['torso'].mass == pytest.approx(1.2)


@pytest.mark.parametrize('height, mass', SIZES[1:])
def test_scales_lengths_masses_inertias_and_efforts(height, mass):
    small, large = biped(), sized_biped(height, mass)
    k, m = height / SMALL[0], mass / SMALL[1]
    for name, link in small.links.items():
        other = large.links[name]
        assert other.mass == pytest.approx(m * link.mass, rel=1e-9)
        assert other.com == pytest.approx(k * link.com, rel=1e-9)
        assert other.inertia == pytest.approx(m * k ** 2 * link.inertia, rel=1e-9)
    for name, joint in small.joints.items():
        other, slides = large.joints[name], joint.kind == 'prismatic'
        assert other.origin[:3, 3] == pytest.approx(k * joint.origin[:3, 3], rel=1e-9)
        assert other.upper == pytest.approx((k if slides else 1.0) * joint.upper)
        assert other.effort == pytest.approx((m if slides else m * k) * joint.effort, rel=1e-9)


# ---- physics


def test_every_link_is_physical(sized):
    """Inertia: of the evenly filled shape, by counting the cells of a grid, not by a formula."""
    for name, link in sized[2].links.items():
        if not link.mass:
            assert not link.collisions, f'{name} has a shape but no mass'
            continue
        low, middle, high = np.linalg.eigvalsh(link.inertia)
        assert link.mass > 0.0 and low > 0.0, name
        assert low + middle > high * (1.0 + 1e-9), name
        assert any(shape.contains(link.com) for shape in link.collisions), name
        offsets = link.collisions[0].cells() - link.com
        squares = (offsets ** 2).sum(axis=1).mean() * np.eye(3)
        counted = link.mass * (squares - offsets.T @ offsets / len(offsets))
        assert link.inertia == pytest.approx(counted, abs=0.01 * np.abs(counted).max()), name


def test_left_and_right_are_mirror_images(sized):
    robot = sized[2]
    positions = random_positions(robot, 3)
    other = {mirrored(n): mirror_sign(n) * v for n, v in positions.items()}
    here, there = robot.poses(positions), robot.poses(other)
    for name, link in robot.links.items():
        twin = robot.links[mirrored(name)]
        R, R_twin = here[name][:3, :3], there[mirrored(name)][:3, :3]
        assert twin.mass == link.mass
        assert there[mirrored(name)][:3, 3] == pytest.approx(MIRROR @ here[name][:3, 3])
        assert R_twin @ twin.com == pytest.approx(MIRROR @ R @ link.com)
        assert R_twin @ twin.inertia @ R_twin.T == pytest.approx(
            MIRROR @ R @ link.inertia @ R.T @ MIRROR)


def test_every_joint_has_limits_and_is_a_mirror_image(sized):
    robot = sized[2]
    for name, joint in robot.joints.items():
        twin, sign = robot.joints[mirrored(name)], mirror_sign(name)
        assert (twin.effort, twin.velocity, twin.damping) == (
            joint.effort, joint.velocity, joint.damping)
        assert sorted((sign * joint.lower, sign * joint.upper)) == pytest.approx(
            [twin.lower, twin.upper])
        if joint.kind != 'fixed':
            assert joint.lower < 0.0 < joint.upper, name
            assert joint.effort > 0.0 and joint.velocity > 0.0, name
            assert joint.damping > 0.0 or name in TORSO, name


# ---- strong enough


@pytest.mark.parametrize('side', 'lr')
def test_one_leg_holds_the_robot_with_two_thirds_of_its_effort(sized, side):
    """Standing still on one foot: more than either leg has to hold on two."""
    robot = sized[2]
    for name in LEG:
        joint = robot.joints[f'{side}_{name}']
        above = [link for link in robot.links if link not in robot.below(joint.child)]
        held = robot.gravity_torque(f'{side}_{name}', POSTURES['stand'], above)
        assert abs(held) < joint.effort * 2 / 3, name


@pytest.mark.parametrize('pose', ('stand', 'arms_forward', 'arms_out', 'arms_up'))
def test_arms_hold_themselves_with_half_their_effort(sized, pose):
    robot = sized[2]
    for side in 'lr':
        for name in ('shoulder_pitch', 'shoulder_roll', 'shoulder_yaw', 'elbow'):
            held = robot.gravity_torque(f'{side}_{name}', POSTURES[pose])
            assert abs(held) < 0.5 * robot.joints[f'{side}_{name}'].effort, name


def test_arms_out_are_horizontal_and_load_the_shoulders():
    robot = biped()
    poses = robot.poses(POSTURES['arms_out'])
    reach = poses['l_gripper'][:3, 3] - poses['l_upper_arm'][:3, 3]
    assert abs(reach[2]) < 0.1 * reach[1]
    weight = GRAVITY * robot.com({}, robot.below('l_upper_arm'))[0]
    assert abs(robot.gravity_torque('l_shoulder_roll', POSTURES['arms_out'])) > 0.1 * weight


@pytest.mark.parametrize('name', ('biped', 'sabian'))
def test_backbone_carries_the_upper_body_without_tendons(name):
    """
    A bend of constant curvature must raise the potential energy, even with raised arms.

    Height of the upper body's centre of mass: l sin(t) / t + h cos(t), with h over the tip.
    """
    config = load_robot_config(name)
    robot = Tree(load_urdf(config))
    positions = config.postures['arms_up']
    mass, com = robot.com(positions, robot.below('torso'))
    above_tip = com[2] - robot.poses(positions)['torso'][2, 3]
    bend, length = 1e-3, config.torso.backbone_length

    def height(angle):
        return length * np.sinc(angle / np.pi) + above_tip * np.cos(angle)

    curvature = 2.0 * (height(bend) - height(0.0)) / bend ** 2
    assert config.torso.bending_stiffness > 1.1 * -GRAVITY * mass * curvature


# ---- frames


def test_has_the_frames_of_rep_120_and_the_sensors():
    """All x forward, z up when standing straight; IMUs with lever arms, to show mistakes."""
    poses = biped().poses({})
    assert poses.keys() >= {'base_link', 'torso', 'gaze', 'imu_link', 'torso_imu_link', *(
        f'{side}_{name}' for side in 'lr' for name in ('sole', 'ankle', 'gripper', 'ankle_ft'))}
    for name, pose in poses.items():
        assert pose[:3, :3] == pytest.approx(np.eye(3), abs=1e-12), name
    for imu, link in (('imu_link', 'base_link'), ('torso_imu_link', 'torso')):
        assert np.linalg.norm(poses[imu][:3, 3] - poses[link][:3, 3]) > 0.01


def test_there_is_mass_between_sensor_and_sole(sized):
    height, mass, robot = sized
    poses = robot.poses({})
    for side in 'lr':
        beyond, _ = robot.com({}, robot.below(f'{side}_ankle_ft'))
        assert beyond == pytest.approx(0.035 * mass)
        lever = poses[f'{side}_ankle_ft'][:3, 3] - poses[f'{side}_sole'][:3, 3]
        assert lever == pytest.approx((0.0, 0.0, 0.024 * height / 0.85))


def test_feet_end_at_the_sole_and_at_the_configured_polygon():
    for name, foot in load_robot_config('biped').feet.items():
        link, poses = f'{name[0]}_foot', biped().poses({})
        extents = [biped().links[link].collisions[0].extent(poses[link], axis)
                   for axis in np.eye(3)]
        sole = poses[foot.sole][:3, 3]
        polygon = np.array(foot.polygon) + sole[:2]
        low, high = np.transpose(extents)
        assert low == pytest.approx((*polygon.min(axis=0), sole[2]))
        assert high[:2] == pytest.approx(polygon.max(axis=0))


# ---- torso


def test_virtual_joints_are_x_y_z_and_massless():
    robot = biped()
    link = 'pelvis'
    for name, axis in zip(TORSO, np.vstack((np.eye(3), np.eye(3))), strict=True):
        joint = robot.joints[name]
        assert (joint.parent, joint.kind) == (
            link, 'prismatic' if name[-1] in 'xyz' else 'revolute')
        assert joint.axis == pytest.approx(axis)
        link = joint.child
        assert robot.links[link].mass == 0.0 or name == TORSO[-1]
    assert link == 'torso'


def bent(bend, direction, torsion, length):
    """Pose of a backbone's tip in its foot: Russo et al. 2021, (1)-(2)."""
    out = np.eye(4)
    out[:3, :3] = (Rotation.from_euler('z', direction) * Rotation.from_euler('y', bend)
                   * Rotation.from_euler('z', torsion - direction)).as_matrix()
    aside = length / bend * (1.0 - np.cos(bend))
    out[:3, 3] = (aside * np.cos(direction), aside * np.sin(direction),
                  length / bend * np.sin(bend))
    return out


@pytest.mark.parametrize('direction', np.radians((0.0, 50.0, 90.0, 200.0, 300.0)))
def test_virtual_joints_reach_every_bend(sized, direction):
    """Bends of 17 deg with 2 deg of torsion and 2 % of compression; the limit is 15 deg."""
    height, _, robot = sized
    length = 0.129 * height / 0.85
    tip = bent(np.radians(17.0), direction, np.radians(2.0), 0.98 * length)
    roll, pitch, yaw = Rotation.from_matrix(tip[:3, :3]).as_euler('XYZ')
    moved = tip[:3, 3] - (0.0, 0.0, length)
    values = dict(zip(TORSO, (*moved, roll, pitch, yaw), strict=True))
    for name, value in values.items():
        assert robot.joints[name].lower < value < robot.joints[name].upper, name
    foot = robot.poses({})['pelvis'] @ robot.joints['torso_x'].origin
    foot[2, 3] -= length
    assert robot.poses(values)['torso'] == pytest.approx(foot @ tip, abs=1e-12)


# ---- legs


@pytest.mark.parametrize('robot', (biped, bioloid))
@pytest.mark.parametrize('side', 'lr')
def test_hip_and_ankle_axes_meet(robot, side):
    robot = robot()
    poses = robot.poses(random_positions(robot, 5))
    for joints in (LEG[:3], LEG[4:]):
        moved = [robot.joints[f'{side}_{name}'] for name in joints]
        lines = [(poses[joint.child][:3, 3], poses[joint.child][:3, :3] @ joint.axis)
                 for joint in moved]
        center = lines[-1][0]
        for point, axis in lines:
            assert np.cross(center - point, axis) == pytest.approx(np.zeros(3), abs=1e-12)


def wang_inverse(T_foot_pelvis, ankle, shank, hip):
    """
    Solve in closed form, by the formula sheet (Wang, Zhu, Han with its errors corrected).

    `T_foot_pelvis` (4 x 4) in Wang's axes; lengths sole to ankle, shin = thigh, hip to yaw joint.
    """
    p, R = T_foot_pelvis[:3, 3], T_foot_pelvis[:3, :3]
    a = R[:, 2]
    h = p - hip * a
    roll = np.arctan2(h[0], h[2] - ankle)
    s, c = np.sin(roll), np.cos(roll)
    y, z = s * h[0] + c * (h[2] - ankle), h[1]
    knee = np.arccos((y ** 2 + z ** 2) / (2.0 * shank ** 2) - 1.0)
    ankle_pitch = np.arctan2(-z, y) - knee / 2.0
    u = s * a[0] + c * a[2]
    hip_pitch = np.arctan2(-a[1], u) - ankle_pitch - knee
    hip_roll = np.arctan2(c * a[0] - s * a[2], np.hypot(a[1], u))
    before = (Rotation.from_euler('y', roll) * Rotation.from_euler(
        'x', ankle_pitch + knee + hip_pitch) * Rotation.from_euler('y', hip_roll))
    rest = before.as_matrix().T @ R
    return {'ankle_roll': roll, 'ankle_pitch': ankle_pitch, 'knee': knee, 'hip_pitch': hip_pitch,
            'hip_roll': hip_roll, 'hip_yaw': np.arctan2(rest[1, 0], rest[0, 0])}


@pytest.mark.parametrize('robot, lengths', (
    (biped, (0.045, 0.165, 0.040)), (bioloid, (0.032, 0.075, 0.030))))
@pytest.mark.parametrize('side', 'lr')
def test_wangs_closed_form_solves_each_leg(robot, lengths, side):
    """
    Seen from the foot, Wang's pitches are the URDF's and his rolls and yaw are minus them.

    Pitch: his x axis is ROS's -y, and the chain runs the other way: two signs cancel.
    """
    robot = robot()
    signs = {'ankle_roll': -1, 'hip_roll': -1, 'hip_yaw': -1}
    for seed in range(20):
        expected = random_positions(robot, seed)
        # The form takes the knee's positive root and wants the hip above the ankle.
        expected[f'{side}_knee'] = min(abs(expected[f'{side}_knee']), 1.2)
        poses = robot.poses(expected)
        yaw_joint = robot.joints[f'{side}_hip_yaw']
        pelvis = poses[yaw_joint.parent] @ yaw_joint.origin
        in_foot = np.linalg.solve(poses[f'{side}_sole'], pelvis)
        in_foot[:3, :3] = WANG_ROS @ in_foot[:3, :3] @ WANG_ROS.T
        in_foot[:3, 3] = WANG_ROS @ in_foot[:3, 3]
        for name, value in wang_inverse(in_foot, *lengths).items():
            assert signs.get(name, 1) * value == pytest.approx(
                expected[f'{side}_{name}'], abs=1e-7), name


# ---- configurations


def test_sabian_is_the_biped_scaled():
    small, large = load_robot_config('biped'), load_robot_config('sabian')
    k, m = 1.5 / 0.85, 64.0 / 3.6
    for key in ('groups', 'postures', 'imus', 'wrench_sensors'):
        assert getattr(large, key) == getattr(small, key)
    for name, foot in small.feet.items():
        assert np.array(large.feet[name].polygon) == pytest.approx(
            k * np.array(foot.polygon), abs=1e-6)
    for key, factor in (('backbone_length', k), ('radius', k), ('bending_stiffness', m * k),
                        ('torsion_stiffness', m * k), ('axial_stiffness', m / k)):
        assert getattr(large.torso, key) == pytest.approx(
            factor * getattr(small.torso, key), rel=1e-3), key
    assert RobotModel.load('sabian').mass == pytest.approx(64.0)


def test_tendon_circle_of_the_configuration_fits_the_drawn_vertebrae():
    """The holes are where the URDF draws the tendons."""
    torso = load_robot_config('biped').torso
    drawn = {tuple(np.round(shape.pose[:2, 3], 6)) for shape in biped().links['torso'].visuals
             if shape.kind == 'cylinder' and shape.size[0] < 0.002}
    angles = np.radians(torso.attachment_angles_deg)
    holes = torso.radius * np.column_stack((np.cos(angles), np.sin(angles)))
    assert drawn == {tuple(hole + 0.0) for hole in np.round(holes, 6)}
