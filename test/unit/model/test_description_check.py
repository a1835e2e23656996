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
"""What is refused or questioned where a configuration and a URDF cannot both be right."""

import re

from biped_com_ros.core.errors import ConfigurationError, RobotDescriptionError
from biped_com_ros.core.model.config import robot_config_from_mapping
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.strict_yaml import read_yaml
import numpy as np
import pytest
from support.small_robot import MAPPING, small_config, small_robot, URDF
import yaml

LEFT, RIGHT = MAPPING['feet']['left'], MAPPING['feet']['right']


def mapping(name='biped'):
    """Return the mapping of a robot of the package, to change."""
    return read_yaml(package_share() / 'config' / 'robots' / f'{name}.yaml')


def loaded(changes):
    """Return the model of the demo robot with some keys of its YAML replaced."""
    return RobotModel(robot_config_from_mapping({**mapping(), **changes}), BIPED)


BIPED = RobotModel.load('biped').urdf
SENSORS = mapping()['wrench_sensors']
FEET = mapping()['feet']


@pytest.mark.parametrize(('changes', 'message'), [
    ({'feet': {'left': LEFT, 'right': LEFT}},
     "feet.left and feet.right of 'small' have the same sole 'left_sole'"),
    ({'feet': {'left': {**LEFT, 'sole_origin': [0, 0, -35.0]}}},
     r'feet.left.sole_origin is \(0.0, 0.0, -35.0\), in metres: a sole is at most 1 m'),
    ({'feet': {'left': {**LEFT, 'sole_rpy': [0, 90, 0]}}},
     r'feet.left.sole_rpy is .*in radians.*convert degrees \(0, 1.5708, 0\)'),
    ({'base_rpy': [0, 0, 180]}, r'base_rpy is \(0.0, 0.0, 180.0\), in radians.*3.14159'),
    ({'wrench_sensors': {'a': {'frame': 'left_foot', 'topic': 'ft'},
                         'b': {'frame': 'right_foot', 'topic': 'ft'}}},
     "wrench_sensors.a of 'small' shares topic 'ft' with another sensor"),
])
def test_a_configuration_that_cannot_be_right_is_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        small_config(**changes)


@pytest.mark.parametrize(('key', 'change', 'message'), [
    ('torso', {'backbone_length': 129.0}, 'torso.backbone_length is 129, in metres.* at most 3'),
    ('torso', {'radius': -0.034}, 'torso.radius is -0.034, in metres: it must be above 0'),
    ('torso', {'max_bend_deg': 0.0}, 'torso.max_bend_deg is 0, in degrees'),
    ('wrench_sensors', {'left_foot': SENSORS['right_foot'], 'right_foot': SENSORS['left_foot']},
     "wrench_sensors.left_foot of 'biped' measures at link 'r_ankle_ft', which carries the "
     'sole of foot right, but feet.left stands on it: the sensors of left and right are'),
    ('feet', {'left': {**FEET['left'], 'wrench_sensors': ['right_foot']},
              'right': {**FEET['right'], 'wrench_sensors': ['left_foot']}}, 'are swapped'),
    ('wrench_sensors', {'left_foot': {**SENSORS['left_foot'], 'frame': 'pelvis'}},
     "link 'pelvis', which carries the sole of foot left and right"),
    ('wrench_sensors', {'left_foot': {**SENSORS['left_foot'], 'frame': 'l_gripper'}},
     "link 'l_gripper', which carries no sole")])
def test_a_demo_robot_that_cannot_be_right_is_refused(key, change, message):
    with pytest.raises(ConfigurationError, match=message):
        loaded({key: {**mapping()[key], **change}})


def test_two_feet_may_share_a_link_with_two_origins():
    feet = {'left': LEFT, 'right': {**LEFT, 'sole_origin': [0, 0.1, 0]}}
    assert len(small_config(feet=feet).feet) == 2


def test_limits_in_reverse_are_refused():
    wrong = URDF.replace('<limit lower="-2" upper="2"', '<limit lower="2" upper="-2"', 1)
    with pytest.raises(RobotDescriptionError, match=(
            r"<limit> of joint 'left_hip_roll' \(line 1\): lower 2 is above upper -2; swap them")):
        RobotModel(small_config(), wrong)


