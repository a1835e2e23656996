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
"""When contacts of feet on recorded walks begin and end, against the truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_STEP = 0.002  # s
#: A change belongs to one in truth that is no further away, instants.
_NEAR = 25


class ContactErrors(NamedTuple):
    """
    Errors of the contacts of a walk.

    Attributes
    ----------
    right
        Share of the time in which the contact of a foot is right.
    false
        Changes per 100 steps that have none in the same direction within 50 ms in truth.
    touch_down, lift_off
        Mean delays of those that have one, s; negative: too early.

    """

    right: float
    false: float
    touch_down: float
    lift_off: float

    def cells(self) -> tuple[str, ...]:
        """Return those as text."""
        return (f'{100.0 * self.right:.1f}', f'{1e3 * self.touch_down:+.0f}',
                f'{1e3 * self.lift_off:+.0f}', f'{self.false:.0f}')


def contact_errors(found: np.ndarray, truth: np.ndarray) -> ContactErrors:
    """Return the errors of contacts (T, F)."""
    false = steps = 0
    delays: dict[int, list[int]] = {1: [], -1: []}
    for foot in range(truth.shape[1]):
        changes, true_changes = (np.diff(c[:, foot].astype(int)) for c in (found, truth))
        steps += int((true_changes > 0).sum())
        for sign, of_sign in delays.items():
            true = np.flatnonzero(true_changes == sign)
            for instant in np.flatnonzero(changes == sign).tolist():
                late = instant - true[np.abs(true - instant).argmin()] if len(true) else 2 * _NEAR
                if abs(late) > _NEAR:
                    false += 1
                else:
                    of_sign.append(int(late))
    down, up = (_STEP * float(np.mean(late)) if late else np.nan for late in delays.values())
    return ContactErrors(
        float((found == truth).mean()), 100.0 * false / max(steps, 1), down, up)
