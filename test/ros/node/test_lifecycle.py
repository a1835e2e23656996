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
"""The lifecycle that nodes share: what is built is taken away, and the URDF is read anew."""

from __future__ import annotations

from dataclasses import dataclass
import itertools

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import setting
from biped_com_ros.ros.node.common_parameters import ManagedNodeParameters
from biped_com_ros.ros.node.lifecycle import FAILURE, ManagedNode, SUCCESS
from biped_com_ros.ros.topics.inputs import JointStateInput
from biped_com_ros.ros.topics.outputs import joint_state_publisher
from biped_com_ros.ros.topics.services import trigger_service
import pytest
from rclpy.parameter import Parameter

COUNTER = itertools.count()


@dataclass(frozen=True)
class ManagedTestParameters(ManagedNodeParameters):
    """Parameters of the node below."""

    broken: bool = setting(False, 'Whether building fails half way')


class Managed(ManagedNode):
    """Has an input, a service, a timer and an output while it is configured."""

    def __init__(self, **parameters):
        self.calls, self.reason = [], ''
        super().__init__('managed', ManagedTestParameters, namespace=f'lifecycle_{next(COUNTER)}',
                         parameter_overrides=[Parameter(name, value=value) for name, value in
                                              {'robot': 'biped', **parameters}.items()])

    def prepare(self, model):
        self.calls.append('prepared')

    def build(self, model):
        self.keep(JointStateInput(
            self, model.joint_names, lambda *_: None, diagnostics=self.diagnostics))
        self.keep(trigger_service(self, '~/do', lambda: ''))
        self.keep(self.create_timer(1.0, lambda: None))
        if self.params.broken:
            raise ConfigurationError('it is broken')
        self.keep(joint_state_publisher(self, '~/out', model.joint_names))

    def start(self):
        self.calls.append('started')

    def stop(self):
        self.calls.append('stopped')

    def busy(self):
        return self.reason


@pytest.fixture
def make():
    nodes = []

    def _make(**parameters):
        nodes.append(Managed(**parameters))
        return nodes[-1]
    yield _make
    for node in nodes:
        node.destroy_node()


def parts(node):
    """Count what a node has."""
    return {'timers': len(list(node.timers)), 'services': len(list(node.services)),
            'subscriptions': len(list(node.subscriptions)),
            'publishers': len(list(node.publishers)), 'lines': len(node.diagnostics.names)}


def test_starts_itself_only_with_autostart(make):
    assert make().calls == ['prepared', 'started']
    assert make(autostart=False).calls == ['prepared']


def test_everything_that_was_built_goes_again(make):
    node = make(autostart=False)
    bare = parts(node)
    for _ in range(2):
        assert node.trigger_configure() == SUCCESS
        assert all(parts(node)[name] > count for name, count in bare.items())
        assert node.trigger_activate() == SUCCESS and node.trigger_deactivate() == SUCCESS
        assert node.calls[-2:] == ['started', 'stopped']
        assert node.trigger_cleanup() == SUCCESS
        assert parts(node) == bare


def test_what_was_built_before_it_failed_goes_too(make):
    node = make(autostart=False, broken=True)
    bare = parts(node)
    assert node.trigger_configure() == FAILURE
    assert parts(node) == bare
    node.set_parameters([Parameter('broken', value=False)])
    assert node.trigger_configure() == SUCCESS


def test_a_busy_node_is_not_taken_apart(make):
    node = make(autostart=False)
    assert node.trigger_configure() == SUCCESS
    built, node.reason = parts(node), 'it still moves'
    assert node.trigger_cleanup() == FAILURE and parts(node) == built
    node.reason = ''
    assert node.trigger_cleanup() == SUCCESS


def test_another_urdf_is_used_from_the_next_configuration_on(make, tmp_path):
    node = make(autostart=False)
    light = RobotModel.load('biped')
    heavy = tmp_path / 'heavy.urdf'
    heavy.write_text(light.urdf.replace('<mass value="', '<mass value="1'))
    assert node.trigger_configure() == SUCCESS
    node.set_parameters([Parameter('urdf', value=str(heavy))])
    assert node.model.mass == light.mass
    assert node.trigger_cleanup() == SUCCESS and node.trigger_configure() == SUCCESS
    assert node.model.mass > 2.0 * light.mass
    assert node.calls.count('prepared') == 2
    node.trigger_cleanup()
    node.set_parameters([Parameter('urdf', value=str(tmp_path / 'none.urdf'))])
    assert node.trigger_configure() == FAILURE
    node.set_parameters([Parameter('urdf', value='')])
    assert node.trigger_configure() == SUCCESS and node.model.mass == light.mass
