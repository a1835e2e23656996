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
The demo as a user starts it: simulator, nodes and demo, each a process, over DDS.

What the estimators publish is compared with the simulator's truth here, by code of its own.
"""

import os
import pty
import re
import select
import threading
import time

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.story import chosen_chapters
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from geometry_msgs.msg import PointStamped, WrenchStamped
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from std_msgs.msg import Float64MultiArray
from support.launched import busyness, foreground, LIMIT
from support.levels import thorough_but
from support.observer import common, stamp, vectors
from tf2_msgs.msg import TFMessage
import yaml

GRAVITY = 9.81
#: The one of the day, besides the biped; the variable has all of them tested.
OTHERS = ('talos', 'g1', 'icub', 'romeo', 'g1_as_sold')
EVERY_ROBOT = 'BIPED_COM_ROS_ALL_ROBOTS'
#: The variable that has the chapter in slow motion tested.
EVERY_CHAPTER = 'BIPED_COM_ROS_ALL_CHAPTERS'
pytestmark = pytest.mark.timeout(2 * LIMIT)


def found(pattern, output):
    """Return the numbers that a line of the output has."""
    match = re.search(pattern, output)
    assert match is not None, output[-3000:]
    return tuple(map(float, match.groups()))


class Measured:
    """What the estimators and the simulator publish, by stamp."""

    def __init__(self, observer):
        keep = observer.keep
        self._com = keep(PointStamped, 'com_estimator/com')
        self._truth = keep(PointStamped, 'simulator/truth/com')
        self._zmp = keep(PointStamped, 'simulator/truth/zmp')
        self._contacts = keep(Float64MultiArray, 'simulator/truth/contacts')
        self._wrenches = keep(WrenchStamped, 'wrench_aggregator/wrench')
        self._transforms = keep(TFMessage, 'tf')

    def coms(self, settle=1.5):
        """Return estimates and truth, (N, 3), and when, after the start has settled."""
        estimates, truth = vectors(self._com), vectors(self._truth)
        begin = min(estimates) + settle * 1e9
        return common(estimates, truth, {s: s for s in truth}, after=begin)

    def forces(self):
        """Return the vertical force of the feet by stamp."""
        return {stamp(m): m.wrench.force.z for m in self._wrenches}

    def weights(self):
        """Return what touches the floor carries, over time."""
        weights = [sum(message.data) for message in self._contacts]
        return np.array(weights[len(weights) // 2:])

    def cop_errors(self):
        """Return how far the CoP of the total wrench is from the true ZMP, (2,), by stamp."""
        footprints, zmp = self._footprints(), vectors(self._zmp)
        errors = {}
        for message in self._wrenches:
            when, force, torque = stamp(message), message.wrench.force, message.wrench.torque
            if when in footprints and when in zmp:
                R, p = footprints[when]
                cop = p + R.apply([-torque.y / force.z, torque.x / force.z, 0.0])
                errors[when] = (cop - zmp[when])[:2]
        return errors

    def _footprints(self):
        """Return (R, p) of base_footprint in odom by stamp, from TF."""
        poses = {}
        for t in (t for message in self._transforms for t in message.transforms):
            q, p = t.transform.rotation, t.transform.translation
            when = t.header.stamp.sec * 10**9 + t.header.stamp.nanosec
            poses.setdefault(when, {})[t.header.frame_id, t.child_frame_id] = (
                Rotation.from_quat([q.x, q.y, q.z, q.w]), np.array([p.x, p.y, p.z]))
        footprints = {}
        for when, tree in poses.items():
            if {('odom', 'base_link'), ('base_link', 'base_footprint')} <= tree.keys():
                (R1, p1), (R2, p2) = (tree['odom', 'base_link'],
                                      tree['base_link', 'base_footprint'])
                footprints[when] = R1 * R2, p1 + R1.apply(p2)
        return footprints


def at_rest(stamps, coms):
    """Return the stamps around which the CoM has moved by less than 50 um for half a second."""
    first, last = (np.searchsorted(stamps, stamps + side) for side in (-3e8, 2e8))
    moved = [np.ptp(coms[i:max(j, i + 1)], axis=0).max() for i, j in zip(first, last)]
    return set(stamps[np.array(moved) < 5e-5].tolist())


@pytest.mark.parametrize('robot', thorough_but('biped', 'talos'))
def test_an_exact_robot_is_measured_right_at_rest_and_in_motion(launch, observer, real, robot):
    measured = Measured(observer)
    launch(*foreground('measure', robot), *real, 'hidden:=none', 'duration:=30.0')
    output = observer.until_over()
    estimates, truth, stamps = measured.coms()
    errors = np.linalg.norm(estimates - truth, axis=1)
    assert errors.max() < 3e-3
    assert np.ptp(truth[:, 1]) > 0.01, 'it did not sway'
    assert np.ptp(truth[:, 2]) < 0.2 * truth[:, 2].mean(), 'it fell'
    rest = at_rest(stamps, truth)
    assert errors[[s in rest for s in stamps.tolist()]].max() < 0.5e-3
    forces = np.array([force for s, force in measured.forces().items() if s in rest])
    cop_errors = np.array([error for s, error in measured.cop_errors().items() if s in rest])
    assert len(rest) > 100 and len(forces) > 100 and len(cop_errors) > 30
    weight = GRAVITY * RobotModel.load(robot).mass
    assert forces.mean() == pytest.approx(weight, rel=1e-3)
    assert np.median(measured.weights()) == pytest.approx(weight, rel=1e-3)
    assert np.linalg.norm(cop_errors.mean(axis=0)) < 0.5e-3
    assert 'lifts its arms' in output and 'the URDF describes this robot' in output


@pytest.mark.thorough
def test_feedforward_removes_the_sag_and_torques_are_continuous(launch, observer, steady):
    """They are while the weight is shifted to one foot and back."""
    launch(*foreground('gravity'), *steady, 'hidden:=none', 'once:=true')
    output = observer.until_over()
    without, held = found(r'largest error of a hand +([\d.]+) mm +([\d.]+) mm', output)
    assert without > 1.0 and held < without / 500.0
    assert found(r'weight left on the lifted foot +([\d.]+) %', output) == (0.0,)
    step, = found(r'largest jump of a torque in 2 ms +([\d.]+) % of its limit', output)
    assert 0.0 < step < 0.5


@pytest.mark.thorough
def test_hidden_errors_are_shown_as_they_are(launch, observer, brisk):
    robot, measured = 'talos', Measured(observer)
    launch(*foreground('none', robot), *brisk, 'hidden:=masses', 'seed:=3', 'duration:=6.0')
    output = observer.until_over()
    estimates, truth, _ = measured.coms()
    summary = output[output.index('Over '):]
    shown = found(r'CoM off by [\d.]+ mm \(x ([-+][\d.]+), y ([-+][\d.]+), z ([-+][\d.]+)\)',
                  summary)
    error = (estimates - truth).mean(axis=0)
    assert np.linalg.norm(error) > 1e-3, 'the error of this seed is too small for the test'
    np.testing.assert_allclose(1e-3 * np.array(shown), error, atol=5e-5)
    model = RobotModel.load(robot)
    weight = GRAVITY * model.mass
    below = GRAVITY * model.link_masses[links_below_sensors(model)].sum()
    share = (measured.weights().mean() - GRAVITY * unseen_mass(model, seed=3) - below) / (
        weight - below) - 1.0
    assert abs(share) > 2e-3, 'the mass error of this seed is too small for the test'
    assert found(r'by the URDF: ([-+][\d.]+) %', summary)[0] == pytest.approx(
        100.0 * share, abs=0.1)
    assert 'calibrate it' in summary


def links_below_sensors(model):
    return np.concatenate([
        model.subtree_links(sensor.link or sensor.frame) for foot in model.config.feet.values()
        for sensor in map(model.config.wrench_sensors.get, foot.wrench_sensors)])


def unseen_mass(model, seed):
    """Return the hidden mass below the feet's sensors, which no sensor that is not tared feels."""
    values = yaml.safe_load((package_share() / 'config/hidden/masses.yaml').read_text())
    hidden = values['/**/simulator']['ros__parameters']
    plant = Plant(model.config, model.urdf, PlantOptions(
        seed=seed, com_sigma=hidden['hidden_com_sigma'],
        mass_sigma=hidden['hidden_mass_sigma']), link_names=model.link_names)
    errors = plant.link_masses - model.link_masses
    return errors[links_below_sensors(model)].sum()


