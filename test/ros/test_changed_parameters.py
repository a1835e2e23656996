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
"""
A parameter that is set while a node runs has the effect that it has at the start, and only that.

For every node, and every parameter that can be set at run time.
"""

from biped_com_ros.nodes import NODES
import pytest
from support.any_node import AnyNode
from support.messages import parameters
from support.settings import setting_values

#: Numbers and switches that can only be chosen at start, beside names, topics, files and sources.
AT_START = {
    'com_calibrator': {'autostart', 'move', 'torso_bend'},
    'com_estimator': {'fused_com', 'gravity', 'publish_base_tf', 'publish_contact_tf',
                      'publish_link_tf'},
    'wrench_aggregator': {'gravity'}, 'zmp_monitor': {'gravity'}}
#: Values where no other one follows from the declaration; None: the file, which others read.
VALUES = {
    'load_link': 'l_hand', 'noise': ['force_noise 0.1'], 'postures': ['stand', 'arms_out'],
    'support': 'all', 'groups': ['left_leg'], 'gain_joints': ['l_knee'], 'gains': [0.9],
    'first_foot': 'right', 'shift_foot': 'right', 'shift_holding': ['left'], 'urdf': None,
    'wrench_faults': ['left_foot dead']}
#: What takes effect later, as its description says: at the next plan, at the next reset, in the
#: next configuration; or in a ramp.
LATER = {
    'com_calibrator': ('options.design.',), 'simulator': ('_floor', 'plant.', '_period'),
    'torso_controller': ('controller._level', 'controller._shortened', 'controller._stretch',
                         'controller._tensions', 'controller.expected')}
#: Filters without memory beyond some milliseconds, and the estimate whose prior it is.
RESTARTED = {
    'low_pass_cutoff': '.low_pass.', 'load_link': 'fusion.',
    'wrench_delay': ('_model_wrench', 'fusion.'), 'align_wrenches': '_model_wrench'}


def other_value(name, kind, default, info):
    """Return a valid value near to the default, so that no two of them contradict each other."""
    if name in VALUES:
        return VALUES[name]
    if kind is bool:
        return not default
    if info.options:
        return next(option for option in info.options if option != default)
    if kind is int:
        return default + 1
    step = 0.01 * abs(default) or 0.01 * min(info.maximum - info.minimum, 1.0)
    return default + step if default + step <= info.maximum else default - step


@pytest.fixture(params=[
    *((name, {}) for name in sorted(NODES)), ('com_estimator', {'base_source': 'filter'}),
    ('zmp_monitor', {'base_source': 'filter'}), ('wrench_aggregator', {'robot': 'g1'})],
    ids=lambda param: '-'.join((param[0], *param[1].values())))
def kind(request, tmp_path):
    """Return the name of a node and what it is started with."""
    name, values = request.param
    own = {'directory': str(tmp_path), 'autostart': False} if name == 'com_calibrator' else {}
    return name, own | values


def changes(node):
    """Return another value of each parameter that may be set at run time."""
    found = {name: other_value(name, *field) for name, field in node.fields.items()
             if not field[2].read_only}
    return {name: value for name, value in found.items() if value is not None}


def set_one_by_one(node, values):
    """Set parameters without letting time pass."""
    for name, value in values.items():
        result, = node.node.set_parameters(parameters(**{name: value}))
        assert result.successful, f'{name}: {result.reason}'


def differences(one, other):
    """Return where two states differ."""
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def test_what_is_set_at_run_time_is_as_if_it_had_been_set_at_the_start(closing, kind):
    name, values = kind
    running = closing(AnyNode(name, **values))
    others = changes(running)
    started = closing(AnyNode(name, **values | others)).state()
    by_chance = differences(running.state(), closing(AnyNode(name, **values)).state())
    set_one_by_one(running, others)
    assert setting_values(running.node.params).items() >= others.items()
    missing = {path for path in differences(running.state(), started) - by_chance
               if not any(part in path for part in LATER.get(name, ()))}
    assert not missing


def test_what_is_chosen_at_the_start_stays(closing, kind):
    name, values = kind
    node = closing(AnyNode(name, **values))
    fixed = {field: default for field, (_, default, info) in node.fields.items() if info.read_only}
    assert AT_START.get(name) in (None, {
        field for field in fixed if node.fields[field][0] in (float, int, bool)})
    for field, default in fixed.items():
        result, = node.node.set_parameters(parameters(**{field: default}))
        assert 'read-only' in result.reason, f'{field} was changed'


def test_what_was_learnt_outlasts_every_change(closing, kind):
    name, values = kind
    if name == 'simulator':
        pytest.skip('it learns nothing')
    node = closing(AnyNode(name, **values))
    others = changes(node)
    node.stand()
    after = node.state()
    for parameter, value in others.items():
        before, default = after, node.fields[parameter][1]
        if default == []:
            continue
        set_one_by_one(node, {parameter: value})
        set_one_by_one(node, {parameter: default})
        restarted, after = RESTARTED.get(parameter, ()), node.state()
        lost = {path for path in differences(before, after) if not any(
            part in path for part in ([restarted] if isinstance(restarted, str) else restarted))}
        assert not lost, parameter
