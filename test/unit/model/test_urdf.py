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
"""What is read from the URDF's XML, and what is refused before Pinocchio sees it."""

import sys
from xml.etree import ElementTree

from biped_com_ros.core.errors import (
    BipedComError, ConfigurationError, RobotDescriptionError, UnknownNameError)
from biped_com_ros.core.geometry.shapes import box
from biped_com_ros.core.model import urdf
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.small_robot import small_config, URDF

INERTIAL = ('<inertial><origin xyz="0 0 0.1"/><mass value="2"/>'
            '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>')


def robot(*elements, links=('a', 'b')):
    named = ''.join(f'<link name="{name}">{INERTIAL}</link>' for name in links)
    return f'<robot name="r">{named}{"".join(elements)}</robot>'


def joint(kind='revolute', name='j', parent='a', child='b', inside='<axis xyz="0 1 0"/>',
          limit='<limit lower="-1" upper="1" effort="1" velocity="1"/>'):
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="{child}"/>{inside}{limit}</joint>')


@pytest.mark.parametrize(('text', 'message'), [
    ('<robot name="r"><link', 'not well-formed XML'),
    ('', 'not well-formed XML'),
    ('<sdf version="1.9"/>', 'must have a <robot> at its root, not <sdf>'),
    (robot(joint('planar')), "joint 'j' has type 'planar'; supported: revolute, continuous, pri"),
    (robot(joint('floating')), "joint 'j' has type 'floating'"),
    (robot('<joint name="j"/>'), "joint 'j' has type 'None'"),
    (robot(joint(limit='')), "joint 'j' is revolute and needs a <limit>"),
    (robot(joint(inside='<axis xyz="0 0 0"/>')), "<axis> of joint 'j' must be three numbers, n"),
    (robot(joint(inside='<axis xyz="0 1"/>')), "<axis> of joint 'j' must be three numbers"),
    (robot(joint(inside='<axis xyz="0 one 0"/>')), "<axis> of joint 'j': 'one' is not a finite"),
    (robot(joint(child='c')), "unknown link 'c' in child of joint 'j'"),
    (robot(joint(parent='c')), "unknown link 'c' in parent of joint 'j'"),
    (robot(), 'must form one tree with one root link; this one has roots a, b'),
    (robot(joint(), joint(name='k', parent='b', child='a')), 'the joints form a circle'),
    (robot(joint(), links=('a', 'b', 'b')), "more than one link 'b'"),
    (robot(joint(), joint(child='c'), links=('a', 'b', 'c')), "more than one joint 'j'"),
    (robot(joint(), joint(name='k')), "more than one child link 'b'"),
])
def test_a_broken_urdf_is_refused_with_what_is_wrong(text, message):
    with pytest.raises(BipedComError, match=message) as caught:
        urdf.parse_urdf(text)
    assert isinstance(caught.value, (RobotDescriptionError, UnknownNameError))


def test_blank_lines_declarations_and_joints_of_other_tags_are_accepted():
    text = '\n  <?xml version="1.0" encoding="UTF-8"?>\n' + robot(
        joint(), '<transmission name="t"><joint name="j"/></transmission>',
        '<gazebo><joint name="b" type="ball"/></gazebo>')
    assert urdf.parse_urdf(text).get('name') == 'r'


def test_kinematics_need_no_meshes_and_no_endless_joints():
    text = urdf.for_kinematics(urdf.parse_urdf(URDF))
    assert 'nowhere' in URDF
    assert 'nowhere' not in text
    assert 'continuous' not in text
    waist = ElementTree.fromstring(text).find("joint[@name='waist']")
    assert waist.find('limit').get('effort') == '1e9'
    assert urdf.continuous_joints(urdf.parse_urdf(URDF)) == {'waist'}


def visual(inside):
    return ElementTree.fromstring(f'<visual>{inside}</visual>')


def test_a_shape_is_given_in_the_frame_of_its_link():
    shape = urdf.shape_in_link(visual(
        '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><geometry><box size="0.2 0.4 0.6"/>'
        '</geometry>'), 'arm', None)
    np.testing.assert_allclose(shape.vertices.min(axis=0), (0.8, 1.9, 2.7), atol=1e-12)
    np.testing.assert_allclose(shape.vertices.max(axis=0), (1.2, 2.1, 3.3), atol=1e-12)


@pytest.mark.parametrize('uri', ['package://', 'package:///'])
def test_mesh_files_are_found_also_with_a_third_slash(uri):
    read = []
    urdf.shape_in_link(
        visual(f'<geometry><mesh filename="{uri}biped_com_ros/package.xml" scale="1 2 3"/>'
               '</geometry>'), 'arm',
        lambda *arguments: read.append(arguments) or box(np.ones(3)))
    (path, scale), = read
    assert path.name == 'package.xml' and path.is_file() and scale.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(('inside', 'message'), [
    ('', "a <visual> of link 'arm' has no <geometry>"),
    ('<geometry/>', "a <visual> of link 'arm' has no <geometry>"),
    ('<geometry><cone/></geometry>', "<cone> of link 'arm': valid are box, cylinder, capsule, sp"),
    ('<geometry><sphere radius="big"/></geometry>', "<sphere> of link 'arm': radius must be 1"),
    ('<origin xyz="0 0"/><geometry><sphere radius="1"/></geometry>', "of link 'arm': xyz must be"),
])
def test_shapes_that_make_no_sense_are_refused(inside, message):
    with pytest.raises(RobotDescriptionError, match=message):
        urdf.shape_in_link(visual(inside), 'arm', None)


