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
"""Text and charts of the page."""

from __future__ import annotations

from html.parser import HTMLParser
import math
import re
from types import SimpleNamespace

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.viz import palette, widgets
from biped_com_ros.viz.charts import Chart, RENEWED, round_range, Strips
from biped_com_ros.viz.figures import Figures
from biped_com_ros.viz.view import ContactView, HealthLine, View
import numpy as np
import pytest


class TextCollector(HTMLParser):
    """Collects the text of HTML, and checks that all tags are closed."""

    def __init__(self, html):
        super().__init__()
        self.text, self._open = '', []
        self.feed(html)
        assert not self._open

    def handle_starttag(self, tag, attributes):
        """Note what has to be closed."""
        if tag != 'br':
            self._open.append(tag)

    def handle_endtag(self, tag):
        """Close what was opened last."""
        assert self._open.pop() == tag

    def handle_data(self, data):
        """Collect."""
        self.text += f' {data}'


def text_of(html):
    """Return the text of HTML, separated by single blanks."""
    return ' '.join(TextCollector(html).text.replace('\u2009', ' ').split())


def test_the_legend_shows_the_errors():
    view = View(points={'truth': np.array((0.010, 0.0, 0.4)), 'com': np.array((0.013, 0.004, 0.4)),
                        'fused': np.array((0.010, 0.001, 0.3955)),
                        'zmp': np.array((0.02, -0.01, 0.0))})
    text = text_of(widgets.legend(view))
    assert 'CoM by the URDF 13, 4, 400 5.00, 0.0 high' in text
    assert 'CoM fused with forces 10, 1, 396 1.00, 4.5 low' in text
    assert view.offset('uncalibrated') is None
    assert 'ZMP measured 20, -10' in text
    for mark in palette.MARKS.values():
        assert mark.label in text
        assert palette.css(mark.colour) in widgets.legend(view)


def forces_on_feet(left=20.0, right=15.5):
    """Return feet with vertical forces."""
    return {side: ContactView(np.array((0.0, 0.0, force, 0.0, 0.0, 0.0)))
            for side, force in (('left', left), ('right', right))}


def test_the_headline_shows_margin_stance_and_weight():
    view = View(feet=forces_on_feet(), margin=0.042, phase='double', time_to_edge=0.5, weight=35.3)
    text = text_of(widgets.headline(view))
    assert '42 mm to the edge' in text and 'stands on both feet' in text
    assert 'weight measured / by the URDF 35.5 N / 35.3 N' in text and 'left foot 20.0 N' in text
    assert palette.css(palette.GOOD) in widgets.headline(view)
    view.margin, view.phase = -0.003, 'single left'
    assert '3 mm over the edge' in text_of(widgets.headline(view))
    assert 'the left foot' in text_of(widgets.headline(view))
    assert palette.css(palette.BAD) in widgets.headline(view)
    assert 'margin unknown' in text_of(widgets.headline(View()))
    view.points['com'] = np.array((0.012, -0.003, 0.4))
    assert text_of(widgets.brief(view)) == (
        '3 mm over the edge CoM [mm] 12, -3, 400 left foot 20.0 N right foot 15.5 N')
    # The very edge is no minus nothing over it; a time to it is shown only when it is short.
    assert '-' not in text_of(widgets.headline(View(margin=0.0))).partition(' mm over')[0]
    assert 'time to the edge' not in text_of(widgets.headline(View(time_to_edge=0.85)))
    assert 'time to the edge 0.21 s' in text_of(widgets.headline(View(time_to_edge=0.21)))


def test_what_no_sensor_weighs_is_in_neither_weight_and_named_as_assumed():
    view = View(feet=forces_on_feet(), weight=35.0, weight_below_sensors=3.0)
    text = text_of(widgets.headline(view))
    assert 'above the sensors, measured / by the URDF 32.5 N / 32.0 N' in text
    assert 'below them, not measured, by the URDF 3.0 N' in text
    view.is_calibrated = True
    text = text_of(widgets.headline(view))
    assert 'measured / by the calibrated URDF 32.5 N / 32.0 N' in text
    assert 'not measured, by the calibrated URDF 3.0 N' in text


