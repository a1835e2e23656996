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
"""What the monitor makes of one instant."""

import math

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.levels import Level
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.stance import Stance, Twist
from biped_com_ros.core.wrench.contact import ContactThresholds, FootContacts
import numpy as np
import pytest
from support.gripping_robot import with_virtual_hands

MS = 1_000_000
AT_REST = Twist(np.zeros(3), np.zeros(3))


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


def contacts(model):
    return FootContacts(ContactThresholds(engage_dwell=0.0), 9.81 * model.mass, 2)


def located(model, detectors, ns, state, wrenches, twist=None):
    """Return an instant with the contacts that its wrenches show."""
    stance = Stance(state.soles_in_world, detectors.update(wrenches[:, 2].tolist(), ns))
    return LocatedState(ns, state, stance, True, lambda _: twist, wrenches=wrenches.tolist())


def margins(model, shares):
    """Stand, the feet sharing the weight so every 2 ms; return how far inside the ZMP is, m."""
    monitor = StabilityMonitor(model, MonitorSettings())
    state = model.state(model.posture()).in_world(Pose.identity())
    wrenches = np.zeros((2, 6))
    detectors, found = contacts(model), []
    for k, share in enumerate(shares):
        wrenches[:, 2] = np.array((1.0 - share, share)) * 9.81 * model.mass
        wrenches[:, 4] = -0.02 * wrenches[:, 2]  # the centre of each foot, of heel and toe
        found.append(monitor.update(
            located(model, detectors, 2 * k * MS, state, wrenches)).zmp_margin)
    return np.array(found)


def test_a_foot_that_lands_supports_at_once(model):
    found = margins(model, (0.0, 0.0, 0.0, 0.5, 0.5, 0.5))
    assert found[:3] == pytest.approx(0.04, abs=1e-9)  # half the width of a sole
    assert found[3:].min() > 0.07  # half its length


def test_the_zmp_is_between_the_feet_whatever_they_carry(model):
    random = np.random.default_rng(1)
    found = margins(model, random.uniform(0.0, 1.0, 500))
    # But for what a foot carries before it counts: 6 % of the way to it.
    apart = np.diff(model.state(model.posture()).placements_in_base(model.soles)[:, 3, 1])[0]
    assert found.min() > 0.04 - 0.06 * abs(apart) - 1e-9


def test_an_instant_that_is_not_a_number_hides_nothing_that_follows(model):
    monitor = StabilityMonitor(model, MonitorSettings())
    state = model.state(model.posture()).in_world(Pose.identity())
    detectors, wrenches, levels = contacts(model), np.zeros((2, 6)), []
    wrenches[:, 2] = 0.5 * 9.81 * model.mass
    for k in range(20):
        lever = math.nan if k in (0, 5) else 0.02 if k < 10 else 0.12
        wrenches[:, 4] = -lever * wrenches[:, 2]
        monitor.update(located(model, detectors, 2 * k * MS, state, wrenches, AT_REST))
        levels.append(monitor.watch.level)
    assert levels == [Level.STABLE] * 15 + [Level.MARGINAL] * 5  # after its dwell


def test_the_zmp_is_as_uncertain_as_the_wrenches_and_certain_of_internal_forces(model):
    """Random wrenches of a covariance: the ZMP scatters as it says; on soles that are apart."""
    random, weight = np.random.default_rng(2), 9.81 * model.mass
    state = model.state(model.posture()).in_world(Pose.from_rpy((0.0, 0.0, 0.7), (0.3, 0.2, 0.0)))
    mean = np.zeros((2, 6))
    mean[:, 2], mean[0, 4] = (0.7 * weight, 0.3 * weight), 0.01 * weight
    # Each foot by itself; what one pushes sideways the other pushes back, by far more.
    root = 1e-3 * weight * random.normal(size=(12, 12)) * np.tile((1, 1, 1, 0.1, 0.1, 0.1), 2)[
        :, np.newaxis]
    internal = np.zeros(12)
    internal[1], internal[7] = weight, -weight  # the soles are parallel and at the same height
    detectors, monitor = contacts(model), StabilityMonitor(model, MonitorSettings())

    def report(wrenches, covariance):
        instant = located(model, detectors, report.ns, state, wrenches)
        instant.wrench_covariance, report.ns = covariance, report.ns + 2 * MS
        return monitor.update(instant)
    report.ns = 0
    assert report(mean, None).zmp_covariance is None
    stated = report(mean, root @ root.T + np.outer(internal, internal)).zmp_covariance
    found = np.array([report(mean + (root @ random.normal(size=12)).reshape(2, 6),
                             None).zmp_in_world for _ in range(3000)])
    scatter = np.cov(found[:, :2].T)
    np.testing.assert_allclose(stated[:2, :2], scatter, atol=0.1 * np.trace(scatter))
    assert stated[0, 1] ** 2 > 0.01 * stated[0, 0] * stated[1, 1]


