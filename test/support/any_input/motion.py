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
"""Robots in motion: models, states, gravity, legs, and the torso."""

from __future__ import annotations

from functools import cache

from biped_com_ros.core.com import carrier, kinematics as com
from biped_com_ros.core.geometry.polygon import area
from biped_com_ros.core.gravity import (
    compensation, contacts, joint_trajectory, model as gravity_model, motion_goal,
    reference as motion_reference, support_qp)
from biped_com_ros.core.legs import (
    balance, com_shift, footsteps, gait, keyframes, kinematics as leg_kinematics, playback,
    robot_legs, shift_session, stance_ik, step_adjustment, walk_session)
from biped_com_ros.core.model import frames, kinematics, pinocchio_model, robot, sole_geometry
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.payload import carried
from biped_com_ros.core.stability import hands, zmp
from biped_com_ros.core.state import base, leg_odometry, wrench_mover
from biped_com_ros.core.state.stance import Twist
from biped_com_ros.core.torso import arc, constant_curvature, joystick, reference, statics, tension
from biped_com_ros.core.wrench import dynamics, weight_check
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
import numpy as np
from support.any_input import robots as r, values as v
from support.any_input.contract import Cases

CASES = Cases()
add, add_drawn = CASES.add, CASES.add_drawn
_twists = st.builds(Twist, v.vectors(), v.vectors())
_models = r.robots

# -- models
add(robot.position_limits, _models, may_be_infinite=True)
add(robot.velocity_limits, _models, may_be_infinite=True)
add(robot.effort_limits, _models, may_be_infinite=True)
add(robot.different_kinematics, _models, _models)
add(kinematics.view_memory, _models.map(lambda model: model.pin_model.createData()))
add_drawn(sole_geometry.sole_height, _models.flatmap(
    lambda model: st.tuples(st.just(model), st.sampled_from((*model.config.feet, 'none')))))
add_drawn(sole_geometry.sole_polygon, _models.flatmap(
    lambda model: st.tuples(st.just(model), st.sampled_from((*model.config.feet, 'none')),
                            v.anything)))
add_drawn(frames.sole_in_link, _models.flatmap(
    lambda model: st.tuples(st.sampled_from(list(model.config.feet.values())))))
add(pinocchio_model.build_model, _models.map(lambda model: model.urdf), calls=10)
add_drawn(pinocchio_model.unbound, _models.flatmap(lambda model: st.tuples(
    st.just(model.pin_model.copy()),
    st.frozensets(st.sampled_from(list(model.pin_model.names)[2:]), max_size=2))))
add_drawn(pinocchio_model.range_of, _models.flatmap(lambda model: st.tuples(
    st.just(model.pin_model), st.sampled_from(model.joint_names))), may_be_infinite=True)
add_drawn(pinocchio_model.parent_joint, _models.flatmap(lambda model: st.tuples(
    st.sampled_from(list(model.pin_model.frames)))))
add_drawn(pinocchio_model.pose_of, _models.flatmap(lambda model: st.tuples(
    st.sampled_from([frame.placement for frame in model.pin_model.frames]))))
add(pinocchio_model.check_names, _models.map(lambda model: model.config),
    _models.map(lambda model: model.pin_model))
add_drawn(pinocchio_model.check_postures, _models.map(
    lambda model: (model.config, model.pin_model)))
add(carrier.trunk, _models)
add(weight_check.weight_below_sensors, _models)
add(dynamics.by_joint, st.dictionaries(st.sampled_from('abc'), v.credible),
    st.dictionaries(st.sampled_from('ab'), st.lists(st.sampled_from('xyz'))),
    st.lists(st.sampled_from('axyz')))

# -- moving robots
add(com.com_velocity_in_world, r.states(), _twists)
add(com.com_velocity_along_base, r.states(), _twists)
add_drawn(leg_odometry.twist_from_stance, r.states().flatmap(lambda state: st.tuples(
    st.just(state), st.lists(v.flags, min_size=len(state.model.config.feet),
                             max_size=len(state.model.config.feet)))))
add_drawn(wrench_mover.mover_to_sole, _models.flatmap(lambda model: st.tuples(
    st.just(model), st.integers(0, len(model.config.feet) - 1))))
add_drawn(wrench_mover.mover_to_hand, _models.filter(lambda model: model.config.hands).flatmap(
    lambda model: st.tuples(st.just(model), st.sampled_from(list(model.config.hands)))))
add(base.make_base, _models, st.builds(base.BaseSettings, source=st.sampled_from(
    base.BASE_SOURCES), fixed_base=v.plain(6, v.credible)))


@st.composite
def _motions(draw, elements=v.angles):
    model, q, w, a = draw(r.postures(elements, 3))
    return model, q, w, a, draw(st.sampled_from((*model.config.feet, 'none')))


