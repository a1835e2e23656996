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
"""The check of a robot's file: what is wrong is found, and its remedy makes the robot ready."""

from dataclasses import replace
import math
import re
from xml.etree import ElementTree

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.polygon import area, convex_hull, distances_inside, half_planes
from biped_com_ros.core.model.config import load_robot_config, robot_file
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.sole_geometry import sole_height
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.offline.check import main
from biped_com_ros.offline.robot_check import (
    check_robot, first_remedy, moved_origin, simplified, verdict)
import numpy as np
import pytest
from support.same_names import links_named_like_joints
import yaml

CONFIG = load_robot_config('biped')
URDF = load_urdf(CONFIG)


def checked(**changes):
    """Check the demo robot with another configuration; return the entries and the remedy."""
    entries = check_robot(RobotModel(replace(CONFIG, **changes), URDF))
    return entries, first_remedy(entries)


def with_left(**changes):
    return {**CONFIG.feet, 'left': replace(CONFIG.feet['left'], **changes)}


def texts(entries, name):
    return ' '.join(f'{e.text} {e.remedy}' for e in entries if e.name == name)


def test_virtual_hands_are_listed_with_what_they_lack():
    hands = {**CONFIG.hands, 'left': replace(CONFIG.hands['left'], source='virtual')}
    entries, remedy = checked(hands=hands)
    assert 'virtual: its force by the torques of the arm' in texts(entries, 'hand left')
    assert remedy == '' and not texts(entries, 'hand right')
    entries, _ = checked(hands=hands, imus={})
    assert 'no IMU' in texts(entries, 'hand left')
    assert 'give hands.left.wrench_sensors' in texts(entries, 'hand left')
    for changes, reason in (({'hands': {}}, 'has no hands'), ({'imus': {}}, 'no IMU')):
        text = texts(checked(**changes)[0], 'node payload_estimator')
        assert text.startswith('does not run: ') and reason in text


def test_the_demo_robot_is_ready_and_every_node_that_depends_on_the_robot_is_listed():
    entries, remedy = checked()
    assert remedy == ''
    assert '3.60 kg' in texts(entries, 'robot') and '27 joints (21 driven)' in texts(
        entries, 'robot')
    found = {entry.name.removeprefix('node '): entry.text for entry in entries
             if entry.name.startswith('node ')}
    assert {text for node, text in found.items() if node != 'gait_player'} == {'runs'}
    assert found['gait_player'].startswith('runs; a slow step takes 55 % of the effort limit of ')
    nodes = {path.parent.name for path in (package_share() / 'biped_com_ros' / 'nodes').glob(
        '*/node.py')}
    assert found.keys() == nodes - {'demo', 'lowstate_bridge', 'robot_description', 'simulator',
                                    'suite', 'torso_teleop', 'viewer'}  # for any robot


def test_links_and_joints_may_have_the_same_names():
    """What of a robot does not contain a name of a link is the same."""
    model = RobotModel(*links_named_like_joints(CONFIG, URDF))
    assert set(model.joint_names) & set(model.link_names)
    about_frames = ('sensor', 'imu')
    ours, same = ([entry for entry in check_robot(m) if not entry.name.startswith(about_frames)]
                  for m in (RobotModel(CONFIG, URDF), model))
    assert same == ours


@pytest.mark.parametrize('probe', [
    'sole_polygon', 'StanceIk', 'GravityModel', 'Soles.of', 'missing_inertials', 'effort_limits',
    'with_virtual_sensors'])
def test_what_nobody_foresaw_costs_one_result_only(probe, monkeypatch, tmp_path, capsys):
    def fail(*_):
        raise ValueError('no such matrix')
    usual = {entry.name for entry in checked()[0]}
    monkeypatch.setattr(f'biped_com_ros.offline.robot_check.{probe}', fail)
    entries, remedy = checked()
    assert 'ValueError: no such matrix' in remedy and 'report it' in remedy
    assert len(usual - {entry.name for entry in entries}) <= 2
    assert main(['biped', '--picture', str(tmp_path / 'a.svg')]) == 1
    assert 'no such matrix' in capsys.readouterr().out.splitlines()[-1]


