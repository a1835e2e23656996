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
"""Every robot of config/robots: names, soles on real geometry, postures that stand."""

from functools import cache
from xml.etree import ElementTree

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.resources import resolve_uri
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation
from support.urdf_oracle import numbers, pose, Tree

ROBOTS = ('bioloid_legs', 'biped', 'g1', 'g1_as_sold', 'h1', 'icub', 'romeo', 'sabian', 'talos',
          'three_link')
WITH_ARMS = ('biped', 'g1', 'g1_as_sold', 'h1', 'icub', 'romeo', 'sabian', 'talos')
MASSES = {'bioloid_legs': 1.30, 'biped': 3.6, 'g1': 33.341, 'g1_as_sold': 33.341,
          'h1': 51.650, 'icub': 33.0617, 'romeo': 40.5254, 'sabian': 64.0, 'talos': 93.336,
          'three_link': 18.60}
POSTURES = [(robot, posture) for robot in WITH_ARMS
            for posture in ('stand', 'arms_up', 'arms_forward', 'arms_out')]
POSTURES += [('three_link', 'stand'), ('bioloid_legs', 'stand')]
UP = np.array((0.0, 0.0, 1.0))


@cache
def setup(name):
    """Return configuration and tree, or skip where the model's package is not installed."""
    config = load_robot_config(name)
    try:
        return config, Tree(load_urdf(config))
    except ConfigurationError as error:
        if 'package' in config.urdf and 'was not found' in str(error):
            pytest.skip(str(error))
        raise


every_robot = pytest.mark.parametrize('name', ROBOTS)
every_posture = pytest.mark.parametrize('name, posture', POSTURES)
every_bent_robot = pytest.mark.parametrize('name', [
    name for name in ROBOTS if name != 'three_link'])


def placed(name, posture):
    """Return all link poses with config.base_link, turned by base_rpy, as the origin."""
    config, tree = setup(name)
    poses = tree.poses({**config.locked_joints, **config.postures[posture]})
    base = poses[config.base_link].copy()
    base[:3, :3] = base[:3, :3] @ Rotation.from_euler('xyz', config.base_rpy).as_matrix()
    return {link: np.linalg.solve(base, value) for link, value in poses.items()}


def sole_pose(foot, poses):
    out = np.eye(4)
    out[:3, :3] = Rotation.from_euler('xyz', foot.sole_rpy).as_matrix()
    out[:3, 3] = foot.sole_origin
    return poses[foot.sole] @ out


def on_ground(name, posture):
    """CoM, sole poses by foot and all corners (K, 2), in the base's axes."""
    config, tree = setup(name)
    poses = placed(name, posture)
    soles = {key: sole_pose(foot, poses) for key, foot in config.feet.items()}
    ground = np.vstack([np.array(config.feet[key].polygon) @ sole[:2, :2].T + sole[:2, 3]
                        for key, sole in soles.items()])
    return tree.com(None, poses=poses)[1], soles, ground


# ---- names


@every_robot
def test_loads_strictly_and_groups_share_out_all_joints(name):
    setup(name)
    model = RobotModel.load(name)  # Checks every joint and frame name against the URDF.
    assert model.config.name == name
    assert model.mass == pytest.approx(MASSES[name], rel=1e-4)
    grouped = [joint for group in model.config.groups.values() for joint in group]
    assert sorted(grouped) == sorted(model.joint_names)


@every_robot
def test_left_and_right_correspond(name):
    """The config names the same things on both sides, each on its own side."""
    config, _ = setup(name)
    poses = placed(name, 'stand')
    for things in (config.feet, config.hands, config.wrench_sensors):
        left, right = ({key[len(side):] for key in things if key.startswith(side)}
                       for side in ('left', 'right'))
        assert left == right
    for key, link in (*((key, foot.sole) for key, foot in config.feet.items()),
                      *((key, hand.frame) for key, hand in config.hands.items())):
        assert np.sign(poses[link][1, 3]) == (1.0 if key == 'left' else -1.0)
    for key, group in config.groups.items():
        if key.startswith('left'):
            assert len(group) == len(config.groups[key.replace('left', 'right')])


@every_robot
def test_every_foot_stands_on_its_own_sensor(name):
    """What a foot's sensors carry includes its sole; their frame is rigid to what they carry."""
    config, tree = setup(name)
    straight, moved = tree.poses({}), tree.poses(dict.fromkeys(tree.joints, 0.3))
    for foot in config.feet.values():
        assert foot.has_wrench
        for sensor in map(config.wrench_sensors.get, foot.wrench_sensors):
            assert foot.sole in tree.below(sensor.link or sensor.frame)
    for sensor in config.wrench_sensors.values():
        link = sensor.link or sensor.frame
        assert np.linalg.solve(straight[link], straight[sensor.frame]) == pytest.approx(
            np.linalg.solve(moved[link], moved[sensor.frame]), abs=1e-12)
    topics = [s.topic for s in (*config.wrench_sensors.values(), *config.imus.values())]
    assert len(topics) == len(set(topics))
    assert all(topic and topic[0] not in '/~' for topic in topics)


