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
"""Volume and centroid of surfaces."""

import numpy as np


def volume(surface):
    """Volume by the divergence theorem: positive only if all faces look outward."""
    a, b, c = surface.vertices[surface.faces].transpose(1, 0, 2)
    return np.einsum('ij,ij->i', a, np.cross(b, c)).sum() / 6.0


def middle(surface):
    """Centroid of the volume, by tetrahedra to the origin."""
    a, b, c = surface.vertices[surface.faces].transpose(1, 0, 2)
    parts = np.einsum('ij,ij->i', a, np.cross(b, c)) / 6.0
    return (parts[:, None] * (a + b + c) / 4.0).sum(axis=0) / parts.sum()
