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
"""The robot's YAML after a calibration: what was estimated is what a next reading needs."""

from dataclasses import replace

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.wrench import wrench_adjoint
from biped_com_ros.core.identification.captures.virtual_contacts import with_virtual_sensors
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.output.robot_yaml import (
    calibrated_robot_yaml, corrections_after, deviations_after, errors_of, write_calibrated_robot)
from biped_com_ros.core.model.config import (
    load_robot_config, robot_config_from_mapping, robot_file, robot_names)
from biped_com_ros.core.model.corrections import InstrumentCorrections, SensorCorrection
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.strict_yaml import read_yaml
from biped_com_ros.core.wrench.aggregation import ReadingCorrection
import numpy as np
import pytest
from scipy.linalg import expm, logm
from support.statics_data import NOISE, perfect_instruments, total_com, TrueRobot


def skew(v):
    return np.array(((0.0, -v[2], v[1]), (v[2], 0.0, -v[0]), (-v[1], v[0], 0.0)))


def random_errors(model, rng, size=1.0):
    """Return errors of all instruments of a robot."""
    n, sensors = len(model.joint_names), len(model.config.wrench_sensors)
    return replace(
        perfect_instruments(model), positions=0.01 * size * rng.normal(size=n),
        torque_gains=0.03 * size * rng.normal(size=n), torque_offsets=size * rng.normal(size=n),
        friction=2.0 * size * rng.uniform(0.1, 1.0, size=n),
        tilts={model.config.imu.frame: 0.02 * size * rng.normal(size=3)},
        wrench_matrices=0.01 * size * rng.normal(size=(sensors, 6, 6)),
        wrench_biases=size * rng.normal(size=(sensors, 6)),
        shifts=0.003 * size * rng.normal(size=(sensors, 3)),
        turns=0.01 * size * rng.normal(size=(sensors, 3)))


def config_with(config, corrections):
    return replace(config, instruments=corrections)


def perturbed(errors, i, true):
    """Return what a sensor reads: where it really is, through its matrix and bias."""
    R = expm(skew(errors.turns[i]))  # from the sensor's real axes to the URDF's
    at_sensor = np.linalg.solve(wrench_adjoint(R, errors.shifts[i]), true)
    return (np.eye(6) + errors.wrench_matrices[i]) @ at_sensor + errors.wrench_biases[i]


@pytest.mark.parametrize('count', (1, 2))
def test_corrections_of_one_or_two_calibrations_give_the_truth(model, count):
    """What is left after the first correction, and is estimated then, adds to it."""
    rng, n = np.random.default_rng(2), len(model.joint_names)
    calibrations = [random_errors(model, rng, size) for size in (1.0, 0.3)[:count]]
    config = replace(model.config, wrench_sensors={
        name: replace(sensor, scale=-1.0) for name, sensor in model.config.wrench_sensors.items()})
    true, torques, turned = rng.normal(size=(2, 6)) * 100.0, 50.0 * rng.normal(size=n), np.eye(3)
    readings, reported = true, torques
    for errors in calibrations:
        config = config_with(config, corrections_after(config, model.joint_names, errors))
        turned = turned @ expm(skew(errors.tilts[config.imu.frame]))
    for errors in reversed(calibrations):  # the second one saw what the first had corrected
        readings = [perturbed(errors, i, reading) for i, reading in enumerate(readings)]
        reported = reported * (1.0 + errors.torque_gains) + errors.torque_offsets
    for i, name in enumerate(config.wrench_sensors):
        known = ReadingCorrection(config, name)
        assert known.corrected(known.scale * -readings[i], known.bias) == pytest.approx(
            true[i], rel=1e-5, abs=1e-3)
        assert np.abs(readings[i] - true[i]).max() > 1.0
    known = RobotModel(config, model.urdf)
    assert known.corrected_torques(reported) == pytest.approx(torques, abs=1e-4)
    assert np.abs(reported - torques).max() > 1.0
    assert known.joint_offsets == pytest.approx(sum(e.positions for e in calibrations), abs=1e-6)
    tilts = config.instruments.tilts[config.imu.frame]
    assert expm(skew(np.array(tilts))) == pytest.approx(turned, abs=1e-6)
    assert np.abs(logm(turned)).max() > 1e-3