def test_a_polygon_beyond_the_foot_is_found_and_the_suggestion_is_right():
    """One that is small is a hint only."""
    small, large = (tuple((k * x, k * y) for x, y in CONFIG.feet['left'].polygon)
                    for k in (0.5, 1.3))
    _, remedy = checked(feet=with_left(polygon=large))
    assert remedy.startswith('foot left: the polygon is ')
    corners = yaml.safe_load(remedy[remedy.index('[['):])
    assert checked(feet=with_left(polygon=tuple(map(tuple, corners))))[1] == ''
    entries, remedy = checked(feet=with_left(polygon=small))
    assert remedy == '' and 'are not used' in texts(entries, 'foot left')


@pytest.mark.parametrize('error', (0.02, -0.02))
def test_a_sole_frame_off_the_ground_is_found_with_its_sign(error):
    right = replace(CONFIG.feet['right'], sole_origin=(0.0, 0.0, error))
    feet = {**with_left(sole_origin=(0.0, 0.0, error)), 'right': right}
    model = RobotModel(replace(CONFIG, feet=feet), URDF)
    assert sole_height(model, 'left') == pytest.approx(-error, abs=1e-6)
    _, remedy = checked(feet=feet)
    assert 'feet.left.sole_origin to [0, 0, ' in remedy
    z = float(remedy.split('[0, 0, ')[1].split(']')[0])
    assert z == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize('robot', ['g1', 'biped'])
def test_a_sole_above_its_foot_is_found_without_collision_geometry(robot, monkeypatch):
    """The sign of sole_origin is wrong: it simulates well, on soles that are too high."""
    def unreadable(model, foot):
        raise ConfigurationError('no STL')
    monkeypatch.setattr('biped_com_ros.offline.robot_check.sole_polygon', unreadable)
    config = load_robot_config(robot)
    urdf = load_urdf(config)
    assert first_remedy(check_robot(RobotModel(config, urdf))) == ''
    up = 0.04 if robot == 'biped' else 0.0  # its sole frame is a link of the URDF
    feet = {name: replace(foot, sole_origin=(*foot.sole_origin[:2], up - foot.sole_origin[2]))
            for name, foot in config.feet.items()}
    remedy = first_remedy(check_robot(RobotModel(replace(config, feet=feet), urdf)))
    assert remedy.startswith('foot ') and 'sole_origin' in remedy


def test_feet_that_are_not_level_or_do_not_carry_it_are_named():
    stand = {**CONFIG.postures['stand']}
    stand[next(name for name in stand if 'ankle' in name and name.startswith('l_'))] += 0.1
    _, remedy = checked(postures={**CONFIG.postures, 'stand': stand})
    assert remedy.startswith('soles: foot left is inclined')
    tiptoe = {**CONFIG.postures['stand']}
    for name in (name for name in tiptoe if name.endswith('ankle_pitch')):
        tiptoe[name] += 0.1
    _, remedy = checked(postures={**CONFIG.postures, 'stand': tiptoe})
    assert remedy.startswith('soles: feet left and right are inclined')
    assert 'or feet.left.sole_rpy, feet.right.sole_rpy; level and balanced: {' in remedy
    # Its soles 0.4 m behind what carries it.
    entries, _ = checked(feet={
        name: replace(foot, polygon=tuple((x - 0.4, y) for x, y in foot.polygon))
        for name, foot in CONFIG.feet.items()})
    balance = next(entry for entry in entries if entry.name == 'balance')
    assert 'outside' in balance.text and 'would fall' in balance.remedy


def test_steps_that_take_longer_are_named():
    assert not texts(checked()[0], 'walking')
    slow = replace(CONFIG.walking, time_scale=1.5)
    entries, _ = checked(walking=slow)
    assert texts(entries, 'walking').startswith('steps take 1.5 times the usual')


def test_a_step_is_planned_as_it_is_taken():
    """With the times of the robot, from its posture."""
    robot = ElementTree.fromstring(URDF)
    for limit in robot.iter('limit'):
        limit.set('velocity', '0.4')
    urdf = ElementTree.tostring(robot, encoding='unicode')
    for factor, steps in ((1.0, False), (4.0, True)):
        walking = replace(CONFIG.walking, time_scale=factor)
        found = texts(check_robot(RobotModel(replace(CONFIG, walking=walking), urdf)),
                      'node gait_player')
        assert ('cannot step: this gait needs' in found) != steps
    postures = {name: its for name, its in CONFIG.postures.items() if name != 'stand'}
    assert "does not run: unknown posture 'stand'" in texts(
        checked(postures=postures)[0], 'node gait_player')


