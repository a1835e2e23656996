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
"""The calibrated URDF: new inertials, and not a byte elsewhere."""

import difflib

from biped_com_ros.core.errors import InputError, RobotDescriptionError, UnknownNameError
from biped_com_ros.core.identification.output.urdf_inertials import (
    consistent_inertia, NewInertial, with_inertials)
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest

ODD = """
<?xml version='1.0'?>
<!-- <link name="a"><inertial><mass value="9"/></inertial></link> -->
<robot name="odd">
\t<link name="a">  <!-- keeps > its comment -->
    <inertial  ><mass
        value = '2.0' /><origin rpy="0 0 0.5" xyz="1 2
          3"></origin><inertia ixx="1" iyy='1' izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="7 7 7"/><geometry><box size="1 1 1"/></geometry></visual>
  </link>
  <link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>
  <gazebo><link name="a"><inertial><mass value="5"/></inertial></link></gazebo>
  <link name="c\u00e4"/>
  <joint name="k" type="fixed"><parent link="a"/><child link="c\u00e4"/></joint>
</robot>
"""


@pytest.mark.parametrize('name', ('three_link', 'sabian', 'talos', 'g1', 'icub'))
def test_only_inertials_change(name):
    model, rng = RobotModel.load(name), np.random.default_rng(0)
    new = {link: NewInertial(mass * rng.uniform(0.7, 1.5), com + rng.normal(size=3) * 0.02)
           for link, mass, com in zip(model.link_names, model.link_masses,
                                      model.link_coms_in_link)}
    text = with_inertials(model.urdf, new)
    calibrated = RobotModel(model.config, text)
    np.testing.assert_allclose(
        calibrated.link_masses, [new[n].mass for n in model.link_names], rtol=1e-8)
    np.testing.assert_allclose(
        calibrated.link_coms_in_link, [new[n].com for n in model.link_names], atol=1e-9)
    changed = [line[1:].strip() for line in difflib.ndiff(
        model.urdf.splitlines(), text.splitlines()) if line[:1] in '+-']
    assert changed
    assert all(line.startswith(('<mass', '<origin', '<inertia', '<inertial', 'ixx', 'ixy', 'iy'))
               or 'inertia' in line for line in changed)
    q = model.posture('stand')
    np.testing.assert_allclose(calibrated.state(q).placements_in_base(calibrated.soles),
                               model.state(q).placements_in_base(model.soles), atol=1e-12)


def test_nothing_to_change_changes_nothing():
    model = RobotModel.load('talos')
    assert with_inertials(model.urdf, {}) == model.urdf


def test_odd_formatting_stays():
    text = with_inertials(ODD, {'a': NewInertial(4.0, np.array((-0.5, 0.25, 0.0))),
                                'b': NewInertial(0.5, np.array((0.1, 0.0, 0.0)))})
    assert "value = '4' />" in text and 'xyz="-0.5 0.25 0"' in text and 'rpy="0 0 0.5"' in text
    assert '<inertial><origin xyz="0.1 0 0"/><mass value="0.5"/>' in text
    assert 'ixx="2" iyy=\'2\' izz="2" ixy="0"' in text
    assert '<inertia ixx="0.5" iyy="0.5" izz="0.5"/>' in text
    for kept in ('<!-- <link name="a"><inertial><mass value="9"/></inertial></link> -->',
                 '<!-- keeps > its comment -->', '<visual><origin xyz="7 7 7"/>',
                 '<gazebo><link name="a"><inertial><mass value="5"/></inertial></link></gazebo>',
                 '<link name="c\u00e4"/>'):
        assert kept in text


def test_inertia_that_no_body_has_is_mended():
    broken = np.diag((1.0, 1.0, 5.0))
    mended = consistent_inertia(broken)
    moments = np.linalg.eigvalsh(mended)
    assert moments[0] + moments[1] >= moments[2] - 1e-9
    good = np.diag((1.0, 2.0, 2.5))
    np.testing.assert_array_equal(consistent_inertia(good), good)
    text = with_inertials(ODD.replace('izz="1" ixy', 'izz="9" ixy'),
                          {'a': NewInertial(2.0, np.zeros(3))})
    assert 'ixx="4.5" iyy=\'4.5\' izz="9"' in text


def test_nonsense_is_refused():
    com = np.zeros(3)
    with pytest.raises(UnknownNameError, match='link with mass'):
        with_inertials(ODD, {'c\u00e4': NewInertial(1.0, com)})
    with pytest.raises(InputError, match='above zero'):
        with_inertials(ODD, {'a': NewInertial(0.0, com)})
    with pytest.raises(InputError, match='three numbers'):
        with_inertials(ODD, {'a': NewInertial(1.0, np.full(3, np.nan))})
    with pytest.raises(RobotDescriptionError):
        with_inertials('<robot', {})
