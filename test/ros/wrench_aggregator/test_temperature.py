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
"""The temperature of a foot's sensor, which its bias follows."""

from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.config import load_robot_config
import numpy as np
import pytest
from sensor_msgs.msg import Temperature
from support.wrench_oracle import YAML

TOPIC = 'left_toe/temperature'
BIAS, COEFFICIENT = np.array((2.0, -1.0, 3.0, 0.05, 0.0, 0.0)), np.array(
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
        self._rig.offsets = {'left_toe': BIAS + COEFFICIENT * (temperature - 20.0)}
        self.publish(temperature)

    def publish(self, temperature):
        message = Temperature(temperature=temperature)
        message.header.stamp = self._rig.peer.get_clock().now().to_msg()
        self._publisher.publish(message)
        self._rig.play(3)


def hang(rig, updates):
    """Let the robot hang until the mean of another second was used."""
    found = rig.node.offsets.tracking.filters[0]
    aim = found.updates + updates
    rig.until(lambda: rig.play(20, 0.02) and found.updates >= aim, what='means in the air')
    return found


def test_on_the_ground_the_offset_follows_the_temperature(own_rig, robot_file):
    rig = own_rig(robot_file=robot_file, bias_tracking=True)
    warming = Warming(rig)
    warming.warm_to(20.0)
    hang(rig, 2)
    # The mean of a second must not be of two temperatures: each begins at the ground.
    standing = rig.robot.standing(0)
    for temperature in (26.0, 32.0):
        rig.contacts = standing
        warming.warm_to(temperature)
        rig.contacts = {}
        found = hang(rig, 2)
    assert (np.abs(found.coefficient - COEFFICIENT) < 3.0 * found.coefficient_deviation).all()
    rig.contacts = standing
    warming.warm_to(45.0)
    true = BIAS + 25.0 * COEFFICIENT
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
