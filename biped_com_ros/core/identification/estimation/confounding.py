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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.equations.instruments import (
    InstrumentEstimate, InstrumentKind)
from biped_com_ros.core.identification.estimation.remedies import BestPosture
import numpy as np

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