@pytest.fixture
def written(model, tmp_path):
    """Return a function that writes a calibrated robot of a YAML; it returns both and the path."""
    def write(text, errors):
        robot = tmp_path / 'robot' / 'mine.yaml'
        robot.parent.mkdir()
        robot.write_text(text)
        (tmp_path / 'calibrated.urdf').write_text(model.urdf)
        known = RobotModel(load_robot_config(robot), model.urdf)
        path = write_calibrated_robot(tmp_path, str(robot), known, errors)
        return known, load_robot_config(path), path
    return write


def test_friction_replaces_the_old_one_where_it_was_estimated(model, written):
    """It is not taken out of efforts, so that a second calibration finds all of it again."""
    knee, hip = np.eye(len(model.joint_names))[model.joint_index(('l_knee', 'l_hip_yaw'))]
    _, found, path = written(robot_file('biped').read_text() + (
        'drives:\n  rotor_inertia: {l_knee: 0.02}\n  friction: {l_knee: 5.0, r_knee: 1.5}\n'),
        replace(perfect_instruments(model), friction=2.2 * knee - 0.3 * hip,
                torque_gains=0.1 * knee))
    assert found.drives.friction == {'l_knee': 2.0, 'r_knee': 1.5, 'l_hip_yaw': 0.0}
    assert found.drives.rotor_inertia == {'l_knee': 0.02}
    assert found.instruments.torque_gains == {'l_knee': 0.1}
    assert '# ' in path.read_text()  # comments of the user stay


def test_a_robot_that_extends_another_is_written_with_what_it_differs_in(
        model, written, tmp_path):
    errors = random_errors(model, np.random.default_rng(4))
    known, found, path = written(
        'extends: biped  # and hands\nhands: {left: {source: virtual}}\n', errors)
    assert found.hands['left'].is_virtual and found.feet == known.config.feet
    assert found.urdf == str(tmp_path / 'calibrated.urdf')
    assert found.instruments == corrections_after(known.config, model.joint_names, errors)
    assert 'extends: biped  # and hands' in path.read_text()


def test_the_bias_of_a_tare_is_included(model):
    errors, tare = random_errors(model, np.random.default_rng(3)), np.arange(12.0).reshape(2, 6)
    found = corrections_after(model.config, model.joint_names, errors, tare)
    for i, name in enumerate(model.config.wrench_sensors):
        assert found.sensor(name).bias == pytest.approx(
            (tare[i] + errors.wrench_biases[i]).tolist(), abs=1e-6)


def test_what_a_calibration_leaves_unknown(tmp_path):
    """Links as uncertain as the file says move the CoM by what the calibration states for it."""
    true, rng = TrueRobot('sabian', seed=3), np.random.default_rng(6)
    model = true.model
    found = Estimator(model, NOISE).solve(true.captures(25))
    (tmp_path / 'calibrated.urdf').write_text(model.urdf)
    path = write_calibrated_robot(tmp_path, 'sabian', model, errors_of(found, model),
                                  deviations=deviations_after(found, model))
    known = RobotModel.load(str(path)).config.instruments.deviations
    masses, ratios = found.parameters[:, 0], []
    for positions in (model.usual_posture(), *map(model.posture, model.config.postures)):
        links = model.state(positions).placements_in_base(model.frames(model.link_names))
        middles = np.array([link[:3] @ (moment / max(mass, 1e-9)) + link[3] for link, (
            mass, *moment) in zip(links, found.parameters)])
        coms = []
        for _ in range(3000):
            drawn = masses * (1.0 + known['link_mass'] * rng.standard_normal(len(masses)))
            at = middles + known['link_com'] * rng.standard_normal(middles.shape)
            coms.append(drawn @ at / drawn.sum())
        stated = found.com_std(StaticsRegressor(model), positions)
        ratios.append(np.linalg.norm(np.std(coms, axis=0)) / np.linalg.norm(stated))
    assert min(ratios) == pytest.approx(1.0, rel=0.05)  # in the posture in which it is most
    assert 0.0 < known['link_com'] < 0.003  # of 10 mm before
    for name, before in (
            ('sensor_gain', NOISE.wrench_gain), ('sensor_crosstalk', NOISE.cross_talk),
            ('sensor_rotation', NOISE.sensor_turn), ('sensor_frame', NOISE.sensor_shift)):
        assert 0.1 * before < known[name] < before


