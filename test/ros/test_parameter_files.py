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
"""The parameter files of the package say what the code does without them."""

from dataclasses import asdict
from importlib import import_module

from biped_com_ros.core.model.resources import package_share
import pytest
import yaml

NODES = ('com_calibrator', 'com_estimator', 'gait_player', 'gravity_compensation',
         'lowstate_bridge', 'payload_estimator', 'simulator', 'torso_controller',
         'wrench_aggregator', 'zmp_monitor')


@pytest.mark.parametrize('node', NODES)
def test_a_parameter_file_has_every_parameter_with_its_default(node):
    text = (package_share() / 'config' / f'{node}.yaml').read_text()
    module = import_module(f'biped_com_ros.nodes.{node}.parameters')
    defaults = getattr(module, f'{node.title().replace("_", "")}Parameters')()
    assert yaml.safe_load(text)[f'/**/{node}']['ros__parameters'] == asdict(defaults)
