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
"""A robot with joints that move with others."""

from dataclasses import replace
from xml.etree import ElementTree

from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf

#: Of the second joint of each knee.
MULTIPLIER, OFFSET = 0.7, 0.05


def double_knee():
    """Return the demo robot with knees of two coupled joints each, one motor for both."""
    config = load_robot_config('biped')
    root = ElementTree.fromstring(load_urdf(config))
    for side in 'lr':
        knee = root.find(f"./joint[@name='{side}_knee']")
        child, middle = knee.find('child'), f'{side}_middle'
        ElementTree.SubElement(root, 'link', name=middle)
        second = ElementTree.SubElement(
            root, 'joint', name=f'{side}_second_knee', type='revolute')
        for tag, values in (
                ('parent', {'link': middle}), ('child', {'link': child.get('link')}),
                ('origin', {'xyz': '0 0 -0.02'}), ('axis', knee.find('axis').attrib),
                ('limit', {**knee.find('limit').attrib, 'upper': '1.0'}),
                ('mimic', {'joint': f'{side}_knee', 'multiplier': str(MULTIPLIER),
                           'offset': str(OFFSET)})):
            ElementTree.SubElement(second, tag, **values)
        child.set('link', middle)
    postures = {name: {joint: (value - OFFSET) / (1.0 + MULTIPLIER)
                       if joint.endswith('_knee') else value for joint, value in posture.items()}
                for name, posture in config.postures.items()}
    return RobotModel(replace(config, postures=postures, name='double_knee'),
                      ElementTree.tostring(root, encoding='unicode'))
