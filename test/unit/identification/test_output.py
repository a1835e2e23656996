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

"""What a calibration writes: URDF, MJCF, numbers and the report."""

from dataclasses import replace
from datetime import datetime
import difflib
from html.parser import HTMLParser
import json
import re
from xml.etree import ElementTree

from biped_com_ros.core.errors import (
    ConfigurationError, InputError, RobotDescriptionError, UnknownNameError)
from biped_com_ros.core.files import make_directory
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.output.exports import with_mjcf_inertials
from biped_com_ros.core.identification.output.report import html_report, PRIOR_SHARE
from biped_com_ros.core.identification.output.results import summary, write_results
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.inertias import consistent_inertia, link_inertias
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import for_kinematics, parse_urdf
import numpy as np
import pytest
from support.statics_data import PERFECT, TrueRobot, without_torques

mujoco = pytest.importorskip('mujoco')


def mjcf_of(urdf, fuse, path):
    """Return what MuJoCo makes of a URDF, on a floating base, and its MJCF of six digits."""
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
    return model, path.read_text()


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
    """Masses, centres of mass and inertias are those that MuJoCo makes of the calibrated URDF."""
    model = RobotModel.load(name)
    urdf, (_, before) = calibrated(model), mjcf_of(model.urdf, fuse, tmp_path / 'before.xml')
    text = with_mjcf_inertials(before, urdf)
    changed = [line[1:].strip() for line in difflib.ndiff(
        before.splitlines(), text.splitlines()) if line[:1] in '+-']
    assert changed and all(line.startswith('<inertial ') for line in changed)
    found, (expected, _) = (mujoco.MjModel.from_xml_string(text),
                            mjcf_of(urdf, fuse, tmp_path / 'after.xml'))
    np.testing.assert_allclose(found.body_mass, expected.body_mass, rtol=1e-7)
    np.testing.assert_allclose(found.body_ipos, expected.body_ipos, atol=1e-7)
    for body in range(found.nbody):
        np.testing.assert_allclose(
            inertia_of(found, body), inertia_of(expected, body), atol=1e-6)


def inertia_of(plant, body):
    """Return the inertia about a body's centre of mass along its frame, kg m^2."""
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, plant.body_iquat[body])
    return R.reshape(3, 3) @ np.diag(plant.body_inertia[body]) @ R.reshape(3, 3).T


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
    turned = np.diag((0.03, 0.02, 0.04))  # by 90 deg
    assert link_inertias(parse_urdf(SMALL))['a'].inertia == pytest.approx(turned, abs=1e-9)
    assert inertia_of(plant, a.id) == pytest.approx(turned, abs=1e-9)
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
    assert with_inertials(model.urdf, {}) == model.urdf
    changed = [line[1:].strip() for line in difflib.ndiff(
        model.urdf.splitlines(), text.splitlines()) if line[:1] in '+-']
    assert changed
    assert all(line.startswith(('<mass', '<origin', '<inertia', '<inertial', 'ixx', 'ixy', 'iy'))
               or 'inertia' in line for line in changed)
    q = model.posture('stand')
    np.testing.assert_allclose(calibrated.state(q).placements_in_base(calibrated.soles),
                               model.state(q).placements_in_base(model.soles), atol=1e-12)


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


@pytest.mark.parametrize(('urdf', 'link', 'mass', 'com', 'error', 'problem'), [
    (ODD, 'c\u00e4', 1.0, 0.0, UnknownNameError, 'link with mass'),
    (ODD, 'a', 0.0, 0.0, InputError, 'above zero'),
    (ODD, 'a', 1.0, np.nan, InputError, 'three numbers'),
    ('<robot', 'a', 1.0, 0.0, RobotDescriptionError, '.')])
def test_nonsense_is_refused(urdf, link, mass, com, error, problem):
    with pytest.raises(error, match=problem):
        with_inertials(urdf, {link: NewInertial(mass, np.full(3, com))})


def test_captures_survive(tmp_path):
    """After every capture the file is complete; the estimate from it is the same."""
    true, path = TrueRobot('sabian'), tmp_path / 'deep' / 'captures.json'
    log = CaptureLog(path, true.model)
    captures = true.captures(6)
    captures[1], = without_torques(captures[1:2])
    for i, capture in enumerate(captures):
        log.append(capture)
        again = CaptureLog(path, true.model)
        assert len(again.captures) == i + 1
    for one, other in zip(captures, again.captures):
        for key, value in vars(one).items():
            np.testing.assert_array_equal(value, getattr(other, key))
    log.append(replace(captures[2], up=captures[3].up))
    assert len(log.captures) == 6  # same name: taken again
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match='another robot'):
        CaptureLog(path, RobotModel.load('talos'))
    assert path.read_bytes() == before
    kept = log.clear()
    assert kept.exists() and not path.exists() and not log.captures
    assert len(json.loads(kept.read_text())['captures']) == 6
    assert not list(path.parent.glob('.*'))
    with pytest.raises(ConfigurationError, match='cannot be written'):
        CaptureLog(kept / 'captures.json', true.model).append(captures[0])