def is_due(robot):
    """Return whether a robot is always tested, or is the one of the day."""
    return robot == 'biped' or os.environ.get(EVERY_ROBOT) or robot == OTHERS[
        int(time.time() / 86400.0) % len(OTHERS)]


@pytest.mark.thorough
@pytest.mark.parametrize('robot', ('biped', *OTHERS))
def test_all_chapters_that_fit_the_robot_succeed(launch, observer, brisk, robot):
    if not is_due(robot):
        pytest.skip(f'another robot is due today; {EVERY_ROBOT}=1 tests all')
    try:
        model = RobotModel.load(robot)
    except BipedComError as error:
        pytest.skip(str(error))
    # The others are those of the exact robot above.
    chapters = 'calibration,steps,push' if robot == 'biped' else 'all'
    launched = launch(*foreground(chapters, robot), *brisk, 'hidden:=masses', 'once:=true')
    # At a pace that a busy machine keeps efforts and trajectories are not late.
    for chapter, pace in (('(gravity)' if chapters == 'all' else '(steps)', 0.6), ('(push)', 2.0)):
        observer.until(lambda chapter=chapter: chapter in launched.output, chapter)
        observer.set_parameters('simulator', real_time_factor=pace)
    output = observer.until_over()
    for chapter in chosen_chapters(chapters):
        reason = chapter.missing_for(model)
        assert outcome(output, chapter.name) == (f'skipped: {reason}' if reason else 'shown')
    if 'calibration' in {chapter.name for chapter in chosen_chapters(chapters)} and (
            outcome(output, 'calibration') == 'shown'):
        calibrated, = found(r'centre of mass off by, in 3-D +[0-9.]+ mm +([0-9.]+) mm', output)
        published, = found(r'published by com_estimator +([0-9.]+) mm', output)
        assert published == pytest.approx(calibrated, abs=0.5), output[-3000:]
    if robot == 'biped':
        check_walks(output)
        check_pushes(output)


