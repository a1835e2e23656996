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
"""
Which posture would say most about an unknown that the captures leave open.

Candidates are postures that the robot was in already, which it can take again: hoisted, or with
its joints at rest from the other side; and its named postures, hoisted. What each would measure is
predicted by the estimate, and its equations give the variance that would remain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.equations.first_moments import (
    predict_capture, StaticsRegressor)
from biped_com_ros.core.identification.equations.instruments import directions_of
import numpy as np

MOST = 24
"""Number of captured postures that are considered, evenly chosen."""

WORTHWHILE = 0.05
"""Least share of its variance by which a posture has to reduce an unknown's."""


def candidates_of(regressor: StaticsRegressor, captures: Sequence[Capture],
                  theta: Array) -> Iterator[tuple[str, Capture]]:
    """
    Return what may be captured next: in words, and what it would measure.

    Parameters
    ----------
    regressor
        Of the robot.
    captures
        Those there are, at least one.
    theta
        Masses and first moments (L, 4) by which readings are predicted.

    """
    for i in np.unique(np.linspace(0, len(captures) - 1, MOST).astype(int)).tolist():
        capture, name = captures[i], f"pose '{captures[i].name or i + 1}'"
        sides = directions_of(capture)
        if capture.in_contact.any():
            yield f'{name} hoisted', _hoisted(
                regressor, capture.positions, captures[0].up_frame, theta, sides)
        if sides.any():
            yield (f'{name} with all joints approached from the other side',
                   replace(capture, approach=-sides))
    for posture in regressor.model.config.postures:
        yield f"posture '{posture}' hoisted", _hoisted(
            regressor, regressor.model.posture(posture), captures[0].up_frame, theta,
            np.zeros(len(captures[0].positions)))


def _hoisted(regressor: StaticsRegressor, positions: Array, frame: str, theta: Array,
             sides: Array) -> Capture:
    """Return a predicted capture in the air, with gravity measured in a link."""
    capture = predict_capture(regressor, positions, (), theta)
    up = regressor.up_in_base(capture)
    if frame:
        up = regressor.model.state(positions).pose_in_base(frame).rotation.T @ up
    return replace(capture, up=up, up_frame=frame, approach=sides)


@dataclass(frozen=True)
class BestPosture:
    """The posture that would reduce an unknown's variance most, in words, and the share."""

    posture: str
    share: float

    @property
    def is_worthwhile(self) -> bool:
        """Whether it reduces the variance by enough."""
        return self.share >= WORTHWHILE

    def describe(self) -> str:
        """Return what it would do."""
        percent = f'{100.0 * self.share:.0f} %'
        return (f'{self.posture} would reduce its variance by {percent}' if self.is_worthwhile
                else f'none of the known postures helps ({self.posture} most, by {percent})')


def best_candidates(covariance: Array, unknowns: Sequence[int],
                    rows: Sequence[tuple[str, Array]]) -> list[BestPosture | None]:
    """
    Return for each unknown the posture that would reduce its variance most.

    Parameters
    ----------
    covariance
        Of all unknowns, (d, d).
    unknowns
        Those that are asked for.
    rows
        Description of each posture, and its equations divided by their noise, (rows, d).

    """
    if not len(unknowns) or not rows:
        return [None] * len(unknowns)
    variance, shares = np.diag(covariance)[list(unknowns)], []
    for _, H in rows:
        gain = H @ covariance[:, list(unknowns)]
        shares.append((gain * np.linalg.solve(
            np.eye(len(H)) + H @ covariance @ H.T, gain)).sum(axis=0) / variance)
    best = np.argmax(shares, axis=0)
    return [BestPosture(rows[k][0], float(shares[k][j])) for j, k in enumerate(best)]
