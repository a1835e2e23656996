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

from biped_com_ros.core.geometry import polygon, shapes, wrench
from biped_com_ros.core.state.rest import StandingMean
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
import numpy as np
from support.any_input import robots as r, values as v

_wrenches = v.plain(6)
_normals = v.rotations.map(lambda R: R[2].tolist())
_covariances = st.builds(lambda root: root @ root.T, v.vectors((6, 6)))
_person = v.anything | v.positive


@st.composite
def _programs(draw):
    m, n = draw(st.integers(1, 5)), draw(st.integers(1, 8))
    size = v.anything if draw(v.flags) else st.floats(-2.0, 2.0)
    k = draw(st.integers(0, 2))
    return tuple(draw(arrays(float, shape, elements=size))
                 for shape in ((m, n), m, (2, n), (k, n), k))


@st.composite
def _balanced(draw):
    points, shares, levers = draw(v.lists_of(
        v.plain(3, v.lengths), st.floats(0.0, 1.0), st.floats(0.0, 1.0)))
    total = sum(shares) or 1.0
    return (draw(v.plain(3)), draw(v.plain(3)), points, [share / total for share in shares],
            levers)


@st.composite
def _moving_links(draw):
    n = draw(st.integers(1, 4))
    several = [draw(st.none() | arrays(float, (n, 3), elements=v.credible)) for _ in range(2)]
    return (draw(v.vectors(n, v.positive)), draw(arrays(float, (n, 3), elements=v.credible)),
            *several, draw(v.lengths), draw(v.positive), draw(v.flags))


def _object_with(**values):
    return st.builds(lambda **drawn: type('Options', (), drawn)(), **values)


TABLES = {
    '': {
        'calls': 15, 'may_be_infinite': False, 'nan_means': '', 'use': lambda result: result,
        'what': st.just('a file'), 'model': r.robots,
        'positions': r.positions, 'velocities': r.positions, 'accelerations': r.positions,
        'state': lambda model, positions, velocities: model.state(positions, velocities),
        'foot': lambda model: st.sampled_from((*model.config.feet, 'none')),
        'stance': lambda foot: foot,
        'in_contact': lambda model: st.lists(v.flags, min_size=len(model.config.feet),
                                             max_size=len(model.config.feet)),
        'rotation': v.rotations, 'R_world_base': v.rotations, 'R_A_B': v.rotations,
        'up': v.rotations.map(lambda R: R[2])},
    # Corners come from files, points from messages.
    'geometry.polygon': {'calls': 40},
    'geometry.polygon.convex_hull': {'points': st.lists(v.plain(2, v.anything), max_size=8)},
    'geometry.polygon.half_planes': {'corners': v.hulls},
    'geometry.polygon.distances_inside': {'planes': v.hulls.map(polygon.half_planes)},
    'geometry.polygon.margin': {'corners': v.hulls},
    'geometry.pose': {
        'axis': st.integers(0, 2), 'quaternion': v.quaternions, 'axes': v.axes,
        'rotation': v.rotations | st.just(np.eye(3)[[2, 0, 1]]),
        'soles_in_world': st.integers(1, 4).flatmap(lambda n: v.vectors((n, 3))),
        'in_contact': lambda soles_in_world: v.plain(len(soles_in_world), v.flags)},
    'geometry.pose.mean_sole': {'arguments': v.lists_of(v.plain(3), v.flags)},
    'geometry.pose.rotation_from_quaternion': {
        'calls': 40, 'quaternion': v.vectors(4, v.anything)},
    'geometry.wrench': {
        'calls': 40, 'wrench': _wrenches, 'wrench_in_B': v.vectors(6), 'normal': _normals,
        'force': v.positive, 'covariance': _covariances,
        'X_A_B': st.builds(wrench.wrench_adjoint, v.rotations, v.vectors()),
        'placed': v.lists_of(_wrenches, v.placements), 'wrenches': lambda placed: placed[0],
        'placements': lambda placed: placed[1], 'out': st.builds(np.zeros, st.just((6, 6)))},
    'geometry.wrench.sum_covariance': {'placements': v.placements.map(lambda p: np.array([p]))},
    'geometry.wrench.cop_on_sole': {'wrench': st.tuples(_wrenches, v.positive).map(
        lambda drawn: (*drawn[0][:2], drawn[1], *drawn[0][3:]))},
    'geometry.wrench.set_twist_adjoint': {'placements': st.builds(
        lambda R, p: np.vstack((R.T, p)), v.rotations, v.vectors())},
    'geometry.wrench.com_line': {'wrench': v.vectors(6, v.anything)},
    'geometry.wrench.set_weight_matrix': {'out': st.builds(np.zeros, st.just((6, 3)))},
    'geometry.shapes': {
        'parts': st.lists(st.builds(shapes.box, v.vectors(3, v.positive)), min_size=1,
                          max_size=3)},
    'geometry.projection': {'calls': 40, 'arguments': _programs()},
    'stability.contacts': {
        'calls': 50, 'friction': v.anything, 'largest_force': v.anything,
        'edges': st.integers(3, 8)},
    'stability.contacts.surface_contact': {'may_be_infinite': True},
    'stability.contact_region': {
        'calls': 30, 'contacts': st.lists(v.contacts, min_size=1, max_size=4), 'weight': _person},
    'stability.support': {'calls': 30, 'arguments': v.lists_of(v.poses, v.outlines, v.flags)},
    'papers.wang_2013.zmp_by_links': {
        'calls': 40, 'arguments': _moving_links(), 'nan_means': 'the ground would have to pull'},
    'stability.zmp.measured_wrench': {'arguments': st.tuples(
        v.lists_of(_wrenches, v.placements), v.lists_of(st.none() | _wrenches, v.placements)).map(
            lambda drawn: (*drawn[0], *drawn[1]))},
    'gravity.contacts.minimum_norm_wrenches': {'calls': 40, 'arguments': _balanced()},
    'com.estimate': {'calls': 40, 'com_height': v.anything, 'gravity': v.positive},
    'state.invariant_filter': {'calls': 40},
    'state.rest': {
        'mean': st.builds(
            StandingMean, v.positive, v.vectors(3, v.anything), v.positive,
            v.vectors(3, v.anything), v.vectors(3, v.anything), v.vectors(3, v.anything)),
        'up': st.none() | v.vectors(3, v.anything), 'gravity': v.positive},
    'errors': {'name': st.text(), 'text': st.text(), 'names': st.lists(st.text())},
    'errors.check_positive': {'arguments': st.tuples(
        v.names, _object_with(value=v.anything), st.just('value'))},
    'errors.check_setting': {'arguments': st.tuples(
        _object_with(value=v.anything), st.just('value'), v.flags, v.names, v.names)},
    'spelling': {'valid': st.lists(v.names, max_size=4)},
}
