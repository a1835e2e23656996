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
"""A gait is started, paused, taken up again and halted, smoothly and standing."""

from __future__ import annotations

from dataclasses import replace

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.legs.gait import QUICK, single_step, walk
from biped_com_ros.core.legs.playback import GaitPlayback, halts, longest_fall, PlaybackState
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.support import support_polygon
import numpy as np
import pytest
from support.urdf_oracle import Tree
from support.walk_oracle import zmp_of_samples

DT = 2e-3


@pytest.fixture(scope='module')
def model():
    return RobotModel.load('biped')


@pytest.fixture(scope='module')
def step(model):
    return single_step(model, 0.05)


@pytest.fixture(scope='module')
def quick(model):
    return walk(model, 3, 0.05, options=QUICK)


def play(playback, duration):
    return [playback.advance(DT) for _ in range(round(duration / DT))]


def least_margin(model, samples, every=20):
    """Return how near the samples' zero-moment point comes to the edge of the support."""
    tree, worst = Tree(model.urdf), np.inf
    for k in range(1, len(samples) - 1, every):
        zmp = zmp_of_samples(tree, model, samples[k - 1:k + 2], DT)
        sample, feet = samples[k], model.config.feet.values()
        state = model.state(sample.positions)
        polygon = support_polygon([sample.base @ state.pose_in_base(f.sole) for f in feet],
                                  [f.polygon for f in feet], sample.in_contact)
        worst = min(worst, polygon.margin(np.array((*zmp, 0.0))).distance)
    return worst


def test_undisturbed_it_is_the_gait(step):
    playback = GaitPlayback(step)
    assert playback.state is PlaybackState.READY
    assert playback.advance(1.0).positions == pytest.approx(step.at(0.0).positions)
    playback.start()
    for k, sample in enumerate(play(playback, step.duration - 0.1), start=1):
        assert sample.positions == pytest.approx(step.at(k * DT).positions, abs=1e-9)
        assert sample.velocities == pytest.approx(step.at(k * DT).velocities, abs=1e-9)
    play(playback, 0.2)
    assert playback.state is PlaybackState.DONE and playback.rate == 0.0
    assert playback.advance(DT).positions == pytest.approx(step.at(step.duration).positions)


def test_pause_halts_and_going_on_finishes(step):
    playback = GaitPlayback(step, ramp=0.5)
    playback.start()
    play(playback, 2.6)  # the foot is in the air
    playback.pause()
    play(playback, 1.0)
    assert playback.state is PlaybackState.PAUSED and playback.rate == 0.0
    assert playback.time == pytest.approx(2.6 + 0.25, abs=0.01)
    held = playback.advance(DT)
    assert play(playback, 0.5)[-1].positions == pytest.approx(held.positions, abs=0.0)
    assert not held.velocities.any()
    playback.start()
    play(playback, 0.5)
    assert playback.state is PlaybackState.PLAYING and playback.rate == 1.0
    assert playback.time == pytest.approx(2.6 + 0.5, abs=0.01)
    play(playback, step.duration)
    assert playback.state is PlaybackState.DONE


def test_joints_stay_smooth_in_acceleration(step):
    playback = GaitPlayback(step)
    playback.start()
    samples = play(playback, 2.3)
    playback.pause()
    samples += play(playback, 1.0)
    playback.start()
    samples += play(playback, 1.0)
    velocities = np.array([sample.velocities for sample in samples])
    positions = np.array([sample.positions for sample in samples])
    assert np.diff(positions, axis=0)[1:] / DT == pytest.approx(
        0.5 * (velocities[1:-1] + velocities[2:]), abs=2e-4)
    accelerations = np.diff(velocities, axis=0) / DT
    assert np.abs(np.diff(accelerations, axis=0)).max() < 0.02 * np.abs(accelerations).max() + 0.2


def test_a_quasi_static_step_can_be_halted_anywhere(step):
    assert halts(step, 0.5, 0.01)[1].all()