@pytest.mark.parametrize('name', robot_names())
def test_the_text_keeps_all_else(name):
    text = robot_file(name).read_text()
    config = load_robot_config(name)
    known = SensorCorrection(bias=(1.0, 0, 0, 0, 0, 0.5))
    corrections = InstrumentCorrections(
        joint_offsets={'some_joint': 0.0123}, torque_gains={'some_joint': -0.02},
        torque_offsets={'some_joint': 1.5},
        wrench_sensors=dict.fromkeys(config.wrench_sensors, known),
        tilts={config.imu.frame: (0.01, 0.0, -0.02)})
    edited = calibrated_robot_yaml(text, corrections, 'calibrated.urdf')
    assert calibrated_robot_yaml(edited, corrections, 'calibrated.urdf') == edited
    before, after = ([line for line in one.splitlines() if not line.startswith('urdf:')]
                     for one in (text, edited))
    assert after[:len(before)] == before
    assert 'urdf: calibrated.urdf' in edited.splitlines()
    again = calibrated_robot_yaml(edited, InstrumentCorrections(), 'x.urdf')
    assert 'instruments' not in again and 'urdf: x.urdf' in again


def test_a_text_of_another_layout_is_written_anew(tmp_path):
    text = str(read_yaml(robot_file('biped'))).replace("'", '"')  # one line of flow style
    edited = calibrated_robot_yaml(
        text, InstrumentCorrections(joint_offsets={'l_knee': 0.01}), 'calibrated.urdf')
    (tmp_path / 'a.yaml').write_text(edited)
    config = load_robot_config(tmp_path / 'a.yaml')
    assert config.instruments.joint_offsets == {'l_knee': 0.01}
    assert config.urdf == 'calibrated.urdf' and 'left' in config.feet


def test_the_written_robot_loads_with_its_urdf(model, tmp_path):
    errors = random_errors(model, np.random.default_rng(4))
    (tmp_path / 'calibrated.urdf').write_text(model.urdf)
    path = write_calibrated_robot(tmp_path, 'biped', model, errors)
    assert path == tmp_path / 'biped.yaml'
    loaded = RobotModel.load(str(path))
    for found, expected in ((loaded.joint_offsets, errors.positions),
                            (loaded.torque_gains, errors.torque_gains),
                            (loaded.torque_offsets, errors.torque_offsets)):
        assert found == pytest.approx(expected, abs=1e-6)
    assert loaded.config.drives.friction == pytest.approx(dict(zip(
        model.joint_names, errors.friction / (1.0 + errors.torque_gains))), abs=1e-6)
    assert loaded.urdf == model.urdf and loaded.mass == model.mass
    with pytest.raises(ConfigurationError, match="is the robot's own YAML, which is not overwri"):
        write_calibrated_robot(tmp_path, str(path), model, errors)


def test_virtual_sensors_are_no_part_of_the_file(tmp_path):
    """A robot without foot sensors is calibrated with virtual ones, which its YAML lacks."""
    model = with_virtual_sensors(RobotModel.load('g1_as_sold'))
    assert model.config.wrench_sensors
    errors = random_errors(model, np.random.default_rng(5))
    (tmp_path / 'calibrated.urdf').write_text(model.urdf)
    path = write_calibrated_robot(tmp_path, 'g1_as_sold', model, errors)
    loaded = RobotModel.load(str(path))
    assert loaded.joint_offsets == pytest.approx(errors.positions, abs=1e-6)
    assert not loaded.config.wrench_sensors and not loaded.config.instruments.wrench_sensors


def correction_with(row, column, value):
    matrix = np.eye(6)
    matrix[row, column] = value
    return {'wrench_sensors': {'left_foot': {'correction': matrix.tolist()}}}


