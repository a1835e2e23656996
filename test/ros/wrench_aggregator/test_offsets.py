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
"""Offsets and known errors of sensors: tares, biases that are followed, the YAML's."""

from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.wrench.tare import save_offsets, SensorOffset
from biped_com_ros.ros.topics.qos import LATCHED
import numpy as np
import pytest
from rclpy.duration import Duration
from rclpy.time import Time
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Temperature
from std_msgs.msg import Float64MultiArray, String
from support import wrench_oracle
from support.messages import wrench
from support.settings import setting_values
from support.wrench_aggregator_rig import make_node, WrenchAggregatorRig
from support.wrench_oracle import SENSORS, TiltedRobot, YAML
import yaml


OFFSETS = {name: np.random.default_rng(i).normal(size=6) * [4, 4, 4, 0.4, 0.4, 0.4]
           for i, name in enumerate(SENSORS)}


def hang(rig, noise=0.2):
    """Lift the robot, whose sensors have offsets."""
    rig.contacts, rig.offsets, rig.noise = {}, OFFSETS, noise
    rig.play(60)


def test_tare_finds_the_offsets_and_untare_clears_them(rig):
    hang(rig)
    response = rig.tare('tare')
    assert response.success, response.message
    for name in SENSORS:
        assert f"'{name}': offset (" in response.message
    assert 'mean of 50 readings' in response.message and 'offsets_file' in response.message
    rig.noise, rig.contacts = 0.0, rig.robot.standing(0)
    rig.play(5)
    rig.assert_forces(atol=0.5)
    assert not np.allclose(OFFSETS['left_toe'], 0.0, atol=1.0)
    assert rig.tare('untare').success
    rig.play(5)
    off = wrench(rig.got['right/wrench'][-1]) - rig.robot.foot_wrench('right', rig.contacts)
    assert np.linalg.norm(off[:3]) == pytest.approx(np.linalg.norm(OFFSETS['right_foot'][:3]))


def test_one_sensor_is_tared_and_untared_alone(own_rig, tmp_path):
    path = tmp_path / 'offsets.yaml'
    rig = own_rig(offsets_file=str(path))
    hang(rig, noise=0.0)
    response = rig.tare('right_foot/tare')
    assert response.success and "'right_foot'" in response.message
    assert 'left_toe' not in response.message
    rig.play(3)
    np.testing.assert_allclose(wrench(rig.got['right/wrench'][-1]), np.zeros(6), atol=1e-9)
    assert np.linalg.norm(wrench(rig.got['left/wrench'][-1])) > 1.0
    assert rig.tare('tare').success
    response = rig.tare('right_foot/untare')
    assert response.success and "'right_foot'" in response.message
    assert 'left_toe' not in response.message
    for channel in rig.node.aggregation.channels:
        expected = np.zeros(6) if channel.name == 'right_foot' else OFFSETS[channel.name]
        np.testing.assert_allclose(channel.offset, expected, atol=1e-9)
    assert set(yaml.safe_load(path.read_text())['sensors']) == set(SENSORS) - {'right_foot'}


@pytest.mark.parametrize('change, message', [
    ({'noise': 10.0}, 'let the robot come to rest'),
    ({'joint_speed': 0.3}, 'hold the robot still'),
    ({'contacts': 'standing'}, 'lift the robot'),
    ({'silent': {'left_heel'}}, "'left_heel' not tared: its last reading is"),
])
def test_a_refused_tare_names_the_remedy(rig, change, message):
    hang(rig)
    if change.get('contacts'):
        change = {'contacts': rig.robot.standing(0)}
    for name, value in change.items():
        setattr(rig, name, value)
    rig.play(160 if 'silent' in change else 60)
    response = rig.tare('tare')
    assert not response.success and message in response.message
    assert all(not np.any(c.offset) for c in rig.node.aggregation.channels)


