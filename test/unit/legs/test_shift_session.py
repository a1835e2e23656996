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
"""Shifts of the centre of mass over a foot, and the way back."""

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.legs.shift_session import ShiftRequest, ShiftSession
import numpy as np
import pytest

SECOND = 1_000_000_000


@pytest.fixture
def shifted(model, legs):
    """Return a session that shifts over the left foot from 10 s on, and its motion."""
    session = ShiftSession(model)
    planned = session.plan(model.posture(), ShiftRequest(contact='left', duration=1.0), 0.05)
    assert set(planned.joints) == set(legs)
    session.begin(planned, 10 * SECOND)
    return session, planned.motion


def test_a_shift_is_smooth_and_progresses_with_time(shifted):
    session, motion = shifted
    assert [session.progress(int(t * SECOND)) for t in (9.0, 10.0, 10.25, 11.0, 12.0)] == [
        0.0, 0.0, 0.25, 1.0, 1.0]
    assert motion.times == pytest.approx(np.linspace(0.0, 1.0, 21))
    dt, q, v, a = motion.times[1], motion.positions, motion.velocities, motion.accelerations
    assert v[1:-1] == pytest.approx((q[2:] - q[:-2]) / (2.0 * dt), abs=1e-9)
    assert not v[[0, -1]].any() and np.abs(v).max() > 0.1
    assert a[1:-1] == pytest.approx((v[2:] - v[:-2]) / (2.0 * dt), abs=1e-9)
    assert not session.is_moving(2 * SECOND)  # a clock that is set back ends it


def test_the_way_back_uses_the_arm_of_a_hand_that_holds_on(model):
    session, start = ShiftSession(model), model.posture('arms_forward')
    planned = session.plan(start, ShiftRequest(
        contact='left_hand', holding=('left',), share=0.2, duration=1.0), 0.05)
    arm = model.group_index('left_arm')
    assert set(arm) < set(planned.joints)
    session.begin(planned, 10 * SECOND)
    back = session.back(planned.motion.positions[-1], 1.0, 0.05, 0.05, 20 * SECOND)
    assert back.positions[-1] == pytest.approx(start)


@pytest.mark.parametrize('contact, options, group', (
    ('left', {}, 'right_leg'), ('left_hand', {'holding': ('left',), 'share': 0.2}, 'left_arm')))
def test_joints_that_were_moved_meanwhile_do_not_jump(model, contact, options, group):
    session = ShiftSession(model)
    planned = session.plan(model.posture('arms_forward'), ShiftRequest(
        contact=contact, duration=1.0, **options), 0.05)
    session.begin(planned, 10 * SECOND)
    elsewhere = planned.motion.positions[-1].copy()
    elsewhere[model.group_index(group)[0]] += 0.2
    with pytest.raises(InputError, match='the joints are.*move them to the posture'):
        session.back(elsewhere, 1.0, 0.05, 0.05, 20 * SECOND)
    assert session.contact == ''


@pytest.mark.parametrize('row', (20, 9))
def test_the_way_back_begins_where_the_legs_are_and_ends_where_it_began(shifted, row):
    session, motion = shifted
    assert session.is_moving(9 * SECOND) and not session.is_moving(11 * SECOND)
    session.interrupt()
    assert not session.is_moving(10 * SECOND) and session.contact == 'left'
    back = session.back(motion.positions[row] + 1e-3, 2.0, 0.05, 0.05, 20 * SECOND)
    assert back.positions[0] == pytest.approx(motion.positions[row])
    assert back.positions[-1] == pytest.approx(motion.positions[0])
    assert back.times[-1] == 2.0
    # Monotonous, and nowhere else than on the path.
    moved = np.abs(back.positions - motion.positions[0]).max(axis=1)
    assert (np.diff(moved) <= 1e-9).all()
    session.advance(21 * SECOND)
    assert session.contact == 'left' and session.is_moving(21 * SECOND)
    session.advance(22 * SECOND)
    assert session.contact == ''
    with pytest.raises(InputError, match='not shifted'):
        session.back(motion.positions[0], 2.0, 0.05, 0.05, 22 * SECOND)


@pytest.mark.parametrize('duration', (0.1, 61.0, 1e12, np.nan))
def test_too_short_and_too_long_a_shift_are_refused(shifted, model, duration):
    with pytest.raises(InputError, match='takes 0.5 to 60 s, not'):
        shifted[0].plan(model.posture(), ShiftRequest(contact='left', duration=duration), 0.05)