@pytest.mark.parametrize(('instruments', 'message'), [
    ({'joint_offsets': {'l_knee': 0.3}},
     r'instruments.joint_offsets.l_knee is 0.3 rad .* at most 0.2 is an error of an encoder'),
    ({'joint_offsets': {'l_kne': 0.01}}, "unknown joint 'l_kne'.*did you mean 'l_knee'"),
    ({'tilts': {'imu_link': [0.2, 0.2, 0.0]}}, r'instruments.tilts.imu_link is .*at most 0.2'),
    ({'tilts': {'imu': [0.0, 0.0, 0.0]}}, "unknown link of an IMU 'imu'.*you mean 'imu_link'"),
    ({'wrench_sensors': {'left': {}}}, "unknown wrench sensor 'left'.*did you mean 'left_foot'"),
    ({'wrench_sensors': {'left_foot': {'bias': [0, 0, 5000, 0, 0, 0]}}},
     r'left_foot.bias is \[0.0, 0.0, 5000.0\] N: at most 2000'),
    ({'wrench_sensors': {'left_foot': {'correction': 5 * [6 * [0.0]]}}}, 'must have 6 rows of 6'),
    ({'wrench_sensors': {'left_foot': {'correction': 6 * [[1, 0]]}}}, 'a list of 6 values, not 2'),
    (correction_with(2, 2, -1.0), 'correction has a gain of -1 '),
    (correction_with(3, 2, 30.0), 'correction has cross-talk of 30 m .at most 0.2.'),
    ({'torque_gains': {'l_knee': -0.6}}, 'instruments.torque_gains.l_knee is -0.6: valid are -0'),
    ({'torque_offsets': {'l_knee': 300.0}}, r'torque_offsets.l_knee is 300 N m .*check the unit'),
    ({'deviations': {'link_cm': 0.001}}, "unknown deviation 'link_cm'.*did you mean 'link_com'"),
    ({'deviations': {'link_com': -0.001}}, 'deviations.link_com is -0.001: valid are 0 to 0.5'),
    ({'deviations': {'sensor_gain': 2.0}}, 'deviations.sensor_gain is 2: valid are 0 to 0.5'),
    ({'joint_offset': {}}, "unknown key 'joint_offset'.*did you mean 'joint_offsets'")])
def test_nonsense_is_refused(model, instruments, message):
    values = {**read_yaml(robot_file('biped')), 'instruments': instruments}
    with pytest.raises(ConfigurationError, match=message):
        RobotModel(robot_config_from_mapping(values), model.urdf)


def test_perfect_instruments_cost_nothing(model):
    perfect = perfect_instruments(model)
    assert corrections_after(
        model.config, model.joint_names, perfect) == InstrumentCorrections()
    none = {'offsets': (), 'torque_offsets': (), 'torque_gains': ()}
    assert model.corrections_of(model.joint_names) == none
    knee = InstrumentCorrections(joint_offsets={'l_knee': 0.01})
    known = RobotModel(config_with(model.config, knee), model.urdf)
    assert known.corrections_of(('r_knee', 'l_knee')) == {**none, 'offsets': (0.0, 0.01)}
    assert known.corrections_of(('r_knee',)) == none


@pytest.mark.thorough
def test_estimated_offsets_improve_the_centre_of_mass_over_the_sole():
    """Encoders are 0.3 deg off; MuJoCo's robot is the truth, at its true joint positions."""
    true = TrueRobot('sabian', seed=1)
    model, rng = true.model, np.random.default_rng(1)
    offsets = np.radians(0.3) * rng.normal(size=len(model.joint_names))
    offsets[model.joint_index(model.config.torso.joints)] = 0.0
    captures = [replace(c, positions=c.positions + offsets) for c in true.captures(30)]
    found = Estimator(model).solve(captures)
    known = RobotModel(config_with(model.config, corrections_after(
        model.config, model.joint_names, errors_of(found, model))), model.urdf)
    poses = [true.positions(('left',)) for _ in range(20)]
    expected, measured, corrected = (
        np.array([over_left_sole(model, theta, q + error) for q in poses])
        for theta, error in ((true.theta, 0.0), (found.parameters, offsets),
                             (found.parameters, offsets - known.joint_offsets)))
    measured, corrected = (np.sqrt(np.mean(np.sum((e - expected) ** 2, axis=1)))
                           for e in (measured, corrected))
    assert measured > 1.5e-3
    assert corrected < 0.4 * measured


def over_left_sole(model, theta, positions):
    """Return x and y of the centre of mass in the left sole's frame, m."""
    com = total_com(StaticsRegressor(model), theta, positions)
    sole = model.state(positions).pose_in_base(model.config.feet['left'].sole)
    return sole.inverse().apply(com)[:2]
