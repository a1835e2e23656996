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
"""Reading a robot's YAML strictly."""

import dataclasses

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.model import config as config_module
from biped_com_ros.core.model.config import (
    load_robot_config, robot_config_from_mapping, robot_names)
from biped_com_ros.core.model.urdf import load_urdf
import pytest
from support.small_robot import MAPPING, small_config
import yaml

TORSO = {
    'lower': 'pelvis', 'upper': 'chest', 'joints': ['x', 'y', 'z', 'roll', 'pitch', 'yaw'],
    'backbone_length': 0.129, 'radius': 0.034, 'bending_stiffness': 2.6,
    'torsion_stiffness': 1, 'axial_stiffness': 5e3}


def write(tmp_path, text):
    path = tmp_path / 'mine.yaml'
    path.write_text(text)
    return path


def test_a_whole_file_is_read_into_dataclasses(tmp_path):
    config = load_robot_config(write(tmp_path, yaml.safe_dump(
        {**MAPPING, **sensors(scale=-1), 'torso': TORSO,
         'simulation': {'stiffness': {'left_leg': 300}}, 'xacro_arguments': {'scale': 1.5}})))
    assert config.feet['right'].sole_origin == (0.02, 0.01, -0.06)
    assert config.feet['left'].polygon[2] == (-0.1, 0.0)
    assert config.wrench_sensors['ft'].factors == (-1.0,) * 6
    assert config.torso.attachment_angles_deg == (180.0, 270.0, 0.0, 90.0)
    assert config.torso.torsion_stiffness == 1.0
    assert config.simulation.stiffness == {'left_leg': 300.0}
    assert config.xacro_arguments == {'scale': '1.5'}
    assert config.locked_joints == {'hatch': 0.3}
    assert config.urdf == ''
    assert config.imu.frame == 'imu_link'
    least = robot_config_from_mapping({key: MAPPING[key] for key in ('name', 'base_link', 'feet')})
    assert (least.torso, least.groups, least.base_rpy) == (None, {}, (0.0, 0.0, 0.0))


def foot(**changes):
    return {'feet': {'left': {**MAPPING['feet']['left'], **changes}}}


def sensors(**changes):
    return {'wrench_sensors': {'ft': {'frame': 'left_foot', 'topic': 'wrist', **changes}}}


def hands(**left):
    return {**sensors(), 'hands': {
        'left': {'frame': 'left_foot', **left}, 'right': {'frame': 'right_foot'}}}