def test_of_a_robot_that_has_fallen_nothing_else_is_shown():
    view = View(feet=forces_on_feet(), margin=-0.9, dcm_margin=-1.2, phase='double',
                time_to_edge=0.1, weight=35.0, level='FALLEN',
                points={'com': np.array((0.01, 0.02, 0.1)), 'truth': np.zeros(3)})
    assert text_of(widgets.headline(view)) == 'the robot has fallen'
    assert text_of(widgets.brief(view)) == 'the robot has fallen'
    assert palette.css(palette.BAD) in widgets.headline(view)
    assert view.offset('com') is None and math.isnan(view.error('com'))
    view.level, view.stale = '', {('', 'level'): ('FALLEN', 12.0)}
    assert text_of(widgets.headline(view)) == 'the robot has fallen 12 s ago'
    assert palette.css(palette.BAD) not in widgets.headline(view)
    view.stale = {}
    for level in ('', 'UNSTABLE', 'STABLE'):
        view.level = level
        assert 'fallen' not in text_of(widgets.headline(view))
        assert view.error('com') > 0.0


class NoGui:
    """Stands in for viser's, which makes handles that Figures only stores."""

    def __getattr__(self, name):
        return lambda *_, **__: self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def test_the_page_shows_what_the_demo_does_and_whether_one_may_push():
    assert widgets.story(View()) == widgets.results(View()) == ''
    view = View(story='2/5 Where the masses really are: moves, while it is hoisted',
                results='The URDF\n\tbefore\tafter\nweight <N>\t35.3\t35.6\nit is wrong')
    assert view.chapter == '2/5'
    assert text_of(widgets.story(view)) == (
        '2/5 Where the masses really are The robot moves, while it is hoisted. Please do not '
        'push: the demo measures.')
    assert text_of(widgets.results(view)) == (
        'The URDF before after weight <N> 35.3 35.6 it is wrong')
    view.story = 'stands'
    assert view.chapter == ''
    assert 'The robot stands. You may push it' in text_of(widgets.story(view))


def test_charts_of_balance_end_with_a_fall():
    model = RobotModel.load('biped')
    figures = Figures(NoGui(), model)
    point = np.array((0.01, 0.02, 0.1))
    view = View(feet=forces_on_feet(), margin=0.03,
                dcm_margin=0.04, torso=np.array((0.1, 0.0, 0.0)), tensions=np.full(4, 7.0),
                points={'com': point, 'zmp': point, 'dcm': point, 'truth': np.zeros(3),
                        'uncalibrated': point, 'fused': point})
    figures.sample(view, 0.0)
    view.level, view.margin, view.dcm_margin = 'FALLEN', -0.9, -1.2
    figures.sample(view, 1.0)
    for name in figures.strips.names:
        lasts = name == 'bend' or name.startswith('tendon')
        times, values = figures.strips.data([name])
        assert values[-1] == values[0] != 0.0, name
        assert times[-1] == (0.0 if lasts else -1.0), name


def test_while_the_robot_hangs_the_chart_has_no_error_of_the_com():
    """Nothing locates it in the air: metres of drift would fill the chart."""
    figures, point = Figures(NoGui(), RobotModel.load('biped')), np.array((0.01, 0.02, 0.1))
    view = View(feet=forces_on_feet(), points={
        'com': point, 'truth': np.zeros(3), 'uncalibrated': point, 'fused': point})
    for time, view.phase, height in ((0.0, 'double', 0.1), (1.0, 'flight', 9.0),
                                     (2.0, 'single left', 0.2)):
        point[2] = height
        figures.sample(view, time)
    for name in ('URDF', 'uncalibrated', 'fused'):
        errors = figures.strips.data([name])[1]
        assert errors.max() < 300.0 and errors[0] < errors[-1]
    text = text_of(widgets.legend(view))
    assert 'in the air nothing locates the robot' in text