def test_late_joiners_read_the_offsets(rig):
    hang(rig, noise=0.0)
    rig.tare('tare')
    late = []
    subscription = rig.peer.create_subscription(
        Float64MultiArray, 'wrench_aggregator/offsets', late.append, LATCHED)
    rig.until(lambda: late)
    rig.peer.destroy_subscription(subscription)
    labels = [dim.label for dim in late[0].layout.dim]
    values = dict(zip(labels, late[0].data))
    axes = ('force.x', 'force.y', 'force.z', 'torque.x', 'torque.y', 'torque.z')
    for name, offset in OFFSETS.items():
        np.testing.assert_allclose([values[f'{name}/{axis}'] for axis in axes], offset, atol=1e-9)


def test_a_restart_loads_the_offsets(own_rig, tmp_path):
    path = str(tmp_path / 'deep' / 'offsets.yaml')
    first = own_rig(offsets_file=path)
    hang(first, noise=0.0)
    response = first.tare('tare')
    assert response.success and f'saved to {path}' in response.message
    first.node.destroy_node()
    second = own_rig(offsets_file=path)
    second.offsets, second.contacts = OFFSETS, second.robot.standing(0)
    second.play(5)
    second.assert_forces()
    assert second.tare('untare').success
    assert yaml.safe_load(Path(path).read_text())['sensors'] == {}


def calibrate(rig, robot):
    """Publish a URDF with the robot's true links, and wait until it is in use."""
    model = rig.node.model
    before = model.mass
    rig.peer.create_publisher(String, 'calibrated_description', LATCHED).publish(String(
        data=with_inertials(model.urdf, {
            link: NewInertial(mass, com) for link, (mass, com) in robot.links.items()})))
    rig.until(lambda: model.mass != before, what='calibrated inertials')


def test_calibrated_weights_are_taken_off_the_offsets_that_were_measured_with_others(
        own_rig, tmp_path):
    """In the air the URDF's error in what is below a sensor looks like an offset."""
    path = tmp_path / 'offsets.yaml'
    rig = own_rig(offsets_file=str(path))
    robot = rig.robot
    robot.links = {link: (1.2 * mass, com + 0.01) for link, (mass, com) in robot.links.items()}
    hang(rig, noise=0.0)
    assert rig.tare('right_foot/tare').success
    channel = rig.node.aggregation.channels[2]
    error = np.abs(channel.offset - OFFSETS['right_foot'])
    assert error[:3].max() > 0.2 and error[3:].max() > 0.01
    calibrate(rig, robot)
    rig.play(5)
    np.testing.assert_allclose(channel.offset, OFFSETS['right_foot'], atol=1e-6)
    saved = yaml.safe_load(path.read_text())['sensors']
    np.testing.assert_allclose(saved['right_foot']['offset'], OFFSETS['right_foot'], atol=1e-6)
    assert not rig.node.aggregation.channels[0].offset.any(), 'it was not tared'
    restarted = own_rig(offsets_file=str(path))
    calibrate(restarted, robot)
    restarted.robot.links, restarted.offsets = robot.links, {'right_foot': OFFSETS['right_foot']}
    restarted.play(20)
    np.testing.assert_allclose(
        restarted.node.aggregation.channels[2].offset, OFFSETS['right_foot'], atol=1e-6)
    rig.clear()
    rig.play(5)
    np.testing.assert_allclose(wrench(rig.got['right/wrench'][-1]), 0.0, atol=1e-6)


def test_offsets_that_cannot_be_saved_are_reported(own_rig, tmp_path):
    (tmp_path / 'file').write_text('')
    rig = own_rig(offsets_file=str(tmp_path / 'file' / 'offsets.yaml'))
    hang(rig)
    response = rig.tare('tare')
    assert not response.success and 'in use until this node ends, but' in response.message


def test_offsets_of_another_robot_are_refused_at_start(tmp_path):
    save_offsets(tmp_path / 'o.yaml', 'talos', {
        'left_toe': SensorOffset(frame='l_toe', scale=(1.0,) * 6)})
    with pytest.raises(ConfigurationError, match="of robot 'talos', not of 'wrench_robot'"):
        make_node(offsets_file=str(tmp_path / 'o.yaml'))