class Balance(HTMLParser):
    """Checks that tags close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags = [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag != 'meta':
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope='module')
def solved():
    """Return a robot, its captures, and the estimate."""
    true = TrueRobot('sabian', seed=3)
    captures = true.captures(15)
    return true, captures, Estimator(true.model, SensorNoise(**PERFECT)).solve(captures)


def test_results(solved, tmp_path):
    true, captures, found = solved
    paths = write_results(tmp_path, true.model, captures, found)
    calibrated = RobotModel(true.model.config, paths['urdf'].read_text())
    np.testing.assert_allclose(calibrated.mass, found.mass, rtol=1e-8)
    data = json.loads(paths['numbers'].read_text())
    assert data['links']['pelvis']['com_std'] and data['mass'] == found.mass
    page, balance = paths['report'].read_text(), Balance()
    balance.feed(page)
    assert not balance.open and {'svg', 'table', 'circle', 'rect'} <= balance.tags
    assert page.count('<figure>') == len(captures) and page.count('<polygon') == 30
    assert page.count('<circle') >= 8 * len(captures) and 'http' not in page.replace(
        'http://www.w3.org/2000/svg', '')
    assert 'poses not used' in summary(found)
    with pytest.raises(ConfigurationError, match='cannot be written to.*another directory'):
        make_directory(paths['report'] / 'results')


def test_the_report_names_robot_and_date_and_folds_what_is_only_the_urdf(solved):
    true, captures, found = solved
    first = replace(found.links[0], data_share=np.zeros_like(found.links[0].data_share))
    found = replace(found, links=(first, *found.links[1:]))
    uninformative = [link.name for link in found.links if link.data_share.max() < PRIOR_SHARE]
    informative = [link.name for link in found.links if link.name not in uninformative]
    page = html_report(true.model, captures, found, datetime(2031, 5, 4, 3, 2))
    for part in ('2031-05-04 03:02', '<td>sabian</td>', 'SHA-256', 'biped_com_ros 0.',
                 f'<td>{len(captures)}</td>'):
        assert part in page
    links = page.split('<h2>Links</h2>')[1].split('<h2>')[0]
    shown, folded = links.removesuffix('</details>').split('<details>')
    for name in uninformative:
        assert f'<td>{name}</td>' in folded and f'<td>{name}</td>' not in shown
        assert f'>{name}</text>' not in page  # nor in the plot
    for name in informative:
        assert f'<td>{name}</td>' in shown and f'<td>{name}</td>' not in folded
    # What is wide scrolls by itself, so that the page does not; legends are words with spots.
    assert 'nats' not in page and 'would add' in page and ' % to that information' in page
    for wide in re.findall(r'(<[^<>]*>)<(?:table|svg)(?![^>]*class="about")', page):
        assert wide in ('<div class="wide">', '<figure>')
    assert page.count('class="legend"') == 4


def test_poses_have_the_numbers_of_the_plots(solved):
    true, captures, found = solved
    named = [replace(captures[0], name='pose 1 at 2.3 s'), replace(captures[1], name=''),
             replace(captures[2], name='by hand 3'), *captures[3:]]
    page = html_report(true.model, named, found)
    for label in ('pose 1 at 2.3 s', 'pose 2', 'pose 3: by hand 3'):
        assert f'<td>{label}</td>' in page and f'<figcaption>{label}</figcaption>' in page


def test_perfect_instruments_are_reported_in_a_plain_sentence(solved):
    true, captures, found = solved
    zero = [replace(e, estimate=0.0) for e in found.instruments.estimates]
    found = replace(found, instruments=replace(found.instruments, estimates=tuple(zero)))
    page = html_report(true.model, captures, found)
    assert 'The poses show no error of an instrument' in page and 'significant' not in page


def test_warnings_and_missing_torques_are_shown(solved):
    true, captures, _ = solved
    captures = without_torques(captures[:8])
    found = replace(Estimator(true.model, SensorNoise(**PERFECT)).solve(captures),
                    warnings=('a <dead> sensor',))
    page = html_report(true.model, captures, found)
    assert 'a &lt;dead&gt; sensor' in page and 'Not measured.' in page
    assert summary(found).endswith('a <dead> sensor')


@pytest.mark.parametrize(('change', 'verdict'), [
    (lambda found: {}, 'use it: on poses not used the horizontal centre of mass is '),
    (lambda found: {'validated': found.before}, 'keep the URDF: '),
    (lambda found: {'validation_ratio': 3.1}, 'do not use it yet: .* are 3.1 times the predicted'),
    (lambda found: {'pose_misfit': found.pose_misfit[:6]},
     'use it with care: .* 6 poses are few; take 10'),
    (lambda found: {'before': without_com(found.before), 'validated': without_com(
        found.validated)}, 'use it: .* the joint torques are .* N m by')])
def test_the_first_sentence_is_whether_to_use_it(solved, change, verdict):
    true, captures, found = solved
    found = replace(found, **change(found))
    assert re.match(verdict, summary(found))
    page = html_report(true.model, captures[:len(found.pose_misfit)], found)
    assert page.index(f'{found.verdict[1:]}.') < page.index('<td>Robot</td>')


def without_com(residuals):
    """Return what a robot without foot sensors leaves."""
    return replace(residuals, com=np.full_like(residuals.com, np.nan))