def test_the_page_explains_a_zmp_outside_of_the_soles():
    text = text_of(widgets.glossary())
    assert 'outside of the polygon, something else carries or pushes the robot' in text


def test_the_chart_of_errors_names_the_calibrated_urdf():
    made = {}

    class ChartGui(NoGui):

        def add_uplot(self, *_, title, **__):
            return made.setdefault(title, SimpleNamespace())

    figures = Figures(ChartGui(), RobotModel.load('biped'))
    view = View(points={'com': np.array((0.01, 0.02, 0.1)), 'truth': np.zeros(3)})

    def labels(time):
        figures.sample(view, time)
        figures.update_charts()
        return [series['label'] for series in made['error of the CoM in 3-D [mm]'].series[1:]]

    assert labels(0.0) == ['URDF']
    view.is_calibrated, view.points['uncalibrated'] = True, np.array((0.03, 0.02, 0.1))
    assert labels(1.0) == ['calibrated URDF', 'uncalibrated']


def test_what_is_stale_is_grey_and_has_its_age():
    """A page that shows a dead topic's last values as if they were of now would deceive."""
    forces = np.array((0.0, 0.0, 20.0, 0.0, 0.0, 0.0))
    lengths, torso = np.full(4, 0.1), np.array((0.1, 0.0, 0.0))
    fresh = View(
        feet={'left': ContactView(forces)}, margin=0.042, phase='double',
        points={'com': np.array((0.01, 0.02, 0.4))}, weight=35.3, tendon_lengths=lengths,
        torso=torso)
    stale = View(feet={'left': ContactView()}, weight=35.3, stale={
        ('left', 'wrench'): (forces, 3.0), ('', 'margin'): (0.042, 4.0),
        ('', 'phase'): ('double', 125.0), ('', 'positions'): (np.zeros(3), 7.0),
        ('point', 'com'): (fresh.points['com'], 5.0), ('', 'tendon_lengths'): (lengths, 6.0),
        ('', 'torso'): (torso, 8.0)})
    for make, parts in (
            (widgets.headline, (
                '42 mm to the edge 4 s ago', 'both feet 2 min ago', 'left foot 20.0 N 3 s ago',
                '20.0 N 3 s ago / 35.3 N', 'joints, as drawn 7 s ago')),
            (widgets.legend, ('10, 20, 400 5 s ago',)),
            (lambda view: widgets.tendons(view, 60.0), ('6 s ago', '8 s ago'))):
        assert ' ago' not in text_of(make(fresh))
        for part in parts:
            assert part in text_of(make(stale))
        assert make(stale).count('placeholder') > make(fresh).count('placeholder')
    assert palette.css(palette.GOOD) not in widgets.headline(stale)
    bars = widgets.effort_bars(['knee'], {}, np.ones(1), np.ones(1), {}, 9.0)
    assert '9 s ago' in text_of(bars) and 'grayscale' in bars


def test_the_terms_of_the_page_are_explained():
    text = text_of(widgets.glossary())
    for word, meaning in widgets.GLOSSARY.items():
        assert f'{word} {meaning}' in text
    shown = text_of(widgets.legend(View())) + text_of(widgets.headline(View(margin=0.1)))
    for word in ('CoM', 'URDF', 'CoM fused with forces', 'error', 'support', 'ZMP', 'DCM',
                 'to the edge'):
        assert word in shown and word in widgets.GLOSSARY


def test_the_page_is_readable_light_and_dark():
    """Words have the page's colour, and nothing that is there for contrast a fixed one."""
    view = View(feet={'left': ContactView()}, tendon_lengths=np.ones(4), margin=0.01)
    for html in (widgets.headline(view), widgets.tendons(view, 60.0), widgets.legend(view),
                 widgets.effort_bars(['knee'], {}, np.ones(1), np.ones(1), {'knee': 0.5})):
        assert not re.search(r'(?<!-)color:#', html)


