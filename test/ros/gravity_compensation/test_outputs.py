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

from __future__ import annotations

import math

from biped_com_ros.core.gravity.effort_guard import EffortGuard
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
    support = rig.expected()
    rig.until(lambda: rig.wrenches, 'wrench')
    force = rig.wrenches[-1].wrench.force
    np.testing.assert_allclose(
        [force.x, force.y, force.z], support.wrenches[0, :3], atol=1e-3)
    assert rig.wrenches[-1].header.frame_id == 'left_sole_link'
    assert rig.modes[-1].data == 'left, right'
    np.testing.assert_allclose(rig.commands[-1].data, rig.last, atol=0.5)
    rig.until(lambda: rig.status()[0] == DiagnosticStatus.OK, 'diagnostics')


def test_planned_shares_are_used(rig):
    publisher = rig.peer.create_publisher(Float64MultiArray, 'gait_player/shares', 10)
    expected = rig.expected((0.54, 0.46)).efforts

    def is_used():
        publisher.publish(Float64MultiArray(data=[0.54, 0.46]))
        return np.abs(rig.last - expected).max() < 0.05

    rig.until(is_used, 'planned shares')
    rig.until(rig.is_balanced, 'measured shares')


@pytest.mark.parametrize(('shares', 'text'), (
    ([math.nan, 1.0], 'data[0] = nan'), ([0.5], 'it has 1 values; valid: 2')))
def test_a_plan_that_cannot_be_read_is_not_used(rig, shares, text):
    publisher = rig.peer.create_publisher(Float64MultiArray, 'gait_player/shares', 10)

    def is_reported():
        publisher.publish(Float64MultiArray(data=shares))
        level, message = rig.status()
        return level == DiagnosticStatus.WARN and "gait_player/shares'" in message and (
            text in message)

    rig.until(is_reported, 'diagnostics')
    assert rig.is_balanced()


def test_a_plan_that_is_invalid_is_not_used(rig):
    publisher = rig.peer.create_publisher(Float64MultiArray, 'gait_player/shares', 10)

    def is_reported():
        publisher.publish(Float64MultiArray(data=[2.0, -1.0]))
        status = rig.statuses.get('callbacks')
        return status is not None and 'planned shares [2.0, -1.0]' in status[1]

    rig.until(is_reported, 'diagnostics')
    rig.until(rig.is_balanced, 'efforts by the measured forces')


def test_trajectories_have_positions_and_efforts_and_replace_commands(make, talos):
    rig, received = make(trajectory_rate=50.0), []
    rig.peer.create_subscription(
        JointTrajectory, 'gravity_compensation/joint_trajectory', received.append, 10)
    rig.until(lambda: received and rig.is_balanced() and np.allclose(
        received[-1].points[0].effort, rig.expected().efforts, atol=0.01), 'trajectory')
    message = received[-1]
    assert message.joint_names == list(talos.actuated_joint_names)
    assert [point.time_from_start.nanosec for point in message.points] == [
        40_000_000, 60_000_000, 80_000_000, 100_000_000, 300_000_000]
    # From the joint states on, however late it arrives, and at rest in the end.
    rig.until(lambda: message.header.stamp in [efforts.header.stamp for efforts in rig.efforts],
              'the efforts of that instant')
    for point in message.points:
        np.testing.assert_allclose(point.positions, rig.positions)
        assert not any(point.velocities) and not len(point.accelerations)
        assert point.effort == message.points[0].effort
    assert not rig.commands and not rig.node.count_publishers('gravity_compensation/commands')


def test_bounded_distribution(make):
    pytest.importorskip('proxsuite')
    rig = make(distribution='bounded')
    rig.until(rig.is_balanced, 'efforts')


def test_groups_gains_and_support_change_at_run_time_as_ramps(rig):
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
    """Whatever the guard gives is published, and nothing else, in all states."""
    marks = iter(range(1, 10 ** 6))
    limit = EffortGuard.update

    def mark(guard, target, dt):
        limit(guard, target, dt)
        return np.full(len(guard.efforts), float(next(marks)))

    monkeypatch.setattr(EffortGuard, 'update', mark)
    monkeypatch.setattr(GravityRig, 'check', lambda rig: None)
    rig, trajectories = make(trajectory_rate=trajectory_rate), []
    rig.peer.create_subscription(
        JointTrajectory, 'gravity_compensation/joint_trajectory', trajectories.append, 10)
    rig.until(lambda: len(rig.commands) > 60 or len(trajectories) > 20, 'commands')
    rig.missing.add('joints')
    rig.play(0.2)
    rig.missing = {'imu'}
    rig.play(0.2)
    rig.missing.clear()
    rig.node.set_parameters([Parameter('support', value='fixed')])
    rig.play(0.2)
    rig.node.trigger_deactivate()
    rig.play(0.3)
    messages = [*(m.effort for m in rig.efforts), *(m.data for m in rig.commands),
                *(m.points[0].effort for m in trajectories)]
    last = next(marks)
    assert len(rig.commands) > 100 or len(trajectories) > 50
    for efforts in messages:
        assert len(set(efforts)) == 1 and efforts[0] in range(1, last)
    for published in (rig.efforts, rig.commands):
        numbers = [m.effort[0] if hasattr(m, 'effort') else m.data[0] for m in published]
        assert numbers == sorted(set(numbers))  # each step once
