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

import re
import sys
from xml.etree import ElementTree

from biped_com_ros.core.errors import (
    BipedComError, ConfigurationError, RobotDescriptionError, UnknownNameError)
from biped_com_ros.core.geometry.shapes import box
from biped_com_ros.core.model import urdf
from biped_com_ros.core.model.inertias import unphysical_inertias
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pinocchio as pin
import pytest
from support.small_robot import MAPPING, small_config, URDF

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
    (robot(joint('planar')),
     r"joint 'j' \(line 1\) has type 'planar'; supported: revolute, con.*empty root"),
    (robot(joint('floating')), r"joint 'j' \(line 1\) has type 'floating'"),
    (robot('<joint name="j"/>'), r"joint 'j' \(line 1\) has type 'None'"),
    (robot(joint(limit='')), r"joint 'j' \(line 1\) is revolute and needs a <limit>"),
    (robot(joint(inside='<axis xyz="0 0 0"/>')),
     "<axis> of joint 'j' .*: xyz must not be all zero"),
    (robot(joint(inside='<axis xyz="0 1"/>')),
     "<axis> of joint 'j' .*xyz must be 3 finite number.s., not '0 1'"),
    (robot(joint(inside='<axis xyz="0 one 0"/>')),
     "<axis> of joint 'j' .*xyz must be 3 finite number.s., not '0 one 0'"),
    (robot(joint(child='c')), "unknown link 'c' in child of joint 'j'"),
    (robot(joint(parent='c')), "unknown link 'c' in parent of joint 'j'"),
    (robot(), 'must form one tree with one root link; this one has roots a, b'),
    (robot(joint(), joint(name='k', parent='b', child='a')), 'the joints form a circle'),
    (robot(joint(), links=('a', 'b', 'b')), "more than one link 'b'.*line .* and.*line "),
    (robot(joint(), joint(child='c'), links=('a', 'b', 'c')),
     "more than one joint 'j'.*line .* and.*line "),
    (robot(joint(), joint(name='k')), "more than one child link 'b'.*line .* and.*line "),
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
    ('value="2"', 'value="-2"', "<mass> of <inertial> of link 'a' .line 1.: value is -2, it m"),
    ('value="2"', 'value="heavy"', "of link 'a' .line 1.: value must .* not 'heavy'"),
    ('value="2"', 'value="nan"', "of link 'a' .line 1.: value must be 1 finite .* not 'nan'"),
    ('<mass value="2"/>', '', "<inertial> of link 'a' .line 1. has no <mass"),
    ('xyz="0 0 0.1"', 'xyz="0 0.1"', "<origin> of .*: xyz must be 3 .* not '0 0.1'"),
    (INERTIAL, '', 'no link of the URDF has an <inertial> with a mass above zero'),
    ('value="2"', 'value="0"', 'no link of the URDF has an <inertial> with a mass above zero'),
])
def test_inertials_that_make_no_sense_are_refused(old, new, message):
    text = robot(joint()).replace(old, new)
    with pytest.raises(RobotDescriptionError, match=message):
        urdf.link_inertials(urdf.parse_urdf(text))
    with pytest.raises(RobotDescriptionError, match=message):
        RobotModel(small_config(base_link='a'), text)


LINES = """<?xml version="1.0"?>
<robot name="r">
  <link name="a">
    <inertial>
      <origin xyz="0 0.1 0.1" rpy="0 0.2 0"/>
      <mass value="2"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0.1" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <link name="b">
    <inertial>
      <mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <link name="c"/>
  <joint name="j" type="revolute">
    <parent link="a"/>
    <child link="b"/>
    <origin xyz="0 0 0.5" rpy="0 0 0"/>
    <axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
    <dynamics damping="0.1" friction="0.2"/>
    <safety_controller soft_lower_limit="-1" soft_upper_limit="1" k_velocity="1"/>
  </joint>
  <joint name="k" type="prismatic">
    <parent link="b"/>
    <child link="c"/>
    <axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
    <mimic joint="j" multiplier="2" offset="0.1"/>
  </joint>
</robot>"""
ATTRIBUTES = [(number, match[1], match[2])
              for number, line in enumerate(LINES.splitlines()[2:], 3)
              for match in re.finditer(r'(\w+)="([^"]*)"', line)]
#: The link or joint around each line.
OWNERS = [re.findall('name="(.)"', '\n'.join(LINES.splitlines()[2:number]))[-1]
          for number in range(3, len(LINES.splitlines()) + 1)]


def outcome(text):
    """Return the error of a URDF, or '' if all of its masses are used."""
    try:
        model = RobotModel(small_config(
            base_link='a', feet={'left': {**MAPPING['feet']['left'], 'sole': 'b'}}, imus={},
            groups={}, postures={}, passive_joints=[], locked_joints={}), text)
    except BipedComError as error:
        return str(error)
    assert model.mass == pytest.approx(pin.computeTotalMass(model.pin_model))
    assert model.state(np.zeros(len(model.joint_names))).com_in_base == pytest.approx(
        pin.centerOfMass(model.pin_model, model.pin_model.createData(),
                         model.configuration(np.zeros(len(model.joint_names)))))
    return ''