def test_biases_are_followed_while_the_robot_hangs_and_not_while_it_stands(own_rig):
    rig = own_rig(bias_tracking=True)
    rig.offsets = {name: 0.2 * offset for name, offset in OFFSETS.items()}
    rig.contacts, rig.noise = rig.robot.standing(0), 0.02
    rig.play(200, 0.02)
    assert not any(c.offset.any() for c in rig.node.aggregation.channels)
    rig.contacts = {}
    rig.until(lambda: rig.play(5, 0.02) and rig.node.aggregation.channels[2].offset.any())
    rig.contacts, rig.noise = rig.robot.standing(0), 0.0
    rig.play(5)
    rig.clear()
    rig.play(5)
    for foot, atol in (('left', 0.15), ('right', 0.1)):
        np.testing.assert_allclose(
            wrench(rig.got[f'{foot}/wrench'][-1]), rig.robot.foot_wrench(foot, rig.contacts),
            atol=atol)
    assert np.abs(rig.offsets['right_foot']).max() > 0.4
    values = rig.node.offsets.report()[2]
    assert 'standard deviation up to' in values['bias of right_foot']
    assert rig.trigger('wrench_aggregator/untare').success


BIAS = np.array([0.5, -0.4, 0.6, 0.05, -0.08, 0.06])
FEET = ('left_toe', 'left_heel', 'right_foot')


def change(rig, **values):
    """Set parameters over DDS; fail if they are refused."""
    assert not rig.set_parameters(**values)
    found = setting_values(rig.node.params)
    assert all(found[name] == value for name, value in values.items())


def test_the_weight_below_sensors_is_that_of_the_gravity_given_at_the_start(
        own_rig, monkeypatch):
    rig = own_rig(gravity=3.7)
    rig.contacts = rig.robot.standing(0)
    rig.play(3)
    rig.clear()
    rig.play(5)
    before = wrench(rig.got['left_hand/wrench'][-1])
    monkeypatch.setattr(wrench_oracle, 'GRAVITY', np.array([0.0, 0.0, -3.7]))
    rig.clear()
    rig.play(5)
    rig.assert_forces()
    assert rig.node.aggregation.body_weight == pytest.approx(3.7 * rig.node.model.mass)
    # Gravity that is not the robot's shows in what sensors carry.
    off = wrench(rig.got['left_hand/wrench'][-1]) - before
    assert np.linalg.norm(off[:3]) > 0.1
    assert 'gravity' in rig.set_parameters(gravity=9.81)


def test_the_time_and_the_largest_speed_of_a_tare_take_effect(rig):
    rig.contacts, rig.offsets = {}, {'right_foot': BIAS}
    rig.play(60)
    for duration, readings, success, words in (
            (0.316, 1, False, 'of the 0.316 s'), (0.316, 80, True, 'mean of 80 readings'),
            (0.076, 1, True, 'mean of 20 readings')):
        change(rig, tare_duration=duration)
        rig.play(readings)
        response = rig.tare('right_foot/tare')
        assert response.success == success and words in response.message
    rig.joint_speed = 0.03
    rig.play(30)
    assert rig.tare('right_foot/tare').success
    # In 0.24 s a mean of the speed over 0.1 s ends in any case.
    change(rig, tare_max_joint_speed=0.02, tare_duration=0.24)
    rig.play(90)
    response = rig.tare('right_foot/tare')
    assert not response.success and 'above 0.02 rad/s' in response.message
    change(rig, tare_duration=0.196, tare_max_joint_speed=0.05)


def offsets_of(rig):
    return np.array([rig.node.aggregation.channels[i].offset for i in range(len(FEET))])


def test_biases_are_followed_from_the_change_on(rig):
    rig.contacts, rig.offsets = {}, dict.fromkeys(FEET, BIAS)
    rig.play(30)
    assert not offsets_of(rig).any()
    change(rig, bias_tracking=True, bias_force=6.0)
    filters = rig.node.offsets.tracking.filters
    assert all(found._covariance[0, 0, 0] == 36.0 for found in filters.values())
    # What is learned while the robot hangs is used three seconds later.
    rig.until(lambda: rig.play(20, 0.02) and np.abs(offsets_of(rig) - BIAS).max() < 0.1,
              what='the biases')
    found = offsets_of(rig)
    change(rig, bias_force=4.0)  # what is known stays
    assert np.abs(offsets_of(rig) - BIAS).max() < 0.1
    assert all(found.updates >= 1 for found in rig.node.offsets.tracking.filters.values())
    change(rig, bias_tracking=False)
    rig.offsets = dict.fromkeys(FEET, BIAS + 1.0)
    found = offsets_of(rig)
    rig.play(250, 0.02)
    np.testing.assert_array_equal(offsets_of(rig), found)