add(hands.hands_covariance, st.lists(st.builds(
    hands.HandTouch, st.sampled_from(('left', 'right', 'other')), v.placements, v.plain(3)),
    max_size=2, unique_by=lambda hand: hand.name), st.just(('left', 'right')),
    arrays(float, (6, 6), elements=v.credible))
add_drawn(zmp.stance_motion, _motions())
add_drawn(zmp.zmp_of_motion, st.tuples(_motions(), st.none() | v.rotations.map(
    lambda R: R[2])).map(lambda drawn: (*drawn[0], drawn[1])),
    nan_means='the ground would have to pull')


@st.composite
def _pin_motions(draw):
    model, q, w, a = draw(r.postures(count=3))
    return model.pin_model, model.configuration(q), model.velocity(w), model.velocity(a)


add_drawn(zmp.link_motion, _pin_motions())


@st.composite
def _knots(draw):
    model = draw(r.light_robots)
    count, n = draw(st.integers(1, 3)), len(model.joint_names)
    return model, draw(arrays(float, (count, 3, n + 4), elements=v.angles))


add_drawn(gait.zmp_of_motion, _knots(), nan_means='the ground would have to pull')

# -- gravity
_shares = st.floats(0.0, 1.0)


@st.composite
def _shared_loads(draw):
    load = draw(r.loads())
    count = len(load.gravity_model.contacts)
    shares = draw(st.lists(_shares, min_size=count, max_size=count).filter(any))
    return load, [share / sum(shares) for share in shares]


add_drawn(gravity_model.minimum_norm, _shared_loads())
add_drawn(compensation.support_problem, st.tuples(_shared_loads().map(
    lambda drawn: gravity_model.minimum_norm(*drawn)), st.floats(0.0, 1.0)))
add(contacts.find_contacts, _models, st.none() | st.lists(
    st.sampled_from(('left', 'right', 'hand', 'left_hand', 'none')), max_size=3),
    st.floats(0.0, 1.0))
add(support_qp.contact_rows, st.builds(
    contacts.ContactPoint, v.names, v.hulls.filter(lambda hull: area(hull) > 1e-6),
    st.floats(0.0, 1.0)),
    st.builds(support_qp.SupportLimits, friction=st.floats(0.01, 3.0),
              torsional_friction=st.floats(0.001, 1.0), sole_margin=st.floats(0.0, 0.2)))
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


add_drawn(joint_trajectory.joint_trajectory, _trajectories(), calls=40)
add_drawn(joint_trajectory.braking, st.integers(1, 3).flatmap(lambda n: st.tuples(
    st.just('abc'[:n]), v.vectors(n), v.vectors(n), v.anything)), calls=50)
add_drawn(motion_reference.prevent_overshoot, st.tuples(
    st.integers(2, 5), st.integers(1, 3)).flatmap(lambda size: st.tuples(
        v.vectors(size[0], st.floats(0.001, 1.0)).map(np.cumsum),
        v.vectors(size[0] * size[1]).map(lambda flat: flat.reshape(size)),
        v.vectors(size[0] * size[1]).map(lambda flat: flat.reshape(size)))), calls=50)
add(motion_goal.tolerances, _joints, v.anything, st.lists(st.builds(
    motion_goal.Tolerance, st.sampled_from('abcd'), v.anything, v.anything), max_size=2),
    calls=40, may_be_infinite=True)

# -- payloads
add_drawn(carried.without_load, st.tuples(
    v.lists_of(v.plain(6), v.poses), v.vectors(3, v.lengths), v.credible).map(
        lambda drawn: (drawn[0][0], np.array([pose.rows for pose in drawn[0][1]]), *drawn[1:])))

# -- legs
add(balance.desired_zmp, v.vectors(2), v.vectors(2), v.positive, v.hulls, st.floats(0.0, 0.2))
add(balance.bound_zmp, v.vectors(2), v.vectors(2), v.hulls, st.floats(0.0, 0.2))
add(balance.tilt_of, v.rotations)
add(balance.stepping, st.floats(0.0, 0.5))
add(balance.limited, v.vectors(3), v.positive)
add(step_adjustment.error_at_landing, v.vectors(2), v.vectors(2), v.positive)
_footprints = st.builds(footsteps.Footprint, v.lengths, v.lengths, v.angles)
_pairs = st.tuples(_footprints, _footprints)
add(footsteps.forward_steps, _pairs, st.integers(-1, 5), v.anything, st.integers(0, 1))
add(footsteps.rear_foot, _pairs, v.flags)
add(keyframes.show_keyframes, _models, v.anything)
add(shift_session.check_duration, v.anything)
add_drawn(com_shift.com_in_sole, r.postures(v.angles, 1).flatmap(lambda drawn: st.tuples(
    st.just(drawn[0]), st.sampled_from(tuple(drawn[0].config.feet)), st.just(drawn[1]))))
