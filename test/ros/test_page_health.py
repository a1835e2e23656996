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
"""What the page knows of the health of nodes and robot: diagnostics, falls, weights."""

from dataclasses import replace

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.viewer.inputs import PageInputs
from biped_com_ros.nodes.viewer.polled_node import PolledNode
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
import numpy as np
import pytest
from std_msgs.msg import String
from support.polled_page import joint_state, LATCHED, MODEL, Polling


@pytest.fixture
def polling(closing):
    """Return page inputs and a robot."""
    return closing(Polling())


def test_diagnostics_of_countless_names_are_not_kept(polling):
    for first in range(0, 3000, 300):
        polling.inputs.add_diagnostics(DiagnosticArray(status=[
            DiagnosticStatus(name=f'node_{first + k}: {"x" * 9000}', message='y' * 9000)
            for k in range(300)]))
    lines = polling.inputs.update(0.0).health
    assert len(lines) == 500
    assert lines[0].name.startswith('node_2500:') and lines[-1].name.startswith('node_2999:')
    assert max(len(line.name) + len(line.message) for line in lines) == 1200


def test_diagnostics_of_another_robot_are_not_shown(polling):
    polling.inputs.add_diagnostics(DiagnosticArray(status=[
        DiagnosticStatus(name='robot2/zmp_monitor: zmp', level=b'\0', message='stable'),
        DiagnosticStatus(name='zmp_monitor: zmp', level=b'\2', message='unstable')]))
    assert [line.message for line in polling.inputs.update(0.0).health] == ['unstable']


def test_diagnostics_that_are_repeated_are_kept(polling):
    """The line that was received last is the last to be dropped."""
    robot = DiagnosticStatus(name='com_estimator: com', message='120 Hz')
    for k in range(2000):
        polling.inputs.add_diagnostics(DiagnosticArray(status=[
            DiagnosticStatus(name=f'node_{k}: part')] + ([robot] if k % 100 == 0 else [])))
    assert 'com_estimator: com' in [line.name for line in polling.inputs.update(0.0).health]


def test_a_node_that_was_killed_is_named_and_its_last_reports_are_not_shown(polling):
    polling.publish('/diagnostics', DiagnosticArray(status=[
        DiagnosticStatus(name='zmp_monitor: zmp', level=b'\0', message='stable'),
        DiagnosticStatus(name='simulator: clock', level=b'\0', message='well')]),
        lambda: len(polling.view.health) == 2)
    polling.publish('zmp_monitor/support_phase', String(data='double'),
                    lambda: polling.view.phase == 'double', qos=LATCHED)
    polling.now += 10.0
    polling.publish('/diagnostics', DiagnosticArray(status=[
        DiagnosticStatus(name='simulator: clock', level=b'\0', message='again')]),
        lambda: any(line.message == 'again' for line in polling.view.health))
    silent, well = sorted(polling.view.health, key=lambda line: -line.level)
    assert (silent.level, silent.name) == (3, 'zmp_monitor') and '10 s' in silent.message
    assert well.level == 0 and polling.view.phase == ''
    assert polling.view.latest('phase') == ('double', pytest.approx(10.0))
    polling.publish('/diagnostics', DiagnosticArray(status=[
        DiagnosticStatus(name='zmp_monitor: zmp', level=b'\0', message='stable')]),
        lambda: polling.view.phase == 'double')


def test_a_latched_text_of_a_node_that_never_reports_is_stale_soon(polling):
    polling.publish('gait_player/state', String(data='walking'),
                    lambda: polling.view.gait == 'walking', qos=LATCHED)
    polling.inputs.update(5.0)
    assert polling.view.gait == 'walking'
    polling.inputs.update(7.0)
    assert polling.view.gait == '' and polling.view.latest('gait') == ('walking', 7.0)


def stability(level, name='zmp_monitor: stability', key='level'):
    """Return a status of stability, as zmp_monitor reports it."""
    return DiagnosticStatus(name=name, level=b'\2', message='text',
                            values=[KeyValue(key='margin [m]', value='-0.9'),
                                    KeyValue(key=key, value=level)])


