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
"""Rigs of the node com_estimator."""

import pytest
from support.com_estimator_rig import ComEstimatorRig, RecordedEstimator
from support.small_robot import MAPPING, URDF
from support.stance_motion import LEFT, SwayingMotion
import yaml


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Return a function that writes the small robot's YAML, with changes, and its URDF."""
    def write(**changes):
        directory = tmp_path_factory.mktemp('robot')
        (directory / 'small.urdf').write_text(URDF)
        values = {'urdf': str(directory / 'small.urdf'), **MAPPING, **changes}
        path = directory / 'small.yaml'
        path.write_text(yaml.safe_dump(values))
        return str(path)
    return write


@pytest.fixture(scope='module')
def shared_rig(files, closing_later):
    rig = closing_later(ComEstimatorRig(files(), SwayingMotion(3)))
    rig.warm_up()
    return rig


@pytest.fixture
def rig(shared_rig):
    """Return the shared rig, with the robot on its left foot and all drivers at work."""
    shared_rig.silent, shared_rig.contacts, shared_rig.bad = set(), LEFT, {}
    # A new world, with its origin below the left sole.
    shared_rig.node.base.reset()
    shared_rig.play(5)
    shared_rig.clear()
    return shared_rig


@pytest.fixture
def own_rig(files, closing):
    """Return a function that makes a rig with other parameters."""
    return lambda motion=None, changes=None, **parameters: closing(ComEstimatorRig(
        files(**(changes or {})), motion or SwayingMotion(3), **parameters))


@pytest.fixture
def recorded(closing):
    """Return a function that makes a rig that plays recordings, see `RecordedEstimator`."""
    return lambda *arguments, **values: closing(RecordedEstimator(*arguments, **values))
