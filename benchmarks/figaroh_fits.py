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
Estimates of the figaroh package from the same equations (pip install figaroh picos cvxopt).

Its base parameters by least squares, and its two fits of physically consistent links: the
reconstruction, nearest to the URDF with exactly these base parameters, and the direct fit, which
gives some of the fit up for consistent links and a small pull towards the URDF. Both have inertias
as unknowns, about which a robot at rest says nothing: their columns are zero, and the URDF's are
the prior.
"""

from __future__ import annotations

import warnings

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.inertias import link_inertias
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import parse_urdf
import numpy as np

RANK_TOLERANCE = 1e-6
FITS = {'figaroh': '', 'figaroh, exact': 'solve_exact_reconstruction',
        'figaroh, direct': 'solve_direct_effort_fit'}
"""Name of each estimate, and of figaroh's function."""

_KEYS = ('m', 'mx', 'my', 'mz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')


def missing() -> str:
    """Return why figaroh's fits are left out; '' if they are not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # of libraries that it loads
            import cvxopt  # noqa: F401
            import figaroh.identification.physical_fit  # noqa: F401
            import picos  # noqa: F401
    except ImportError as error:
        return f'figaroh is left out: {error} (pip install figaroh picos cvxopt)'
    return ''


def fits(model: RobotModel, A: Array, y: Array, cad: Array) -> dict[str, Array]:
    """
    Return masses and first moments (L, 4) by estimate, without those that figaroh does not find.

    Parameters
    ----------
    model
        The robot.
    A, y
        The equations ``A theta = y``, (rows, 4 L) and (rows,).
    cad
        The prior, (L, 4).

    """
    from figaroh.identification import physical_fit
    found = {'figaroh': base_parameters(A, y, cad)}
    names = [f'{key}_{link}' for link in model.link_names for key in _KEYS]
    full = np.zeros((len(A), len(names)))
    first = (10 * np.arange(len(cad))[:, np.newaxis] + np.arange(4)).ravel()
    full[:, first] = A
    inertias = link_inertias(parse_urdf(model.urdf))
    prior = np.concatenate([inertias[link].toDynamicParameters() for link in model.link_names])
    prior[first] = cad.ravel()
    problem = physical_fit.build_problem(full, y, names, model.link_names, prior=prior)
    for name, function in FITS.items():
        if function:
            record = getattr(physical_fit, function)(problem)
            if record.theta is not None:
                found[name] = record.theta[first].reshape(-1, 4)
    return found


def base_parameters(A: Array, y: Array, cad: Array) -> Array:
    """
    Return masses and first moments (L, 4) by base parameters alone.

    Least squares on the base parameters that figaroh's QR decomposition finds. What they leave
    open is filled in by its own smallest correction, here of the CAD.
    """
    from figaroh.tools.qrdecomposition import QRDecomposer, redistribute_min_norm
    used = np.flatnonzero(np.linalg.norm(A, axis=0) > RANK_TOLERANCE)
    base = QRDecomposer(RANK_TOLERANCE).decompose(A[:, used], [f'p{i}' for i in used], y)
    theta = cad.ravel().copy()
    theta[used] += redistribute_min_norm(base.M, base.phi_b - base.M @ theta[used])
    return theta.reshape(-1, 4)