def test_a_chain_of_mimics_leads_to_its_first_leader():
    mimics = urdf.mimic_joints(urdf.parse_urdf(URDF))
    # chain = 2 (-0.5 grip + 0.2) + 0.1
    assert mimics['grip_chain'] == urdf.MimicRelation('grip', -1.0, 0.5)
    assert mimics['grip_mimic'] == urdf.MimicRelation('grip', -0.5, 0.2)


@pytest.mark.parametrize('leader', ['j', 'k'])
def test_mimics_in_a_circle_are_refused(leader):
    text = robot(joint(inside=f'<mimic joint="{leader}"/>'),
                 joint(name='k', parent='b', child='c', inside='<mimic joint="j"/>'),
                 links=('a', 'b', 'c'))
    with pytest.raises(RobotDescriptionError, match='mimics itself through a circle'):
        urdf.mimic_joints(urdf.parse_urdf(text))


def test_inertials_in_the_order_of_the_file():
    found = urdf.link_inertials(urdf.parse_urdf(robot(joint(), links=('b', 'a'))))
    assert [inertial.link for inertial in found] == ['b', 'a']
    assert found[0].mass == 2.0
    np.testing.assert_array_equal(found[0].com_in_link, [0.0, 0.0, 0.1])


@pytest.mark.parametrize(('old', 'new', 'message'), [
    ('value="2"', 'value="-2"', "<inertial> of link 'a': the mass is -2.0, it must not be neg"),
    ('value="2"', 'value="heavy"', "<inertial> of link 'a': 'heavy' is not a finite number"),
    ('value="2"', 'value="nan"', "<inertial> of link 'a': 'nan' is not a finite number"),
    ('<mass value="2"/>', '', "<inertial> of link 'a': 'None' is not a finite number"),
    ('xyz="0 0 0.1"', 'xyz="0 0.1"', "origin: xyz must be 3 finite number.s., not '0 0.1'"),
    (INERTIAL, '', 'no link of the URDF has an <inertial> with a mass above zero'),
    ('value="2"', 'value="0"', 'no link of the URDF has an <inertial> with a mass above zero'),
])
def test_inertials_that_make_no_sense_are_refused(old, new, message):
    text = robot(joint()).replace(old, new)
    with pytest.raises(RobotDescriptionError, match=message):
        urdf.link_inertials(urdf.parse_urdf(text))
    with pytest.raises(RobotDescriptionError, match=message):
        RobotModel(small_config(base_link='a'), text)


def test_a_urdf_comes_from_a_file_or_from_the_override(tmp_path, monkeypatch):
    path, other, binary, xacro = (
        tmp_path / name for name in ('r.urdf', 'other.urdf', 'binary.urdf', 'r.xacro'))
    path.write_text(robot(joint()))
    other.write_text(URDF)
    binary.write_bytes(b'<robot name="\xff\xfe"/>')
    xacro.write_text('<robot/>')
    config = small_config(urdf=str(path))
    assert urdf.load_urdf(config) == robot(joint())
    assert urdf.load_urdf(config, other.as_uri()) == URDF
    monkeypatch.setitem(sys.modules, 'xacro', None)
    for name, message in (('', "has no 'urdf'.*robot_description"),
                          (tmp_path / 'gone.urdf', 'gone.urdf.* does not exist'),
                          (binary, 'binary.urdf.* cannot be read'),
                          (xacro, r'install ros-\$ROS_DISTRO-xacro')):
        with pytest.raises(ConfigurationError, match=message):
            urdf.load_urdf(small_config(urdf=str(name)))


@pytest.mark.parametrize('prefix', [None, '/nowhere'])
def test_xacro_finds_the_packages_that_uris_find(tmp_path, monkeypatch, prefix):
    """Without ROS, too; in included files as well."""
    pytest.importorskip('xacro')
    monkeypatch.setenv('ROS_PACKAGE_PATH', str(tmp_path))
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    if prefix:
        monkeypatch.setenv('AMENT_PREFIX_PATH', prefix)
    head = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
    folder = tmp_path / 'my_robot'
    folder.mkdir()
    (folder / 'r.xacro').write_text(
        f'{head}<xacro:include filename="$(find my_robot)/b.xacro"/></robot>')
    (folder / 'b.xacro').write_text(f'{head}<link name="$(find my_robot)"/></robot>')
    config = small_config(urdf='package://my_robot/r.xacro')
    link = urdf.parse_urdf(urdf.load_urdf(config)).find('link')
    assert link.get('name') == str(folder)
    (folder / 'r.xacro').write_text(f'{head}<link name="$(find yours)"/></robot>')
    with pytest.raises(RobotDescriptionError, match="^xacro cannot .*: package 'yours' was not fo"
                       '.*install it or source.*searched'):
        urdf.load_urdf(config)


def test_xacro_is_expanded_with_its_arguments(tmp_path):
    pytest.importorskip('xacro')
    path = tmp_path / 'r.urdf.xacro'
    path.write_text('<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
                    '<xacro:arg name="root" default="x"/><link name="$(arg root)"/></robot>')
    text = urdf.load_urdf(small_config(urdf=str(path), xacro_arguments={'root': 'pelvis'}))
    assert urdf.parse_urdf(text).find('link').get('name') == 'pelvis'
    path.write_text('<robot xmlns:xacro="http://www.ros.org/wiki/xacro">${nonsense}</robot>')
    with pytest.raises(RobotDescriptionError, match='xacro cannot expand .*nonsense'):
        urdf.load_urdf(small_config(urdf=str(path)))
