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
Which unknowns the poses cannot distinguish, and what would.

An unknown that the data would determine if all others were known, but do not as it is, is
confounded: the data determine a combination of it and others, and the priors divide it.

Which posture would say most about it is found among candidates: postures that the robot was in
already, which it can take again: hoisted, or with its joints at rest from the other side; and its
named postures, hoisted. What each would measure is predicted by the estimate, and its equations
give the variance that would remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.equations.first_moments import (
    predict_capture, StaticsRegressor)
from biped_com_ros.core.identification.equations.instruments import (
    directions_of, InstrumentEstimate, InstrumentKind)
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
        capture = captures[i]
        name = f"'{capture.name}'" if capture.name else f'pose {i + 1}'
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


UNKNOWN, KNOWN_ALONE = 0.4, 0.1
"""Confounded: more than the first share of the prior's variance is left; with all others known
less than the second would be."""

NAMED = 3
"""Number of unknowns that are named in one line."""


@dataclass(frozen=True)
class Confounded:
    """
    An unknown that the poses cannot separate from others.

    Attributes
    ----------
    name, partner
        In words; the partner is the unknown with which it is correlated most.
    left
        Share of the prior's variance that is left.
    alone
        The share that would be left if all others were known.

    """

    name: str
    partner: str
    left: float
    alone: float


@dataclass(frozen=True)
class Ambiguity:
    """
    Unknowns of one kind that the poses cannot separate from others.

    Attributes
    ----------
    kind
        What is wrong with the instruments.
    unknowns
        Worst first.
    posture
        The posture that would reduce the variance of the worst one most; None if none is known.

    """

    kind: InstrumentKind
    unknowns: tuple[Confounded, ...]
    posture: BestPosture | None = None

    @property
    def title(self) -> str:
        """Return the kind in words, and how many there are."""
        return f'{self.kind.words} ({len(self.unknowns)})'

    @property
    def advice(self) -> str:
        """Return the remedy, and what the best posture would do."""
        return self.kind.remedy if self.posture is None else (
            f'{self.kind.remedy}; {self.unknowns[0].name}: {self.posture.describe()}')


def describe_ambiguities(ambiguities: Sequence[Ambiguity]) -> str:
    """Return one line: how many, the worst ones, and the posture that helps; '' if none."""
    found = sorted((u for a in ambiguities for u in a.unknowns), key=lambda u: u.alone / u.left)
    if not found:
        return ''
    worst = '; '.join(f'{u.name} (with {u.partner})' for u in found[:NAMED])
    helping = [a for a in ambiguities if a.posture is not None and a.posture.is_worthwhile]
    best = max(helping, key=lambda a: a.posture.share if a.posture else 0.0, default=None)
    advice = 'no known posture helps' if best is None or best.posture is None else (
        f'the most useful further pose is {best.posture.posture}: it reduces the variance of '
        f'{best.unknowns[0].name} by {100.0 * best.posture.share:.0f} %')
    return (f'{len(found)} errors of instruments cannot be separated from others by these poses; '
            f'worst: {worst}; {advice}')


Helps = Callable[[Sequence[int]], Sequence[BestPosture | None]]


def confounded(covariance: Array, estimates: Sequence[InstrumentEstimate],
               links: Sequence[str], helps: Helps = lambda unknowns: ()) -> tuple[Ambiguity, ...]:
    """
    Return what cannot be distinguished, by kind, with the remedy.

    Parameters
    ----------
    covariance
        Of all unknowns in standard deviations of their priors, (4 L + V, 4 L + V).
    estimates
        Of the instruments, the last V.
    links
        Names of the L links.
    helps
        Returns for numbers of unknowns which posture would tell most about each.

    """
    L, first = len(links), len(covariance) - len(estimates)
    what = ('mass', 'first moment x', 'first moment y', 'first moment z')
    names = [*(f'{one} of {name}' for name in links for one in what),
             *(e.describe() for e in estimates)]
    assert len(names) == 4 * L + len(estimates)
    variance = np.diag(covariance)
    alone = 1.0 / np.diag(np.linalg.inv(covariance))
    correlation = covariance / np.sqrt(np.outer(variance, variance))
    np.fill_diagonal(correlation, 0.0)
    found: dict[InstrumentKind, list[int]] = {}
    for i in np.argsort(alone[first:]).tolist():
        if variance[first + i] > UNKNOWN and alone[first + i] < KNOWN_ALONE:
            found.setdefault(estimates[i].kind, []).append(first + i)
    worst = [unknowns[0] for unknowns in found.values()]
    best = list(helps(worst) if worst else ()) or [None] * len(worst)
    return tuple(Ambiguity(kind, tuple(Confounded(
        names[k], names[int(np.abs(correlation[k]).argmax())], float(variance[k]),
        float(alone[k])) for k in unknowns), posture)
        for (kind, unknowns), posture in zip(found.items(), best))
