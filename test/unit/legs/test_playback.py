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

from dataclasses import replace

from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.legs.gait import QUICK, walk
from biped_com_ros.core.legs.playback import GaitPlayback, halts, longest_fall, PlaybackState
import numpy as np
import pytest
from support.walk_oracle import WalkOracle

DT = 2e-3


def play(playback, duration):
    return [playback.advance(DT) for _ in range(round(duration / DT))]


def started(gait, time=0.0, **options):
    """Return a playback that has been playing for some time."""
    playback = GaitPlayback(gait, **options)
    playback.start()
    play(playback, time)
    return playback


@pytest.fixture(scope='module')
def least_margin(model):
    """Return a function: how near the zero-moment point comes to the edge of the support."""
    oracle = WalkOracle(model)
    return lambda samples, every: min(oracle.margin(samples[k - 1:k + 2], DT)
                                      for k in range(1, len(samples) - 1, every))


def test_undisturbed_it_is_the_gait(step):
    playback = GaitPlayback(step)
    playback.pause()
    assert playback.state is PlaybackState.READY and not playback.pause_is_pending
    assert playback.advance(1.0).positions == pytest.approx(step.at(0.0).positions)
    playback.start()
    played = play(playback, step.duration - 0.1)
    expected = [step.at(k * DT) for k in range(1, len(played) + 1)]
    for name in ('positions', 'velocities'):
        np.testing.assert_allclose(*([getattr(sample, name) for sample in samples]
                                     for samples in (played, expected)), rtol=0.0, atol=1e-9)
    play(playback, 0.2)
    assert playback.state is PlaybackState.DONE and playback.rate == 0.0
    assert playback.advance(DT).positions == pytest.approx(step.at(step.duration).positions)
    with pytest.raises(InputError, match='done cannot start'):
        playback.start()


def test_pause_halts_and_going_on_finishes(step):
    playback = started(step, 2.6, ramp=0.5)  # the foot is in the air
    playback.pause()
    play(playback, 0.1)
    with pytest.raises(InputError, match='braking cannot start'):
        playback.start()
    play(playback, 0.9)
    assert playback.state is PlaybackState.PAUSED and playback.rate == 0.0
    assert playback.time == pytest.approx(2.6 + 0.25, abs=0.01)
    held = playback.advance(DT)
    assert play(playback, 0.5)[-1].positions == pytest.approx(held.positions, abs=0.0)
    assert not held.velocities.any()
    playback.start()
    play(playback, 0.3)
    rate, time = playback.rate, playback.time
    playback.halt()  # while it speeds up
    assert playback.state is PlaybackState.BRAKING
    playback.advance(DT)
    assert rate - 0.05 < playback.rate < rate and 0.0 < playback.time - time < DT
    play(playback, 0.5)
    assert playback.state is PlaybackState.PAUSED and playback.rate == 0.0
    time = playback.time
    playback.start()
    play(playback, 0.5)
    assert playback.state is PlaybackState.PLAYING and playback.rate == 1.0
    assert playback.time == pytest.approx(time + 0.25, abs=0.01)
    play(playback, step.duration)
    assert playback.state is PlaybackState.DONE


def test_joints_stay_smooth_in_acceleration(step):
    playback = started(step)
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


def test_a_quick_walk_cannot_be_halted_anywhere_but_often(step, quick):
    times, good = halts(quick, 0.5, 0.01)
    assert 0.6 < good.mean() < 0.98
    assert good[times < 1.5].all() and good[times > quick.duration - 1.0].all()
    assert halts(step, 0.5, 0.01)[1].all()  # quasi-static
    playback = started(quick, times[~good][0])
    playback.pause()
    playback.advance(DT)
    assert playback.pause_is_pending and playback.state is PlaybackState.PLAYING
    playback.start()  # calls it off
    assert not playback.pause_is_pending
    play(playback, 1.0)
    assert playback.state is PlaybackState.PLAYING


@pytest.mark.parametrize('share', (0.35, *(pytest.param(share, marks=pytest.mark.thorough)
                                           for share in (0.05, 0.55, 0.75, 0.95))))
def test_a_pause_of_a_quick_walk_keeps_the_zmp_inside(least_margin, quick, share):
    """By Newton and Euler; asked for at any time of the middle step, halted when it can be."""
    phase = next(p for p in quick.plan.phases[4:] if p.step is not None)
    playback = started(quick, phase.start + share * (phase.end - phase.start), ramp=0.5,
                       least_margin=0.01)
    playback.pause()
    samples = play(playback, 1.5)
    assert playback.state is PlaybackState.PAUSED
    playback.start()
    samples += play(playback, 1.0)
    assert least_margin(samples, 20) > 0.008


@pytest.mark.thorough
def test_halting_a_quick_walk_where_it_should_not_be_lets_the_zmp_out(least_margin, quick):
    """Else waiting would be for nothing."""
    times, good = halts(quick, 0.5, 0.01)
    assert good[:40].any()
    worst = []
    for time in times[~good][:6]:
        playback = started(quick, time)
        playback.halt()
        samples = play(playback, 0.6)
        playback.start()
        worst.append(least_margin(samples + play(playback, 0.6), 10))
    assert max(worst) < 0.013 and min(worst) < 0.0


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
