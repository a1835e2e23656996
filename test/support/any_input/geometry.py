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
"""Geometry, contacts, support, and other functions of plain numbers."""

from __future__ import annotations

from biped_com_ros.core import constants, errors, spelling
from biped_com_ros.core.com import kinematics as com, settings as com_settings
from biped_com_ros.core.geometry import polygon, pose, projection, shapes, wrench
from biped_com_ros.core.gravity import minimum_norm
from biped_com_ros.core.legs import keyframes
from biped_com_ros.core.stability import contact_region, contacts, levels, support, zmp
from biped_com_ros.core.state import invariant_filter
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
import numpy as np
from support.any_input import values as v
from support.any_input.contract import Cases

CASES = Cases()
add, add_drawn = CASES.add, CASES.add_drawn

# -- polygons: corners from files, points from messages
add(polygon.convex_hull, st.lists(v.plain(2, v.anything), max_size=8), calls=40)
add(polygon.hull_of, v.outlines, calls=40)
add(polygon.edges, v.outlines)
add(polygon.area, v.outlines)
add(polygon.centroid, v.outlines, calls=40)
add(polygon.half_planes, v.hulls, calls=40)
add(polygon.distances_inside, v.hulls.map(polygon.half_planes), v.points)
add(polygon.margin, v.hulls, v.plain(2), calls=40)

# -- poses
add(pose.rotation_from_quaternion, v.vectors(4, v.anything), calls=40)
add(pose.rotation_about, st.integers(0, 2), v.credible)
add(pose.turned, v.quaternions, v.vectors(), v.lengths)
add(pose.quaternion_from_rotation, v.rotations)
add(pose.cross, v.vectors(), v.vectors())
add(pose.combined, v.axes, v.credible, v.credible, v.credible)
add(pose.components, v.axes, v.credible, v.credible, v.credible)
add(pose.heading_of, v.rotations | st.just(np.eye(3)[[2, 0, 1]]))
add(pose.yaw_of, v.rotations | st.just(np.eye(3)[[2, 0, 1]]))
_soles = v.lists_of(v.plain(3), v.flags)
add_drawn(pose.mean_sole, _soles)
add_drawn(pose.footprint_position, _soles.map(lambda drawn: (np.array(drawn[0]), drawn[1])))
add_drawn(pose.footprint_pose, st.tuples(v.poses, _soles).map(
    lambda drawn: (drawn[0], np.array(drawn[1][0]), drawn[1][1])))


# -- wrenches
_wrenches = v.plain(6)
add(wrench.largest_credible_load, v.positive)
add(wrench.skew, v.vectors())
add(wrench.wrench_adjoint, v.rotations, v.vectors())
add(wrench.transform_wrench, v.rotations, v.vectors(), v.vectors(6))
add(wrench.about_origin, _wrenches, v.plain(3))
add_drawn(wrench.sum_wrenches, st.tuples(v.lists_of(_wrenches, v.placements), v.plain(3)).map(
    lambda drawn: (*drawn[0], drawn[1])))
add(wrench.centre_of_pressure, _wrenches, v.rotations.map(lambda R: R[2].tolist()), v.lengths,
    v.credible, calls=40)
_covariances = st.builds(lambda root: root @ root.T, v.vectors((6, 6)))
add(wrench.sum_covariance, _covariances, v.placements.map(lambda placed: np.array([placed])))
add(wrench.pressure_covariance, v.plain(3), v.rotations.map(lambda R: R[2].tolist()), v.lengths,
    v.positive, _covariances)
add(wrench.cop_on_sole, st.tuples(_wrenches, v.positive).map(
    lambda drawn: (*drawn[0][:2], drawn[1], *drawn[0][3:])))
add(wrench.inverse_wrench_adjoint, st.builds(wrench.wrench_adjoint, v.rotations, v.vectors()))
add(wrench.set_wrench_adjoint, st.builds(np.zeros, st.just((6, 6))), v.rotations, v.vectors())
add(wrench.set_twist_adjoint, st.builds(np.zeros, st.just((6, 6))), st.builds(
    lambda R, p: np.vstack((R.T, p)), v.rotations, v.vectors()))