@pytest.mark.parametrize('robot', ['biped', 'g1', 'talos'])
@pytest.mark.parametrize('change', [('ankle', 0.2), ('knee', 0.3), ('hip', 0.3)])
def test_the_joints_that_level_the_soles_and_balance_the_robot_do_so(robot, change):
    config = load_robot_config(robot)
    urdf, stand = load_urdf(config), config.postures['stand']
    part, turn = change
    names = {'ankle': ('ankle_pitch', '5_joint'), 'knee': ('knee', '4_joint'),
             'hip': ('hip_pitch', '3_joint')}[part]
    for name in stand:
        if any(its in name for its in names) and 'arm' not in name:
            stand = {**stand, name: stand[name] + turn}

    def checked_with(posture):
        return first_remedy(check_robot(RobotModel(
            replace(config, postures={**config.postures, 'stand': posture}), urdf)))
    found = re.search(r'level and balanced: (\{.*\})', checked_with(stand))
    assert checked_with({**stand, **yaml.safe_load(found[1])}) == ''


@pytest.mark.parametrize('roll, effort, text', [
    (1.0, 8.0, 'runs'),
    (1.0, 4.0, r"runs; .* takes \d\d % .* 'l_hip_roll': .* effort_clamp .* 0.5"),
    (1.0, 1.0, r"runs; a slow step takes \d\d\d % .* 'l_hip_roll': it sags"),
    (0.0, 8.0, 'runs; the robot cannot step: .* joints would exceed their limits: l_hip_roll')])
def test_what_a_slow_step_takes_or_lacks_is_named(roll, effort, text):
    robot = ElementTree.fromstring(URDF)
    for side in 'lr':
        limit = robot.find(f"joint[@name='{side}_hip_roll']/limit")
        for end in ('lower', 'upper'):
            limit.set(end, str(roll * float(limit.get(end))))
        limit.set('effort', str(effort))
    entries = check_robot(RobotModel(CONFIG, ElementTree.tostring(robot, encoding='unicode')))
    found = texts(entries, 'node gait_player').strip()
    assert re.match(text, found) if ';' in text else found == text


def test_of_one_foot_alone_the_other_is_missing():
    entries, _ = checked(feet={'left': CONFIG.feet['left']})
    balance = next(entry for entry in entries if entry.name == 'balance')
    assert balance.remedy.startswith('it would fall: one foot is configured: name the other one')


def test_what_is_on_the_other_side_than_its_name_is_found():
    left, right = CONFIG.wrench_sensors.values()
    names = tuple(CONFIG.wrench_sensors)
    for change, entry, words in (
            ({'wrench_sensors': dict(zip(names, (
                replace(left, topic=right.topic), replace(right, topic=left.topic))))},
             f'sensor {names[0]}', right.topic),
            ({'base_rpy': (0.0, 0.0, math.pi)}, 'foot left', 'to the right')):
        found = [each for each in checked(**change)[0] if 'is named' in each.text]
        assert found[0].name == entry and words in found[0].text
        assert found[0].remedy.startswith('exchange the frames or the topics')
    assert not any('is named' in each.text for each in checked()[0])


@pytest.mark.parametrize(('turned', 'entry'), [
    ((1.5708, 0.0, 0.0), 'description'), ((0.0, 3.14159, 0.0), 'description'),
    ((0.0, 0.3, 0.0), 'soles')])
def test_turned_soles_are_the_first_thing_to_correct_and_all_else_is_reported(turned, entry):
    usual = {entry.name for entry in checked()[0]}
    entries, remedy = checked(feet={
        name: replace(foot, sole_rpy=turned) for name, foot in CONFIG.feet.items()})
    assert remedy.startswith(f'{entry}: ')
    assert usual <= {entry.name for entry in entries}