@pytest.mark.parametrize(('changes', 'message'), [
    ({'footing': 1},
     r"unknown key 'footing' in small.yaml.*valid: base_link, base_rpy, drives, feet"),
    ({'group': {}}, "did you mean 'groups'"),
    ({'imus': {'base': {'frame': 'imu_link', 'topik': 'imu'}}},
     r"unknown key 'topik' in small.yaml: imus: base; did you mean 'topic'\?"),
    ({'imus': {'base': {'frame': 'imu_link'}}}, "key 'topic' is missing in small.yaml: imus: ba"),
    ({'feet': {}}, "'small' has no feet"),
    ({'feet': [1]}, r'small.yaml: feet must be a mapping, not \[1\]'),
    ({'name': None}, 'small.yaml: name must be a string, not None'),
    ({'name': True}, 'small.yaml: name must be a string, not True'),
    ({'base_rpy': [0, 0]}, r'base_rpy must be a list of 3 values, not 2: \[0, 0\]'),
    ({'base_rpy': 'level'}, "base_rpy must be a list, not 'level'"),
    ({'base_rpy': [0, 'x', 0]}, r"base_rpy\[1\] must be a number, not 'x'"),
    ({'base_rpy': [0, float('nan'), 0]}, r'base_rpy\[1\] must be a finite number, not nan'),
    ({'locked_joints': {'hatch': float('inf')}}, 'locked_joints: hatch must be a finite number'),
    ({'walking': {'quick_steps': 2.5}}, 'walking: quick_steps must be a whole number, not 2.5'),
    ({'walking': {'quick_steps': -1}}, 'walking.quick_steps is -1: it must be between 0 and 200'),
    ({'walking': {'crouch': 0.6}}, 'walking.crouch is 0.6, a share of the length of a leg'),
    ({'walking': {'time_scale': 0.05}}, 'walking.time_scale is 0.05, a factor of the durations'),
    ({'locked_joints': {'hatch': False}}, 'locked_joints: hatch must be a number, not False'),
    ({'torso': {**TORSO, 'joints': ['x', 'y']}}, 'torso: joints must be a list of 6 values'),
    (foot(wrench_sensors=['ft']),
     r"unknown wrench sensor 'ft' in feet\.left\.wrench_sensors of small"),
    (sensors(scale=0), r'wrench_sensors\.ft\.scale .* is 0\.0: a zero would'),
    (sensors(scale=[1, 1, 0, 1, 1, 1]), r'a zero would remove what is measured; use 1'),
    (sensors(scale=[1, 2, 3]), 'must be a list of 6 values, not 3'),
    (sensors(scale='kgf'), "must be a number, not 'kgf'"),
    (sensors(measures='force'), r"ft\.measures .* is 'force'; use wrench or force_z"),
    (foot(polygon=[[95, -50], [95, 50], [-95, 0]]),
     r'feet\.left\.polygon has a corner at \(95\.0, -50\.0\), in metres.*at most 1 m'),
    *[(foot(polygon=polygon), r'feet\.left\.polygon.*counter-clockwise') for polygon in (
        [[0.1, 0.05], [0.1, -0.05], [-0.1, 0.0]],  # clockwise
        [[0.1, 0.05], [0.1, -0.05]], [[0.0, 0.0], [0.1, 0.0], [0.2, 0.0]])],
    (foot(polygon=[[0.1, -0.05], [0.1, 0.05], [-0.1, 0.0], [0.1, -0.05]]),
     r'polygon gives corner \(0\.1, -0\.05\) twice; the last corner is joined'),
    (foot(polygon=[[0.1, -0.05], [0.1, 0.05], [0.0, 0.02], [-0.1, 0.05], [-0.1, -0.05]]),
     r'goes inward or crosses itself at corner \(0\.0, 0\.02\)'),
    (foot(polygon=[[0.0, 0.0], [0.1, 0.0], [0.1, 0.1], [0.05, -0.02]]), 'crosses itself'),
    (hands(source='virtuel'), "hands.left.source is 'virtuel'; use sensor or virtual"),
    (hands(source='both', wrench_sensors=['ft']), "hands.left.source is 'both'"),
    (hands(source='sensor'), 'has no wrench_sensors; name them, or use virtual'),
    ({**sensors(measures='force_z'), 'hands': {'left': {
        'frame': 'left_foot', 'wrench_sensors': ['ft']}}},
     r'wrench_sensors\.ft .* measures force_z, .* but hands\.left uses it: a hand needs'),
    (hands(source='virtual', wrench_sensors=['ft']),
     r"is 'virtual', but the hand has wrench_sensors \(ft\)"),
])
def test_what_does_not_fit_is_refused_with_its_place(changes, message):
    with pytest.raises((ConfigurationError, UnknownNameError), match=message):
        small_config(**changes)


@pytest.mark.parametrize('name', ['5', 'left foot', 'links/vorn', 'a__b', ''])
def test_names_that_become_topics_are_words(name):
    with pytest.raises(ConfigurationError, match=f"'{name}' under feet of 'small' cannot be part"):
        small_config(feet={name: MAPPING['feet']['left']})
    with pytest.raises(ConfigurationError, match='under wrench_sensors of'):
        small_config(wrench_sensors={name: sensors()['wrench_sensors']['ft']})


@pytest.mark.parametrize(
    'name', ['', '..', '../../etc', '/tmp/x', 'a/b', 'a\0b', '.ssh', 65 * 'a'])
def test_a_name_that_leaves_the_directory_of_results_is_refused(name):
    with pytest.raises(ConfigurationError, match='name is .*: use up to 64 letters'):
        small_config(name=name)
    assert small_config(name='NAO-6.2_b').name == 'NAO-6.2_b'


@pytest.mark.parametrize('topic', ['', '7', 'left foot/wrench', 'a//b', 'a/', 'imu-1', 'a__b'])
def test_a_topic_that_ros_does_not_take_is_refused(topic):
    with pytest.raises(ConfigurationError, match=(
            f"imus.base.topic of 'small' is '{topic}', which is not a valid topic name")):
        small_config(imus={'base': {'frame': 'imu_link', 'topic': topic}})
    with pytest.raises(ConfigurationError, match=r'wrench_sensors\.ft\.topic'):
        small_config(**sensors(topic=topic))


def test_the_imu_is_the_one_called_base_or_the_first():
    imu = {'frame': 'imu_link', 'topic': '/robot_2/_imu'}
    chest = {'frame': 'chest', 'topic': 'imu'}
    assert small_config(imus={'top': chest, 'base': imu}).imu.topic == '/robot_2/_imu'
    assert small_config(imus={'top': chest, 'low': imu}).imu.frame == 'chest'
    with pytest.raises(ConfigurationError, match="'small' has no IMU.*choose another base_source"):
        small_config(imus={}).imu