def test_a_sensor_fixed_to_the_sole_is_no_mistake():
    # A pad under the foot carries nothing.
    model = small_robot(
        wrench_sensors={'pad': {'frame': 'left_sole', 'topic': 'pad'}},
        feet={'left': {**LEFT, 'sole': 'left_foot', 'wrench_sensors': ['pad']}, 'right': RIGHT})
    assert not any('pad' in warning for warning in model.warnings)


@pytest.mark.parametrize('name', ['biped', 'three_link', 'sabian'])
def test_there_are_no_questions_about_a_good_robot(name):
    assert RobotModel.load(name).warnings == ()


@pytest.mark.parametrize(('changes', 'parts'), [
    ({'feet': {'left': {**FEET['left'], 'sole': 'r_sole', 'wrench_sensors': []},
               'right': {**FEET['right'], 'sole': 'l_sole', 'wrench_sensors': []}}},
     ["mm to the right of foot 'right' in posture 'stand': swap their soles"]),
    ({'feet': {**FEET, 'left': {**FEET['left'], 'sole_rpy': [1.5708, 0, 0]}}},
     ["the z axis of the sole of foot 'left' is 90 deg from the base's"]),
    ({'base_rpy': [0, 0, 3.14159]},
     ["the x axis of the sole of foot 'right' is 180 deg", 'set base_rpy']),
    ({'feet': {**FEET, 'left': {**FEET['left'], 'sole_origin': [0, 0, -0.03]}}},
     ['the soles differ in height by 30 mm']),
    ({'wrench_sensors': {**SENSORS, 'left_foot': {**SENSORS['left_foot'], 'link': 'l_shin'}}},
     ["frame 'l_ankle_ft' and link 'l_shin', which move"])])
def test_what_is_likely_wrong_gives_a_warning(changes, parts):
    warnings = '\n'.join(loaded(changes).warnings)
    assert all(part in warnings for part in parts)


def test_a_posture_that_turns_a_level_sole_is_what_is_to_be_corrected():
    """Mirrored axes: one sign for both legs turns a sole; with sole_rpy it would stand on edge."""
    postures = {**mapping()['postures'], 'stand': {'l_ankle_pitch': 0.6, 'l_hip_pitch': 0.6}}
    warning, = (its for its in loaded({'postures': postures}).warnings if 'z axis' in its)
    assert 'must point up, as it does with joints at zero: correct postures.stand' in warning
    assert 'sole_rpy' not in warning


def test_a_robot_without_a_posture_may_need_one_rather_than_another_sole():
    """Some legs are bent with joints at zero."""
    feet = {name: {**foot, 'sole_rpy': [0.0, 1.2, 0.0]} for name, foot in FEET.items()}
    [left, _] = loaded({'feet': feet, 'postures': {}}).warnings
    assert 'must point up: add postures.stand in which it does, or set feet.left.sole' in left


@pytest.mark.parametrize('turned', [(1.5708, 0.0, 0.0), (0.0, -1.4, 0.3), (2.0, 0.5, -2.0)])
def test_the_warning_of_a_turned_sole_has_the_angles_that_make_it_level(turned):
    feet = {name: {**foot, 'sole_rpy': [*turned]} for name, foot in FEET.items()}
    for warning in loaded({'feet': feet}).warnings:
        if found := re.search(r'set feet.(\w+).sole_rpy to (\[.*?\])', warning):
            feet[found[1]] = {**feet[found[1]], 'sole_rpy': yaml.safe_load(found[2])}
    model = loaded({'feet': feet})
    assert not any('sole_rpy' in warning for warning in model.warnings)
    placed = model.state(model.posture()).placements_in_base(model.soles)
    assert placed[:, :3] == pytest.approx(np.broadcast_to(np.eye(3), (2, 3, 3)), abs=2e-3)


@pytest.mark.parametrize(('old', 'new', 'message'), [
    ('<limit lower="-2" upper="2"', '<limit lower="-115" upper="115"',
     r"joint '\w+' has limits of -115 to 115 rad.*degrees"),
    ('xyz="0 0 -0.3"', 'xyz="0 0 -300"', r'is \d\d\d\.\d m from the base: .*millimetres'),
    ('xyz="0.01 0.02 -0.15"', 'xyz="10 20 -150"', "of link 'left_thigh' is 151.7 m from its fram"),
    ('<mass value="5.0"/>', '<mass value="5000"/>', 'the robot weighs 50.* kg: check the units')])
def test_wrong_units_in_a_urdf_give_a_warning(old, new, message):
    model = RobotModel(small_config(), URDF.replace(old, new))
    assert any(re.search(message, warning) for warning in model.warnings)
