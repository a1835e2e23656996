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
"""Parameters: typed, within their range, refused by name; at start and at run time."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.settings import setting
from biped_com_ros.ros.node.parameters import declare_parameters, read_only
import pytest
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import DescribeParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from support.messages import parameters


@dataclass(frozen=True)
class OneOfEach:
    """One of each."""

    rate: float = setting(30.0, 'How often', unit='Hz', minimum=0.0, maximum=500.0)
    count: int = setting(3, 'How many', minimum=1)
    source: str = setting('imu', 'Where from', options=('imu', 'odometry', 'fixed'))
    enabled: bool = setting(True, 'Whether')
    gains: list[float] = setting([1.0, 2.0], 'Gains', minimum=0.0)
    names: list[str] = read_only([], 'Names')
    free: float = setting(0.0, 'Anything')


@pytest.fixture
def make():
    nodes = []

    def start(on_change=None, check=None, **values):
        nodes.append(Node('node', parameter_overrides=parameters(**values)))
        return nodes[-1], declare_parameters(nodes[-1], OneOfEach, on_change, check=check)
    yield start
    for node in nodes:
        node.destroy_node()


def test_values_arrive_in_their_type_and_defaults_are_not_shared(make):
    assert make()[1] == OneOfEach()
    _, params = make(rate=50, count=7, source='fixed', enabled=False, gains=[1, 2, 3],
                     names=['a', 'b'])
    assert params == OneOfEach(50.0, 7, 'fixed', False, [1.0, 2.0, 3.0], ['a', 'b'])
    assert isinstance(params.rate, float) and isinstance(params.gains[0], float)
    make()[1].gains.append(9.0)
    assert make()[1].gains == [1.0, 2.0]


def test_what_is_given_and_does_not_exist_is_named(make, capfd):
    """But what may be that of another node in the process."""
    make(rat=1.0, walking_timeout=2.0, force_noise=0.1, fusion_wrench_delay=0.0,
         filter_floor_deviation=0.0, virtual_cutoff=20.0, period=2.0, of_another_node=3)
    warnings = [line for line in capfd.readouterr().err.splitlines() if '[WARN]' in line]
    assert len(warnings) == 7
    assert "parameter 'rat' = 1.0 does not exist and is ignored; did you mean 'rate'" in (
        warnings[0])
    assert "parameter 'walking_timeout' = 2.0 is ignored: it is a constant" in warnings[1]
    assert "it is an element 'force_noise <value>' of the list errors" in warnings[2]
    assert "its name is 'wrench_delay'" in warnings[3]
    assert "'filter_level_floor' now; set that to false" in warnings[4]
    assert "parameter 'virtual_cutoff' = 20.0 is ignored: it is a constant" in warnings[5]
    assert "parameter 'period' = 2.0 is ignored: the demo shows its table" in warnings[6]


@pytest.mark.parametrize('name, value, complaint', [
    ('rate', -1.0, r"'rate': -1.0 is out of range; valid: 0 to 500 Hz"),
    ('rate', 501, r"'rate': 501.0 is out of range; valid: 0 to 500 Hz"),
    ('rate', 'fast', r"'rate': 'fast' has to be a number; valid: 0 to 500 Hz"),
    ('rate', True, r"'rate': True has to be a number"),
    ('free', float('nan'), r"'free': nan has to be finite"),
    ('count', 0, r"'count': 0 is out of range; valid: at least 1"),
    ('count', 2.5, r"'count': 2.5 has to be a whole number"),
    ('source', 'gps', r"'source': 'gps' is not an option.*'imu', 'odometry', 'fixed'"),
    ('enabled', 1, r"'enabled': 1 has to be a bool"),
    ('gains', [1.0, -2.0], r"'gains\[1\]': -2.0 is out of range; valid: at least 0"),
    ('gains', 'many', r"'gains': 'many' has to be a list of float"),
    ('names', [1, 2], r"'names\[0\]': 1 has to be a string")])
def test_nonsense_is_refused_with_name_value_and_range(make, name, value, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        make(**{name: value})


def test_run_time_changes_reach_the_node_checked_and_typed_together_or_not_at_all(make):
    changes = []
    node, _ = make(changes.append)
    assert node.set_parameters(parameters(rate=60))[0].successful
    assert node.set_parameters(parameters(gains=[5]))[0].successful
    assert not node.set_parameters_atomically(parameters(rate=10.0, source='gps')).successful
    assert changes == [OneOfEach(rate=60.0), OneOfEach(rate=60.0, gains=[5.0])]
    assert isinstance(changes[0].rate, float)
    assert node.set_parameters_atomically(parameters(rate=10.0, source='fixed')).successful
    assert changes[2:] == [OneOfEach(rate=10.0, gains=[5.0], source='fixed')]


@pytest.mark.parametrize('name, value, reason', [
    ('rate', 1000.0, 'rate'), ('rate', 'fast', "'fast' has to be a number"),
    ('source', 'gps', "one of 'imu', 'odometry', 'fixed'"), ('count', -4, 'count'),
    ('names', ['x'], 'read-only'), ('gains', [-1.0], 'at least 0'),
    ('rate', 200.0, 'too fast for the IMU')])
def test_run_time_nonsense_changes_nothing(make, name, value, reason):
    def check(params):
        if params.rate > 100.0 and params.source == 'imu':
            raise ConfigurationError('too fast for the IMU')
    changes = []
    node, _ = make(changes.append, check)
    result, = node.set_parameters(parameters(**{name: value}))
    assert not result.successful and reason in result.reason
    assert not changes
    assert node.get_parameter('rate').value == 30.0
    assert node.set_parameters_atomically(parameters(rate=200.0, source='fixed')).successful


def test_what_the_node_itself_refuses_is_logged(make):
    def refuse(params):
        raise ConfigurationError('not now')
    node, _ = make(refuse)
    log = []
    node.get_logger().error = log.append
    node.set_parameters(parameters(free=1.0))
    assert log == ['not now']


def test_descriptions_and_services_over_dds(rig):
    changes = []
    declare_parameters(rig.node, OneOfEach, changes.append)
    describe = rig.peer.create_client(DescribeParameters, '/node/describe_parameters')
    rate, source = rig.call(
        describe, DescribeParameters.Request(names=['rate', 'source'])).descriptors
    assert rate.description == 'How often [Hz]' and rate.type == ParameterType.PARAMETER_DOUBLE
    assert (rate.floating_point_range[0].from_value,
            rate.floating_point_range[0].to_value) == (0.0, 500.0)
    assert "'odometry'" in source.additional_constraints
    change = rig.peer.create_client(SetParameters, '/node/set_parameters')

    def set_rate(value):
        return rig.call(change, SetParameters.Request(
            parameters=[Parameter('rate', value=value).to_parameter_msg()])).results[0]
    assert set_rate(100.0).successful and changes[-1].rate == 100.0
    assert not set_rate(1e4).successful and len(changes) == 1
