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
"""Calibrated inertials in the user's MJCF and as YAML; MuJoCo itself is the judge."""

import difflib
import re
from xml.etree import ElementTree

from biped_com_ros.core.errors import RobotDescriptionError
from biped_com_ros.core.identification.output.exports import link_inertias, with_mjcf_inertials
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import for_kinematics, parse_urdf
import numpy as np
import pinocchio as pin
import pytest

mujoco = pytest.importorskip('mujoco')


def mjcf_of(urdf, fuse, path):
    """Return the MJCF that MuJoCo makes of a URDF, on a floating base."""
    robot = ElementTree.fromstring(for_kinematics(parse_urdf(urdf)))
    children = {joint.find('child').get('link') for joint in robot.findall('joint')}
    root = next(link.get('name') for link in robot.findall('link')
                if link.get('name') not in children)
    robot.insert(0, ElementTree.fromstring('<link name="world"/>'))
    robot.append(ElementTree.fromstring(
        f'<joint name="float" type="floating"><parent link="world"/><child link="{root}"/>'
        '</joint>'))
    for joint in robot.findall('joint'):
        for mimic in joint.findall('mimic'):
            joint.remove(mimic)
    robot.append(ElementTree.fromstring(
        f'<mujoco><compiler fusestatic="{fuse}" balanceinertia="true"/></mujoco>'))
    model = mujoco.MjModel.from_xml_string(ElementTree.tostring(robot, encoding='unicode'))
    mujoco.mj_saveLastXML(str(path), model)
    return path.read_text()


def calibrated(model, seed=0):
    """Return a URDF with other masses and centres of mass."""
    rng = np.random.default_rng(seed)
    return with_inertials(model.urdf, {
        name: NewInertial(mass * rng.uniform(0.7, 1.5), com + 0.02 * rng.normal(size=3))
        for name, mass, com in zip(model.link_names, model.link_masses,
                                   model.link_coms_in_link)})


@pytest.mark.parametrize('fuse', ('true', 'false'))
@pytest.mark.parametrize('name', ('talos', 'g1'))
def test_mujoco_loads_the_calibrated_robot(name, fuse, tmp_path):
    """Mass, centre of mass and joint-space inertia in random postures, against Pinocchio."""
    model, rng = RobotModel.load(name), np.random.default_rng(1)
    before = mjcf_of(model.urdf, fuse, tmp_path / 'before.xml')
    urdf = calibrated(model)
    text = with_mjcf_inertials(before, urdf)
    changed = [line[1:].strip() for line in difflib.ndiff(
        before.splitlines(), text.splitlines()) if line[:1] in '+-']
    assert changed and all(line.startswith('<inertial ') for line in changed)
    plant = mujoco.MjModel.from_xml_string(text)
    data, truth = mujoco.MjData(plant), pin.buildModelFromXML(
        for_kinematics(parse_urdf(urdf)), pin.JointModelFreeFlyer())
    pin_data, names = truth.createData(), list(truth.names)[2:]
    address = [int(plant.joint(joint).qposadr[0]) for joint in names]
    dofs = [int(plant.joint(joint).dofadr[0]) for joint in names]
    assert plant.body_mass.sum() == pytest.approx(
        sum(inertia.mass for inertia in truth.inertias), rel=1e-7)
    for _ in range(3):
        q = pin.neutral(truth)
        q[7:] = rng.uniform(-1.0, 1.0, len(names))
        data.qpos[:7], data.qpos[address] = (0, 0, 0, 1, 0, 0, 0), q[7:]
        mujoco.mj_forward(plant, data)
        np.testing.assert_allclose(
            data.subtree_com[0], pin.centerOfMass(truth, pin_data, q), atol=1e-7)
        v, momentum = np.zeros(plant.nv), np.zeros(plant.nv)
        v[dofs] = rng.normal(size=len(dofs))
        mujoco.mj_mulM(plant, data, momentum, v)
        M = np.triu(pin.crba(truth, pin_data, q))[6:, 6:]
        expected = (M + np.triu(M, 1).T) @ v[dofs] + plant.dof_armature[dofs] * v[dofs]
        np.testing.assert_allclose(momentum[dofs], expected, atol=1e-5)


HAND_MADE = """<mujoco model="mine">
  <!-- <body name="a"><inertial pos="9 9 9" mass="9"/></body> -->
  <compiler angle="degree"/>
  <default><geom rgba="1 0 0 1"/></default>
  <worldbody>
    <light pos="0 0 3"/>
    <body name="a" pos="0 0 1">
      <freejoint/>
      <geom size="0.1" mass="2"/>
      <body name="sensor"><inertial pos="0 0 0" mass="0.5" diaginertia="1 1 1"></inertial></body>
      <body name="b" pos="0 0 0.2" euler="0 0 30"><inertial mass='1' pos='0 0 0'
         diaginertia="0.1 0.1 0.1"/><joint name="j" axis="0 1 0"/><geom size="0.1"/></body>
    </body>
  </worldbody>
</mujoco>
"""
SMALL = """<robot name="r">
<link name="a"><inertial><origin xyz="0.1 0 0" rpy="0 0 1.5707963267949"/><mass value="3"/>
<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link>
<link name="tip"><inertial><origin xyz="0 0 0.1"/><mass value="1"/>
<inertia ixx="0.001" iyy="0.001" izz="0.001"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><limit lower="-1" upper="1"
effort="1" velocity="1"/></joint>
<joint name="k" type="fixed"><parent link="b"/><child link="tip"/><origin xyz="0 0 0.3"
rpy="3.14159265358979 0 0"/></joint></robot>"""


def test_a_hand_made_model_keeps_all_else():
    text = with_mjcf_inertials(HAND_MADE, SMALL)
    without = re.compile(r'<inertial[^>]*>')
    assert without.sub('', text) == without.sub('', HAND_MADE)
    assert '<!-- <body name="a"><inertial pos="9 9 9" mass="9"/></body> -->' in text
    plant = mujoco.MjModel.from_xml_string(text)
    a, b = plant.body('a'), plant.body('b')
    assert a.mass[0] == 3.0 and a.ipos == pytest.approx((0.1, 0.0, 0.0))
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, a.iquat)
    inertia = R.reshape(3, 3) @ np.diag(a.inertia) @ R.reshape(3, 3).T
    assert inertia == pytest.approx(np.diag((0.03, 0.02, 0.04)), abs=1e-9)  # turned by 90 deg
    # The tip is upside down: its centre of mass is at 0.3 - 0.1 m.
    assert b.mass[0] == 2.0 and b.ipos == pytest.approx((0.0, 0.0, 0.1))
    assert plant.body('sensor').mass[0] == 0.5  # no link of the URDF


@pytest.mark.parametrize(('old', 'new', 'message'), [
    ('name="b"', 'name="c"', "link 'b' has mass but no body: the MJCF needs a body of the name "),
    ('angle="degree"', 'inertiafromgeom="true"', 'ignores every <inertial>: set it to "auto"'),
    ('</mujoco>', '', 'the MJCF is not well-formed XML')])
def test_models_that_do_not_fit_are_refused(old, new, message):
    with pytest.raises(RobotDescriptionError, match=message):
        with_mjcf_inertials(HAND_MADE.replace(old, new), SMALL)


def test_inertias_of_links_are_along_their_frames():
    found = link_inertias(parse_urdf(SMALL))
    assert np.diag(found['a'].inertia) == pytest.approx((0.03, 0.02, 0.04))