def test_a_virtual_hand_makes_the_zmp_as_uncertain_as_its_force(model):
    """Random forces of a covariance on a hand that touches, above and beside the feet."""
    random, weight = np.random.default_rng(4), 9.81 * model.mass
    robot = with_virtual_hands(model)
    state = robot.state(robot.posture()).in_world(
        Pose.from_rpy((0.1, -0.2, 0.7), (0.3, 0.2, 0.0)))
    feet = np.zeros((2, 6))
    feet[:, 2] = 0.45 * weight
    force = np.array((0.03, -0.02, 0.1)) * weight
    root = 0.01 * weight * random.normal(size=(6, 6))
    covariance = root @ root.T  # of both hands, of which one touches
    detectors, monitor = contacts(robot), StabilityMonitor(robot, MonitorSettings())

    def report(change, hands_covariance, touches=True):
        instant = located(robot, detectors, report.ns, state, feet)
        instant.hand_wrenches = (
            [0.0] * 6, [*(force + change).tolist(), 0.0, 0.0, 0.0] if touches else [0.0] * 6)
        instant.hand_covariance, report.ns = hands_covariance, report.ns + 20 * MS
        return monitor.update(instant)
    report.ns = 0
    for _ in range(10):  # until the hand counts
        stated = report(np.zeros(3), covariance)
    assert [hand.name for hand in stated.hands] == ['right']
    # Others than the force of this hand do not count.
    assert report(np.zeros(3), np.kron(np.diag((1.0, 0.0)), covariance[:3, :3])
                  ).zmp_covariance == pytest.approx(np.zeros((3, 3)))
    assert report(np.zeros(3), None).zmp_covariance is None
    found = np.array([report((root @ random.normal(size=6))[3:], None).zmp_in_world
                      for _ in range(3000)])
    scatter = np.cov(found[:, :2].T)
    np.testing.assert_allclose(stated.zmp_covariance[:2, :2], scatter,
                               atol=0.1 * np.trace(scatter))
    assert abs(scatter[0, 1]) > 0.1 * np.trace(scatter)  # a wrong sign would be seen
    instant = located(robot, detectors, report.ns, state, feet)
    instant.wrench_covariance = np.eye(12)
    without = monitor.update(instant)
    assert not without.hands  # nothing measures them any more
    alone = without.zmp_covariance
    assert np.linalg.eigvalsh(alone)[1] > 0.0
    instant.hand_wrenches = ([0.0] * 6, [*force.tolist(), 0.0, 0.0, 0.0])
    instant.hand_covariance, instant.stamp_ns = covariance, report.ns + 20 * MS
    for _ in range(10):
        instant.stamp_ns += 20 * MS
        both = monitor.update(instant).zmp_covariance
    share = 0.9 / (0.9 + 0.1)  # of the feet, in the sum of normal forces
    np.testing.assert_allclose(
        np.trace(both), np.trace(stated.zmp_covariance) + share ** 2 * np.trace(alone), rtol=0.05)
    for _ in range(10):
        free = report(np.zeros(3), covariance, touches=False)
    assert not free.hands and free.zmp_covariance is None


def test_a_hand_whose_messages_are_lost_holds_on_for_a_fifth_of_a_second(model):
    """The robot leans on one hand: without it the ZMP would be elsewhere, and the support less."""
    robot, weight = with_virtual_hands(model), 9.81 * model.mass
    state = robot.state(robot.posture()).in_world(Pose.identity())
    feet = np.zeros((2, 6))
    feet[:, 2] = 0.45 * weight
    force = [0.0, 0.0, 0.1 * weight, 0.0, 0.0, 0.0]
    detectors, monitor = contacts(robot), StabilityMonitor(robot, MonitorSettings())

    def report(ms, *hands):
        instant = located(robot, detectors, ms * MS, state, feet, AT_REST)
        instant.hand_wrenches = hands
        found = monitor.update(instant)
        assert instant.hand_wrenches is hands  # other callbacks get the same instant
        return found
    for ms in range(0, 100, 20):
        before = report(ms, [0.0] * 6, force)
    for ms in range(100, 281, 20):
        now = report(ms, None if ms < 200 else [0.0] * 6, None)
        assert [hand.name for hand in now.hands] == ['right']
        assert now.zmp_in_world == pytest.approx(before.zmp_in_world, abs=1e-9)
        assert now.support.area == pytest.approx(before.support.area, rel=1e-9)
    without = report(300, [0.0] * 6, None)
    assert not without.hands and without.support.area < 0.9 * before.support.area
    monitor.update(located(robot, detectors, 0, state, feet, AT_REST))  # the clock is set back
    assert not report(20, None, None).hands
