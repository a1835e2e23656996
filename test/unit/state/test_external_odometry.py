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
"""Odometry from elsewhere in the filter of the base."""

import functools

from biped_com_ros.core.geometry.pose import Pose, yaw_of
from biped_com_ros.core.geometry.wrench import skew
from biped_com_ros.core.state.external_odometry import ExternalOdometry, ExternalSettings
from biped_com_ros.core.state.invariant_filter import ImuNoise, InvariantFilter
import numpy as np
import pinocchio as pin
import pytest

#: Of the odometry: another origin, and another heading.
ELSEWHERE = Pose.from_rpy((0.0, 0.0, 1.1), (4.0, -2.0, 0.3))


def truth(t):
    return Pose.from_rpy((0.02, -0.05, 0.4 * t), (0.5 * t, 0.1 * np.sin(t), 0.8))


class Drifting:
    """A filter that drifts sideways and turns, as legs and IMU let it; the IMU is at the base."""

    def __init__(self, delay=0.1):
        self.found = InvariantFilter(2, ImuNoise())
        start = truth(0.0)
        self.found.start(start.rotation, np.zeros(3), start.position, np.full((3, 3), 1e-3))
        self.external, self.t = ExternalOdometry(ExternalSettings(delay=delay)), 0.0
        self.drift = Pose.identity()

    def step(self, dt=0.01):
        """Move like the truth, but for the drift, which is in the covariance."""
        before, self.t = truth(self.t), self.t + dt
        moved = truth(self.t) @ before.inverse()
        slip = Pose(pin.exp3(np.array((0.0, 0.0, 0.05 * dt))), np.array((0.0, 0.08 * dt, 0.0)))
        change = slip @ moved
        found = self.found
        found.R_world_imu = change.rotation @ found.R_world_imu
        found.vectors = found.vectors @ change.rotation.T + change.position
        growth = np.zeros(found.size)
        growth[:3], growth[6:9] = 0.05 ** 2 * dt, 0.08 ** 2 * dt
        found.covariance = found.covariance + np.diag(growth)
        self.external.correct(self.ns, found)
        self.external.record(self.ns, self.base)

    @property
    def ns(self):
        return 10 ** 9 + round(1e9 * self.t)

    @property
    def base(self):
        return Pose(self.found.R_world_imu, self.found.position)

    def errors(self):
        """Return those of position, m, and heading, rad."""
        true = truth(self.t)
        return np.linalg.norm(self.base.position - true.position), abs(
            yaw_of(self.base.rotation @ true.rotation.T))

    def deviations(self):
        """Return those that are stated, of position, (3,), m, and heading, rad."""
        J = np.zeros((4, self.found.size))
        J[:3, :3], J[:3, 6:9], J[3, 2] = -skew(self.found.position), np.eye(3), 1.0
        found = np.sqrt((J @ self.found.covariance @ J.T).diagonal())
        return found[:3], found[3]

    def run(self, seconds, arrival=0.05, jump=lambda t: 0.0, external=True):
        """Let messages of every third instant arrive late."""
        under_way = []
        for k in range(round(seconds / 0.01)):
            self.step()
            if external and k % 3 == 0:
                pose = ELSEWHERE.inverse() @ truth(self.t)
                shift = np.array((jump(self.t), 0.0, 0.0))
                under_way.append((self.t + arrival, self.ns, Pose(
                    pose.rotation, pose.position + shift)))
            while under_way and under_way[0][0] <= self.t + 1e-9:
                self.external.add(*under_way.pop(0)[1:])


@functools.cache
def drifted(seconds=6.0, **options):
    """Return a robot that has drifted for a while."""
    robot = Drifting()
    robot.run(seconds, **options)
    return robot


def test_place_and_heading_stay_those_of_the_odometry_and_so_does_the_covariance():
    alone, helped = drifted(external=False), drifted()
    (far, turned), (near, held) = alone.errors(), helped.errors()
    assert far > 0.3 and turned > 0.25
    assert near < 0.03 and held < 0.02
    assert helped.external.rejected == 0
    (before, turned), (after, held) = alone.deviations(), helped.deviations()
    assert (after < 0.3 * before).all() and held < 0.2 * turned
    assert near < 3.0 * np.linalg.norm(after) and helped.errors()[1] < 3.0 * held


@pytest.mark.parametrize('arrival', [0.0, 0.09])
def test_when_messages_arrive_does_not_matter_to_the_last_bit(arrival):
    one, other = drifted(2.0, arrival=0.03).found, drifted(2.0, arrival=arrival).found
    np.testing.assert_array_equal(one.vectors, other.vectors)
    np.testing.assert_array_equal(one.R_world_imu, other.R_world_imu)


def test_a_jump_is_rejected_and_one_that_stays_is_aligned_anew():
    short = drifted(jump=lambda t: 1.5 if 3.0 < t < 3.5 else 0.0)
    assert 10 < short.external.rejected < 25 and short.errors()[0] < 0.03
    lasting = drifted(jump=lambda t: 1.5 if t > 3.0 else 0.0)
    assert 25 < lasting.external.rejected < 45
    assert lasting.errors()[0] < 0.3  # what it drifted in the second without odometry


def test_a_message_of_an_unknown_time_is_not_used():
    robot = Drifting()
    robot.external.add(10 ** 9 - 1_000_000, Pose.identity())
    robot.run(0.5, external=False)
    assert robot.external._to_world is None


def test_tilt_is_not_taken_from_the_odometry():
    """Its frame is level: heading alone is aligned, whatever the robot's tilt."""
    rotation = drifted(0.4).external._to_world.rotation
    np.testing.assert_allclose(rotation[2], (0.0, 0.0, 1.0), atol=1e-12)
    assert yaw_of(rotation) == pytest.approx(1.1, abs=0.02)