def test_a_quick_walk_cannot_be_halted_anywhere_but_often(quick):
    times, good = halts(quick, 0.5, 0.01)
    assert 0.6 < good.mean() < 0.98
    assert good[times < 1.5].all() and good[times > quick.duration - 1.0].all()


@pytest.mark.parametrize('share', (0.05, 0.35, 0.55, 0.75, 0.95))
def test_a_pause_of_a_quick_walk_keeps_the_zmp_inside(model, quick, share):
    """By Newton and Euler; asked for at any time of the middle step, halted when it can be."""
    phase = next(p for p in quick.plan.phases[4:] if p.step is not None)
    playback = GaitPlayback(quick, ramp=0.5, least_margin=0.01)
    playback.start()
    play(playback, phase.start + share * (phase.end - phase.start))
    playback.pause()
    samples = play(playback, 1.5)
    assert playback.state is PlaybackState.PAUSED
    playback.start()
    samples += play(playback, 1.0)
    assert least_margin(model, samples) > 0.008


def test_halting_a_quick_walk_where_it_should_not_be_lets_the_zmp_out(model, quick):
    """Else waiting would be for nothing."""
    times, good = halts(quick, 0.5, 0.01)
    assert good[:40].any()
    worst = []
    for time in times[~good][:6]:
        playback = GaitPlayback(quick)
        playback.start()
        play(playback, time)
        playback.halt()
        samples = play(playback, 0.6)
        playback.start()
        worst.append(least_margin(model, samples + play(playback, 0.6), every=10))
    assert max(worst) < 0.013 and min(worst) < 0.0


def test_a_pending_pause_can_be_called_off(quick):
    playback = GaitPlayback(quick)
    playback.start()
    times, good = halts(quick, 0.5, 0.01)
    bad = times[~good][0]
    play(playback, bad)
    playback.pause()
    playback.advance(DT)
    assert playback.pause_is_pending and playback.state is PlaybackState.PLAYING
    playback.start()
    assert not playback.pause_is_pending
    play(playback, 1.0)
    assert playback.state is PlaybackState.PLAYING


def test_halt_while_speeding_up_goes_back_down(step):
    playback = GaitPlayback(step, ramp=0.4)
    playback.start()
    play(playback, 1.0)
    playback.halt()
    play(playback, 0.5)
    playback.start()
    play(playback, 0.3)
    rate, time = playback.rate, playback.time
    playback.halt()
    assert playback.state is PlaybackState.BRAKING
    playback.advance(DT)
    assert rate - 0.05 < playback.rate < rate and 0.0 < playback.time - time < DT
    play(playback, 0.5)
    assert playback.state is PlaybackState.PAUSED and playback.rate == 0.0


def test_what_cannot_start_is_reported(step):
    playback = GaitPlayback(step)
    playback.pause()
    assert playback.state is PlaybackState.READY and not playback.pause_is_pending
    playback.start()
    play(playback, 0.5)
    playback.halt()
    with pytest.raises(InputError, match='braking cannot start'):
        playback.start()
    play(playback, 0.6)
    playback.start()
    play(playback, step.duration + 1.0)
    with pytest.raises(InputError, match='done cannot start'):
        playback.start()


@pytest.mark.parametrize('ramp', (0.0, 10.0, np.nan))
def test_impossible_ramps_are_refused(step, ramp):
    with pytest.raises(ConfigurationError, match='ramp'):
        GaitPlayback(step, ramp)


def test_only_quick_steps_fall_from_foot_to_foot(model, step, quick):
    assert longest_fall(step) == 0.0
    assert 0.03 < longest_fall(quick) < 0.15
    slow, hasty = (longest_fall(walk(model, 3, 0.05, options=replace(QUICK, timing=replace(
        QUICK.timing, single_support=swing, double_support=shift))))
        for swing, shift in ((1.2, 0.6), (0.6, 0.15)))
    assert slow == 0.0 and hasty > longest_fall(quick)