def test_a_robot_that_does_not_exist_is_named_with_those_that_do(monkeypatch):
    monkeypatch.setattr(config_module, 'robot_names', lambda: ('biped', 'talos'))
    with pytest.raises(UnknownNameError, match=(
            r"unknown robot 'talso'; did you mean 'talos'\? \(valid: /path/to/robot.yaml, bip")):
        load_robot_config('talso')


@pytest.mark.parametrize(('text', 'message'), [
    ('name: [', 'is not valid YAML'),
    ('- a\n- b\n', 'must hold a mapping'),
    ('', 'must hold a mapping'),
    ('name: a\nfeet: {}\nname: b\n', "gives key 'name' twice, the second time in line 3"),
    ('name: a\nfeet:\n  left: {sole: a, sole: b}\n', "gives key 'sole' twice.*line 3"),
    (None, "robot file '.*mine.yaml' cannot be read"),
    (b'name: caf\xe9\n', 'mine.yaml.* cannot be read'),
    *[(f'extends: {name}\n', message) for name, message in (
        ('talo', "'talo'.* did you mean 'talos'"), ('3', "unknown robot '3'"),
        ('[talos]', r"unknown robot '\['talos'\]'"), ('talos.yaml', 'absolute path'),
        ('../mine.yaml', 'mine.yaml: extends is .* absolute path'))],
])
def test_a_broken_file_is_refused_with_its_path(tmp_path, text, message):
    path = tmp_path / 'mine.yaml'
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_robot_config(path)
    assert 'extends' in str(text) or str(path) in str(caught.value)


def test_yaml_anchors_and_merges_work(tmp_path):
    path = write(tmp_path, yaml.safe_dump({'name': 'a', 'base_link': 'b'}) + (
        'feet:\n'
        '  left: &foot {sole: l, polygon: [[0.1, 0], [0, 0.1], [-0.1, 0]]}\n'
        '  right: {<<: *foot, sole: r}\n'))
    feet = load_robot_config(str(path)).feet
    assert feet['right'].sole == 'r'
    assert feet['right'].polygon == feet['left'].polygon


@pytest.mark.parametrize('name', robot_names())
def test_every_robot_of_the_package_reads(name):
    assert load_robot_config(name).name == name


def test_a_file_that_extends_another_holds_only_what_differs(tmp_path):
    base, biped = 'extends: biped\nhands: {left: {contact: lean}}\n', load_robot_config('biped')
    config = load_robot_config(write(tmp_path, base + 'name: mine\npassive_joints: []\n'))
    assert config.name == 'mine' and config.passive_joints == () and biped.passive_joints
    assert config.hands['left'] == dataclasses.replace(biped.hands['left'], contact='lean')
    assert config.hands['right'] == biped.hands['right']
    assert dataclasses.replace(
        config, name='biped', passive_joints=biped.passive_joints, hands=biped.hands) == biped


def test_a_file_extends_one_that_extends_another_with_its_urdf_beside_it(tmp_path, monkeypatch):
    (tmp_path / 'base').mkdir()
    (tmp_path / 'base' / 'robot.urdf').write_text('<robot name="mine"/>')
    below = write(tmp_path / 'base', yaml.safe_dump({**MAPPING, 'urdf': 'robot.urdf'}))
    between = tmp_path / 'between.yaml'
    between.write_text(f'extends: {below}\nname: between\n')
    config = load_robot_config(write(tmp_path, f'extends: {between}\n'))
    assert config.name == 'between' and load_urdf(config) == '<robot name="mine"/>'
    monkeypatch.chdir(tmp_path)
    assert load_urdf(load_robot_config('base/mine.yaml')) == '<robot name="mine"/>'


def test_a_file_that_extends_itself_is_refused(tmp_path):
    (tmp_path / 'other.yaml').write_text(f'extends: {tmp_path}/mine.yaml\n')
    with pytest.raises(ConfigurationError, match='itself: other.yaml -> mine.yaml -> other.yaml'):
        load_robot_config(write(tmp_path, f'extends: {tmp_path}/other.yaml\n'))


def test_what_gives_the_wrench_of_a_hand():
    virtual, sensor, plain = (small_config(**hands(**left)) for left in (
        {'source': 'virtual'}, {'source': 'sensor', 'wrench_sensors': ['ft']},
        {'wrench_sensors': ['ft']}))
    assert virtual.virtual_hands == ('left',) and not sensor.virtual_hands
    assert [config.hands['left'].has_wrench for config in (virtual, sensor, plain)] == [True] * 3
    assert virtual.hands['left'].is_virtual and not sensor.hands['left'].is_virtual
    assert not virtual.hands['right'].has_wrench
