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

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.instruments import InstrumentEstimate, InstrumentKind
import numpy as np

UNKNOWN, KNOWN_ALONE = 0.4, 0.1
"""Confounded: more than the first share of the prior's variance is left; with all others known
less than the second would be."""

NAMED = 3
"""Number of examples that are named of each kind."""

_REMEDIES = {
    InstrumentKind.JOINT_OFFSET: 'capture these joints over a wider range, hoisted as well',
    InstrumentKind.TORQUE_GAIN: 'add poses that load these joints in both directions, or a known '
                                'payload',
    InstrumentKind.TORQUE_OFFSET: 'add poses that load these joints in both directions',
    InstrumentKind.FRICTION: 'approach the same poses from both sides',
    InstrumentKind.TILT: 'add hoisted poses, or turn the robot around on the same floor',
    InstrumentKind.WRENCH_MATRIX: 'weigh the robot on a scale, and load the soles at known places',
    InstrumentKind.WRENCH_BIAS: 'tare with the feet in the air',
    InstrumentKind.WRENCH_DRIFT: 'repeat the first poses at the end',
    InstrumentKind.SENSOR_SHIFT: 'measure the place of the sensor; only its product with gain and '
                                 'cross-talk counts, and that is known',
    InstrumentKind.SENSOR_TURN: 'measure how the sensor is mounted; only its product with '
                                'cross-talk counts, and that is known'}

_WORDS = {
    InstrumentKind.JOINT_OFFSET: 'joint offset', InstrumentKind.TORQUE_GAIN: 'torque constant',
    InstrumentKind.TORQUE_OFFSET: 'torque offset', InstrumentKind.FRICTION: 'friction',
    InstrumentKind.TILT: 'IMU mounting', InstrumentKind.WRENCH_MATRIX: 'gain or cross-talk',
    InstrumentKind.WRENCH_BIAS: 'bias', InstrumentKind.WRENCH_DRIFT: 'drift',
    InstrumentKind.SENSOR_SHIFT: 'place', InstrumentKind.SENSOR_TURN: 'mounting angle'}


def describe_instrument(e: InstrumentEstimate) -> str:
    """Return what an estimate is of, in words."""
    axis = f' {e.axis}' if e.axis else ''
    return f'{_WORDS[e.kind]}{axis} of {e.name or "the base"}'


Helps = Callable[[Sequence[int]], Sequence[str]]


def confounded(covariance: Array, estimates: Sequence[InstrumentEstimate],
               links: Sequence[str], helps: Helps = lambda unknowns: ()) -> tuple[str, ...]:
    """
    Return descriptions of what cannot be distinguished, with the remedy.

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
    names = [*(f'mass of {name}' for name in links),
             *(f'first moment {axis} of {name}' for name in links for axis in 'xyz'),
             *(describe_instrument(e) for e in estimates)]
    assert len(names) == 4 * L + len(estimates)
    variance = np.diag(covariance)
    alone = 1.0 / np.diag(np.linalg.inv(covariance))
    correlation = covariance / np.sqrt(np.outer(variance, variance))
    np.fill_diagonal(correlation, 0.0)
    found: dict[InstrumentKind, list[int]] = {}
    text: dict[int, str] = {}
    for i in np.argsort(alone[first:]):
        k, e = first + i, estimates[i]
        if variance[k] > UNKNOWN and alone[k] < KNOWN_ALONE:
            partner = names[int(np.abs(correlation[k]).argmax())]
            found.setdefault(e.kind, []).append(k)
            text[k] = f'{names[k]} (above all with {partner})'
    worst = [unknowns[0] for unknowns in found.values()]
    best = list(helps(worst) if worst else ()) or [''] * len(worst)
    return tuple(_describe(kind, [text[k] for k in unknowns], f'; {names[k]}: {what}' if what
                           else '')
                 for (kind, unknowns), k, what in zip(found.items(), worst, best))


def _describe(kind: InstrumentKind, pairs: Sequence[str], best: str) -> str:
    more = f', and {len(pairs) - NAMED} more' if len(pairs) > NAMED else ''
    return f'confounded: {"; ".join(pairs[:NAMED])}{more}: {_REMEDIES[kind]}{best}'
