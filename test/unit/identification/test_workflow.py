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
"""From readings to captures, to disk and back, and to what people read."""

from dataclasses import replace
from datetime import datetime
from html.parser import HTMLParser
import json
import re

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.files import make_directory
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.identification.captures.stillness import CaptureWindow, StillnessOptions
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.output.report import html_report, PRIOR_SHARE
from biped_com_ros.core.identification.output.results import summary, write_results
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest
from support.statics_data import PERFECT, TrueRobot, without_torques

OPTIONS = StillnessOptions(duration=0.5)


def watch_of(true, capture, samples=60, **changes):
    """Feed a still robot's readings at 100 Hz."""
    watch = CaptureWindow(true.model, capture.up_frame, OPTIONS)
    for i in range(samples):
        values = {'positions': capture.positions, 'torques': capture.torques,
                  'wrenches': capture.wrenches + true.rng.normal(size=(len(capture.wrenches), 6)),
                  'up': capture.up}
        values.update({key: change(capture, i) for key, change in changes.items()})
        watch.add(0.01 * i, **values)
    return watch


@pytest.mark.parametrize('standing', (('left',), ('right',), ('left', 'right')))
def test_a_still_robot_is_averaged_and_its_standing_feet_are_found(standing):
    true = TrueRobot('talos')
    exact = true.capture(standing)
    found = watch_of(true, exact).capture('one')
    np.testing.assert_allclose(found.positions, exact.positions)
    np.testing.assert_allclose(found.wrenches, exact.wrenches, atol=0.8)
    np.testing.assert_array_equal(found.in_contact, exact.in_contact)
    assert 0.05 < found.wrench_variance.mean() < 0.5  # of the mean, not of a sample
    assert found.name == 'one' and found.torque_variance.max() < 1e-20


@pytest.mark.parametrize(('samples', 'changes', 'problem'), [
    (60, {'positions': lambda c, i: c.positions + 0.001 * i * (np.arange(27) == 6)},
     "joint '{}' moved"),
    (60, {'wrenches': lambda c, i: c.wrenches + 20.0 * np.sin(i)},
     r'a force varies by 14\.1 N \(still_force_deviation 6 N\)'),
    (60, {'up': lambda c, i: c.up + (0.001 * i, 0, 0)},
     r'the robot tilted by .* deg \(at most 0\.23 deg\)'),
    (5, {}, 'only 5 readings'), (20, {}, 's of readings')])
def test_what_moves_is_not_captured(samples, changes, problem):
    true = TrueRobot('sabian')
    watch = watch_of(true, true.capture(('left',)), samples, **changes)
    with pytest.raises(InputError, match=problem.format(true.model.joint_names[6])):
        watch.capture()
    watch.clear()
    with pytest.raises(InputError, match='only 0 readings'):
        watch.capture()


@pytest.mark.parametrize(('load', 'problem'), [
    (-0.2, "'right' carries .* N .* hardly touches"),
    (np.nan, "foot 'right' has no readings")])
def test_a_foot_that_hardly_touches_is_refused(load, problem):
    true = TrueRobot('talos')
    share = np.ones((len(true.model.config.wrench_sensors), 1))
    share[list(true.model.config.wrench_sensors).index('right_foot')] = load
    with pytest.raises(InputError, match=problem):
        watch_of(true, true.capture(('left',)), wrenches=lambda c, i: share * c.wrenches).capture()


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
    uninformative = [link.name for link in found.links if link.data_share.max() < PRIOR_SHARE]
    informative = [link.name for link in found.links if link.name not in uninformative]
    if not uninformative:  # all links tell something: one that does not
        uninformative, informative = informative[:1], informative[1:]
        found = replace(found, links=tuple(
            replace(link, data_share=np.zeros_like(link.data_share))
            if link.name in uninformative else link for link in found.links))
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
    for wide in re.findall(r'(<[^<>]*>)<(?:table|svg)(?![^>]*class="about")', page):
        assert wide in ('<div class="wide">', '<figure>')
    assert page.count('class="legend"') == 4


def test_warnings_and_missing_torques_are_shown(solved):
    true, captures, _ = solved
    captures = without_torques(captures[:8])
    found = replace(Estimator(true.model, SensorNoise(**PERFECT)).solve(captures),
                    warnings=('a <dead> sensor',))
    page = html_report(true.model, captures, found)
    assert 'a &lt;dead&gt; sensor' in page and 'Not measured.' in page
    assert summary(found).endswith('a <dead> sensor')
