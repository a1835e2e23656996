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
D-optimal selection of poses: the largest ``log det(I + sum A_k^T A_k)``.

A_k are the whitened equations of pose k in units of the prior. The gain of a pose is the
information that it adds, in nats. Greedy first, then exchange of single poses.
"""

from __future__ import annotations

from collections.abc import Sequence
import heapq

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.design_options import no_progress, Progress
import numpy as np

SHORTLIST = 12
"""Number of poses whose gain is computed as replacements of one."""


def choose_greedily(rows: Sequence[Array], count: int, chosen: Sequence[int] = (),
                    progress: Progress = no_progress) -> list[int]:
    """
    Return `chosen` and further poses, each the one with the largest gain, until there are `count`.

    A gain only shrinks as others are chosen (log det is submodular), so an old gain is an upper
    bound of the present one and most need not be computed again.

    Parameters
    ----------
    rows
        Whitened equations (k, 4 L) of each pose in units of the prior; poses without rows are
        not chosen.
    count
        Number of poses.
    chosen
        Indices of those that are chosen already.
    progress
        Reports how many are chosen.

    """
    covariance, selected = np.eye(rows[0].shape[1]), list(chosen)
    for i in selected:
        covariance = _added(covariance, rows[i])
    queue = [(-_gain(A, covariance), i, len(selected)) for i, A in enumerate(rows)
             if i not in selected and len(A)]
    heapq.heapify(queue)
    while len(selected) < count:
        _, i, age = heapq.heappop(queue)
        if age < len(selected):
            heapq.heappush(queue, (-_gain(rows[i], covariance), i, len(selected)))
            continue
        selected.append(i)
        covariance = _added(covariance, rows[i])
        progress('choosing', len(selected), count)
    return selected


def exchange(rows: Sequence[Array], chosen: Sequence[int], kept: int = 0,
             progress: Progress = no_progress) -> list[int]:
    """
    Return `chosen` with single poses replaced by others with a larger gain; one pass.

    Parameters
    ----------
    rows
        As in `choose_greedily`.
    chosen
        Indices of poses.
    kept
        Number of them, from the first, that are not replaced.
    progress
        Reports how many are examined.

    """
    selected = list(chosen)
    information = np.eye(rows[0].shape[1]) + sum(rows[i].T @ rows[i] for i in selected)
    for k, old in enumerate(selected):
        if k < kept:
            continue
        without = np.asarray(np.linalg.inv(information - rows[old].T @ rows[old]))
        others = [i for i in range(len(rows)) if i not in selected and len(rows[i])]
        # Half of the trace is a cheap upper bound of the gain.
        bounds = {i: float(((rows[i] @ without) * rows[i]).sum()) for i in others}
        best = sorted(others, key=lambda i: -bounds[i])[:SHORTLIST]
        gains = {i: _gain(rows[i], without) for i in [old, *best]}
        new = max(gains, key=lambda i: gains[i])
        if new != old and gains[new] > gains[old] + 1e-3:
            information += rows[new].T @ rows[new] - rows[old].T @ rows[old]
            selected[k] = new
        progress('exchanging', k + 1, len(selected))
    return selected


def compress(A: Array) -> Array:
    """Return fewer rows (k, 4 L) with the same information, but for a 500th of the prior's."""
    _, strengths, directions = np.linalg.svd(A, full_matrices=False)
    kept = strengths > 0.04
    return strengths[kept, np.newaxis] * directions[kept]


def _gain(A: Array, covariance: Array) -> float:
    """Return the information that rows add to a posterior, nats."""
    _, log_determinant = np.linalg.slogdet(np.eye(len(A)) + A @ covariance @ A.T)
    return 0.5 * float(log_determinant)


def _added(covariance: Array, A: Array) -> Array:
    """Return the covariance after rows are added."""
    across = covariance @ A.T
    return covariance - across @ np.linalg.solve(np.eye(len(A)) + A @ across, across.T)


def total_information(rows: Sequence[Array]) -> float:
    """Return the information of poses together, ``log det(I + sum A^T A) / 2``, nats."""
    _, log_determinant = np.linalg.slogdet(
        np.eye(rows[0].shape[1]) + sum(A.T @ A for A in rows))
    return 0.5 * float(log_determinant)