def test_margins_go_from_red_to_green():
    assert palette.of_margin(-0.01) == palette.of_margin(0.0) == palette.BAD
    assert palette.of_margin(0.01) == palette.FAIR
    assert palette.of_margin(0.02) == palette.of_margin(0.5) == palette.GOOD
    assert palette.of_margin(math.nan) == palette.QUIET
    greens = [palette.of_margin(0.001 * i)[1] - palette.of_margin(0.001 * i)[0]
              for i in range(21)]
    assert all(a <= b for a, b in zip(greens, greens[1:]))


def test_health_shows_the_worst_first_as_the_nodes_word_it():
    reports = [HealthLine(0, 'zmp_monitor: zmp', 'fine'),
               HealthLine(1, 'simulator: simulation', 'slow'),
               HealthLine(2, 'com_estimator: input /imu', 'nobody publishes it; check <driver>'),
               HealthLine(3, 'torso: x', 'old')]
    text = text_of(widgets.health(reports))
    order = [text.index(name) for name in ('com_estimator', 'torso: x', 'simulator')]
    assert order == sorted(order)
    assert 'check <driver>' in text and 'fine' not in text
    assert '1 of 4 checks are OK' in text
    assert 'nothing received on /diagnostics' in text_of(widgets.health([]))


def test_bars_are_as_long_as_the_share_of_the_limit():
    html = widgets.effort_bars(
        ['knee', 'hip', 'neck'], {'leg': ['knee', 'hip']}, np.array((-24.0, 75.0, 1.0)),
        np.array((100.0, 100.0, 0.0)), {'hip': 50.0})
    assert 'left:38.0%;width:12.0%' in html
    assert f'left:50.0%;width:37.5%;height:9px;background:{palette.css(palette.FAIR)}' in html
    assert 'left:calc(75.0% - 1px)' in html
    text = text_of(html)
    assert 'leg knee -24.0 / 100 N m hip 75.0 / 100 N m others neck 1.00 / ? N m' in text
    assert '–' in text_of(widgets.effort_bars(['knee'], {}, None, np.ones(1), {}))


def test_tendons_without_data_are_not_drawn():
    assert 'no data from tendon_states' in text_of(widgets.tendons(View(), 60.0))
    view = View(tendon_lengths=np.array((0.12, 0.13)), tensions=np.array((30.0, math.nan)),
                torso=np.array((0.1, math.pi / 2, -0.001)))
    text = text_of(widgets.tendons(view, 60.0))
    assert 'tendon 0 120.0 mm 30.0 N –' in text and 'tendon 1 130.0 mm – –' in text
    assert '5.73 °' in text and '90 °' in text and '-1.00 mm' in text


@pytest.mark.parametrize('text', ['<script>alert(1)</script>', 'a & b < c'])
def test_text_of_nodes_is_never_markup(text):
    view = View(phase=text, calibration=text)
    for html in (widgets.headline(view), widgets.note(text), widgets.paragraph(text),
                 widgets.health([HealthLine(2, text, text)]),
                 widgets.effort_bars([text], {text: [text]}, None, np.ones(1), {})):
        assert '<script' not in html and text in text_of(html)


def test_before_and_after_are_compared():
    text = text_of(widgets.before_after(0.0034, 0.0002))
    assert 'by the URDF 3.40 mm' in text and '0.20 mm' in text and '17 times' in text


def test_strips_keep_the_last_samples_and_no_more_than_requested():
    strips = Strips(['a', 'b'], span=1.0, rate=10.0)
    taken = [strips.add(0.02 * i, {'a': float(i)}) for i in range(101)]
    assert sum(taken) == 21
    times, a = strips.data(['a'])
    assert len(times) == 10 and times[-1] == 0.0
    np.testing.assert_allclose(np.diff(times), 0.1)
    np.testing.assert_allclose(a, 100.0 + 50.0 * times)
    assert strips.has('a') and not strips.has('b')
    assert np.isfinite(strips.data(['a', 'b'])).all()


