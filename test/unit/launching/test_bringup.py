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
"""What launch files start, and with what."""

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.identification.estimation.estimates import FEW_POSES
import pytest
from support.planned import each_of_nodes, plan, planned, SHARE


def test_bringup_starts_what_commands_motors_only_as_configured():
    def autostart(**arguments):
        return planned('bringup', **arguments)['gravity_compensation'].parameters['autostart']

    assert autostart() is False
    assert autostart(gravity='active') is True
    assert list(planned('bringup', gravity='none', torso='false')) == ['suite']
    programs = planned('bringup', robot='sabian', controller='mine',
                       commands_topic='mine/commands', tendon_commands='drives/lengths')
    gravity, torso = programs['gravity_compensation'], programs['torso_controller']
    assert gravity.parameters['controller'] == 'mine' and torso.parameters['optional'] is True
    assert gravity.remappings['~/commands'] == 'mine/commands'
    assert torso.remappings['~/tendon_lengths'] == 'drives/lengths'
    assert torso.remappings['~/joint_states'] == 'joint_states'


@pytest.mark.parametrize('file', ['bringup', 'simulation', 'demo', 'torso', 'torso_demo'])
def test_a_larger_torso_gets_stronger_tendons(file):
    for robot, expected in (('biped', 'torso_controller.yaml'), ('sabian', 'torso/sabian.yaml')):
        assert planned(file, robot=robot)['torso_controller'].files == (
            SHARE / 'config' / expected,)


def test_the_demo_takes_as_many_poses_as_its_report_recommends():
    for hidden in ('masses', 'real'):
        parameters = planned('demo', hidden=hidden)['com_calibrator'].parameters
        assert parameters['poses'] >= FEW_POSES


@pytest.mark.parametrize(('file', 'given', 'least'), [
    ('demo', {}, 100.0), ('torso_demo', {}, 100.0), ('simulation', {}, None),
    ('demo', {'rate': '500.0'}, None), ('demo', {'simulator_params': 'my.yaml'}, None),
    ('demo', {'least_rate': '0.0'}, 0.0), ('simulation', {'least_rate': '50.0'}, 50.0)])
def test_demos_give_fewer_readings_on_a_slow_computer_unless_a_rate_is_given(
        tmp_path, monkeypatch, file, given, least):
    (tmp_path / 'my.yaml').write_text('simulator: {ros__parameters: {seed: 3}}')
    monkeypatch.chdir(tmp_path)
    assert planned(file, **given)['simulator'].parameters.get('least_rate') == least


@pytest.mark.parametrize('file', ['torso', 'torso_demo'])
def test_a_joystick_is_read_if_requested(file):
    joystick = planned(file, joy='true', namespace='r1')['joy_node']
    assert joystick.namespace == '/r1'  # where torso_controller subscribes to joy
    assert 'joy_node' not in planned(file)


def test_prefixed_robots_share_the_global_tree_of_frames():
    for file in ('simulation', 'torso', 'demo'):
        alone, shared = (planned(file, namespace='r1', **given)
                         for given in ({}, {'frame_prefix': 'r1/'}))
        for node in shared:
            assert shared[node].parameters['frame_prefix'] == 'r1/', node
            assert '/tf' not in shared[node].remappings
            assert alone[node].remappings['/tf'] == 'tf', node
            assert alone[node].remappings['/tf_static'] == 'tf_static'


def test_the_simulators_virtual_joints_have_one_publisher():
    for virtual_joints, topic in (('', 'torso_controller/joint_states'),
                                  ('true', 'torso_controller/joint_states'),
                                  ('false', 'joint_states')):
        controller = planned('simulation', virtual_joints=virtual_joints)['torso_controller']
        assert controller.remappings['~/joint_states'] == topic


#: Nodes that have no parameter file of the package, or another one.
WITHOUT = {('demo', 'demo'), ('torso_demo', 'torso_teleop'), ('demo', 'com_calibrator'),
           ('two_pose', 'com_calibrator'), *((file, node) for file in (
               'gazebo', 'gazebo_gravity') for node in ('gravity_compensation', 'com_estimator'))}


@each_of_nodes
def test_every_node_gets_its_own_parameter_file(file):
    for node, program in planned(file).items():
        given = list(dict.fromkeys(
            path.stem for path in program.files if path.parent == SHARE / 'config'))
        if node == 'suite':
            assert given == ['wrench_aggregator', 'com_estimator', 'zmp_monitor']
        elif program.package == 'biped_com_ros' and (file, node) not in WITHOUT:
            assert given == [node], f'{node} gets {given}'
        else:
            assert not given, f'{node} gets {given}'


@pytest.mark.parametrize(('file', 'given', 'message'), [
    ('bringup', {'robto': 'x'}, "unknown argument 'robto' in bringup.launch.py; did you mean"),
    ('bringup', {'robot': 'bipedd'}, "unknown robot 'bipedd'; did you mean 'biped'"),
    ('demo', {'chapters': 'measure,pusch'}, "unknown chapter 'pusch'"),
    ('bringup', {'respawn': 'some'}, "unknown value of argument 'respawn' 'some'"),
    ('bringup', {'composed': 'yes'}, "'composed' 'yes'.*valid: false, true"),
    ('bringup', {'namespace': '7'}, "namespace '7' is not valid"),
    ('bringup', {'com_estimator_params': '/none/a.yaml'}, "parameter file '/none/a.yaml' cannot"),
    ('simulation', {'rate': 'fast'}, "argument 'rate': 'fast' is not a number"),
    ('simulation', {'seed': '1.5'}, "argument 'seed': '1.5' is not a whole number"),
    *((file, {name: '7up'}, f"argument '{name}' is '7up', which is not a valid topic name")
      for file, name in (
          ('gravity_compensation', 'commands_topic'), ('bringup', 'trajectory_topic'),
          ('bringup', 'tendon_commands'), ('torso', 'commands'), ('lowstate', 'low_state_topic'),
          ('calibration', 'hoist_service'))),
    ('gazebo', {'hidden': 'real'}, "'hidden' 'real'.*valid: masses, none")])
def test_what_is_wrong_is_named(file, given, message):
    with pytest.raises((ConfigurationError, UnknownNameError), match=message):
        plan(file, **given)
