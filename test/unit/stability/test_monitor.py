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
from biped_com_ros.core.stability.levels import Level
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.stance import Stance, Twist
from biped_com_ros.core.wrench.contact import ContactThresholds, FootContacts
import numpy as np
from numpy.testing import assert_allclose
import pytest
from support.gripping_robot import with_virtual_hands

MS = 1_000_000
AT_REST = Twist(np.zeros(3), np.zeros(3))
LEVEL = Pose.identity()
IDLE = [0.0] * 6


class MonitoredStance:
    """A robot in its posture whose monitor gets one instant after the other, 20 ms apart."""

    def __init__(self, model, base=LEVEL):
        self.state, self.weight = model.state(model.posture()).in_world(base), 9.81 * model.mass
        self.monitor, self.ms = StabilityMonitor(model, MonitorSettings()), 0
        self.detectors = FootContacts(ContactThresholds(engage_dwell=0.0), self.weight, 2)

    def feet(self, *shares, lever=0.0):
        """Return wrenches of feet that carry shares of the weight, each at x = lever."""
        wrenches = np.zeros((2, 6))
        wrenches[:, 2] = self.weight * np.array(shares)
        wrenches[:, 4] = -lever * wrenches[:, 2]
        return wrenches

    def report(self, wrenches, twist=None, ms=20, **known):
        """Return the report of an instant with the contacts that the wrenches show."""
        ns, self.ms = self.ms * MS, self.ms + ms
        stance = Stance(self.state.soles_in_world,
                        self.detectors.update(wrenches[:, 2].tolist(), ns))
        self.instant = LocatedState(
            ns, self.state, stance, True, lambda _: twist, wrenches=wrenches.tolist())
        for name, value in known.items():
            setattr(self.instant, name, value)
        return self.monitor.update(self.instant)

    def margins(self, shares):
        """Return how far inside the ZMP is while the right foot carries such shares, m."""
        return np.array([self.report(self.feet(1.0 - share, share, lever=0.02), ms=2).zmp_margin
                         for share in shares])


def test_a_foot_that_lands_supports_at_once(model):
    found = MonitoredStance(model).margins((0.0, 0.0, 0.0, 0.5, 0.5, 0.5))
    assert found[:3] == pytest.approx(0.04, abs=1e-9)  # half the width of a sole
    assert found[3:].min() > 0.07  # half its length


def test_the_support_is_computed_anew_each_10_ms_and_when_other_feet_touch(model):
    """By the stamps alone: from wherever a recording is played, it is the same."""
    stance, both = MonitoredStance(model), (0.5, 0.5)
    stance.ms = 14
    found = [stance.report(stance.feet(*shares), ms=2).support
             for shares in (*[both] * 8, *[(1.0, 0.0)] * 6)]
    changes = [14 + 2 * k for k in range(1, 14) if found[k] is not found[k - 1]]
    assert changes == [20, 30, 32, 40], 'the dwell of a foot that is lifted is 2 ms'
    assert found[8].area == found[7].area > 2.0 * found[9].area


def test_the_zmp_is_between_the_feet_whatever_they_carry(model):
    found = MonitoredStance(model).margins(np.random.default_rng(1).uniform(0.0, 1.0, 500))
    # But for what a foot carries before it counts: 6 % of the way to it.
    apart = np.diff(model.state(model.posture()).placements_in_base(model.soles)[:, 3, 1])[0]
    assert found.min() > 0.04 - 0.06 * abs(apart) - 1e-9


def test_an_instant_that_is_not_a_number_hides_nothing_that_follows(model):
    robot, levels = MonitoredStance(model), []
    for k in range(20):
        lever = math.nan if k in (0, 5) else 0.02 if k < 10 else 0.12
        robot.report(robot.feet(0.5, 0.5, lever=lever), AT_REST, ms=2)
        levels.append(robot.monitor.classifier.level)
    assert levels == [Level.STABLE] * 15 + [Level.MARGINAL] * 5  # after its dwell


def assert_propagated(stated, root, zmp_with):
    """Compare a covariance of the ZMP with differences along each column of the root."""
    moved = np.array([0.5 * np.subtract(zmp_with(column), zmp_with(-column))
                      for column in root.T])[:, :2]
    expected = moved.T @ moved
    assert_allclose(stated[:2, :2], expected, atol=0.01 * np.trace(expected))
    assert abs(expected[0, 1]) > 0.05 * np.trace(expected)  # a wrong sign would be seen


