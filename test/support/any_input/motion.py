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

from functools import cache

from biped_com_ros.core.geometry.polygon import area
from biped_com_ros.core.gravity import contacts, model as gravity_model, reference, support_qp
from biped_com_ros.core.legs import footsteps, gait
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability import hands
from biped_com_ros.core.state import base
from biped_com_ros.core.torso import constant_curvature, statics, tension
from biped_com_ros.core.wrench.dynamics import ExternalForces
from biped_com_ros.papers import newman_2013, wang_2013
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
import numpy as np
from support.any_input import robots as r, values as v

_PULL = 'the ground would have to pull'
_shares = st.floats(0.0, 1.0)
_joints = st.lists(st.sampled_from('abcd'), max_size=3)


@st.composite
def _trajectories(draw):
    joints, count = draw(_joints), draw(st.integers(0, 3))

    def points():
        return [draw(st.lists(v.anything, min_size=len(joints), max_size=draw(
            st.integers(len(joints), len(joints) + 1)))) for _ in range(count)]
    times = draw(st.lists(v.anything, min_size=count, max_size=count))
    if draw(v.flags):
        times = sorted(abs(t) for t in times)
    return joints, times, points(), points() if draw(v.flags) else [], (
        points() if draw(v.flags) else [])


@cache
def _biped():
    return RobotModel.load('biped')


@cache
def _gait():
    return gait.single_step(_biped(), 0.05)


_footprints = st.builds(footsteps.Footprint, v.lengths, v.lengths, v.angles)
_complex = st.complex_numbers(max_magnitude=1e6)
_vectors = st.tuples(_complex, v.credible)
_limits = st.builds(lambda low, more: tension.TensionLimits(lowest=low, highest=low + more),
                    st.floats(0.0, 100.0), st.floats(0.1, 1000.0))
_LARMBOT = constant_curvature.Backbone(0.129, 0.034, np.radians((180.0, 270.0, 0.0, 90.0)))

