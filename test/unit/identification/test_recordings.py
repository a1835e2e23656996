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
"""Calibration from bags and CSV: the same estimate from each, and errors for bad ones."""

import csv
from dataclasses import replace
import json
import math
import random
import re
from types import SimpleNamespace

from biped_com_ros.core.errors import BipedComError, ConfigurationError, InputError
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.identification.captures.recordings import (
    AXES, CaptureFinder, Event, read_recording)
from biped_com_ros.core.identification.captures.stillness import StillnessOptions
from biped_com_ros.core.model.corrections import InstrumentCorrections, SensorCorrection
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.offline.calibrate import main
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.statics_data import TrueRobot
import yaml

RATE, PAUSE = 50.0, 0.8
OPTIONS = StillnessOptions(duration=0.5)


@pytest.fixture(scope='module')
def recorded():
    """Return a robot, its poses, and instants: still in each for a while, moving between."""
    true = TrueRobot('sabian', seed=2)
    poses = true.captures(9)
    instants = []
    for i, pose in enumerate(poses):
        after = poses[(i + 1) % len(poses)]
        for _ in range(int(RATE * PAUSE)):
            instants.append(instant(len(instants) / RATE, pose, pose, 0.0))
        for k in range(8):
            instants.append(instant(len(instants) / RATE, pose, after, k / 8.0))
    return true, poses, instants


def instant(time, pose, after, share):
    """Everything measured at a time on the way from one pose to another."""
    q = pose.positions + share * (after.positions - pose.positions)
    up = pose.up + share * (after.up - pose.up)
    x, y, z = up / np.linalg.norm(up)
    quaternion = np.array((y, -x, 0.0, 1.0 + z))
    return SimpleNamespace(time=time, q=q, torques=pose.torques, wrenches=pose.wrenches,
                           quaternion=quaternion / np.linalg.norm(quaternion))


def write_csv(path, true, instants, leave_out=()):
    names = true.model.joint_names
    with path.open('w', newline='') as file:
        writer = None
        for now in instants:
            row = {'time': now.time, **{f'position/{n}': v for n, v in zip(names, now.q)},
                   **{f'effort/{n}': v for n, v in zip(names, now.torques)},
                   **{f'imu/q{k}': v for k, v in zip('xyzw', now.quaternion)}}
            for sensor, wrench in zip(true.model.config.wrench_sensors, now.wrenches):
                row.update({f'{sensor}/{axis}': v for axis, v in zip(AXES, wrench)})
            row = {k: v for k, v in row.items() if k not in leave_out}
            if writer is None:
                writer = csv.DictWriter(file, row)
                writer.writeheader()
            writer.writerow(row)
    return path


def write_bag(path, true, instants, storage, leave_out=()):
    """Write what the topics of the robot would carry."""
    rosbag2 = pytest.importorskip('rosbags.rosbag2')
    from rosbags.typesys import get_typestore, Stores
    store = get_typestore(Stores.ROS2_JAZZY)
    config = true.model.config
    topics = {'/joint_states': 'sensor_msgs/msg/JointState',
              f'/{config.imu.topic}': 'sensor_msgs/msg/Imu',
              **{f'/{s.topic}': 'geometry_msgs/msg/WrenchStamped'
                 for s in config.wrench_sensors.values()}}
    with rosbag2.Writer(path, version=9,
                        storage_plugin=rosbag2.StoragePlugin[storage]) as writer:
        connections = {t: writer.add_connection(t, kind, typestore=store)
                       for t, kind in topics.items() if t not in leave_out}
        for now in instants:
            for topic, connection in connections.items():
                message = message_of(store, topic, true, now)
                writer.write(connection, int(now.time * 1e9) + 10**9,
                             store.serialize_cdr(message, topics[topic]))
    return path


