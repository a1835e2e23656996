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
"""Which name is meant by one that does not exist."""

import time

from biped_com_ros.core.errors import brief, UnknownNameError
from biped_com_ros.core.names import likeliest_name
import pytest

# Of iCubGazeboV2_5, whose names other versions of the robot have changed.
ICUB = ('base_link', 'root_link', 'lower_torso', 'torso_1', 'chest', 'neck_1', 'head', 'imu_frame',
        'l_hip_1', 'r_hip_1', 'l_upper_leg', 'r_upper_leg', 'l_leg_ft', 'r_leg_ft', 'l_foot',
        'r_foot', 'l_foot_ft', 'r_foot_ft', 'l_sole', 'r_sole', 'l_ankle_1', 'r_ankle_1',
        'r_foot_ft_gyro_3b14', 'l_foot_ft_gyro_3b13', 'l_hand', 'r_hand', 'root_link_fixed')


@pytest.mark.parametrize(('name', 'meant'), [
    ('root_link_imu_frame', 'imu_frame'),  # by spelling it would be root_link_fixed
    ('left_sole', 'l_sole'),
    ('leftFoot', 'l_foot'),
    ('RightHand', 'r_hand'),
    ('gripper_left', 'l_hand'),
    ('right_foot_force_sensor', 'r_foot_ft'),
    ('left_foot_ft_sensor', 'l_foot_ft'),
    ('l_ankle_2', 'l_ankle_1'),
    ('chest_link', 'chest'),
    ('inertial_sensor', 'imu_frame'),
    ('l_uper_leg', 'l_upper_leg'),
    ('banana', None),
])
def test_meaning_decides(name, meant):
    assert likeliest_name(name, ICUB) == meant


@pytest.mark.parametrize(('name', 'meant'), [
    ('topik', 'topic'), ('sgin', 'sign'), ('fram', 'frame'), ('xyz', None)])
def test_spelling_decides_among_keys(name, meant):
    assert likeliest_name(name, ('frame', 'topic', 'link', 'sign')) == meant


def test_left_is_never_suggested_for_right():
    assert likeliest_name('r_foot', ('l_foot', 'head')) is None
    assert likeliest_name('left_knee_jont', ('right_knee_joint', 'l_knee')) == 'l_knee'


def test_the_suggestion_is_in_the_error():
    error = UnknownNameError('frame', 'root_link_imu_frame', ICUB, 'icub.yaml')
    assert "in icub.yaml; did you mean 'imu_frame'? (valid: " in str(error)
    assert 'did you mean' not in str(UnknownNameError('frame', 'banana', ICUB))


def test_a_name_that_is_no_misspelling_costs_no_time():
    """A megabyte as the link of a push kept the simulator busy for minutes."""
    begun = time.process_time()
    error = UnknownNameError('link', 'l_foot' * 200_000, ICUB)
    assert time.process_time() - begun < 0.05
    assert "'l_footl_foot" in str(error) and len(str(error)) < 100 + len(', '.join(ICUB))
    assert 'did you mean' not in str(error)


def test_names_are_shown_on_one_line():
    assert brief('l_foot') == 'l_foot' and brief('sole \xe4') == 'sole \xe4'
    assert brief('a\nb\x1b[31m') == 'a\\nb\\x1b[31m'
    assert brief('x' * 61) == 'x' * 60 + '...'