def outcome(output, name):
    """Return why a chapter was skipped or failed by its line at the end; else 'shown'."""
    line = re.findall(rf'^.* \({name}\): (.+)$', output, re.MULTILINE)
    assert line, output[-3000:]
    return line[-1] if line[-1].startswith(('skipped: ', 'failed: ')) else 'shown'


def check_walks(output):
    rows = re.findall(r'(\d) of (\d) \w+ steps? +([\d.]+) mm +(\d+) mm', output)
    assert [(done, planned) for done, planned, *_ in rows] == [('1', '1'), ('6', '6')]
    for _, _, error, margin in rows:
        assert float(error) < 10.0 and float(margin) > 5.0


def check_pushes(output):
    """Check that the margin falls, that it is warned of, and that the fall is announced."""
    rows = [(*map(float, numbers), then) for *numbers, then in re.findall(
        r'push of ([\d.]+) N +(-?\d+) mm +(-?\d+) mm +(.+)', output)]
    assert len(rows) >= 3, output[-2000:]
    forces, margins, dcm_margins, ends = zip(*rows)
    assert forces == tuple(sorted(forces))
    assert margins[0] > 0.0 > min(margins), 'the margin falls, at last below zero'
    assert dcm_margins[-1] < 0.0, 'the DCM is beyond the feet in a fall'
    assert all(dcm > 0.0 for dcm, end in zip(dcm_margins, ends) if end.startswith('stays stable'))
    assert all('stable' in end or 'marginal' in end or 'recovered' in end for end in ends[:-1])
    # Of the events, not of what is shown once a second: at this pace a fall takes less.
    assert re.match(r'(marginal|stability lost), .*fallen: the base leans by', ends[-1])


@pytest.mark.thorough
def test_hands_on_a_rail_hold_a_robot_that_falls_without_them(launch, observer, brisk):
    rail = package_share() / 'config' / 'demo' / 'rail.yaml'
    launch(*foreground('rail', str(rail)), *brisk, 'hidden:=none', 'once:=true')
    output = observer.until_over()
    rows = {how: (int(margin), rest) for how, margin, rest in re.findall(
        r'CoM 18 mm beyond the toes, (\w+ \w+) .*?(-?\d+) mm +(.+)', output)}
    assert set(rows) == {'without hands', 'hands on'}, output[-2000:]
    margin, rest = rows['without hands']
    assert margin < 0 and 'fallen: ' in rest
    margin, rest = rows['hands on']
    left, right = (float(force) for force in re.findall(r'([\d.]+) N', rest))
    # By moments about the toes: about 5 N each, of which the weight's lever needs 0.5.
    assert margin > 20 and min(left, right) > 2.0 and max(left, right) < 8.0
    assert rest.endswith('stays stable') and not re.search('(failed|skipped): ', output)


@pytest.mark.skipif(not os.environ.get(EVERY_CHAPTER),
                    reason=f'takes minutes; {EVERY_CHAPTER}=1 tests it')
@pytest.mark.thorough
def test_feedback_halves_the_error_on_a_slope_and_the_floor_is_level_afterwards(launch, observer):
    launch(*foreground('slope,measure'), 'hidden:=none', 'once:=true')
    output = observer.until_over()
    rows = {how: (int(steps), float(error)) for how, steps, error in re.findall(
        r'6\.0 deg down, (\S+) feedback +(\d) of 6 +([\d.]+) mm +-?\d+ mm', output)}
    assert set(rows) == {'without', 'with'}, output[-2000:]
    assert rows['without'][0] == rows['with'][0] == 6
    assert rows['with'][1] < 0.5 * rows['without'][1]
    assert outcome(output, 'slope') == outcome(output, 'measure') == 'shown'


@pytest.mark.thorough
def test_interrupt_ends_everything_within_three_seconds(launch):
    """Of a quiet computer, and what a terminal shows until then."""
    terminal, inside = pty.openpty()
    launched = launch(*foreground('all'), stdout=inside)
    os.close(inside)
    text = _read_until(terminal, 'sways to the left')
    assert 'error of the CoM' in text and 'real masses differ' in text
    assert len(launched.commands()) >= 4
    threading.Thread(target=_drain, args=(terminal,), daemon=True).start()
    code, seconds = launched.interrupt()
    assert code == 0 and seconds < 3.0 * busyness()
    assert launched.commands() == []


def _read_until(terminal, words):
    text, until = '', time.monotonic() + LIMIT
    while words not in text:
        assert time.monotonic() < until, text[-3000:]
        if select.select([terminal], [], [], 1.0)[0]:
            text += os.read(terminal, 65536).decode(errors='replace')
    return text


def _drain(terminal):
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass  # the other side is closed