# ---- soles


def mesh_points(path):
    """Corners of a binary STL's triangles."""
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], 'little')
    record = np.dtype([('normal', '<3f4'), ('corners', '<9f4'), ('attribute', '<u2')])
    return np.frombuffer(data, record, count, 84)['corners'].reshape(-1, 3).astype(float)


def collada_points(path):
    """Vertices of a COLLADA file with one geometry, as its node scales them."""
    root = ElementTree.parse(path).getroot()
    space = {'c': root.tag[1:].partition('}')[0]}
    scale = np.array(root.find('.//c:node/c:scale', space).text.split(), dtype=float)
    vertices = root.find('.//c:source/[@id]/c:float_array', space)
    return scale * np.array(vertices.text.split(), dtype=float).reshape(-1, 3)


def collision_points(urdf, link):
    """Corners of boxes, lowest points of spheres, and vertices of meshes, in the link."""
    robot = ElementTree.fromstring(urdf)
    element = next(e for e in robot.findall('link') if e.get('name') == link)
    for collision in element.findall('collision'):
        shape, at = collision.find('geometry')[0], pose(collision.find('origin'))
        if shape.tag == 'box':
            signs = np.stack(np.meshgrid(*3 * [(-0.5, 0.5)]), -1).reshape(-1, 3)
            points = signs * numbers(shape, 'size')
        elif shape.tag == 'sphere':
            points = np.array(((0.0, 0.0, -float(shape.get('radius'))),))
        else:
            path = resolve_uri(shape.get('filename'))
            points = collada_points(path) if path.suffix == '.dae' else mesh_points(path)
        yield from points @ at[:3, :3].T + at[:3, 3]


@every_robot
def test_polygon_is_where_the_foot_touches_the_ground(name):
    """Ground from the collision geometry: height to 0.5 mm, outline to 1 mm."""
    config, tree = setup(name)
    urdf, poses = load_urdf(config), placed(name, 'stand')
    parents = {joint.child: joint.parent for joint in tree.joints.values()}
    # Romeo's soles are rounder than the others'. Talos' left and right outlines differ by 6 mm:
    # its polygon is what both share.
    depth, tolerance = {'romeo': 1.5e-3}.get(name, 1e-3), {'talos': 7e-3}.get(name, 1e-3)
    for foot in config.feet.values():
        link = foot.sole
        while not (points := list(collision_points(urdf, link))):
            link = parents[link]
        in_sole = np.linalg.inv(sole_pose(foot, poses)) @ poses[link]
        points = np.array(points) @ in_sole[:3, :3].T + in_sole[:3, 3]
        lowest = points[:, 2].min()
        assert abs(lowest) < 0.5e-3
        touching, polygon = points[points[:, 2] < lowest + depth, :2], np.array(foot.polygon)
        for outermost, sign in ((np.min, -1.0), (np.max, 1.0)):
            configured, found = outermost(polygon, axis=0), outermost(touching, axis=0)
            assert configured == pytest.approx(found, abs=tolerance)
            assert (sign * configured < sign * found + 1e-3).all()


@every_robot
def test_toes_point_forward(name):
    """The base's x is forward: soles point along it, and reach further forward than back."""
    config, _ = setup(name)
    _, soles, _ = on_ground(name, 'stand')
    for foot, sole in soles.items():
        assert sole[:3, 0] @ (1.0, 0.0, 0.0) > 1.0 - 1e-8
        ankle = np.linalg.solve(sole, placed(name, 'stand')[config.feet[foot].ankle])[0, 3]
        reach = np.array(config.feet[foot].polygon)[:, 0] - ankle
        if name not in ('three_link', 'talos'):  # Symmetric, and reaching further back.
            assert reach.max() > -reach.min()


# ---- postures


@every_posture
def test_posture_is_within_the_limits_and_stands_level_symmetric_and_well_inside(name, posture):
    """
    Limits: also of joints that it leaves at zero, and of those that mimic.

    Soles: within 0.1 mm in height and 0.01 deg of the base's horizontal, symmetric within 0.2 mm
    (the two legs of iCub's model differ by 0.1 mm). Centre of mass: inside the support by a
    twentieth of its height, which is 20 mm on the small biped.
    """
    config, tree = setup(name)
    named = config.postures[posture]
    for key, joint in tree.joints.items():
        if joint.kind in ('revolute', 'prismatic'):
            leader, gain, offset = joint.mimic or (key, 1.0, 0.0)
            value = gain * named.get(leader, 0.0) + offset
            assert joint.lower - 1e-9 <= value <= joint.upper + 1e-9, key
    com, soles, ground = on_ground(name, posture)
    left, right = soles['left'], soles['right']
    assert abs(left[2, 3] - right[2, 3]) < 1e-4
    for sole in (left, right):
        assert np.degrees(np.linalg.norm(np.cross(sole[:3, 2], UP))) < 0.01
    assert left[:3, 3] == pytest.approx(right[:3, 3] * (1.0, -1.0, 1.0), abs=2e-4)
    edges = ConvexHull(ground).equations
    distance = -(edges[:, :2] @ com[:2] + edges[:, 2]).max()
    assert distance > 0.05 * (com[2] - left[2, 3])