def message_of(store, topic, true, now):
    """Return the message of a topic at an instant."""
    types, config = store.types, true.model.config
    ns = int(now.time * 1e9) + 10**9
    header = types['std_msgs/msg/Header'](
        types['builtin_interfaces/msg/Time'](ns // 10**9, ns % 10**9), 'frame')
    vector = types['geometry_msgs/msg/Vector3']
    if topic == '/joint_states':
        return types['sensor_msgs/msg/JointState'](
            header, list(true.model.joint_names), now.q, np.zeros_like(now.q), now.torques)
    if topic == f'/{config.imu.topic}':
        return types['sensor_msgs/msg/Imu'](
            header, types['geometry_msgs/msg/Quaternion'](*now.quaternion.tolist()),
            np.zeros(9), vector(0.0, 0.0, 0.0), np.zeros(9), vector(0.0, 0.0, 9.81), np.zeros(9))
    index = [f'/{s.topic}' for s in config.wrench_sensors.values()].index(topic)
    force, moment = now.wrenches[index, :3].tolist(), now.wrenches[index, 3:].tolist()
    return types['geometry_msgs/msg/WrenchStamped'](
        header, types['geometry_msgs/msg/Wrench'](vector(*force), vector(*moment)))


def captures_of(path, model):
    finder = CaptureFinder(model, OPTIONS)
    for event in read_recording(path, model):
        finder.add(event)
    return finder.require_captures()


@pytest.mark.parametrize('kind', ('csv', 'SQLITE3', 'MCAP'))
def test_every_pose_is_found(recorded, tmp_path, kind):
    true, poses, instants = recorded
    path = (write_csv(tmp_path / 'a.csv', true, instants) if kind == 'csv'
            else write_bag(tmp_path / 'bag', true, instants, kind))
    found = captures_of(path, true.model)
    assert len(found) == len(poses)
    for one, other in zip(found, poses):
        np.testing.assert_allclose(one.positions, other.positions, atol=1e-9)
        np.testing.assert_allclose(one.wrenches, other.wrenches, atol=1e-9)
        np.testing.assert_allclose(one.torques, other.torques, atol=1e-9)
        np.testing.assert_allclose(one.up, other.up, atol=1e-9)
        np.testing.assert_array_equal(one.in_contact, other.in_contact)


def test_a_pose_is_captured_again_only_after_the_robot_was_away(recorded, tmp_path):
    true, poses, instants = recorded
    joint = true.model.joint_names.index('l_elbow')
    rest = instants[:int(RATE * PAUSE)]

    def visits(offset):
        """Rest, move an elbow by an offset and back, and rest again in the same posture."""
        path = [offset * k / 20.0 for k in (*range(21), *range(20, -1, -1))]
        moves = [SimpleNamespace(**{**vars(rest[0]), 'q': rest[0].q + x * np.eye(
            len(rest[0].q))[joint]}) for x in path]
        every = [*rest, *moves, *rest]
        return [SimpleNamespace(**{**vars(now), 'time': i / RATE}) for i, now in enumerate(every)]

    away = captures_of(write_csv(tmp_path / 'away.csv', true, visits(0.06)), true.model)
    assert len(away) == 2
    np.testing.assert_allclose(away[1].positions, poses[0].positions, atol=1e-9)
    assert away[1].approach[joint] == -1.0
    trembling = captures_of(write_csv(tmp_path / 'near.csv', true, visits(0.01)), true.model)
    assert len(trembling) == 1


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


def test_errors_in_newtons_are_scaled_by_mass_as_those_of_the_node(recorded, tmp_path, capsys):
    """Forces, moments and torques, with their biases and drifts, and no others."""
    true, _, instants = recorded
    path, mass = write_csv(tmp_path / 'a.csv', true, instants), true.model.mass
    default = SensorNoise()
    by_hand = [word for name, value in (
        ('force-noise', 0.5), ('moment-noise', 0.02), ('torque-noise', 0.3),
        ('still-force', 6.0), ('force-bias', default.force_bias),
        ('moment-bias', default.moment_bias), ('torque-bias', default.torque_bias),
        ('force-drift', default.force_drift), ('moment-drift', default.moment_drift))
        for word in (f'--{name}', repr(0.5 * value))]
    found = []
    for name, options in (('plain', []), ('by_hand', by_hand),
                          ('scaled', ['--noise-at-mass', repr(2.0 * mass)])):
        out = tmp_path / name
        assert main([str(path), '--robot', 'sabian', '--out', str(out), '--still', '0.5',
                     *options]) == 0
        found.append(RobotModel(
            true.model.config, (out / 'calibrated.urdf').read_text()).link_coms_in_link)
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
    (['.', '--robot', 'sabian', '--still', '0'], 'stillness: duration must be positive')))
def test_mistakes_are_one_line(arguments, message, capsys):
    assert main(arguments) == 1
    printed = ' '.join(capsys.readouterr().err.split())
    assert message in printed and 'Traceback' not in printed


def test_a_urdf_without_inertials_is_one_line(tmp_path, capsys):
    urdf = tmp_path / 'light.urdf'
    urdf.write_text(re.sub('(?s)<inertial>.*?</inertial>', '', RobotModel.load('sabian').urdf))
    assert main(['.', '--robot', 'sabian', '--urdf', str(urdf)]) == 1
    printed = ' '.join(capsys.readouterr().err.split())
    assert 'export the URDF with its inertials' in printed and 'Traceback' not in printed


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


def test_joint_states_without_positions_are_left_out(recorded, tmp_path, monkeypatch):
    true, poses, instants = recorded
    whole = message_of

    def without_some(store, topic, true, now):
        message = whole(store, topic, true, now)
        if topic == '/joint_states' and now.time > instants[-3].time:
            message.position = np.zeros(0)
        return message

    monkeypatch.setitem(globals(), 'message_of', without_some)
    path = write_bag(tmp_path / 'bag', true, instants, 'SQLITE3')
    assert len(captures_of(path, true.model)) == len(poses)


