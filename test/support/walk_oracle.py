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
"""The zero-moment point of a walk by Newton and Euler, from the poses of its links alone."""

from biped_com_ros.core.stability.support import support_polygon
import numpy as np
from scipy.spatial.transform import Rotation
from support.urdf_oracle import GRAVITY, Tree


class WalkOracle:
    """
    Takes the public fields of samples only, and everything else from the robot's URDF.

    Parameters
    ----------
    model
        The robot that walks.

    """

    def __init__(self, model):
        self._model, self._tree = model, Tree(model.urdf)
        heavy = {name: link for name, link in self._tree.links.items() if link.mass}
        self._names = list(heavy)
        self._mass = np.array([link.mass for link in heavy.values()])
        self._com = np.array([link.com for link in heavy.values()])[:, :, np.newaxis]
        self._inertia = np.array([link.inertia for link in heavy.values()])

    def _links(self, sample):
        """Return rotations (n, 3, 3) and centres of mass (n, 3) of all links in the world."""
        poses = self._tree.poses(dict(zip(self._model.joint_names, sample.positions)))
        poses = np.array([poses[name] for name in self._names])
        R = sample.base.rotation @ poses[:, :3, :3]
        coms = (poses[:, :3, :3] @ self._com)[:, :, 0] + poses[:, :3, 3]
        return R, coms @ sample.base.rotation.T + sample.base.position

    def zmp(self, samples, h):
        """Momentum of every link by finite differences of three samples, and its change."""
        (R0, c0), (R1, c1), (R2, c2) = (self._links(sample) for sample in samples)
        needed = self._mass[:, np.newaxis] * (
            (c2 - 2 * c1 + c0) / h ** 2 + (0.0, 0.0, GRAVITY))
        spins = []
        for before, after in ((R0, R1), (R1, R2)):
            turn = Rotation.from_matrix(after @ before.transpose(0, 2, 1)).as_rotvec()
            middle = Rotation.from_rotvec(0.5 * turn).as_matrix() @ before
            inertia = middle @ self._inertia @ middle.transpose(0, 2, 1)
            spins.append((inertia @ turn[:, :, np.newaxis])[:, :, 0] / h)
        moment = (np.cross(c1, needed) + (spins[1] - spins[0]) / h).sum(axis=0)
        return np.array((-moment[1], moment[0])) / needed[:, 2].sum()

    def margin(self, samples, h):
        """Return how far inside the support polygon it is in the middle one of three samples."""
        sample, feet = samples[1], self._model.config.feet.values()
        state = self._model.state(sample.positions)
        polygon = support_polygon([sample.base @ state.pose_in_base(f.sole) for f in feet],
                                  [f.polygon for f in feet], sample.in_contact)
        return polygon.margin(np.array((*self.zmp(samples, h), 0.0))).distance
