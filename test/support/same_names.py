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
"""Robots whose links are named like the joints above them, as in many public URDFs."""

from dataclasses import replace
from xml.etree import ElementTree


def links_named_like_joints(config, urdf):
    """Return configuration and URDF of the same robot with such names."""
    robot = ElementTree.fromstring(urdf)
    above = {joint.find('child').get('link'): joint.get('name')
             for joint in robot.findall('joint')}

    def name(link):
        return above.get(link, link)

    def named(things, *keys):
        return {key: replace(thing, **{k: name(getattr(thing, k)) for k in keys})
                for key, thing in things.items()}

    for path, key in (('link', 'name'), ('joint/parent', 'link'), ('joint/child', 'link')):
        for element in robot.findall(path):
            element.set(key, name(element.get(key)))
    torso = config.torso and replace(
        config.torso, lower=name(config.torso.lower), upper=name(config.torso.upper))
    return replace(
        config, base_link=name(config.base_link), feet=named(config.feet, 'sole', 'ankle'),
        hands=named(config.hands, 'frame'), imus=named(config.imus, 'frame'), torso=torso,
        wrench_sensors=named(config.wrench_sensors, 'frame', 'link'),
    ), ElementTree.tostring(robot, encoding='unicode')
