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
"""Numbers, vectors, poses and contacts for properties."""

from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.polygon import convex_hull
from biped_com_ros.core.geometry.pose import Pose, rotation_from_quaternion
from biped_com_ros.core.stability.contacts import grip_contact, surface_contact
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
import numpy as np

#: From people.
anything = st.floats()
#: From messages.
credible = st.floats(-1e6, 1e6)
#: Of robots: lengths, m, and angles, rad.
lengths = st.floats(-10.0, 10.0)
angles = st.floats(-7.0, 7.0)
positive = st.floats(1e-3, 1e3)
numbers = credible | lengths | positive
times = st.floats(-1e9, 1e9)
flags = st.booleans()
names = st.text(max_size=8)


def vectors(size=3, elements=credible):
    """Return arrays of a size."""
    return arrays(float, size, elements=elements)


def plain(size=3, elements=credible):
    """Return tuples of plain numbers."""
    return st.tuples(*[elements] * size)


quaternions = vectors(4).filter(lambda q: np.linalg.norm(q) > 1e-3)
rotations = quaternions.map(rotation_from_quaternion)
poses = st.builds(Pose, rotations, vectors(3, lengths))
axes = rotations.map(np.ndarray.tolist)
placements = st.builds(lambda R, p: (*R.T.tolist(), p), rotations, plain(3, lengths))
points = plain(2, lengths)
outlines = st.lists(points, min_size=1, max_size=6)
hulls = outlines.map(convex_hull)
planes = st.builds(lambda x, y, origin: Plane.with_normal((x, y, 1.0), origin),
                   st.floats(-5.0, 5.0), st.floats(-5.0, 5.0), plain(3, lengths))
contacts = (
    st.builds(surface_contact, poses, outlines, st.floats(0.01, 3.0),
              st.floats(1.0, 1e4) | st.just(np.inf), st.integers(3, 8))
    | st.builds(grip_contact, poses, st.floats(1.0, 1e4)))


@st.composite
def lists_of(draw, *parts, least=1, most=4):
    """Draw lists of the same length, one of each kind."""
    count = draw(st.integers(least, most))
    return tuple([draw(part) for _ in range(count)] for part in parts)