def test_a_fall_comes_from_the_diagnostics_of_this_robot_and_ends_with_them(polling):
    take = polling.inputs.add_diagnostics
    take(DiagnosticArray(status=[stability('FALLEN', 'robot2/zmp_monitor: stability'),
                                 stability('FALLEN', 'zmp_monitor: zmp')]))
    assert not polling.inputs.update(0.0).has_fallen
    polling.publish('/diagnostics', DiagnosticArray(status=[stability('FALLEN')]),
                    lambda: polling.view.has_fallen)
    polling.inputs.update(7.0)
    assert polling.view.level == '' and polling.view.latest('level') == ('FALLEN', 7.0)
    assert polling.view.has_fallen
    take(DiagnosticArray(status=[stability('STABLE')]))
    assert not polling.inputs.update(8.0).has_fallen
    take(DiagnosticArray(status=[stability('FALLEN')]))
    unknown = DiagnosticStatus(name='zmp_monitor: stability', message='unknown: waiting for x')
    take(DiagnosticArray(status=[unknown]))
    assert not polling.inputs.update(9.0).has_fallen


def test_a_fall_is_known_before_the_next_diagnostics(polling):
    polling.publish('zmp_monitor/event', DiagnosticArray(status=[stability('FALLEN', key='now')]),
                    lambda: polling.view.has_fallen, qos=LATCHED)
    polling.publish('zmp_monitor/event', DiagnosticArray(status=[stability('STABLE', key='now')]),
                    lambda: not polling.view.has_fallen, qos=LATCHED)


def test_nodes_that_have_never_reported_are_named_ten_seconds_after_the_joints(polling):
    polling.inputs.update(100.0)
    assert not polling.view.health, 'without joint states it is the robot that is missing'
    polling.now = 101.0
    stand = MODEL.posture()
    polling.publish('joint_states', joint_state(MODEL.joint_names, stand, stand),
                    lambda: polling.view.positions is not None)
    assert not polling.inputs.update(110.9).health
    take = polling.inputs.add_diagnostics
    take(DiagnosticArray(status=[
        DiagnosticStatus(name='zmp_monitor: zmp', message='100 Hz'),
        DiagnosticStatus(name='robot2/com_estimator: com', message='100 Hz')]))
    health = polling.inputs.update(111.1).health
    assert [(line.name, line.level) for line in health] == [
        ('wrench_aggregator', 3), ('com_estimator', 3), ('zmp_monitor: zmp', 0)]
    assert 'not running' in health[0].message and 'bringup' in health[0].message
    take(DiagnosticArray(status=[DiagnosticStatus(name='com_estimator: com')]))
    assert [line.name for line in polling.inputs.update(112.0).health] == [
        'wrench_aggregator', 'zmp_monitor: zmp', 'com_estimator: com']


def test_a_robot_without_wrenches_needs_no_aggregator():
    polled = PolledNode('viewer_inputs')
    model = RobotModel.load('biped')
    feet = {name: replace(foot, wrench_sensors=()) for name, foot in model.config.feet.items()}
    inputs = PageInputs(polled, RobotModel(replace(model.config, feet=feet), model.urdf))
    inputs.add_joints(0, *[np.zeros(len(model.joint_names))] * 3)
    assert [line.name for line in inputs.update(11.0).health] == ['com_estimator', 'zmp_monitor']
    polled.destroy()


def test_the_weight_is_by_the_gravity_that_is_given():
    polled = PolledNode('viewer_inputs')
    view = PageInputs(polled, MODEL, 1.62).view
    feet = [MODEL.link_names.index(name) for name in ('l_foot', 'r_foot')]
    assert view.weight == pytest.approx(1.62 * MODEL.mass)
    assert view.weight_below_sensors == pytest.approx(1.62 * MODEL.link_masses[feet].sum())
    polled.destroy()


def test_the_weight_is_that_of_the_urdf_that_the_nodes_use(polling):
    view = polling.inputs.update(0.0)
    assert view.weight == pytest.approx(GRAVITY * MODEL.mass) and not view.is_calibrated
    feet = [MODEL.link_names.index(name) for name in ('l_foot', 'r_foot')]
    assert view.weight_below_sensors == pytest.approx(GRAVITY * MODEL.link_masses[feet].sum())
    heavier = MODEL.urdf.replace('<mass value="', '<mass value="1', 1)
    polling.publish('calibrated_description', String(data=heavier),
                    lambda: polling.view.is_calibrated, qos=LATCHED)
    calibrated = RobotModel(MODEL.config, heavier)
    assert calibrated.mass > MODEL.mass + 1.0
    assert polling.view.weight == pytest.approx(GRAVITY * calibrated.mass)