@pytest.mark.parametrize('turned', [(0.0, 0.0, 0.0), (0.0, 0.0, 0.5)])
def test_the_place_of_a_sole_is_corrected_before_the_posture(turned):
    """Without a posture, too; the sole_origin that is named is right."""
    feet = {name: replace(foot, sole_rpy=turned, sole_origin=(0.4, 0.1, 0.0))
            for name, foot in CONFIG.feet.items()}
    for postures in (CONFIG.postures, {}):
        entries, remedy = checked(feet=feet, postures=postures)
        assert 'would fall' in texts(entries, 'balance')
        assert remedy.startswith('foot left: the polygon is ')
        if not any(turned):
            origin = yaml.safe_load(remedy.split('set sole_origin to ')[1].split(', or')[0])
            assert origin == pytest.approx((0.0, 0.0, 0.0), abs=1e-4)


def test_a_sole_origin_is_given_along_the_axes_of_the_link():
    up = np.array((0.0, 0.0, 0.03))
    feet = {name: replace(foot, sole_rpy=(0.0, 0.5 * np.pi, 0.0), sole_origin=(0.03, 0.2, 0.1))
            for name, foot in CONFIG.feet.items()}
    assert moved_origin(feet['left'], up) == '[0.06, 0.2, 0.1]'


def test_what_cannot_be_compared_is_counted_in_the_last_line(capsys):
    bare = re.sub(r'<collision.*?</collision>', '', URDF, flags=re.DOTALL)
    entries = check_robot(RobotModel(CONFIG, bare))
    assert verdict(entries) == 'ready; 2 not compared: foot left, foot right'
    assert verdict(checked()[0]) == 'ready'


def test_unphysical_inertias_are_listed_with_what_they_spoil():
    tall = re.sub(r'izz="[^"]*"', 'izz="0.9"', URDF, count=2)
    entries = check_robot(RobotModel(CONFIG, tall))
    assert first_remedy(entries) == ''
    assert '2 are not physical' in texts(entries, 'inertias')
    assert 'at most the sum' in texts(entries, 'inertias') and 'simulation' in texts(
        entries, 'inertias')
    assert not texts(checked()[0], 'inertias')


def test_inertias_in_another_unit_are_listed():
    changed = re.sub(r'(ixx|iyy|izz)="[^"]*"', r'\1="90000"', URDF, count=3)
    assert 'm wide: check the unit' in texts(check_robot(RobotModel(CONFIG, changed)), 'inertias')


def test_a_robot_without_foot_sensors_is_ready_and_nodes_report_what_they_lack():
    feet = {name: replace(foot, wrench_sensors=()) for name, foot in CONFIG.feet.items()}
    entries, remedy = checked(feet=feet, wrench_sensors={}, hands={}, torso=None)
    assert remedy == ''
    for name in ('wrench_aggregator', 'com_calibrator'):
        assert 'does not run: no foot has wrench_sensors' in texts(entries, f'node {name}')
    assert texts(entries, 'node com_estimator').startswith('runs; without foot forces')
    assert 'does not run: the robot has no tendon' in texts(entries, 'node torso_controller')


def test_joint_torques_that_give_the_forces_of_feet_without_sensors_are_named():
    entries = check_robot(RobotModel.load('g1_as_sold'))
    for foot in ('left', 'right'):
        assert 'joint torques and the URDF give its force' in texts(entries, f'foot {foot}')
    assert 'joint torques' not in texts(check_robot(RobotModel(CONFIG, URDF)), 'foot left')


@pytest.mark.parametrize('frame, link, lacks', [
    ('l_sole', '', True), ('l_sole', 'l_ankle_ft', False), ('left_sole_frame', '', False)])
def test_a_sensor_that_carries_nothing_may_lack_its_link(frame, link, lacks):
    """A frame at the ankle on which nothing hangs looks like a pad under the sole."""
    sensor = replace(CONFIG.wrench_sensors['left_foot'], frame=frame, link=link)
    entries, _ = checked(wrench_sensors={**CONFIG.wrench_sensors, 'left_foot': sensor})
    [entry] = [entry for entry in entries if entry.name == 'sensor left_foot']
    assert ('give wrench_sensors.left_foot.link' in entry.remedy) == lacks
    assert entry.is_hint or not lacks


