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

import numpy as np
from scipy.spatial.transform import Rotation
from support.urdf_oracle import GRAVITY


def link_poses(tree, model, sample):
    """Return poses in the world (4 x 4) of all links with mass."""
    base = np.eye(4)
    base[:3, :3], base[:3, 3] = sample.base.rotation, sample.base.position
    poses = tree.poses(dict(zip(model.joint_names, sample.positions)))
    return {name: base @ poses[name] for name, link in tree.links.items() if link.mass}


def zmp_of_samples(tree, model, samples, h):
    """Momentum of every link by finite differences of three samples, and its rate of change."""
    before, here, after = (link_poses(tree, model, sample) for sample in samples)
    force, moment = np.zeros(3), np.zeros(3)
    for name in here:
        link = tree.links[name]
        c0, c1, c2 = (p[name][:3, :3] @ link.com + p[name][:3, 3] for p in (before, here, after))
        acceleration = (c2 - 2 * c1 + c0) / h ** 2
        spins = []
        for a, b in ((before, here), (here, after)):
            turn = Rotation.from_matrix(b[name][:3, :3] @ a[name][:3, :3].T).as_rotvec()
            middle = Rotation.from_rotvec(0.5 * turn).as_matrix() @ a[name][:3, :3]
            spins.append(middle @ link.inertia @ middle.T @ turn / h)
        needed = link.mass * (acceleration + (0.0, 0.0, GRAVITY))
        force += needed
        moment += np.cross(c1, needed) + (spins[1] - spins[0]) / h
    return np.array((-moment[1], moment[0])) / force[2]