TOPIC = 'left_toe/temperature'
WARM_BIAS, COEFFICIENT = np.array((2.0, -1.0, 3.0, 0.05, 0.0, 0.0)), np.array(
    (0.2, 0.0, -0.5, 0.0, 0.02, 0.0))
"""N and N m; N/K and N m/K."""


@pytest.fixture
def robot_file(tmp_path):
    text = YAML.read_text().replace(
        'topic: left_toe/wrench', f'topic: left_toe/wrench, temperature_topic: {TOPIC}')
    path = tmp_path / 'warm.yaml'
    path.write_text(text)
    return str(path)


class Warming:
    """Sets the temperature of the left toe's sensor, and the bias that it has then."""

    def __init__(self, rig):
        self._rig = rig
        self._publisher = rig.peer.create_publisher(Temperature, TOPIC, 10)
        rig.until(lambda: rig.peer.count_subscribers(TOPIC))

    def warm_to(self, temperature):
        self._rig.offsets = {'left_toe': WARM_BIAS + COEFFICIENT * (temperature - 20.0)}
        self.publish(temperature)

    def publish(self, temperature):
        message = Temperature(temperature=temperature)
        message.header.stamp = self._rig.peer.get_clock().now().to_msg()
        self._publisher.publish(message)
        self._rig.play(3)


def hang_for(rig, updates):
    """Let the robot hang until the mean of another second was used."""
    found = rig.node.offsets.tracking.filters[0]
    aim = found.updates + updates
    rig.until(lambda: rig.play(20, 0.02) and found.updates >= aim, what='means in the air')
    return found


@pytest.mark.thorough
def test_on_the_ground_the_offset_follows_the_temperature(own_rig, robot_file):
    rig = own_rig(robot_file=robot_file, bias_tracking=True)
    warming = Warming(rig)
    warming.warm_to(20.0)
    hang_for(rig, 2)
    # The mean of a second must not be of two temperatures: each begins at the ground.
    standing = rig.robot.standing(0)
    for temperature in (26.0, 32.0):
        rig.contacts = standing
        warming.warm_to(temperature)
        rig.contacts = {}
        found = hang_for(rig, 2)
    assert (np.abs(found.coefficient - COEFFICIENT) < 3.0 * found.coefficient_deviation).all()
    rig.contacts = standing
    warming.warm_to(45.0)
    true = WARM_BIAS + 25.0 * COEFFICIENT
    offset = rig.node.aggregation.channels[0].offset
    rig.until(lambda: rig.play(20, 0.02) and (np.abs(offset - true) < 3.0 * found.deviation).all(),
              what='the bias of that temperature')
    assert abs(offset[2] - true[2]) < 0.2 * abs(25.0 * COEFFICIENT[2])
    values = rig.node.offsets.report()[2]
    assert 'N/K' in values['bias of left_toe'] and 'N/K' not in values['bias of left_heel']


def test_temperatures_that_cannot_be_are_not_used(own_rig, robot_file):
    rig = own_rig(robot_file=robot_file, bias_tracking=True)
    warming = Warming(rig)
    warming.publish(25.0)
    found = rig.node.offsets.tracking.filters[0]
    for wrong in (np.nan, np.inf, -3000.0, 1e5):
        warming.publish(wrong)
    assert found.temperature == 25.0
    warming.publish(26.0)
    assert found.temperature == 26.0


def test_a_topic_that_is_none_is_refused_with_its_key(robot_file):
    path = Path(robot_file)
    path.write_text(path.read_text().replace(TOPIC, '1 2'))
    with pytest.raises(ConfigurationError, match='wrench_sensors.left_toe.temperature_topic'):
        load_robot_config(robot_file)