def test_a_robot_whose_soles_are_not_level_enough_to_walk_does_not():
    """They may be inclined by 1 deg otherwise."""
    stand = {**CONFIG.postures['stand']}
    for side in ('l', 'r'):
        stand[f'{side}_ankle_pitch'] += 0.01
    entries, remedy = checked(postures={**CONFIG.postures, 'stand': stand})
    assert not remedy
    assert 'does not run: biped cannot walk from a posture whose soles are tilted by 0.57 deg' in (
        texts(entries, 'node gait_player'))


def test_placeholders_of_effort_limits_have_units():
    joints = texts(check_robot(RobotModel.load('icub')), 'joints')
    assert 'torso_pitch 50000 N m (gravity needs ' in joints and 'e+' not in joints
    assert 'no velocity limit below 50 rad/s or m/s: torso_pitch' in joints


def test_fewer_corners_are_inside_and_lose_hardly_any_area():
    angles = np.linspace(0.0, 2.0 * np.pi, 90, endpoint=False)
    outline = convex_hull(np.column_stack((0.1 * np.cos(angles), 0.05 * np.sin(angles))).tolist())
    found = simplified(outline)
    assert len(found) < 0.5 * len(outline)
    assert 0.97 * area(outline) < area(found) < area(outline)
    planes = half_planes(outline)
    assert min(min(distances_inside(planes, corner)) for corner in found) > -1e-12


def test_a_rectangle_whose_edges_have_corners_is_suggested_with_four():
    corners = [(-0.08, -0.04), (0.2, -0.04), (0.2, 0.04), (-0.08, 0.04)]
    assert simplified([*corners[:2], (0.2, -0.02), (0.2, 0.02), *corners[2:]]) == corners


def test_the_command_ends_with_ready_or_the_first_thing_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(['biped']) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == 'ready' and str(robot_file('biped')) == lines[0]
    picture = tmp_path / 'biped_check.svg'
    assert str(picture) in '\n'.join(lines)
    drawn = ElementTree.fromstring(picture.read_text())
    bones = [e for e in drawn.iter() if e.tag.endswith('line')]
    assert len(bones) > 40 and 'both soles from above, within' in picture.read_text()

    assert main(['biped', '--picture', 'build/']) == 0
    assert (tmp_path / 'build' / 'biped_check.svg').exists()

    values = yaml.safe_load(robot_file('biped').read_text())
    values['feet']['left']['polygon'] = [[0.2, 0.04], [-0.2, 0.04], [-0.2, -0.04], [0.2, -0.04]]
    mine = tmp_path / 'mine.yaml'
    mine.write_text(yaml.safe_dump(values))
    assert main([str(mine), '--picture', 'none']) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith('first: foot left: the polygon')

    values['feet']['left']['sole'] = 'l_soel'
    mine.write_text(yaml.safe_dump(values))
    assert main([str(mine)]) == 1
    output = capsys.readouterr().out
    assert output.startswith('first: ') and "did you mean 'l_sole'" in output


def readme_table():
    """Return the rows of the README's table of robots: name -> what runs."""
    text = (package_share() / 'README.md').read_text()
    rows = re.findall(r'^\| `(\w+)`[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$',
                      text.split('| Robot |')[1].split('## Nodes')[0], re.MULTILINE)
    return {name: [cell.strip().startswith('yes') for cell in cells] for name, *cells in rows}


@pytest.mark.parametrize(('name', 'stated'), readme_table().items())
def test_the_table_of_robots_in_the_readme_equals_the_check(name, stated):
    config = load_robot_config(name)
    try:
        model = RobotModel(config, load_urdf(config))
    except ConfigurationError as error:
        pytest.skip(str(error))  # the model's package is not installed
    nodes = {entry.name.removeprefix('node '): re.fullmatch('runs(; .* it sags.*)?', entry.text)
             is not None for entry in check_robot(model) if entry.name.startswith('node ')}
    estimators = ('wrench_aggregator', 'com_estimator', 'zmp_monitor', 'com_calibrator',
                  'gravity_compensation')
    assert stated == [all(nodes[node] for node in estimators), nodes['gait_player'],
                      nodes['torso_controller']]


def test_the_readme_has_all_robots_that_are_included():
    included = {path.stem for path in (package_share() / 'config' / 'robots').glob('*.yaml')}
    assert readme_table().keys() == included
