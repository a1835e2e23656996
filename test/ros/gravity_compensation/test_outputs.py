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
"""What the node publishes, and parameters that change at run time."""

import math

from biped_com_ros.core.gravity.effort_limiter import EffortLimiter
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from rclpy.parameter import Parameter
from std_msgs.msg import Float64MultiArray
from support.gravity_rig import GravityRig
from trajectory_msgs.msg import JointTrajectory


def test_balances_the_robot_and_publishes_the_support(rig):
    assert rig.state() == 'active'
    assert rig.efforts[-1].name == list(rig.model.actuated_joint_names)
    first = np.array(rig.efforts[0].effort)
    assert np.abs(first).max() < 0.2 * np.abs(rig.last).max()  # a soft start
    rig.until(lambda: rig.wrenches, 'wrench')
    force = rig.wrenches[-1].wrench.force
    np.testing.assert_allclose(
        [force.x, force.y, force.z], rig.expected().wrenches[0, :3], atol=1e-3)
    assert rig.wrenches[-1].header.frame_id == 'left_sole_link'
    assert rig.modes[-1].data == 'left, right'
    np.testing.assert_allclose(rig.commands[-1].data, rig.last, atol=0.5)
    rig.until(lambda: rig.status()[0] == DiagnosticStatus.OK, 'diagnostics')


@pytest.fixture
def plan(rig):
    """Return a function that publishes planned shares until something holds."""
    publisher = rig.publisher(Float64MultiArray, 'gait_player/shares')

    def publish_until(shares, condition):
        rig.until(lambda: publisher.publish(Float64MultiArray(data=shares)) or condition())
        rig.until(rig.is_balanced, 'efforts by the measured shares')
    return publish_until


def test_planned_shares_are_used(rig, plan):
    expected = rig.expected((0.54, 0.46)).efforts
    plan([0.54, 0.46], lambda: np.abs(rig.last - expected).max() < 0.05)


@pytest.mark.parametrize(('shares', 'line', 'level', 'texts'), (
    ([math.nan, 1.0], 'effort', DiagnosticStatus.WARN, ("gait_player/shares'", 'data[0] = nan')),
    ([0.5], 'effort', DiagnosticStatus.WARN, ("gait_player/shares'", 'it has 1 values; valid: 2')),
    ([2.0, -1.0], 'callbacks', DiagnosticStatus.ERROR, ('planned shares [2.0, -1.0]',))))
def test_a_plan_that_makes_no_sense_is_not_used(rig, plan, shares, line, level, texts):
    def is_reported():
        status = rig.statuses.get(line, (None, ''))
        return status[0] == level and all(text in status[1] for text in texts)
    plan(shares, is_reported)


def trajectories_of(rig):
    return rig.collect(JointTrajectory, 'gravity_compensation/joint_trajectory', publishers=0)


def test_trajectories_have_positions_and_efforts_and_replace_commands(make, talos):
    rig = make(trajectory_rate=50.0)
    received = trajectories_of(rig)
    rig.until(lambda: received and rig.is_balanced() and np.allclose(
        received[-1].points[0].effort, rig.expected().efforts, atol=0.01), 'trajectory')
    message = received[-1]
    assert message.joint_names == list(talos.actuated_joint_names)
    assert [point.time_from_start.nanosec for point in message.points] == [
        40_000_000, 60_000_000, 80_000_000, 100_000_000, 300_000_000]
    # From the joint states on, however late it arrives, and at rest in the end.
    assert message.header.stamp in [efforts.header.stamp for efforts in rig.efforts]
    for point in message.points:
        np.testing.assert_allclose(point.positions, rig.positions)
        assert not any(point.velocities) and not len(point.accelerations)
        assert point.effort == message.points[0].effort
    assert not rig.commands and not rig.node.count_publishers('gravity_compensation/commands')


def test_bounded_distribution(make):
    pytest.importorskip('proxsuite')
    rig = make(distribution='bounded')
    rig.until(rig.is_balanced, 'efforts')


def test_groups_gains_and_support_change_at_run_time_as_ramps(make):
    rig = make()
    rig.until(rig.is_balanced, 'efforts')
    arms = rig.model.group_index('left_arm')
    rig.node.set_parameters([Parameter('groups', value=['left_arm'])])
    others = np.setdiff1d(np.arange(len(rig.model.joint_names)), arms)
    rig.until(lambda: not rig.last[others].any(), 'ramp of the others')
    np.testing.assert_allclose(rig.last[arms], rig.expected().efforts[arms], atol=0.01)
    joint = rig.model.joint_names[arms[0]]
    rig.node.set_parameters_atomically([
        Parameter('gain_joints', value=[joint]), Parameter('gains', value=[0.5])])
    rig.until(lambda: abs(rig.last[arms[0]] - 0.5 * rig.expected().efforts[arms[0]]) < 0.01,
              'gain')
    rig.node.set_parameters([
        Parameter('groups', Parameter.Type.STRING_ARRAY, []), Parameter('support', value='fixed')])
    fixed = rig.load().fixed_base_efforts()
    fixed[arms[0]] *= 0.5
    rig.until(lambda: np.allclose(rig.last, fixed, atol=0.01), 'fixed base')


@pytest.mark.parametrize('trajectory_rate', [0.0, 100.0])
def test_nothing_is_commanded_that_has_not_passed_the_guard(make, monkeypatch, trajectory_rate):
    """Whatever the limiter gives is published, and nothing else, in all states."""
    marks = iter(range(1, 10 ** 6))
    limit = EffortLimiter.update

    def mark(limiter, target, dt):
        limit(limiter, target, dt)
        return np.full(len(limiter.efforts), float(next(marks)))

    monkeypatch.setattr(EffortLimiter, 'update', mark)
    monkeypatch.setattr(GravityRig, 'check', lambda *_: None)
    rig = make(trajectory_rate=trajectory_rate)
    trajectories = trajectories_of(rig)
    rig.until(lambda: len(rig.commands) > 60 or len(trajectories) > 20, 'commands')
    for missing in ({'joints'}, {'imu'}, set()):
        rig.stand(missing=missing)
        rig.play(0.2)
    rig.node.set_parameters([Parameter('support', value='fixed')])
    rig.play(0.2)
    rig.node.trigger_deactivate()
    rig.play(0.3)
    efforts, commands = [m.effort for m in rig.efforts], [m.data for m in rig.commands]
    last = next(marks)
    assert len(commands) > 100 or len(trajectories) > 50
    for values in [*efforts, *commands, *(m.points[0].effort for m in trajectories)]:
        assert len(set(values)) == 1 and values[0] in range(1, last)
    for published in (efforts, commands):
        numbers = [values[0] for values in published]
        assert numbers == sorted(set(numbers))  # each step once