RNG = np.random.default_rng(5)
TILT = (0.05, -0.08, 0.03)
MATRICES = {name: np.eye(6) + 0.02 * RNG.normal(size=(6, 6)) for name in SENSORS}
BIASES = {name: RNG.normal(size=6) * (4, 4, 4, 0.4, 0.4, 0.4) for name in SENSORS}


class FaultyInstruments(TiltedRobot):
    """A robot whose drivers have constant errors."""

    def __init__(self, *args):
        super().__init__(*args)
        self.joint_errors = 0.02 * RNG.normal(size=len(self.joints)).round(3)
        self.joints = self.joints + self.joint_errors  # as they are published

    def reading(self, sensor, contacts, offset=0.0):
        sign = SENSORS[sensor][1]
        true = sign * super().reading(sensor, contacts)
        return sign * (MATRICES[sensor] @ true + BIASES[sensor] + offset)

    def imu_quaternion(self, heading_error=0.0):
        level = Rotation.from_quat(super().imu_quaternion(heading_error))
        return (level * Rotation.from_rotvec(TILT).inv()).as_quat()

    def corrections(self, sensors=SENSORS):
        """Return the mapping that the robot's YAML has to hold."""
        return {
            'joint_offsets': dict(zip(self.joint_names, self.joint_errors.tolist())),
            'tilts': {'imu_link': list(TILT)},
            'wrench_sensors': {name: {
                'correction': np.linalg.inv(MATRICES[name]).tolist(),
                'bias': BIASES[name].tolist()} for name in sensors}}


@pytest.fixture
def faulty(tmp_path, closing):
    robot, path = FaultyInstruments.somewhere(0), tmp_path / 'faulty.yaml'
    path.write_text(yaml.safe_dump({
        **yaml.safe_load(YAML.read_text()), 'instruments': robot.corrections()}, sort_keys=False))
    return closing(WrenchAggregatorRig(robot, robot_file=str(path)))


def test_forces_are_the_true_ones(faulty):
    faulty.contacts = faulty.robot.standing(0)
    faulty.play(5)
    faulty.assert_forces(atol=1e-6)


def test_a_tare_replaces_the_configured_bias(faulty):
    drift = {name: np.arange(1.0, 7.0) * 0.1 for name in SENSORS}
    faulty.offsets, faulty.noise = drift, 0.0
    faulty.play(60)  # it hangs
    response = faulty.tare('tare')
    assert response.success, response.message
    faulty.contacts = faulty.robot.standing(0)
    faulty.play(5)
    faulty.assert_forces(atol=1e-6)
    assert 'set to those of the YAML' in faulty.tare('untare').message
    faulty.offsets = {}
    faulty.play(5)
    faulty.assert_forces(atol=1e-6)


def test_without_the_corrections_they_are_not(shared_rig):
    """The errors above are large enough that the other tests mean something."""
    shared_rig.reset()
    robot, shared_rig.robot = shared_rig.robot, FaultyInstruments.somewhere(0)
    shared_rig.contacts = shared_rig.robot.standing(0)
    shared_rig.play(5)
    with pytest.raises(AssertionError):
        shared_rig.assert_forces(atol=1.0)
    shared_rig.robot = robot


def test_calibrated_weights_of_feet_and_hands_are_subtracted(own_rig):
    """The true robot is heavier than the URDF until the calibrated URDF arrives."""
    rig = own_rig()
    robot = rig.robot
    robot.links = {link: (1.2 * mass, com + 0.01) for link, (mass, com) in robot.links.items()}
    last = Time.from_msg(rig.play(5))  # it hangs
    assert np.linalg.norm(wrench(rig.got['right/wrench'][-1])) > 0.2
    calibrate(rig, robot)
    rig.clear()
    for name in SENSORS:
        rig.publish_wrench(name, (last + Duration(nanoseconds=1_000_000)).to_msg())
    assert not rig.got['wrench'] and not rig.got['right/wrench'], 'weights are not known yet'
    rig.play(5)
    rig.assert_forces(atol=1e-6)
    weight = rig.node.aggregation.body_weight
    assert weight == pytest.approx(9.81 * sum(mass for mass, _ in robot.links.values()))
