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
"""Settings that are declared once: names, ranges, nesting, errors."""

from __future__ import annotations

from dataclasses import dataclass, FrozenInstanceError
import math
import re

from biped_com_ros.core.errors import ConfigurationError, SettingError, UnknownNameError
from biped_com_ros.core.settings import (
    make_settings, setting, setting_fields, Settings, settings, settings_from_lines)
import pytest
from support.settings import setting_values


@dataclass(frozen=True, kw_only=True)
class Wheel(Settings):
    """A wheel."""

    radius: float = setting(0.1, 'Radius of a wheel', 'm', 0.01, 1.0)
    spokes: int = setting(5, 'Number of spokes', '', 0, 100, read_only=True)
    kind: str = setting('hard', 'Tyre', options=('hard', 'soft'))
    load: float = setting(3.0, 'Load', 'N', 0.0, name='weight')
    stiffness: float = setting(1e5, 'Stiffness', 'N/m', 0.0, math.inf)
    #: Play of the bearing, m.
    play: float = 0.002

    def __post_init__(self):
        super().__post_init__()
        if self.play > self.radius:
            raise SettingError(f"'play' is {self.play}; it must be below 'radius'")


@dataclass(frozen=True, kw_only=True)
class Axle(Settings):
    """Two wheels."""

    width: float = setting(0.4, 'Width', 'm', 0.1, 2.0)
    left: Wheel = settings(Wheel, 'left_{}')
    right: Wheel = settings(Wheel, 'right_{}', spokes=7, radius=0.3)


@dataclass(frozen=True)
class Cart:
    """Two axles, whose names from outside the axle decides."""

    name: str = setting('cart', 'Name')
    tags: list[str] = setting([], 'Tags')
    axle: Axle = settings(Axle, 'front_{}')


def test_names_from_outside_follow_the_patterns_and_what_has_the_same_name_is_one():
    fields = setting_fields(Cart)
    assert list(fields) == [
        'name', 'tags', 'front_width', 'left_radius', 'left_spokes', 'left_kind', 'weight',
        'left_stiffness', 'right_kind', 'right_stiffness']
    kind, default, info = fields['left_radius']
    assert (kind, default, info.unit, info.read_only) == (float, 0.1, 'm', False)
    assert fields['left_spokes'][2].read_only
    assert setting_values(Cart()) == {name: default for name, (_, default, _) in fields.items()}


def test_values_go_where_they_belong_and_the_rest_keeps_its_default():
    cart = make_settings(Cart, {
        'front_width': 1.0, 'left_radius': 0.2, 'right_kind': 'soft', 'weight': 9.0, 'else': 1})
    assert cart.axle == Axle(
        width=1.0, left=Wheel(radius=0.2, load=9.0),
        right=Wheel(kind='soft', load=9.0, spokes=7, radius=0.3))
    assert make_settings(Cart, {}) == Cart()
    Cart().tags.append('mine')
    assert Cart().tags == []
    with pytest.raises(FrozenInstanceError):
        cart.axle.width = 2.0


@pytest.mark.parametrize(('name', 'value', 'problem'), [
    ('radius', 2.0, "'radius' is 2.0; it must be 0.01 to 1 m"),
    ('radius', math.nan, "'radius' is nan; it must be 0.01 to 1 m"),
    ('load', math.inf, "'load' is inf; it must be at least 0 N"),
    ('load', -1.0, "'load' is -1.0; it must be at least 0 N"),
    ('kind', 'round', "'kind' is round; it must be one of 'hard', 'soft'"),
    ('stiffness', -math.inf, "'stiffness' is -inf; it must be")])
def test_a_value_out_of_its_range_is_refused_by_name(name, value, problem):
    with pytest.raises(SettingError, match=re.escape(problem)):
        Wheel(**{name: value})
    assert Wheel(stiffness=math.inf).stiffness == math.inf


@dataclass(frozen=True)
class Narrow:
    """A wheel with too much play."""

    left: Wheel = settings(Wheel, 'left_{}', play=0.5)


def test_errors_of_nested_settings_have_the_names_from_outside():
    with pytest.raises(SettingError, match="'left_play' is 0.5; it must be below 'left_radius'"):
        make_settings(Narrow, {})


def test_fields_are_documented_by_their_declarations():
    assert 'radius\n        Radius of a wheel [m] (0.01 to 1 m).' in Wheel.__doc__
    assert 'Attributes' in Axle.__doc__


def test_lines_give_settings_by_name():
    found = settings_from_lines(Wheel, ['radius 0.5', '', 'weight 7'], 'property')
    assert found == Wheel(radius=0.5, load=7.0)
    for line, error, problem in (
            ('radus 1', UnknownNameError, "did you mean 'radius'"),
            ('radius', ConfigurationError, "property 'radius' has to be 'radius <number>'"),
            ('radius 1 2', ConfigurationError, "has to be 'radius <number>'"),
            ('radius wide', ConfigurationError, "has to be 'radius <number>'"),
            ('radius 3', SettingError, "'radius' is 3.0; it must be 0.01 to 1 m")):
        with pytest.raises(error, match=re.escape(problem)):
            settings_from_lines(Wheel, [line], 'property')
