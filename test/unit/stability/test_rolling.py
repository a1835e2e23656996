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
"""Soles that roll over an edge: what touches, and the support that follows from it."""

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.stability.monitor import MonitorSettings, StabilityMonitor
from biped_com_ros.core.stability.rolling import RollingSoles
from biped_com_ros.core.state.base import LocatedState
from biped_com_ros.core.state.stance import Stance
import numpy as np
import pytest

MS = 1_000_000
OUTLINE = [(0.12, 0.05), (-0.08, 0.05), (-0.08, -0.05), (0.12, -0.05)]
TOES, HEEL = [(0.12, 0.05), (0.12, -0.05)], [(-0.08, 0.05), (-0.08, -0.05)]
WEIGHT = 400.0


def sole(pitch=0.0, roll=0.0, yaw=0.0):
    """Return a sole as four rows; a positive pitch lifts the heel."""
    return [*Pose.from_rpy(np.array((roll, pitch, yaw)), np.zeros(3)).rotation.T.tolist(),
            [0.0, 0.0, 0.0]]


def at(x, y=0.0, force=WEIGHT):
    """Return the wrench of a centre of pressure."""
    return (0.0, 0.0, force, y * force, -x * force, 0.0)


def standing(pitch=0.0, yaw=0.0, seconds=0.5, **settings):
    """Return what a foot finds that has stood flat on ground of this slope."""
    rolling = RollingSoles([OUTLINE], **{'edge_height': 0.003, 'least_force': 10.0,
                                         'weight': WEIGHT, **settings})
    for k in range(int(500 * seconds)):
        assert rolling.update(2 * k * MS, [sole(pitch, yaw=yaw)], [True], [at(0.01)]) == ()
    return rolling, int(500 * seconds) * 2 * MS


@pytest.mark.parametrize('yaw', (0.0, 1.0, -2.5))
@pytest.mark.parametrize('tilt, place, part', (
    ((0.2, 0.0), (0.119, 0.0), TOES), ((-0.2, 0.0), (-0.079, 0.0), HEEL),
    ((0.0, -0.1), (0.02, 0.049), [(0.12, 0.05), (-0.08, 0.05)]),
    ((0.1, -0.1), (0.119, 0.049), [(0.12, 0.05)]),
    ((1.1 * 0.003 / 0.2, 0.0), (0.119, 0.0), TOES)),
    ids=['toes', 'heel', 'side', 'corner', 'beyond what ground and soles give way'])
def test_a_tilted_sole_touches_with_the_edge_that_is_down(yaw, tilt, place, part):
    rolling, ns = standing(yaw=yaw)
    assert rolling.update(ns, [sole(*tilt, yaw)], [True], [at(*place)]) == [part]


@pytest.mark.parametrize('settings, pitch, contact, wrenches', (
    ({}, 0.9 * 0.003 / 0.2, True, [at(0.119)]), ({}, 0.2, True, [at(-0.079)]),
    ({'seconds': 0.0}, 0.2, True, [at(0.119)]), ({}, 0.2, False, [at(0.119)]),
    ({}, 0.2, True, [at(0.119, force=5.0)]), ({}, 0.2, True, None),
    ({'edge_height': 0.0}, 0.2, True, [at(0.119)])),
    ids=['ground and soles give way', 'the pressure contradicts the tilt',
         'ground that was not stood on', 'no contact', 'no force', 'no wrench', 'no height'])
def test_otherwise_whole_soles_count(settings, pitch, contact, wrenches):
    rolling, ns = standing(**settings)
    assert rolling.update(ns, [sole(pitch)], [contact], wrenches) == ()


@pytest.mark.parametrize('pitch', (0.15, -0.15))
def test_leaning_on_a_slope_is_not_rolling(pitch):
    rolling, ns = standing(pitch, seconds=10.0)
    assert rolling.slope == pytest.approx((-np.tan(pitch), 0.0), abs=0.015)
    for lever in (0.119, -0.079):
        assert rolling.update(ns, [sole(pitch)], [True], [at(lever)]) == ()


def report(monitor, model, ns, base, levers, contacts=(True, True)):
    """Return a report of the standing robot, turned as a whole, with these CoPs along x."""
    state = model.state(model.posture()).in_world(base)
    force = 9.81 * model.mass / sum(contacts)
    wrenches = [at(lever, force=force * touches) for lever, touches in zip(levers, contacts)]
    return monitor.update(LocatedState(
        ns, state, Stance(state.soles_in_world, contacts), True, lambda _: None,
        wrenches=wrenches))


def test_the_support_of_a_robot_on_its_toes_is_their_edge_in_the_plane_of_the_ground(model):
    monitor, flat = StabilityMonitor(model, MonitorSettings()), Pose.identity()
    for k in range(100):
        whole = report(monitor, model, 2 * k * MS, flat, (0.02, 0.02))
    toe = max(x for x, _ in model.config.feet['left'].polygon)
    tilted = Pose.from_rpy(np.array((0.0, 0.15, 0.0)), np.zeros(3))
    found = report(monitor, model, 200 * MS, tilted, (toe, toe))
    assert found.support.area < 0.01 * whole.support.area
    assert found.support.plane.normal == pytest.approx((0.0, 0.0, 1.0), abs=1e-9)
    assert found.zmp_margin == pytest.approx(0.0, abs=1e-9)
    soles = found.located.state.sole_placements_in_world
    on_edge = [s[3] + toe * s[0] for s in soles]
    assert found.support.plane.origin == pytest.approx(np.mean(on_edge, axis=0), abs=1e-9)
    old = report(StabilityMonitor(model, MonitorSettings(edge_height=0.0)), model, 0, tilted,
                 (toe, toe))
    assert old.support.area > 0.9 * whole.support.area


@pytest.mark.parametrize('levers', ((0.02, 0.02), (0.118, 0.118), (-0.07, 0.11)))
def test_flat_standing_is_the_same_to_the_last_bit(model, levers):
    monitors = [StabilityMonitor(model, MonitorSettings(edge_height=h)) for h in (0.003, 0.0)]
    slope = Pose.from_rpy(np.array((0.0, 0.05, 0.3)), np.zeros(3))
    for k in range(200):
        lever = (0.02, 0.02) if k < 150 else levers
        a, b = (report(m, model, 2 * k * MS, slope, lever) for m in monitors)
        assert a.support.corners == b.support.corners and a.support.plane == b.support.plane
        assert a.zmp_margin == b.zmp_margin