def test_a_robot_that_never_rests(recorded, tmp_path):
    true, _, instants = recorded
    path = write_csv(tmp_path / 'a.csv', true, instants[:10])
    with pytest.raises(InputError, match='never still in the recording: only|watching'):
        captures_of(path, true.model)
    finder = CaptureFinder(true.model, OPTIONS)
    finder.add(Event(0.0, 'joints', np.zeros(1), ('l_knee',)))
    with pytest.raises(InputError, match='has no positions of'):
        finder.require_captures()


def test_positions_in_degrees_are_named(recorded, tmp_path):
    true, _, instants = recorded
    degrees = [SimpleNamespace(**{**vars(now), 'q': np.degrees(now.q)}) for now in instants[:60]]
    path = write_csv(tmp_path / 'a.csv', true, degrees)
    with pytest.raises(InputError, match=(
            r"no positions of .* that can be used: joint '\w+' is beyond .*unit of positions")):
        captures_of(path, true.model)


def test_one_wrong_position_is_left_out(recorded, tmp_path):
    true, poses, instants = recorded
    spike = SimpleNamespace(**{**vars(instants[3]), 'q': instants[3].q + 100.0})
    path = write_csv(tmp_path / 'a.csv', true, [*instants[:3], spike, *instants[4:]])
    found = captures_of(path, true.model)
    assert len(found) == len(poses)
    np.testing.assert_allclose(found[0].positions, poses[0].positions, atol=1e-9)


def test_a_fallen_robot_and_reversed_sensors_are_distinguished(recorded, tmp_path):
    true, _, instants = recorded
    flipped = [SimpleNamespace(**{**vars(now), 'wrenches': -now.wrenches}) for now in instants]
    path = write_csv(tmp_path / 'a.csv', true, flipped)
    flip = r'on foot .* is negative, -.*: flip wrench_sensors\.\w+\.sign'
    with pytest.raises(InputError, match=flip):
        captures_of(path, true.model)
    on_its_back = np.array((math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)))
    fallen = [SimpleNamespace(**{**vars(now), 'quaternion': on_its_back}) for now in flipped]
    with pytest.raises(InputError, match=r'the base is tilted by 90 deg: stand the robot up') as e:
        captures_of(write_csv(tmp_path / 'b.csv', true, fallen), true.model)
    assert 'sign' not in str(e.value)


def test_known_errors_of_instruments_are_taken_out(recorded, tmp_path):
    """A recording with faulty instruments, and a YAML that knows them, give the true captures."""
    true, poses, instants = recorded
    rng, model = np.random.default_rng(1), true.model
    offsets = 0.02 * rng.normal(size=len(model.joint_names))
    tilt, matrix = (0.02, -0.01, 0.03), np.eye(6) + 0.02 * rng.normal(size=(6, 6))
    bias = rng.normal(size=6)
    gains, torque_offsets = 0.05 * rng.normal(size=len(offsets)), rng.normal(size=len(offsets))
    turned = Rotation.from_rotvec(tilt).inv()
    faulty = [SimpleNamespace(
        time=now.time, q=now.q + offsets, torques=now.torques * (1.0 + gains) + torque_offsets,
        wrenches=now.wrenches @ matrix.T + bias,
        quaternion=(Rotation.from_quat(now.quaternion) * turned).as_quat()) for now in instants]
    path = write_csv(tmp_path / 'a.csv', true, faulty)
    known = SensorCorrection(np.linalg.inv(matrix).tolist(), bias.tolist())
    by_joint = [dict(zip(model.joint_names, v.tolist())) for v in (offsets, gains, torque_offsets)]
    corrected = RobotModel(replace(model.config, instruments=InstrumentCorrections(
        joint_offsets=by_joint[0], torque_gains=by_joint[1], torque_offsets=by_joint[2],
        wrench_sensors=dict.fromkeys(model.config.wrench_sensors, known),
        tilts={model.config.imu.frame: tilt})), model.urdf)
    for one, other in zip(captures_of(path, corrected), poses, strict=True):
        np.testing.assert_allclose(one.positions, other.positions, atol=1e-9)
        np.testing.assert_allclose(one.wrenches, other.wrenches, atol=1e-6)
        np.testing.assert_allclose(one.torques, other.torques, atol=1e-6)
        np.testing.assert_allclose(one.up, other.up, atol=1e-9)
    # Captures with and without the corrections are not mixed.
    log = CaptureLog(tmp_path / 'captures.json', model)
    log.append(poses[0])
    with pytest.raises(ConfigurationError, match='of another robot or version: instruments is'):
        CaptureLog(log.path, corrected)


@pytest.mark.parametrize('storage', ['MCAP', 'SQLITE3'])
def test_a_damaged_bag_is_read_or_refused(storage, recorded, tmp_path):
    """Whatever bytes are wrong, cut off or huge: an error of the package, or captures."""
    true, _, instants = recorded
    bag = write_bag(tmp_path / 'bag', true, instants[:60], storage)
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