def test_the_zmp_is_as_uncertain_as_the_wrenches_and_certain_of_internal_forces(model):
    """On soles that are apart."""
    random, robot = np.random.default_rng(2), MonitoredStance(
        model, Pose.from_rpy((0.0, 0.0, 0.7), (0.3, 0.2, 0.0)))
    mean = robot.feet(0.7, 0.3)
    mean[0, 4] = 0.01 * robot.weight
    # Each foot by itself; what one pushes sideways the other pushes back, by far more.
    root = 1e-3 * robot.weight * random.normal(size=(12, 12)) * np.tile(
        (1, 1, 1, 0.1, 0.1, 0.1), 2)[:, np.newaxis]
    internal = np.zeros(12)
    internal[1], internal[7] = robot.weight, -robot.weight  # the soles are parallel and level
    assert robot.report(mean).zmp_covariance is None
    stated = robot.report(
        mean, wrench_covariance=root @ root.T + np.outer(internal, internal)).zmp_covariance
    assert_propagated(stated, root, lambda change: robot.report(
        mean + change.reshape(2, 6)).zmp_in_world)


def test_a_virtual_hand_makes_the_zmp_as_uncertain_as_its_force(model):
    """A hand that touches, above and beside the feet."""
    random, robot = np.random.default_rng(4), MonitoredStance(
        with_virtual_hands(model), Pose.from_rpy((0.1, -0.2, 0.7), (0.3, 0.2, 0.0)))
    feet, force = robot.feet(0.45, 0.45), np.array((0.03, -0.02, 0.1)) * robot.weight
    root = 0.01 * robot.weight * random.normal(size=(6, 6))
    covariance = root @ root.T  # of both hands, of which one touches

    def report(change=0.0, hands=covariance, feet_covariance=None):
        return robot.report(feet, hand_covariance=hands, wrench_covariance=feet_covariance,
                            hand_wrenches=(IDLE, [*(force + change).tolist(), 0.0, 0.0, 0.0]))
    for _ in range(10):  # until the hand counts
        stated = report()
    assert [hand.name for hand in stated.hands] == ['right']
    # Others than the force of this hand do not count.
    other = np.kron(np.diag((1.0, 0.0)), covariance[:3, :3])
    assert report(hands=other).zmp_covariance == pytest.approx(np.zeros((3, 3)))
    assert report(hands=None).zmp_covariance is None
    assert_propagated(stated.zmp_covariance, root,
                      lambda change: report(change[3:], None).zmp_in_world)
    for _ in range(10):
        free = robot.report(feet, hand_covariance=covariance, hand_wrenches=(IDLE, IDLE))
    assert not free.hands and free.zmp_covariance is None
    without = robot.report(feet, wrench_covariance=np.eye(12))
    assert not without.hands  # nothing measures them any more
    alone = without.zmp_covariance
    assert np.linalg.eigvalsh(alone)[1] > 0.0
    for _ in range(10):
        both = report(feet_covariance=np.eye(12)).zmp_covariance
    share = 0.9 / (0.9 + 0.1)  # of the feet, in the sum of normal forces
    assert_allclose(np.trace(both), np.trace(stated.zmp_covariance) + share ** 2 * np.trace(alone),
                    rtol=0.05)


def test_a_hand_whose_messages_are_lost_holds_on_for_a_fifth_of_a_second(model):
    """The robot leans on one hand: without it the ZMP would be elsewhere, and the support less."""
    robot = MonitoredStance(with_virtual_hands(model))
    feet, force = robot.feet(0.45, 0.45), [0.0, 0.0, 0.1 * robot.weight, 0.0, 0.0, 0.0]

    def report(*hands):
        found = robot.report(feet, AT_REST, hand_wrenches=hands)
        assert robot.instant.hand_wrenches is hands  # other callbacks get the same instant
        return found
    for _ in range(5):
        before = report(IDLE, force)
    for k in range(10):
        now = report(None if k < 5 else IDLE, None)
        assert [hand.name for hand in now.hands] == ['right']
        assert now.zmp_in_world == pytest.approx(before.zmp_in_world, abs=1e-9)
        assert now.support.area == pytest.approx(before.support.area, rel=1e-9)
    without = report(IDLE, None)
    assert not without.hands and without.support.area < 0.9 * before.support.area
    robot.ms = 0  # the clock is set back
    robot.report(feet, AT_REST)
    assert not report(None, None).hands
