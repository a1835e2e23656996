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

"""Captures out of recordings: CSV, rosbag2 and LowState of Unitree; the command line."""

import csv
from dataclasses import dataclass, replace
from itertools import islice
import json
import math
from pathlib import Path
import random
import re

from biped_com_ros.core.errors import BipedComError, ConfigurationError, InputError
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.identification.captures.recordings import (
    AXES, CaptureFinder, read_recording, STILL)
from biped_com_ros.core.identification.captures.stillness import StillnessOptions
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.corrections import InstrumentCorrections, SensorCorrection
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.offline.calibrate import main
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.low_states import LowStates
from support.statics_data import TrueRobot
import yaml

RATE, PAUSE = 50.0, 0.8
OPTIONS = StillnessOptions(duration=0.5)


@dataclass(frozen=True)
class Instant:
    """Everything measured at a time."""

    time: float
    q: np.ndarray
    torques: np.ndarray
    wrenches: np.ndarray
    quaternion: np.ndarray


@pytest.fixture(scope='module')
def recorded():
    """Return a robot, its poses, and instants: still in each for a while, moving between."""
    true = TrueRobot('sabian', seed=2)
    poses = true.captures(9)
    instants = []
    for pose, after in zip(poses, [*poses[1:], poses[0]]):
        for share in (*[0.0] * int(RATE * PAUSE), *np.arange(8) / 8.0):
            x, y, z = pose.up + share * (after.up - pose.up)
            q = pose.positions + share * (after.positions - pose.positions)
            quaternion = np.array((y, -x, 0.0, np.linalg.norm((x, y, z)) + z))
            instants.append(Instant(len(instants) / RATE, q, pose.torques, pose.wrenches,
                                    quaternion / np.linalg.norm(quaternion)))
    return true, poses, instants


def write_csv(path, true, instants, leave_out=()):
    names, rows = true.model.joint_names, []
    for now in instants:
        row = {'time': now.time, **{f'position/{n}': v for n, v in zip(names, now.q)},
               **{f'effort/{n}': v for n, v in zip(names, now.torques)},
               **{f'imu/q{k}': v for k, v in zip('xyzw', now.quaternion)}}
        for sensor, wrench in zip(true.model.config.wrench_sensors, now.wrenches):
            row.update({f'{sensor}/{axis}': v for axis, v in zip(AXES, wrench)})
        rows.append({k: v for k, v in row.items() if k not in leave_out})
    with path.open('w', newline='') as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_bag(path, true, instants, storage, leave_out=()):
    """Write what the topics of the robot would carry."""
    rosbag2 = pytest.importorskip('rosbags.rosbag2')
    from rosbags.typesys import get_typestore, Stores
    store, connections = get_typestore(Stores.ROS2_JAZZY), {}
    with rosbag2.Writer(path, version=9,
                        storage_plugin=rosbag2.StoragePlugin[storage]) as writer:
        for now in instants:
            ns = int(now.time * 1e9) + 10**9
            for topic, message in messages_at(store.types, ns, true, now):
                kind = message.__msgtype__
                if topic not in (*connections, *leave_out):
                    connections[topic] = writer.add_connection(topic, kind, typestore=store)
                if topic in connections:
                    writer.write(connections[topic], ns, store.serialize_cdr(message, kind))
    return path