@every_robot
def test_stand_puts_the_centre_of_mass_over_the_middle(name):
    """Within 5 % of the support's length and width; three_link has no joint to do it with."""
    com, _, ground = on_ground(name, 'stand')
    middle, size = 0.5 * (ground.min(axis=0) + ground.max(axis=0)), np.ptp(ground, axis=0)
    assert (np.abs(com[:2] - middle) < 0.05 * size).all()


@every_bent_robot
def test_stand_bends_the_knees_a_little_with_both_soles_in_one_plane(name):
    """The plane to a hundredth of a micrometre: on a floor, more would bend stiff legs."""
    config, _ = setup(name)
    stand, poses, heights = config.postures['stand'], placed(name, 'stand'), []
    knees = [joint for joint in stand if 'knee' in joint.lower() or joint.startswith(
        ('leg_left_4', 'leg_right_4'))]
    assert len(knees) == 2
    for knee in knees:
        assert 0.3 < abs(stand[knee]) < 0.9
        # iCub's legs are not equally long; where legs are, its soles say below.
        assert stand[knee] == pytest.approx(stand[knees[0]], abs=1e-3)
    for foot in config.feet.values():
        sole = sole_pose(foot, poses)
        np.testing.assert_allclose(sole[:3, 2], UP, atol=1e-9)
        heights.append(sole[2, 3])
    assert np.ptp(heights) < 1e-8


@pytest.mark.parametrize('name', WITH_ARMS)
def test_arm_postures_move_the_hands_as_their_names_promise(name):
    config, _ = setup(name)
    stand, up, forward, out = (
        placed(name, posture) for posture in ('stand', 'arms_up', 'arms_forward', 'arms_out'))
    for key, hand in config.hands.items():
        p, side = hand.frame, 1.0 if key == 'left' else -1.0
        length = np.linalg.norm(out[p][:3, 3] - stand[p][:3, 3])
        assert up[p][2, 3] > stand[p][2, 3] + 0.7 * length
        assert forward[p][0, 3] > stand[p][0, 3] + 0.4 * length
        assert side * out[p][1, 3] > side * stand[p][1, 3] + 0.4 * length


def test_three_link_has_the_centres_of_mass_of_table_1():
    """Absolute positions in mm, Muscolo et al. 2017, Table 1; y is to the left here."""
    config, tree = setup('three_link')
    poses = placed('three_link', 'a')
    ground = sole_pose(config.feet['left'], poses)[2, 3]
    table = {'foot': (6.72, 26.32), 'shin': (0.95, 300.0), 'thigh': (1.16, 750.0)}
    for part, (mass, z) in table.items():
        for side, y in (('l', 200.0), ('r', -200.0)):
            found, com = tree.com(None, [f'{side}_{part}'], poses)
            assert found == mass
            assert 1e3 * (com - (0.0, 0.0, ground)) == pytest.approx((0.0, y, z), abs=1e-6)
    found, com = tree.com(None, ['base_link'], poses)
    assert found == 0.94
    assert 1e3 * (com[2] - ground) == pytest.approx(1000.0)


def test_three_link_leans_like_the_paper():
    """
    X of one leg with the waist lumped to the thigh, poses b and c: formula sheet, section 2.

    The paper places the lumped waist at the thigh's centre; moving it there by hand, the model
    must give its numbers. m2 X2 = sum m x, in the frame of the foot.
    """
    config, tree = setup('three_link')
    for posture, x, z in (('a', 0.0, 208.482129), ('b', 27.637965, 206.064120),
                          ('c', 9.331146, 207.665760)):
        poses = placed('three_link', posture)
        to_sole = np.linalg.inv(sole_pose(config.feet['right'], poses))
        parts = [tree.com(None, [f'r_{part}'], poses) for part in ('foot', 'shin', 'thigh')]
        masses = np.array([mass for mass, _ in parts]) + (0.0, 0.0, 0.94)
        com = masses @ np.array([com for _, com in parts]) / masses.sum()
        in_sole = 1e3 * (to_sole @ (*com, 1.0))[:3]
        assert in_sole == pytest.approx((x, 0.0, z), abs=1e-5)


@pytest.mark.parametrize('name', ('bioloid_legs', 'three_link'))
def test_legs_of_the_papers_robots_hold_them(name):
    """Each leg alone holds the whole with two thirds of its effort."""
    config, tree = setup(name)
    for key in (*config.groups['left_leg'], *config.groups['right_leg']):
        joint = tree.joints[key]
        above = [link for link in tree.links if link not in tree.below(joint.child)]
        held = tree.gravity_torque(key, config.postures['stand'], above)
        assert abs(held) < joint.effort * 2 / 3, key


def test_bioloid_has_wangs_zero_height():
    assert setup('bioloid_legs')[1].poses({})['l_sole'][2, 3] == pytest.approx(-0.212)
    assert placed('bioloid_legs', 'stand')['l_sole'][2, 3] > -0.212
