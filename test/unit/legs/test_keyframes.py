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
"""Motions are smooth, arrive where they should, and keep the feet where they are."""

from __future__ import annotations

from dataclasses import replace

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.legs.keyframes import (
    Keyframe, KeyframeMotion, minimum_jerk, show_keyframes)
from biped_com_ros.core.model.robot import RobotModel
import numpy as np
import pytest


def test_minimum_jerk_starts_and_ends_at_rest_and_is_symmetric():
    phases = np.linspace(0.0, 1.0, 101)
    values = np.array([minimum_jerk(s) for s in phases])
    assert values[0] == 0.0 and values[-1] == 1.0 and values[50] == 0.5
    assert minimum_jerk(-3.0) == 0.0 and minimum_jerk(7.0) == 1.0  # outside its interval
    assert np.all(np.diff(values) > 0.0)
    np.testing.assert_allclose(values + values[::-1], 1.0, atol=1e-12)
    h = 1e-3
    for end in (0.0, 1.0):
        inside = abs(end - h)
        velocity = (minimum_jerk(inside) - end) / h
        acceleration = (minimum_jerk(abs(end - 2 * h)) - 2 * minimum_jerk(inside) + end) / h**2
        assert abs(velocity) < 1e-4 and abs(acceleration) < 0.1


def test_motion_arrives_at_its_keyframes(talos):
    motion = KeyframeMotion(talos, [
        Keyframe(2.0, label='goes left', offset=(0.0, 0.04, 0.0)),
        Keyframe(1.0, 'arms_up', label='lifts'), Keyframe(1.0)])
    arms = talos.group_index('left_arm')
    stand, up = talos.posture('stand'), talos.posture('arms_up')
    assert motion.duration == 4.0
    np.testing.assert_allclose(motion.positions(0.0), stand, atol=1e-6)
    np.testing.assert_allclose(
        motion.positions(2.0),
        PostureIk(talos, stand).positions(Pose.translation((0.0, 0.04, 0.0))), atol=1e-5)
    np.testing.assert_allclose(motion.positions(3.0)[arms], up[arms], atol=1e-12)
    np.testing.assert_allclose(motion.positions(4.0), stand, atol=1e-6)
    assert motion.label(1.0) == 'goes left' and motion.label(2.5) == 'lifts'
    assert motion.label(5.0) == 'goes left'


def test_show_is_gentle_for_every_robot_and_its_centre_of_mass_over_the_feet(robot):
    motion, step = KeyframeMotion(robot, show_keyframes(robot)), 0.02
    times = np.arange(0.0, motion.duration + 5 * step, step)
    path = np.array([motion.positions(t) for t in times])
    velocity = np.diff(path, axis=0) / step
    assert np.abs(velocity).max() < 3.0
    assert np.abs(np.diff(velocity, axis=0) / step).max() < 15.0
    np.testing.assert_allclose(motion.positions(motion.duration), path[0], atol=1e-5)
    corners = np.array([c for foot in robot.config.feet.values() for c in foot.polygon])
    for positions in path[::12]:
        state = robot.state(positions)
        soles, com = state.placements_in_base(robot.soles)[:, 3], state.com_in_base
        assert abs(com[1] - soles[:, 1].mean()) < 0.6 * np.ptp(soles[:, 1])
        relative = com[0] - soles[:, 0].mean()
        assert corners[:, 0].min() < relative < corners[:, 0].max()


def test_show_without_lifted_arms_still_sways(talos):
    postures = {name: posture for name, posture in talos.config.postures.items()
                if name != 'arms_up'}
    frames = show_keyframes(RobotModel(replace(talos.config, postures=postures), talos.urdf))
    assert {frame.posture for frame in frames} == {'stand'}
    assert any(frame.offset[1] for frame in frames)


@pytest.mark.parametrize('make, error, words', (
    *((lambda _, duration=duration: Keyframe(duration), ConfigurationError, 'positive')
      for duration in (0.0, -1.0, float('nan'), float('inf'))),
    (lambda model: KeyframeMotion(model, [Keyframe(1.0, 'flies')]), UnknownNameError, 'flies'),
    (lambda model: KeyframeMotion(model, []), ConfigurationError, 'keyframe')))
def test_impossible_motions_are_refused(talos, make, error, words):
    with pytest.raises(error, match=words):
        make(talos)