add(robot_legs.legs_of, _models, calls=15)


@st.composite
def _solutions_of_legs(draw):
    outside = tuple(draw(st.lists(st.integers(0, 5), max_size=6)))
    return (robot_legs.legs_of(_biped())['left'],
            leg_kinematics.LegSolution(draw(v.vectors(6)), 0.0, outside, ()))


add_drawn(leg_kinematics.describe_outside, _solutions_of_legs(), calls=40)
add(stance_ik.pose_of, v.vectors(4))


@st.composite
def _systems(draw):
    n, size = draw(st.integers(1, 3)), v.anything if draw(v.flags) else st.floats(-2.0, 2.0)
    return (*[draw(arrays(float, shape, elements=size)) for shape in ((n, n), (n, 1), (n, n))],
            draw(size))


add_drawn(gait.riccati, _systems(), calls=40)


@cache
def _biped():
    return RobotModel.load('biped')


@cache
def _gait():
    return gait.single_step(_biped(), 0.05)


_COARSE = gait.GaitOptions(dt=0.05, compensations=0)
_lengths = v.anything | st.floats(-0.3, 0.3)
_walkers = st.builds(_biped) | st.integers(0, 2).map(r.random_robot)
add(gait.single_step, _walkers, _lengths, st.integers(0, 1), st.just(_COARSE), calls=5)
add(gait.walk, _walkers, st.integers(-1, 2), _lengths, st.integers(0, 1), st.just(_COARSE),
    calls=5)
add(playback.halts, st.builds(_gait), st.floats(0.1, 2.0), v.anything, calls=2)
add(playback.longest_fall, st.builds(_gait), calls=1)
add(walk_session.com_offset, v.rotations, v.vectors(3), v.positive)
add(walk_session.gait_origin, st.builds(
    lambda q: _biped().state(q), v.vectors(len(_biped().joint_names), v.angles)),
    v.vectors(3), st.builds(_gait), calls=10)

# -- torso
_shapes = v.vectors(4, st.floats(-3.0, 3.0))
_limits = st.builds(lambda low, more: tension.TensionLimits(lowest=low, highest=low + more),
                    st.floats(0.0, 100.0), st.floats(0.1, 1000.0))
_backbones = st.builds(lambda length, radius, n: constant_curvature.Backbone(
    length, radius, 2.0 * np.pi * np.arange(n) / n), v.positive, v.positive, st.integers(3, 5))
_torsos = st.builds(statics.TorsoStatics, st.just(constant_curvature.Backbone(
    0.129, 0.034, np.radians((180.0, 270.0, 0.0, 90.0)))), st.builds(
        statics.Stiffness, bending=v.positive, torsion=v.positive, axial=v.positive))
_vectors = st.tuples(st.complex_numbers(max_magnitude=1e6), v.credible)
add(arc.vector_of, v.vectors(3))
add(arc.wrench_of, v.vectors(6))
add(arc.array_of, _vectors | st.tuples(_vectors, _vectors).map(lambda pair: pair[0] + pair[1]))
add(arc.stumpff, st.floats(0.0, 1e6), calls=40)
add(arc.sinc, v.credible, calls=40)
add(constant_curvature.make_shape, v.credible, v.credible, v.credible, v.credible)
add(constant_curvature.bend_and_direction, v.vectors(4))
add(constant_curvature.shape_from_rotation, v.rotations)
add(constant_curvature.largest_gap, v.vectors(4))
add(joystick.tour, v.times)
add(reference.clamped, st.complex_numbers(max_magnitude=1e6), st.floats(0.0, 1e6), calls=40)
add(reference.as_complex, v.vectors(2))
add(reference.as_vector, st.complex_numbers(max_magnitude=1e6))
add(statics.constant_load, v.vectors(6))
add(statics.no_load, st.none())
add_drawn(tension.distribute, st.integers(3, 5).flatmap(lambda n: st.tuples(
    st.just(np.array((np.cos(2.0 * np.pi * np.arange(n) / n),
                      np.sin(2.0 * np.pi * np.arange(n) / n)))),
    v.vectors(2), v.vectors(n), _limits)), calls=50)
add(tension.antagonists, v.vectors(4) | v.vectors(3))
add(tension.map_closure, _torsos, _limits, v.vectors(2, st.floats(-1.0, 1.0)),
    v.vectors(2, v.angles), st.just(statics.no_load), st.floats(0.0, 1.0))
add(tension.moment_reserve, _backbones, _shapes, v.vectors(2), _limits)