def messages_at(types, ns, true, now):
    """Yield topics and their messages at an instant."""
    config, vector = true.model.config, types['geometry_msgs/msg/Vector3']
    header = types['std_msgs/msg/Header'](
        types['builtin_interfaces/msg/Time'](ns // 10**9, ns % 10**9), 'frame')
    yield '/joint_states', types['sensor_msgs/msg/JointState'](
        header, list(true.model.joint_names), now.q, np.zeros_like(now.q), now.torques)
    yield f'/{config.imu.topic}', types['sensor_msgs/msg/Imu'](
        header, types['geometry_msgs/msg/Quaternion'](*now.quaternion.tolist()),
        np.zeros(9), vector(0.0, 0.0, 0.0), np.zeros(9), vector(0.0, 0.0, 9.81), np.zeros(9))
    for sensor, wrench in zip(config.wrench_sensors.values(), now.wrenches.tolist()):
        yield f'/{sensor.topic}', types['geometry_msgs/msg/WrenchStamped'](
            header, types['geometry_msgs/msg/Wrench'](vector(*wrench[:3]), vector(*wrench[3:])))


def captures_of(path, model):
    finder = CaptureFinder(model, OPTIONS)
    for share in read_recording(path, finder):
        assert 0.0 <= share <= 1.0
    return finder.require_captures()


def assert_same(found, poses, atol=1e-9):
    """Compare captures; `atol` is that of wrenches and torques."""
    for one, other in zip(found, poses, strict=True):
        np.testing.assert_allclose(one.positions, other.positions, atol=1e-9)
        np.testing.assert_allclose(one.wrenches, other.wrenches, atol=atol)
        np.testing.assert_allclose(one.torques, other.torques, atol=atol)
        np.testing.assert_allclose(one.up, other.up, atol=1e-9)
        np.testing.assert_array_equal(one.in_contact, other.in_contact)


@pytest.mark.parametrize('kind', ('csv', 'SQLITE3', 'MCAP'))
def test_every_pose_is_found(recorded, tmp_path, kind):
    true, poses, instants = recorded
    if kind == 'csv':  # one wrong position is left out
        spike = replace(instants[3], q=instants[3].q + 100.0)
        path = write_csv(tmp_path / 'a.csv', true, [*instants[:3], spike, *instants[4:]])
    else:  # as are joint states without positions
        instants = [*instants, replace(instants[-1], q=np.zeros(0))]
        path = write_bag(tmp_path / 'bag', true, instants, kind)
    assert_same(captures_of(path, true.model), poses)


@pytest.mark.parametrize(('offset', 'count'), [(0.06, 2), (0.01, 1)])
def test_a_pose_is_captured_again_only_after_the_robot_was_away(
        recorded, tmp_path, offset, count):
    """Rest, move an elbow by an offset and back, and rest again in the same posture."""
    true, poses, instants = recorded
    joint = true.model.joint_names.index('l_elbow')
    rest, unit = [0.0] * int(RATE * PAUSE), np.eye(len(instants[0].q))[joint]
    path = [*rest, *offset * np.arange(21) / 20.0, *offset * np.arange(20, -1, -1) / 20.0, *rest]
    found = captures_of(write_csv(tmp_path / 'a.csv', true, [
        replace(instants[0], time=i / RATE, q=instants[0].q + x * unit)
        for i, x in enumerate(path)]), true.model)
    assert len(found) == count
    np.testing.assert_allclose(found[-1].positions, poses[0].positions, atol=1e-9)
    assert count == 1 or found[1].approach[joint] == -1.0


def test_the_command_line(recorded, tmp_path, capsys):
    true, poses, instants = recorded
    path, out = write_csv(tmp_path / 'a.csv', true, instants), tmp_path / 'out'
    assert main([str(path), '--robot', 'sabian', '--out', str(out), '--still', '0.5']) == 0
    printed = capsys.readouterr().out
    assert 'sabian: ' in printed and 'report.html' in printed
    calibrated = RobotModel(true.model.config, (out / 'calibrated.urdf').read_text())
    assert calibrated.mass == pytest.approx(true.static.mass, abs=0.2)
    assert len(CaptureLog(out / 'captures.json', true.model).captures) == len(poses)
    assert json.loads((out / 'calibration.json').read_text())['robot'] == 'sabian'
    inertials = yaml.safe_load((out / 'inertials.yaml').read_text())['links']
    assert list(inertials) == list(calibrated.link_names)
    for name, mass, com in zip(
            calibrated.link_names, calibrated.link_masses, calibrated.link_coms_in_link):
        assert inertials[name]['mass'] == pytest.approx(mass) and inertials[name]['mass_sd'] > 0.0
        assert inertials[name]['com'] == pytest.approx(com, abs=1e-8)
        assert min(inertials[name]['com_sd']) > 0.0
    robot = RobotModel.load(str(out / 'sabian.yaml'))  # finds the URDF beside it
    assert robot.mass == calibrated.mass and str(out / 'sabian.yaml') in printed
    assert np.abs(robot.joint_offsets).max() > 0.0


@pytest.mark.thorough
def test_errors_in_newtons_are_scaled_by_mass_as_those_of_the_node(recorded, tmp_path):
    """Forces, moments and torques, with their biases and drifts, and no others."""
    true, _, instants = recorded
    path, default = write_csv(tmp_path / 'a.csv', true, instants), SensorNoise()
    halves = {'force-noise': 0.25, 'moment-noise': 0.01, 'torque-noise': 0.15, 'still-force': 3.0,
              **{f'{kind}-{error}': 0.5 * getattr(default, f'{kind}_{error}')
                 for kind, error in (('force', 'bias'), ('moment', 'bias'), ('torque', 'bias'),
                                     ('force', 'drift'), ('moment', 'drift'))}}
    by_hand = [f'--{name}={value!r}' for name, value in halves.items()]
    found = []
    for options in ([], by_hand, [f'--noise-at-mass={2.0 * true.model.mass!r}']):
        assert main([str(path), '--robot', 'sabian', '--out', str(tmp_path), '--still', '0.5',
                     *options]) == 0
        found.append(RobotModel(true.model.config, (
            tmp_path / 'calibrated.urdf').read_text()).link_coms_in_link)
        (tmp_path / 'captures.json').unlink()
    plain, by_hand, scaled = found
    np.testing.assert_allclose(scaled, by_hand, atol=1e-9)
    assert np.abs(scaled - plain).max() > 1e-6, 'the noise makes no difference'


def test_the_help_names_the_columns(capsys):
    with pytest.raises(SystemExit):
        main(['--help'])
    text = capsys.readouterr().out
    assert 'position/<joint>' in text and 'imu/qx qy qz qw' in text and '--still-force' in text


@pytest.mark.parametrize('arguments, message', (
    (['nothing.csv', '--robot', 'sabian'], 'there is no recording'),
    (['.', '--robot', 'sabian'], "directory '.' is no rosbag2"),
    (['nothing.csv', '--robot', 'sabiam'], "did you mean 'sabian'"),
    (['.', '--robot', 'sabian', '--current', 'l_knee'], 'must be JOINT=K'),
    (['.', '--robot', 'sabian', '--still', '0'], "'duration' is 0.0; it must be 0.1 to 30 s"),
    (['.', '--robot', 'sabian', '--urdf', 'light.urdf'], 'export the URDF with its inertials')))
def test_mistakes_are_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path('light.urdf').write_text(re.sub(
        '(?s)<inertial>.*?</inertial>', '', RobotModel.load('sabian').urdf))
    assert main(arguments) == 1
    printed = ' '.join(capsys.readouterr().err.split())
    assert message in printed and 'Traceback' not in printed


@pytest.mark.parametrize('share', [0.98, 0.5, 0.01])
def test_a_recording_without_its_end_names_the_tool_that_recovers_it(recorded, tmp_path, share):
    true, _, instants = recorded
    bag = write_bag(tmp_path / 'bag', true, instants[:3], 'MCAP')
    file, = bag.glob('*.mcap')
    whole = file.read_bytes()
    file.write_bytes(whole[:int(share * len(whole))])
    for path in (bag, file):
        with pytest.raises(ConfigurationError, match=f"mcap recover '{file}' -o .*_recovered.mca"):
            captures_of(path, true.model)
    (bag / 'metadata.yaml').unlink()
    with pytest.raises(ConfigurationError, match=f"ros2 bag reindex '{bag}', or give '{file}'"):
        captures_of(bag, true.model)
    file.write_bytes(b'nonsense')
    with pytest.raises(ConfigurationError) as other:
        captures_of(file, true.model)
    assert 'recover' not in str(other.value)


def test_what_is_missing_is_named(recorded, tmp_path):
    true, _, instants = recorded
    path = write_csv(tmp_path / 'a.csv', true, instants[:3], ('imu/qx', 'left_foot/fz'))
    with pytest.raises(InputError, match=r'not have the columns left_foot/fz, imu/qx; it has '):
        captures_of(path, true.model)
    bag = write_bag(tmp_path / 'bag', true, instants[:3], 'SQLITE3', ('/imu',))
    with pytest.raises(InputError, match='does not have the topics /imu; it has /joint_states'):
        captures_of(bag, true.model)
    (tmp_path / 'no.mcap').write_bytes(b'nonsense')
    with pytest.raises(ConfigurationError, match='cannot be read'):
        captures_of(tmp_path / 'no.mcap', true.model)
    broken = write_csv(tmp_path / 'broken.csv', true, instants[:3])
    whole = broken.read_text()
    for column in ('time', f'effort/{true.model.joint_names[0]}'):
        rows = [line.split(',') for line in whole.splitlines()]
        rows[2][rows[0].index(column)] = 'x'
        broken.write_text('\n'.join(map(','.join, rows)))
        with pytest.raises(InputError, match=r'broken.csv:3: every column must be a number'):
            captures_of(broken, true.model)
    broken.write_bytes(b'\xff\xfe')
    with pytest.raises(ConfigurationError, match='broken.csv. cannot be read'):
        captures_of(broken, true.model)


@pytest.mark.parametrize('rest', [0.4, 1.2])
def test_the_longest_rest_that_there_is_is_captured(recorded, tmp_path, rest):
    """A demo rests 0.4 s in each pose, a robot that an operator moves for longer."""
    true, poses, instants = recorded
    robot, count = true.model, round(RATE * rest)
    path = [replace(instants[0], time=k / RATE, q=instants[0].q + 0.1 * turn)
            for k, turn in enumerate(
                turn for turn in range(4) for turn in [*[turn] * count, *(
                    turn + np.arange(1, 20) / 20.0)])]
    finder = CaptureFinder(robot, durations=STILL)
    for _ in read_recording(write_csv(tmp_path / 'a.csv', true, path), finder):
        pass
    assert len(finder.require_captures()) == 4
    assert finder.duration == (0.3 if rest < 0.5 else 1.0)


def test_a_recording_without_rest_names_the_option_and_the_value_that_would_do(
        recorded, tmp_path):
    true, _, instants = recorded
    path = write_csv(tmp_path / 'a.csv', true, [
        replace(instants[0], time=k / RATE, q=instants[0].q + 0.03 * k / RATE)
        for k in range(round(3.0 * RATE))])
    finder = CaptureFinder(true.model, durations=STILL)
    for _ in read_recording(path, finder):
        pass
    with pytest.raises(InputError, match=(
            r"in its stillest 0\.3 s joint '\w+' moved by 0\.00\d+ rad or m \(at most 0\.004\): "
            r'--still-range 0\.0\d+ would do')) as found:
        finder.require_captures()
    value = float(re.search(r'--still-range (\S+)', str(found.value))[1])
    finder = CaptureFinder(true.model, StillnessOptions(joint_range=value), durations=STILL)
    for _ in read_recording(path, finder):
        pass
    assert finder.require_captures()


def test_a_robot_without_positions(recorded):
    finder = CaptureFinder(recorded[0].model, OPTIONS)
    finder.add_joints(0.0, ('l_knee',), np.zeros(1))
    with pytest.raises(InputError, match='has no positions of'):
        finder.require_captures()


ON_ITS_BACK = np.array((math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)))


@pytest.mark.parametrize(('count', 'change', 'problem'), [
    (10, lambda now: now, 'never still in the recording: only|watching'),
    (60, lambda now: replace(now, q=np.degrees(now.q)),
     r"no positions of .* that can be used: joint '\w+' is beyond .*unit of positions"),
    (60, lambda now: replace(now, wrenches=-now.wrenches),
     r'on foot .* is negative, -.*: negate wrench_sensors\.\w+\.scale'),
    (60, lambda now: replace(now, wrenches=-now.wrenches, quaternion=ON_ITS_BACK),
     '^(?!.*sign).*the base is tilted by 90 deg: stand the robot up(?!.*sign)')])
def test_why_there_is_no_capture(recorded, tmp_path, count, change, problem):
    true, _, instants = recorded
    path = write_csv(tmp_path / 'a.csv', true, [change(now) for now in instants[:count]])
    with pytest.raises(InputError, match=problem):
        captures_of(path, true.model)


def test_known_errors_of_instruments_are_taken_out(recorded, tmp_path):
    """A recording with faulty instruments, and a YAML that knows them, give the true captures."""
    true, poses, instants = recorded
    rng, model = np.random.default_rng(1), true.model
    offsets = 0.02 * rng.normal(size=len(model.joint_names))
    tilt, matrix = (0.02, -0.01, 0.03), np.eye(6) + 0.02 * rng.normal(size=(6, 6))
    bias = rng.normal(size=6)
    gains, torque_offsets = 0.05 * rng.normal(size=len(offsets)), rng.normal(size=len(offsets))
    turned = Rotation.from_rotvec(tilt).inv()
    faulty = [replace(
        now, q=now.q + offsets, torques=now.torques * (1.0 + gains) + torque_offsets,
        wrenches=now.wrenches @ matrix.T + bias,
        quaternion=(Rotation.from_quat(now.quaternion) * turned).as_quat()) for now in instants]
    path = write_csv(tmp_path / 'a.csv', true, faulty)
    known = SensorCorrection(np.linalg.inv(matrix).tolist(), bias.tolist())
    by_joint = [dict(zip(model.joint_names, v.tolist())) for v in (offsets, gains, torque_offsets)]
    corrected = RobotModel(replace(model.config, instruments=InstrumentCorrections(
        joint_offsets=by_joint[0], torque_gains=by_joint[1], torque_offsets=by_joint[2],
        wrench_sensors=dict.fromkeys(model.config.wrench_sensors, known),
        tilts={model.config.imu.frame: tilt})), model.urdf)
    assert_same(captures_of(path, corrected), poses, 1e-6)
    # Captures with and without the corrections are not mixed.
    log = CaptureLog(tmp_path / 'captures.json', model)
    log.append(poses[0])
    with pytest.raises(ConfigurationError, match='of another robot or version: instruments is'):
        CaptureLog(log.path, corrected)


@pytest.mark.parametrize('storage', [
    'MCAP', pytest.param('SQLITE3', marks=pytest.mark.thorough)])
def test_a_damaged_bag_is_read_or_refused(storage, recorded, tmp_path):
    """Whatever bytes are wrong, cut off or huge: an error of the package, or captures."""
    true, _, instants = recorded
    bag = write_bag(tmp_path / 'bag', true, instants[:30], storage)
    intact = {file: file.read_bytes() for file in bag.iterdir()}
    rng, refused = random.Random(7), 0
    for _ in range(60):
        for file, content in intact.items():
            file.write_bytes(content)
        file = rng.choice(sorted(intact))
        file.write_bytes(damaged(bytearray(intact[file]), rng))
        try:
            captures_of(bag, true.model)
        except BipedComError as error:
            refused += 1
            assert str(error)
    assert refused > 20


def damaged(content, rng):
    at = rng.randrange(len(content) - 8)
    match rng.randrange(4):
        case 0:
            return content[:at]
        case 1:
            for _ in range(20):
                content[rng.randrange(len(content))] = rng.randrange(256)
        case 2:
            content[at:at + 4] = 4 * b'\xff'
        case 3:
            content[at:at + 8] = (2 ** 31 - 1).to_bytes(8, 'little')
    return content


def test_metadata_that_stand_for_gigabytes_are_refused(recorded, tmp_path):
    true, _, instants = recorded
    bag = write_bag(tmp_path / 'bag', true, instants[:3], 'MCAP')
    lines = ['a0: &a0 x'] + [
        f'a{i}: &a{i} [{", ".join(9 * [f"*a{i - 1}"])}]' for i in range(1, 30)]
    (bag / 'metadata.yaml').write_text('\n'.join(lines))
    with pytest.raises(ConfigurationError, match='stands for more than'):
        captures_of(bag, true.model)


RATE, PAUSE, POSES = 50, 0.8, 15
MOTORS = load_robot_config('g1_as_sold').low_state.motors


@pytest.fixture(scope='module')
def true():
    """Return a G1 with 5 kg that its URDF does not have, and poses of it."""
    robot = TrueRobot('g1', seed=0)
    return robot, robot.captures(POSES)


def messages(states, true):
    """Yield (ns, message): the robot is still in each pose."""
    robot, poses = true
    names = robot.model.joint_names
    for i in range(int(POSES * PAUSE * RATE)):
        pose = poses[int(i / (PAUSE * RATE))]
        message = states.message()
        message.tick = 20 * i
        for motor, name in zip(message.motor_state, MOTORS):
            k = names.index(name)
            motor.q, motor.tau_est = float(pose.positions[k]), float(pose.torques[k])
        x, y, z = up = pose.up / np.linalg.norm(pose.up)
        quaternion = np.array((1.0 + z, y, -x, 0.0))
        message.imu_state.quaternion[:] = quaternion / np.linalg.norm(quaternion)
        message.imu_state.accelerometer[:] = 9.81 * up
        yield 10**9 + 20_000_000 * i, message


def calibrate(bag, out):
    return main([str(bag), '--robot=g1_as_sold', f'--out={out}', '--still=0.5',
                 '--torque-bias=0', '--torque-gain=0', '--friction=0', '--encoder-offset=0'])


@pytest.mark.parametrize(('topic', 'storage'), [
    ('/lowstate', 'MCAP'),
    pytest.param('/robot/lowstate', 'SQLITE3', marks=pytest.mark.thorough)])
def test_masses_are_found_and_damaged_messages_left_out(true, tmp_path, topic, storage):
    states = LowStates('unitree_hg')

    def damaged():
        for i, (ns, message) in enumerate(messages(states, true)):
            if i % 10 == 5:
                message.mode_pr = 1
                message.motor_state[3].q = 1e9
            yield ns, message

    bag = states.write_bag(tmp_path / 'bag', topic, damaged(), storage)
    assert calibrate(bag, tmp_path / 'out') == 0
    captures = json.loads((tmp_path / 'out/captures.json').read_text())['captures']
    assert len(captures) == POSES
    assert [c['in_contact'] for c in captures] == [c.in_contact.tolist() for c in true[1]]
    found = json.loads((tmp_path / 'out/calibration.json').read_text())['mass']
    mass = true[0].theta[:, 0].sum()
    assert abs(RobotModel.load('g1_as_sold').mass - mass) > 4.0
    assert found == pytest.approx(mass, abs=0.5)


def test_a_recording_of_nothing_that_can_be_used_is_an_error(true, tmp_path, capsys):
    states = LowStates('unitree_hg')

    def parallel():
        for ns, message in islice(messages(states, true), 100):
            message.mode_pr = 1
            yield ns, message

    bag = states.write_bag(tmp_path / 'bag', '/lowstate', parallel())
    assert calibrate(bag, tmp_path / 'out') == 1
    assert 'motors A and B' in capsys.readouterr().err