@pytest.mark.parametrize('wrong', ['', 'nan', 'heavy', '0,5', '${m}', None, '-1'])
@pytest.mark.parametrize(('number', 'key', 'value'), ATTRIBUTES)
def test_what_is_wrong_in_a_urdf_is_named_with_its_place(number, key, value, wrong):
    """Any attribute: an error names the link or joint, and its line or that of the value."""
    assert outcome(LINES) == ''
    lines = LINES.splitlines()
    lines[number - 1] = lines[number - 1].replace(
        f'{key}="{value}"', '' if wrong is None else f'{key}="{wrong}"', 1)
    problem = outcome('\n'.join(lines))
    is_number = bool(re.fullmatch(r'[-\d. ]+', value))
    is_read = 'safety' not in lines[number - 1]
    if is_number and is_read and wrong not in (None, '-1'):
        assert f'(line {number})' in problem and f"'{wrong}'" in problem
        assert f"'{OWNERS[number - 3]}'" in problem
    if problem:
        assert 'does not describe a robot' not in problem
        assert '(line ' in problem or 'unknown' in problem or 'not a valid' in problem or (
            'roots' in problem or 'more than one' in problem)
    if wrong == '0,5' and is_number and is_read:
        assert 'decimals with a point' in problem
    if wrong == '${m}' and is_number and is_read:
        assert 'xacro' in problem


@pytest.mark.parametrize('number', [
    number for number, line in enumerate(LINES.splitlines(), 1) if line.endswith('/>')])
def test_a_missing_element_of_a_urdf_is_named_or_not_needed(number):
    lines = LINES.splitlines()
    del lines[number - 1]
    problem = outcome('\n'.join(lines))
    assert 'does not describe a robot' not in problem
    assert not problem or f"'{OWNERS[number - 3]}'" in problem or 'roots' in problem


@pytest.mark.parametrize('root', ['mujoco', 'sdf'])
def test_other_formats_are_named(root):
    with pytest.raises(RobotDescriptionError, match='convert it to URDF'):
        urdf.parse_urdf(f'<{root}/>')


def test_a_default_namespace_does_not_matter():
    text = robot(joint()).replace('<robot ', '<robot xmlns="http://drake.mit.edu" ')
    assert urdf.parse_urdf(text).find('link').get('name') == 'a'
    assert outcome(text) == ''


@pytest.mark.parametrize('kind', ['floating', 'planar'])
def test_a_free_joint_below_an_empty_root_is_that_of_the_base(kind):
    free = joint(kind, 'root', 'world', 'a', '', '')
    text = robot(joint(), free).replace('<link', '<link name="world"/><link', 1)
    assert outcome(text) == ''
    found = urdf.parse_urdf(text)
    assert [link.get('name') for link in found.findall('link')] == ['a', 'b']
    assert 'world' in text and 'world' not in urdf.for_kinematics(found)
    # What has mass, or carries more, is a part of the robot.
    for other in (text.replace('<link name="world"/>', f'<link name="world">{INERTIAL}</link>'),
                  text.replace('</robot>', '<link name="c"/>' + joint(
                      'fixed', 'k', 'world', 'c', '', '') + '</robot>')):
        assert f"has type '{kind}'" in outcome(other) and 'empty root' in outcome(other)


@pytest.mark.parametrize(('inertia', 'problem'), [
    ('ixx="1" iyy="1" izz="1.9" ixy="0" ixz="0" iyz="0"', ''),
    ('ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"', ''),
    ('ixx="1" iyy="1" izz="2.1" ixy="0" ixz="0" iyz="0"', 'at most the sum of the others'),
    ('ixx="1" iyy="1" izz="1" ixy="1.1" ixz="0" iyz="0"', 'a negative principal moment, -0.1 kg'),
    ('ixx="-1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"', 'a negative principal moment, -1 kg'),
    ('ixx="1" iyy="1" izz="1"', 'no ixy, ixz, iyz')])
def test_unphysical_inertias_are_listed(inertia, problem):
    text = LINES.replace('ixx="1" iyy="1" izz="1" ixy="0.1" ixz="0" iyz="0"', inertia)
    assert outcome(text) == ''  # masses and their places count
    found = unphysical_inertias(urdf.parse_urdf(text))
    assert found.keys() == ({'a'} if problem else set())
    assert problem in found.get('a', '') and (not problem or '(line 4)' in found['a'])
    empty = text.replace('<mass value="2"/>', '<mass value="0"/>')
    assert ('a' in unphysical_inertias(urdf.parse_urdf(empty))) == ('"1"' in inertia)


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


def test_xacro_finds_the_package_that_its_file_is_in(tmp_path):
    """A clone that is not installed, and another package beside it."""
    pytest.importorskip('xacro')
    head = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
    path, other = tmp_path / 'my_robot/urdf/r.xacro', tmp_path / 'its_legs/legs.xacro'
    path.parent.mkdir(parents=True)
    other.parent.mkdir()
    path.write_text(f'{head}<xacro:include filename="$(find its_legs)/legs.xacro"/>'
                    '</robot>')
    other.write_text(f'{head}<link name="$(find my_robot)"/></robot>')
    link = urdf.parse_urdf(urdf.load_urdf(small_config(urdf=str(path)))).find('link')
    assert link.get('name') == str(tmp_path / 'my_robot')


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