TABLES = {
    # -- models
    'model.robot': {'may_be_infinite': True},
    'model.robot.different_kinematics': {'may_be_infinite': False},
    'model.pinocchio_model.view_memory': {'data': lambda model: model.createData()},
    'model.sole_geometry': {'thickness': v.anything},
    'model.frames': {'foot': lambda model: st.sampled_from(list(model.config.feet.values()))},
    'model.pinocchio_model': {
        'robot': r.robots, 'urdf': lambda robot: robot.urdf,
        'model': lambda robot: robot.pin_model, 'config': lambda robot: robot.config,
        'joint': lambda robot: st.sampled_from(robot.joint_names),
        'frame': lambda model: st.sampled_from(list(model.frames)),
        'placement': lambda frame: frame.placement},
    'model.pinocchio_model.build_model': {'calls': 10},
    'model.pinocchio_model.range_of': {'may_be_infinite': True},
    'model.pinocchio_model.check_names': {'config': r.robots.map(lambda model: model.config)},
    'model.pinocchio_model.unbound': {
        'model': lambda robot: robot.pin_model.copy(), 'continuous': lambda model: st.frozensets(
            st.sampled_from(list(model.names)[2:]), max_size=2)},
    'model.efforts': {'may_be_infinite': True},
    'signals.filters.limited_step': {
        'largest': st.floats(0.0, 1e6), 'low': st.floats(-1e6, 0.0),
        'high': st.floats(0.0, 1e6)},
    'wrench.drive_errors': {
        'calls': 10, 'model': r.robots.filter(lambda model: model.config.imus),
        'forces': lambda model: ExternalForces(model), 'shares': st.tuples(
            st.floats(0.0, 1.0), st.floats(0.0, 1.0)), 'cutoff': st.floats(1.0, 100.0)},
    'wrench.contact': {'count': st.integers(-1, 6)},
    'wrench.dynamics': {
        'values': st.dictionaries(st.sampled_from('abc'), v.credible),
        'groups': st.dictionaries(st.sampled_from('ab'), st.lists(st.sampled_from('xyz'))),
        'joints': st.lists(st.sampled_from('axyz'))},
    # -- moving robots
    'com.estimate.com_in_world': {'calls': 15, 'load': st.none()},
    'com.estimate.com_velocity_in_world': {'calls': 15, 'load': st.none()},
    'com.estimate.com_velocity_along_base': {'calls': 15},
    'state.estimator': {
        'foot': lambda model: st.integers(0, len(model.config.feet) - 1),
        'hand': lambda model: st.sampled_from(list(model.config.hands))},
    'state.estimator.mover_to_hand': {'model': r.robots.filter(
        lambda model: model.config.hands)},
    'state.base': {'settings': st.builds(
        base.BaseSettings, source=st.sampled_from(base.BASE_SOURCES),
        fixed_base=v.plain(6, v.credible))},
    'stability.hands': {
        'touching': st.lists(st.builds(
            hands.HandTouch, st.sampled_from(('left', 'right', 'other')), v.placements,
            v.plain(3)), max_size=2, unique_by=lambda hand: hand.name),
        'virtual': ('left', 'right'), 'covariance': v.vectors((6, 6))},
    # -- gravity
    'gravity': {
        'load': lambda state, up: gravity_model.GravityModel(state.model).load(state, up),
        'shares': lambda load: v.plain(len(load.gravity_model.contacts), _shares).filter(any).map(
            lambda shares: [share / sum(shares) for share in shares])},
    'gravity.compensation': {
        'support': lambda load, shares: gravity_model.minimum_norm(load, shares)},
    'gravity.contacts': {
        'names': st.none() | st.lists(st.sampled_from(
            ('left', 'right', 'hand', 'left_hand', 'none')), max_size=3)},
    'gravity.support_qp': {
        'contact': st.builds(contacts.ContactPoint, v.names, v.hulls.filter(
            lambda hull: area(hull) > 1e-6), _shares),
        'limits': st.builds(
            support_qp.SupportLimits, friction=st.floats(0.01, 3.0),
            torsional_friction=st.floats(0.001, 1.0), sole_margin=st.floats(0.0, 0.2))},
    'gravity.joint_trajectory': {'calls': 50},
    'gravity.joint_trajectory.joint_trajectory': {'arguments': _trajectories()},
    'gravity.joint_trajectory.braking': {
        'arguments': st.integers(1, 3).flatmap(lambda n: st.tuples(
            st.just('abc'[:n]), v.vectors(n), v.vectors(n), v.anything))},
    'gravity.reference.prevent_overshoot': {'calls': 50, 'arguments': st.tuples(
        st.integers(2, 5), st.integers(1, 3)).flatmap(lambda size: st.tuples(
            v.vectors(size[0], st.floats(0.001, 1.0)).map(np.cumsum),
            v.vectors(size), v.vectors(size)))},
    'gravity.reference.tolerances': {
        'calls': 40, 'may_be_infinite': True, 'joints': _joints, 'position': v.anything,
        'given': st.lists(st.builds(reference.Tolerance, st.sampled_from('abcd'),
                                    v.anything, v.anything), max_size=2)},
    'payload.carried': {'arguments': st.tuples(
        v.lists_of(v.plain(6), v.poses), v.vectors(3, v.lengths), v.credible).map(
            lambda drawn: (drawn[0][0], np.array([pose.rows for pose in drawn[0][1]]),
                           *drawn[1:]))},
    # -- legs
    'legs': {
        'length': v.anything | st.floats(-0.3, 0.3), 'first': st.integers(0, 1),
        'options': gait.GaitOptions(dt=0.05, compensations=0), 'gait': st.builds(_gait),
        'largest': v.positive},
    'legs.balance': {
        'reference': v.vectors(2), 'offset': v.vectors(2), 'corners': v.hulls},
    'legs.step_adjustment': {'error': v.vectors(2), 'zmp_offset': v.vectors(2)},
    'legs.footsteps': {
        'footprints': st.tuples(_footprints, _footprints), 'count': st.integers(-1, 5),
        'length': v.anything, 'forward': v.flags},
    'legs.com_shift': {'foot': lambda model: st.sampled_from(tuple(model.config.feet))},
    'legs.stance_ik': {'row': v.vectors(4)},
    'legs.gait': {'calls': 5, 'count': st.integers(-1, 2), 'model': st.builds(_biped)
                  | st.integers(0, 2).map(r.random_robot)},
    'legs.gait.zmp_of_motion': {
        'calls': 15, 'nan_means': _PULL, 'model': r.light_robots, 'knots': lambda model:
        st.integers(1, 3).flatmap(lambda count: arrays(
            float, (count, 3, len(model.joint_names) + 4), elements=v.angles))},
    'legs.playback': {'calls': 2, 'ramp': st.floats(0.1, 2.0), 'least_margin': v.anything},
    'legs.walk_session': {'model': st.builds(_biped)},
    # -- papers
    'papers.wang_2013': {
        'theta': v.vectors(6, v.angles), 'may_be_infinite': True,
        'geometry': st.builds(wang_2013.LegGeometry, *[v.positive] * 4),
        'transform': v.vectors((4, 4), v.credible)},
    'papers.wang_2013.wang_angles': {'positions': v.vectors(6, v.angles)},
    'papers.wang_2013.zmp_of_motion': {
        'up': st.none() | v.rotations.map(lambda R: R[2]), 'nan_means': _PULL},
    'papers.wang_2013.link_motion': {
        'pin_model': lambda model: model.pin_model,
        'q': lambda model, positions: model.configuration(positions),
        'v': lambda model, velocities: model.velocity(velocities),
        'a': lambda model, accelerations: model.velocity(accelerations)},
    'papers.newman_2013': {
        'calls': 15, 'up_in_base': v.vectors(3), 'efforts': v.vectors(4, v.credible),
        'group': lambda model: st.builds(
            newman_2013.LinkGroup, st.just(model), st.sampled_from(('', *model.config.groups))),
        'stance': lambda model: st.sampled_from(list(model.config.feet)),
        'stiffness': v.positive},
    'papers.russo_2021': {
        'calls': 40, 'backbone': st.just(_LARMBOT), 'shape': v.vectors(4, st.floats(-3.0, 3.0)),
        'disks': st.integers(0, 6), 'tensions': v.vectors(4, v.credible),
        'stiffness': st.builds(
            statics.Stiffness, bending=v.positive, torsion=v.positive, axial=v.positive),
        'force': v.positive, 'workspace': st.builds(
            constant_curvature.Workspace, st.just(_LARMBOT), st.floats(0.01, 3.0)),
        'as_printed': v.flags},
    # -- torso
    'torso': {
        'bend': v.vectors(2), 'limits': _limits, 'shape': v.vectors(4), 'largest': st.floats(
            0.0, 1e6), 'value': _complex},
    'torso.arc': {
        'calls': 40, 'square': st.floats(0.0, 1e6), 'pairs': _vectors | st.tuples(
            _vectors, _vectors).map(lambda pair: pair[0] + pair[1])},
    'torso.arc.wrench_of': {'values': v.vectors(6)},
    'torso.constant_curvature': {'angles': v.vectors(4)},
    'torso.constant_curvature.make_shape': {'bend': v.credible},
    'torso.reference': {'calls': 40},
    'torso.reference.as_vector': {'bend': _complex},
    'torso.statics': {'wrench': v.vectors(6)},
    'torso.statics.no_load': {'arguments': (None,)},
    'torso.tension': {
        'angles': v.vectors(4) | v.vectors(3), 'bends': v.vectors(2, st.floats(-1.0, 1.0)),
        'directions': v.vectors(2, v.angles), 'load': st.just(statics.no_load),
        'moment': v.vectors(2),
        'shape': v.vectors(4, st.floats(-3.0, 3.0)),
        'statics': st.builds(statics.TorsoStatics, st.just(_LARMBOT), st.builds(
            statics.Stiffness, bending=v.positive, torsion=v.positive, axial=v.positive)),
        'backbone': st.builds(lambda length, radius, n: constant_curvature.Backbone(
            length, radius, 2.0 * np.pi * np.arange(n) / n), v.positive, v.positive,
            st.integers(3, 5))},
    'torso.tension.distribute': {'calls': 50, 'arguments': st.integers(3, 5).flatmap(
        lambda n: st.tuples(
            st.just(np.array((np.cos(2.0 * np.pi * np.arange(n) / n),
                              np.sin(2.0 * np.pi * np.arange(n) / n)))),
            v.vectors(2), v.vectors(n), _limits))},
}