def test_strips_bridge_gaps_and_begin_with_the_first_value():
    strips, nothing = Strips(['a', 'b'], span=1.0, rate=10.0), math.nan
    for i, (a, b) in enumerate(
            ((nothing, nothing), (1.0, nothing), (nothing, 5.0), (2.0, 6.0))):
        strips.add(0.1 * i, {'a': a, 'b': b})
    np.testing.assert_allclose(
        strips.data(['a', 'b']), ((-0.2, -0.1, 0.0), (1.0, 1.0, 2.0), (5.0, 5.0, 6.0)))
    strips.add(0.4, {})  # nothing is received any more: lines end, and do not go on as they were
    times, a, b = strips.data(['a', 'b'])
    assert times[-1] == pytest.approx(-0.1) and a[-1] == 2.0


@pytest.mark.parametrize(('values', 'at_least', 'limits'), [
    ((3.4, 3.5), (0.0, 1.0), (0.0, 4.0)), ((74.4, 74.6), (0.0, 20.0), (0.0, 80.0)),
    ((0.0, 0.01), (-20.0, 20.0), (-20.0, 20.0)), ((-33.0, 7.0), (-20.0, 20.0), (-40.0, 20.0))])
def test_axes_end_at_round_numbers(values, at_least, limits):
    assert round_range([np.array(values)], at_least) == pytest.approx(limits)


def test_the_axes_of_a_chart_are_laid_out_again_from_time_to_time():
    """One made in a hidden tab has no width, and gets no numbers on its time axis later."""
    strips, sent = Strips(['a'], rate=10.0), []

    class Handle:

        def __setattr__(self, name, value):
            sent.append(name)

    class Gui:

        def add_uplot(self, *_, **__):
            return Handle()

    chart = Chart(Gui(), strips, 'a', {'a': palette.GOOD}, (0.0, 1.0))
    for k in range(2 * RENEWED):
        strips.add(0.1 * k, {'a': 0.5})
        chart.update()
    assert sent.count('scales') == 2 and sent.count('data') == 2 * RENEWED


@pytest.mark.parametrize('value', [1e300, -1e308, 1.7e308, math.inf, -math.inf, math.nan])
def test_huge_values_neither_overflow_nor_widen_the_page(value):
    strips = Strips(('a', 'b'))
    strips.add(0.0, {'a': 0.0, 'b': 1.0})
    strips.add(1.0, {'a': value, 'b': -value})
    data = strips.data(('a', 'b'))
    low, high = round_range(data[1:], (0.0, 1.0))
    assert math.isfinite(high - low) and low <= min(map(np.min, data[1:]))
    point = np.array((value, -value, value))
    view = View(points={'com': point, 'truth': np.zeros(3), 'zmp': point}, margin=value,
                tensions=np.full(4, value), tendon_lengths=np.full(4, value),
                feet={'left': ContactView(wrench=np.full(6, value))})
    with np.errstate(all='ignore'):
        texts = [widgets.legend(view), widgets.headline(view), widgets.tendons(view, 60.0),
                 widgets.before_after(value, 1e-9),
                 widgets.effort_bars(('a',), {}, np.array([value]), np.ones(1), {})]
    for text in texts:
        assert max(map(len, re.findall(r'[0-9.+-]+', text_of(text))), default=0) < 12


@pytest.mark.parametrize(('value', 'text'), [(-0.2, '0'), (-0.6, '-1'), (0.4, '0')])
def test_a_number_that_rounds_to_zero_has_no_sign(value, text):
    assert widgets.number(value, '°', 0).startswith(f'{text}&thinsp;')
