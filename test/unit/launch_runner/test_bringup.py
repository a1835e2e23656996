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
"""Which nodes the launch files of the package start, and with which parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.planned import given_parameters, install_gazebo, planned, SHARE

FILES = sorted(file.name for file in (SHARE / 'launch').glob('*.xml')
               if not file.name.startswith(('gazebo', 'view.')))


def test_bringup_starts_what_commands_motors_only_as_configured(tmp_path: Path) -> None:
    def autostart(**arguments: str) -> str:
        commands = planned(tmp_path, 'bringup.launch.xml', **arguments)
        return given_parameters(commands['gravity_compensation'])['launch.autostart']

    assert autostart() == 'false'
    assert autostart(gravity='active') == 'true'
    commands = planned(tmp_path, 'bringup.launch.xml', gravity='none', torso='false')
    assert list(commands) == ['suite']
    commands = planned(tmp_path, 'bringup.launch.xml', robot='sabian', controller='mine',
                       commands_topic='mine/commands', tendon_commands='drives/lengths')
    gravity, torso = commands['gravity_compensation'], commands['torso_controller']
    assert given_parameters(gravity)['launch.controller'] == 'mine'
    assert given_parameters(torso)['launch.optional'] == 'true'
    assert '~/commands:=mine/commands' in gravity
    assert '~/tendon_lengths:=drives/lengths' in torso and '~/joint_states:=joint_states' in torso


@pytest.mark.parametrize('file', ['bringup', 'simulation', 'demo', 'torso', 'torso_demo'])
def test_a_larger_torso_gets_stronger_tendons(tmp_path: Path, file: str) -> None:
    for robot, expected in (('biped', 'torso_controller.yaml'), ('sabian', 'torso/sabian.yaml')):
        command = planned(tmp_path, f'{file}.launch.xml', robot=robot)['torso_controller']
        assert str(SHARE / 'config' / expected) in command


@pytest.mark.parametrize('file', ['torso', 'torso_demo'])
def test_a_joystick_is_read_if_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                         file: str) -> None:
    directory = install_gazebo(tmp_path, monkeypatch)
    commands = planned(directory, f'{file}.launch.xml', joy='true', namespace='r1')
    assert '__ns:=/r1' in commands['joy_node']  # where torso_controller subscribes to joy
    assert 'joy_node' not in planned(directory, f'{file}.launch.xml')


def test_prefixed_robots_share_the_global_tree_of_frames(tmp_path: Path) -> None:
    for file in ('simulation.launch.xml', 'torso.launch.xml', 'demo.launch.xml'):
        alone = planned(tmp_path, file, namespace='r1')
        shared = planned(tmp_path, file, namespace='r1', frame_prefix='r1/')
        for node in shared:
            values = given_parameters(shared[node])
            prefixes = {values.get('launch.frame_prefix'), values.get('frame_prefix')} - {None}
            assert prefixes == {'r1/'}, node
        for node in alone:
            if '/tf:=tf' in alone[node]:
                assert '/tf:=/tf' in shared[node] and '/tf_static:=/tf_static' in shared[node]
        assert any('/tf:=tf' in command for command in alone.values())


def test_the_simulators_virtual_joints_have_one_publisher(tmp_path: Path) -> None:
    for virtual_joints, topic in (('', 'torso_controller/joint_states'),
                                  ('true', 'torso_controller/joint_states'),
                                  ('false', 'joint_states')):
        commands = planned(tmp_path, 'simulation.launch.xml', virtual_joints=virtual_joints)
        assert f'~/joint_states:={topic}' in commands['torso_controller']


@pytest.mark.parametrize('file', FILES)
def test_every_node_gets_its_own_parameter_file(tmp_path: Path, file: str) -> None:
    # Arguments of an included file, such as its 'params', would else be set for the next one.
    for node, command in planned(tmp_path, file).items():
        given = list(dict.fromkeys(Path(word).stem for word in command if word.endswith('.yaml')
                                   and Path(word).parent == SHARE / 'config'))
        if node == 'suite':
            assert given == ['wrench_aggregator', 'com_estimator', 'zmp_monitor']
        elif node in ('demo', 'torso_teleop'):
            assert not given
        else:
            assert given in ([node], []), f'{node} gets {given}'