add(wrench.com_line, v.vectors(6, v.anything), st.none() | v.vectors(3, v.anything), calls=40)
add(wrench.weight_matrix, v.positive, v.vectors())
add(wrench.set_weight_matrix, st.builds(np.zeros, st.just((6, 3))), v.positive, v.vectors())

# -- surfaces of URDFs
add(shapes.box, v.vectors(3, v.positive))
add(shapes.cylinder, v.positive, v.positive)
add(shapes.sphere, v.positive)
add(shapes.joined, st.lists(st.builds(shapes.box, v.vectors(3, v.positive)), min_size=1,
                            max_size=3))

# -- contacts and regions
add(contacts.surface_contact, v.poses, v.outlines, v.anything, v.anything, st.integers(3, 8),
    calls=50, may_be_infinite=True)
add(contacts.grip_contact, v.poses, v.anything, calls=50)
_several = st.lists(v.contacts, min_size=1, max_size=4)
add(contact_region.com_region, _several, v.anything | v.positive, v.lengths, calls=30)
add(contact_region.zmp_region, _several, v.anything | v.positive, v.vectors(3, v.lengths),
    v.planes, calls=30)
add_drawn(support.support_polygon, v.lists_of(v.poses, v.outlines, v.flags), calls=30)


@st.composite
def _programs(draw):
    m, n = draw(st.integers(1, 5)), draw(st.integers(1, 8))
    size = v.anything if draw(v.flags) else st.floats(-2.0, 2.0)
    k = draw(st.integers(0, 2))
    return tuple(draw(arrays(float, shape, elements=size))
                 for shape in ((m, n), m, (2, n), (k, n), k))


add_drawn(projection.project, _programs(), calls=40)


@st.composite
def _balanced(draw):
    points, shares, levers = draw(v.lists_of(
        v.plain(3, v.lengths), st.floats(0.0, 1.0), st.floats(0.0, 1.0)))
    total = sum(shares) or 1.0
    return (draw(v.plain(3)), draw(v.plain(3)), points, [share / total for share in shares],
            levers)


add_drawn(minimum_norm.minimum_norm_wrenches, _balanced(), calls=40)

# -- centre of mass and zero-moment point
add(com.natural_frequency, v.anything, v.positive, calls=40)
add(com.divergent_component, v.vectors(), v.vectors(), v.credible, v.positive, calls=40)
add(com.divergent_point, v.plain(3), v.plain(3), v.credible, v.positive, calls=40)
add(com_settings.is_credible_mass, v.anything, v.positive)
add(levels.tilt_of, v.credible)
add(levels.lean_of, v.rotations, v.vectors(3), st.floats(0.0, 1.0))
add(invariant_filter.left_jacobian, v.vectors(3), calls=40)
add(keyframes.minimum_jerk, v.credible)


@st.composite
def _moving_links(draw):
    n = draw(st.integers(1, 4))
    several = [draw(st.none() | arrays(float, (n, 3), elements=v.credible)) for _ in range(2)]
    return (draw(v.vectors(n, v.positive)), draw(arrays(float, (n, 3), elements=v.credible)),
            *several, draw(v.lengths), draw(v.positive), draw(v.flags))


add_drawn(zmp.zmp_by_links, _moving_links(), calls=40,
          nan_means='the ground would have to pull')
add(zmp.zmp_on_plane, _wrenches, v.planes, v.credible, calls=40)
add_drawn(zmp.measured_wrench, st.tuples(
    v.lists_of(_wrenches, v.placements), v.lists_of(st.none() | _wrenches, v.placements)).map(
        lambda drawn: (*drawn[0], *drawn[1])))

# -- plain values
add(constants.nanoseconds, v.times)
add(errors.brief, st.text())
add(errors.printable, st.text())
add(errors.check_positive, v.names, st.builds(
    lambda value: type('Options', (), {'value': value})(), v.anything), st.just('value'))
add(errors.check_setting, st.builds(
    lambda value: type('Settings', (), {'value': value})(), v.anything), st.just('value'),
    v.flags, v.names, v.names)
add(spelling.likeliest_name, v.names, st.lists(v.names, max_size=4))
