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
"""Every key of a robot's YAML is used by what its documentation says."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
import typing

from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.gravity.support_qp import BoundedNorm, SupportLimits
from biped_com_ros.core.model.config import load_robot_config, RobotConfig
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.core.stability.hands import Hands, HandSettings
import numpy as np
import pytest
from support.sources import ROOT, sources


def keys_of(kind):
    """Yield each field of a configuration, also of those inside, as (class, field)."""
    hints = typing.get_type_hints(kind)
    for each in fields(kind):
        yield kind.__name__, each.name
        for inner in inner_classes(hints[each.name]):
            yield from keys_of(inner)


def inner_classes(hint):
    """Yield the dataclasses in an annotation."""
    if is_dataclass(hint):
        yield hint
    for argument in typing.get_args(hint):
        yield from inner_classes(argument)


KEYS = sorted(set(keys_of(RobotConfig)))


@pytest.mark.parametrize(('kind', 'key'), KEYS, ids='.'.join)
def test_every_key_is_read_outside_of_what_checks_it(kind, key):
    """A key that is parsed and checked alone is configured and ignored."""
    readers = [path for path in sources('biped_com_ros')
               if path.name not in ('config.py', 'low_state_config.py', 'corrections.py')
               and f'.{key}' in path.read_text()]
    own = (ROOT / 'biped_com_ros/core/model/config.py').read_text()
    # Names of other things as well are not unique; those here are used by the file itself.
    assert readers or f'self.{key}' in own, f'{kind}.{key} is not used'


def test_every_key_is_documented():
    text = ''.join(path.read_text() for path in sorted((package_share() / 'doc').rglob('*.rst')))
    text += ''.join(path.read_text() for path in sorted(
        (package_share() / 'config/robots').glob('*.yaml')))
    assert [key for _, key in KEYS if key not in text] == []


def recorded(config, reads):
    """Return a copy of a configuration that records which of its keys are read."""
    if isinstance(config, Mapping):
        return {key: recorded(value, reads) for key, value in config.items()}
    if not is_dataclass(config):
        return config
    kind = type(config)

    def read(self, name):
        if name in kind.__dataclass_fields__:
            reads.add((kind.__name__, name))
        return kind.__getattribute__(self, name)

    watched = object.__new__(type(kind.__name__, (kind,), {'__getattribute__': read}))
    for each in fields(config):
        object.__setattr__(watched, each.name, recorded(getattr(config, each.name), reads))
    return watched


CONFIG = load_robot_config('biped')
LEANING = replace(CONFIG, hands={name: replace(hand, source='virtual', normal=(0.0, 1.0, 0.0))
                                 for name, hand in CONFIG.hands.items()})
URDF = load_urdf(CONFIG)
CONTACTS = 'left', 'right', 'left_hand', 'right_hand'
#: What a leaning hand's YAML says counts wherever hands are contacts.
CONSUMERS = {
    'gravity_compensation': lambda model: BoundedNorm(
        GravityModel(model, contacts=CONTACTS), SupportLimits()),
    'zmp_monitor': lambda model: hands_touch(model)}


def hands_touch(model):
    """Let both hands lean with some force."""
    hands = Hands(model, HandSettings(), model.mass)
    placed = [*model.state(model.posture()).placements_in_base(
        model.frames(hand.frame for hand in LEANING.hands.values()))]
    wrench = [0.0, 30.0, 0.0, 0.0, 0.0, 0.0]
    for stamp_ns in range(0, 10**9, 10**7):
        contacts = hands.contacts(stamp_ns, placed, [wrench] * 2)
    assert len(contacts) == 2


@pytest.mark.parametrize('consumer', CONSUMERS)
def test_hands_are_contacts_as_configured(consumer):
    reads = set()
    model = RobotModel(recorded(LEANING, reads), URDF)
    reads.clear()
    CONSUMERS[consumer](model)
    assert {('HandConfig', 'frame'), ('HandConfig', 'contact'), ('HandConfig', 'normal')} <= reads


def test_recording_changes_nothing():
    reads = set()
    model = RobotModel(recorded(CONFIG, reads), URDF)
    plain = RobotModel(CONFIG, URDF)
    positions = plain.posture()
    assert model.state(positions).com_in_base == pytest.approx(plain.state(positions).com_in_base)
    assert ('RobotConfig', 'base_rpy') in reads and np.isfinite(model.mass)
