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
A robot's kinematics, and one immutable snapshot of it per update.

The configuration handed to Pinocchio places the *base frame* at the origin, so that one pass of
forward kinematics gives everything in the base; where the base is in the world is known only
later (IMU, odometry, TF) and is attached with :meth:`RobotState.in_world`.

Placements are read from Pinocchio's memory as one NumPy array instead of joint by joint: a row of
four 3-vectors per joint, the three columns of ``R_base_joint`` and the position of the joint.
A point (x, y, z) of that joint is then ``[x, y, z, 1] @ row``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import ctypes
from functools import cached_property
import math
from typing import Any

from biped_com_ros.core import urdf as urdf_tools
from biped_com_ros.core.config import load_robot_config, RobotConfig
from biped_com_ros.core.errors import (
    ConfigurationError, InputError, RobotDescriptionError, UnknownNameError)
from biped_com_ros.core.pose import Array, Pose
from biped_com_ros.core.wrench import skew
import numpy as np
from numpy.typing import NDArray
import pinocchio as pin

#: rad, m and per second: a hundred joints at this value stay below the absurd.
_SUSPECT = 1e4
_ABSURD_SQUARED = 1e12
#: How many states a shared model keeps: one message's, with and without its velocities.
_RECENT = 4
_ROOT_POSE, _MOVING = slice(7), slice(7, None)  # of Pinocchio's configuration
ROOT = 1  # Pinocchio numbers the universe 0 and the floating base 1.


class FrameSet:
    """
    Frames looked up once, so that all their poses come out of one array operation.

    Attributes
    ----------
    names
        Their names, for messages.
    joints
        Index of the joint that carries each frame, shape (F,).
    placement_in_joint
        Shape (F, 4, 4): transposed homogeneous pose of each frame in its joint.
    twist_transfer
        Shape (F, 6, 6): a joint's twist (linear, angular) along its axes times this is the
        twist of the frame along the axes of the frame.

    """

    def __init__(self, names: Iterable[str], joints: Iterable[int],
                 poses_in_joint: Iterable[Pose]) -> None:
        self.names = tuple(names)
        self.joints: NDArray[np.intp] = np.array(list(joints), dtype=np.intp)
        self.placement_in_joint = np.zeros((len(self.names), 4, 4))
        self.placement_in_joint[:, 3, 3] = 1.0
        for row, pose in zip(self.placement_in_joint, poses_in_joint):
            row[:3, :3] = pose.rotation.T
            row[3, :3] = pose.position
        R_joint_frame = self.placement_in_joint[:, :3, :3].transpose(0, 2, 1)
        self.twist_transfer = np.zeros((len(self.names), 6, 6))
        self.twist_transfer[:, :3, :3] = self.twist_transfer[:, 3:, 3:] = R_joint_frame
        # v + w x r, as a row times a matrix: (w x r)^T = w^T skew(r).
        self.twist_transfer[:, 3:, :3] = skew(self.placement_in_joint[:, 3, :3]) @ R_joint_frame

    def __add__(self, other: FrameSet) -> FrameSet:
        """Return these frames followed by those of `other`."""
        return FrameSet(self.names + other.names, (*self.joints, *other.joints),
                        self.poses_in_joint() + other.poses_in_joint())

    def poses_in_joint(self) -> list[Pose]:
        """Return the pose of each frame in the joint that carries it."""
        return [Pose(row[:3, :3].T, row[3, :3]) for row in self.placement_in_joint]


class RobotModel:
    """
    A floating-base robot built from its URDF and its configuration.

    Parameters
    ----------
    config
        What the URDF does not say.
    urdf
        URDF text.

    Attributes
    ----------
    pin_model
        Pinocchio's model, free flyer first, then every moving joint.
    joint_names
        Joints that are measured, in the order in which positions are expected; without the
        mimicking and the locked ones.
    link_names, link_masses
        URDF links with mass, also those behind fixed joints, and their masses, shape (L,), kg.
    mass
        Total mass, kg.
    soles
        The soles as a :class:`FrameSet`, in the order of ``config.feet``.

    Raises
    ------
    RobotDescriptionError
        If the URDF is broken, has no inertials, or has the base on a moving link.
    UnknownNameError
        If the configuration names a joint or frame that the URDF does not have.

    """

    def __init__(self, config: RobotConfig, urdf: str) -> None:
        self.config, self.urdf = config, urdf
        robot = urdf_tools.parse_urdf(urdf)
        # Before Pinocchio, whose parser tells what is wrong with a number only on stderr.
        inertials, mimics = urdf_tools.link_inertials(robot), urdf_tools.mimic_joints(robot)
        self.pin_model = _build(urdf_tools.for_kinematics(robot))
        _check_configured_names(config, tuple(self.pin_model.names)[2:], self.frame_names)
        _unbound(self.pin_model, urdf_tools.continuous_joints(robot))
        self._set_joints(mimics)
        self._set_links(inertials)
        self.soles = self._make_soles()
        self._set_points()
        self._set_base()
        self._kinematics = Kinematics(self.pin_model)

    @classmethod
    def load(cls, name_or_path: str) -> RobotModel:
        """Build from the name of a robot that comes with the package, or a YAML file's path."""
        config = load_robot_config(name_or_path)
        return cls(config, urdf_tools.load_urdf(config))

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the URDF links."""
        return tuple(f.name for f in self.pin_model.frames if f.type == pin.FrameType.BODY)

    @cached_property
    def actuated_joint_names(self) -> tuple[str, ...]:
        """Measured joints without the passive ones, in model order."""
        return tuple(n for n in self.joint_names if n not in self.config.passive_joints)

    def joint_index(self, names: Iterable[str]) -> NDArray[np.intp]:
        """Return where `names` stand in :attr:`joint_names`."""
        position = {name: i for i, name in enumerate(self.joint_names)}
        for name in (names := tuple(names)):
            if name not in position:
                raise UnknownNameError('joint', name, self.joint_names, self.config.name)
        return np.array([position[name] for name in names], dtype=np.intp)

    def group_index(self, group: str) -> NDArray[np.intp]:
        """Return where the joints of a configured group stand in :attr:`joint_names`."""
        if group not in self.config.groups:
            raise UnknownNameError('group', group, self.config.groups, self.config.name)
        return self.joint_index(self.config.groups[group])

    def posture(self, name: str = 'stand') -> Array:
        """Return a configured posture as positions in the order of :attr:`joint_names`."""
        if name not in self.config.postures:
            raise UnknownNameError('posture', name, self.config.postures, self.config.name)
        return self.positions(self.config.postures[name])

    def positions(self, by_name: Mapping[str, float]) -> Array:
        """Return joint positions given by name, the others zero, in :attr:`joint_names` order."""
        positions = np.zeros(len(self.joint_names))
        positions[self.joint_index(by_name)] = list(by_name.values())
        return positions

    def frames(self, names: Iterable[str]) -> FrameSet:
        """Look up frames, which are URDF links, by name."""
        names = tuple(names)
        found = [self.pin_model.frames[self._frame_id(name)] for name in names]
        return FrameSet(names, [_parent(f) for f in found], [_pose(f.placement) for f in found])

    def subtree_links(self, link: str) -> NDArray[np.intp]:
        """Return the indices into :attr:`link_names` of `link` and all links that hang on it."""
        index = {name: i for i, name in enumerate(self.link_names)}
        children = self._children
        self._frame_id(link)
        pending, found = [link], []
        while pending:
            name = pending.pop()
            pending.extend(children.get(name, ()))
            if name in index:
                found.append(index[name])
        return np.array(sorted(found), dtype=np.intp)

    def state(self, joint_positions: Array, joint_velocities: Array | None = None) -> RobotState:
        """
        Run the kinematics once.

        Parameters
        ----------
        joint_positions
            Shape (n,), rad or m, in the order of :attr:`joint_names`.
        joint_velocities
            Shape (n,), rad/s or m/s; at rest if left out.

        Raises
        ------
        InputError
            If a value is missing or not finite.

        """
        q, at_rest = self.configuration(joint_positions), joint_velocities is None
        v = self._v_at_rest if at_rest else self.velocity(joint_velocities)
        # One scalar test on the common path; the culprit is looked for only when it fails.
        # NaN fails it as well.
        if not (q.dot(q) < _ABSURD_SQUARED and (at_rest or v.dot(v) < _ABSURD_SQUARED)):
            raise InputError(_absurd_values(self, joint_positions, joint_velocities))
        state = _blank_state(RobotState)
        state.model, state.base, state.q, state.v = self, _IDENTITY, q, v
        state._points_in_base = state._points_in_world = None
        kinematics = self._kinematics
        if at_rest:
            _center_of_mass(self.pin_model, kinematics.data, q, False)
            state.com_in_base, state._placements = kinematics.read_positions()
            state.com_velocity_in_base, state._twists = kinematics.at_rest
        else:
            _center_of_mass(self.pin_model, kinematics.data, q, v, False)
            (state.com_in_base, state.com_velocity_in_base, state._placements,
             state._twists) = kinematics.read()
        return state

    def configuration(self, joint_positions: Array) -> Array:
        """
        Return Pinocchio's q (nq,) with the base frame at the origin.

        Parameters
        ----------
        joint_positions
            Shape (n,), in the order of :attr:`joint_names`.

        """
        # A matrix of mostly zeros: one product takes less than picking and scaling the entries.
        try:
            q: Array = self._q_from_joints.dot(joint_positions)
        except ValueError:
            raise self._wrong_shape('positions', joint_positions) from None
        q[_ROOT_POSE] = self._root_pose
        if self._offsets is not None:
            q[_MOVING] += self._offsets
        return q

    def velocity(self, joint_velocities: Array | None) -> Array:
        """
        Return Pinocchio's v (nv,) with the base at rest; `joint_velocities` as positions.

        Without them it is all zero and read-only.
        """
        if joint_velocities is None:
            return self._v_at_rest
        try:
            v: Array = self._v_from_joints.dot(joint_velocities)
        except ValueError:
            raise self._wrong_shape('velocities', joint_velocities) from None
        return v

    def _wrong_shape(self, kind: str, values: Array) -> InputError:
        return InputError(
            f'joint {kind} must be {len(self.joint_names)} values, one per joint of '
            f'{self.config.name}, not {len(values)}')

    def _frame_id(self, name: str) -> int:
        model = self.pin_model
        if not model.existFrame(name, pin.FrameType.BODY):
            raise UnknownNameError('frame', name, self.frame_names, f"the URDF '{model.name}'")
        return int(model.getFrameId(name, pin.FrameType.BODY))

    def _set_joints(self, mimics: dict[str, urdf_tools.Mimic]) -> None:
        """Prepare ``q = (root pose, offsets) + q_from_joints @ positions``."""
        moving = tuple(self.pin_model.names)[2:]
        locked = self.config.locked_joints
        self.joint_names = tuple(n for n in moving if n not in mimics and n not in locked)
        column = {name: i for i, name in enumerate(self.joint_names)}
        gains, offsets = np.zeros((len(moving), len(column))), np.zeros(len(moving))
        for i, name in enumerate(moving):
            relation = mimics.get(name, urdf_tools.Mimic(name, 1.0, 0.0))
            if name in locked:
                offsets[i] = locked[name]
            elif relation.leader in locked:
                offsets[i] = relation.multiplier * locked[relation.leader] + relation.offset
            elif relation.leader in column:
                gains[i, column[relation.leader]] = relation.multiplier
                offsets[i] = relation.offset
            else:
                raise UnknownNameError('joint', relation.leader, moving, f"mimic of '{name}'")
        self._offsets = offsets if offsets.any() else None
        self._q_from_joints = np.concatenate((np.zeros((7, len(column))), gains))
        self._v_from_joints = np.concatenate((np.zeros((6, len(column))), gains))
        self._v_at_rest: Array = np.zeros(6 + len(moving))
        self._v_at_rest.setflags(write=False)

    def _set_links(self, inertials: tuple[urdf_tools.LinkInertial, ...]) -> None:
        self.link_names = tuple(inertial.link for inertial in inertials)
        self.link_masses = np.array([inertial.mass for inertial in inertials])
        self.link_masses.setflags(write=False)
        self.mass = float(self.link_masses.sum())
        self.link_coms_in_link = np.array([inertial.com_in_link for inertial in inertials])

    def _set_points(self) -> None:
        """Prepare what is always wanted together: the links' CoMs, then the soles, in joints."""
        links = self.frames(self.link_names)
        coms = np.concatenate(
            (self.link_coms_in_link, np.ones((len(self.link_names), 1))), axis=1)
        in_joints = np.concatenate((  # (L + F, 4), homogeneous
            np.einsum('li,lij->lj', coms, links.placement_in_joint),
            self.soles.placement_in_joint[:, 3]))
        self._point_joints = np.concatenate((links.joints, self.soles.joints))
        # Tiny products, one per point, take longer than all of it written out: each point times
        # the row of its joint, entry by entry, and then one matrix that adds up x, y and z.
        self._point_factors = np.repeat(in_joints, 3, axis=1)  # (L + F, 12)
        self._point_terms = np.empty((len(in_joints), 12))
        self._point_rows = self._point_terms.reshape(-1, 4, 3)  # the same memory
        # Room for the 1 of homogeneous points; four columns also multiply faster than three.
        self._point_sums = np.tile(np.eye(3, 4), (4, 1))
        self._links_of_points = slice(len(self.link_names)), slice(3)

    def _points_in_base(self, placements: Array) -> Array:
        """Return the points of `_set_points`, (L + F, 4), last column not set, from the joints."""
        terms = self._point_terms
        # With 'clip' it writes there without a buffer; there is nothing to clip.
        placements.take(self._point_joints, 0, self._point_rows, 'clip')
        _multiply(terms, self._point_factors, terms)
        points: Array = terms.dot(self._point_sums)
        return points

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        children: dict[str, list[str]] = {}
        for joint in urdf_tools.parse_urdf(self.urdf).findall('joint'):
            parent, child = joint.find('parent'), joint.find('child')
            if parent is not None and child is not None:
                children.setdefault(str(parent.get('link')), []).append(str(child.get('link')))
        return children

    def _make_soles(self) -> FrameSet:
        feet = self.config.feet
        links = self.frames(foot.sole for foot in feet.values())
        poses = [pose @ Pose.from_rpy(foot.sole_rpy, np.array(foot.sole_origin))
                 for pose, foot in zip(links.poses_in_joint(), feet.values())]
        return FrameSet(feet, links.joints, poses)

    def _set_base(self) -> None:
        """Place the root so that the base frame is Pinocchio's origin."""
        base = self.frames((self.config.base_link,))
        if base.joints[0] != ROOT:
            raise RobotDescriptionError(
                f"base_link '{self.config.base_link}' moves with joint "
                f"'{self.pin_model.names[int(base.joints[0])]}'; it must be fixed to the root "
                f"link '{self.frame_names[0]}'")
        pose_root_base = base.poses_in_joint()[0] @ Pose.from_rpy(
            self.config.base_rpy, np.zeros(3))
        pose_base_root = pose_root_base.inverse()
        self._root_pose = np.concatenate((pose_base_root.position, pose_base_root.quaternion))


class SharedRobotModel(RobotModel):
    """
    A model that several users in one thread share: what is the same is computed once.

    Nodes of one process that get the same joint states ask for the same state, one after the
    other.
    """

    def __init__(self, config: RobotConfig, urdf: str) -> None:
        super().__init__(config, urdf)
        self._recent: dict[tuple[bytes, bytes | None], RobotState] = {}

    def state(self, joint_positions: Array, joint_velocities: Array | None = None) -> RobotState:
        """Run the kinematics once, or return the state that these very values gave before."""
        key = (joint_positions.tobytes(),
               None if joint_velocities is None else joint_velocities.tobytes())
        state = self._recent.get(key)
        if state is None:
            if len(self._recent) >= _RECENT:
                self._recent.clear()
            state = self._recent[key] = super().state(joint_positions, joint_velocities)
        return state


class RobotState:
    """
    One instant of a robot: immutable, one kinematics pass, everything later reads from it.

    Made by :meth:`RobotModel.state`.

    Attributes
    ----------
    model
        The robot.
    q, v
        Pinocchio's configuration (nq,) and velocity (nv,) with the base frame as origin, at rest.
    com_in_base, com_velocity_in_base
        Centre of mass and its velocity relative to the base, shape (3,), m and m/s.
    base
        Pose of the base in the world; identity until :meth:`in_world`.

    """

    __slots__ = ('model', 'q', 'v', 'com_in_base', 'com_velocity_in_base', 'base',
                 '_placements', '_twists', '_points_in_base', '_points_in_world')

    model: RobotModel
    q: Array
    v: Array
    com_in_base: Array
    com_velocity_in_base: Array
    base: Pose
    _placements: Array
    _twists: Array
    _points_in_base: Array | None
    _points_in_world: Array | None

    def in_world(self, base: Pose) -> RobotState:
        """Return the same state with the base at pose `base` in the world."""
        state = _blank_state(RobotState)
        state.model, state.q, state.v, state.base = self.model, self.q, self.v, base
        state.com_in_base = self.com_in_base
        state.com_velocity_in_base = self.com_velocity_in_base
        state._placements, state._twists = self._placements, self._twists
        state._points_in_base, state._points_in_world = self._points_in_base, None
        return state

    @property
    def com_in_world(self) -> Array:
        """Centre of mass, shape (3,), m."""
        com: Array = self.base.rotation.dot(self.com_in_base)
        com += self.base.position
        return com

    @property
    def link_coms_in_base(self) -> Array:
        """Centre of mass of each link of ``model.link_names``, shape (L, 3), m."""
        coms = self._all_points_in_base()[self.model._links_of_points]
        coms.setflags(False)  # type: ignore[call-arg]  # by name it takes twice as long
        return coms

    @property
    def link_coms_in_world(self) -> Array:
        """Centre of mass of each link, shape (L, 3), m."""
        return self._all_points_in_world()[:len(self.model.link_names)]

    @property
    def soles_in_world(self) -> Array:
        """Origin of each sole, in the order of ``config.feet``, shape (F, 3), m."""
        return self._all_points_in_world()[len(self.model.link_names):]

    def _all_points_in_base(self) -> Array:
        if self._points_in_base is None:
            self._points_in_base = self.model._points_in_base(self._placements)
        return self._points_in_base

    def _all_points_in_world(self) -> Array:
        if self._points_in_world is None:
            points = self._all_points_in_base()
            points[:, 3] = 1.0
            self._points_in_world = points = points.dot(self.base.transposed)
            points.setflags(write=False)
        return self._points_in_world

    def placements_in_base(self, frames: FrameSet) -> Array:
        """
        Return the poses of frames in the base.

        Returns
        -------
        numpy.ndarray
            Shape (F, 4, 3): rows 0-2 are ``R_base_frame`` transposed, row 3 the position, m.

        """
        poses: Array = np.matmul(
            frames.placement_in_joint, self._placements.take(frames.joints, axis=0))
        return poses

    def twists_in_base(self, frames: FrameSet, placements: Array | None = None) -> Array:
        """
        Return the velocities of frames relative to the base.

        Parameters
        ----------
        frames
            The frames.
        placements
            Their :meth:`placements_in_base`, if they are at hand: saves half of the time.

        Returns
        -------
        numpy.ndarray
            Shape (F, 2, 3), along the axes of the base: row 0 the velocity of the frame's
            origin, m/s, row 1 the angular velocity, rad/s.

        """
        if placements is None:
            placements = self.placements_in_base(frames)
        in_frame = np.matmul(
            self._twists.take(frames.joints, axis=0)[:, np.newaxis], frames.twist_transfer)
        twists: Array = np.matmul(in_frame.reshape(-1, 2, 3), placements[:, :3])
        return twists

    def pose_in_base(self, frame: str) -> Pose:
        """Pose of one URDF link in the base; for loops, prefer :meth:`placements_in_base`."""
        row = self.placements_in_base(self.model.frames((frame,)))[0]
        return Pose(row[:3].T, row[3])

    def pose_in_world(self, frame: str) -> Pose:
        """Pose of one URDF link in the world."""
        return self.base @ self.pose_in_base(frame)


class Kinematics:
    """
    Pinocchio's working memory, with what is read at every update as NumPy views.

    Attributes
    ----------
    at_rest
        Velocity of the centre of mass and twists of the joints where nothing moves.

    """

    def __init__(self, model: Any) -> None:
        self.data = model.createData()
        self.at_rest = np.zeros(3), np.zeros((model.njoints, 6))
        for array in self.at_rest:
            array.setflags(write=False)
        self._views = self._view_memory()
        self._check_views(model)

    def read(self) -> tuple[Array, Array, Array, Array]:
        """
        Return copies of what the last pass computed.

        Returns
        -------
        tuple
            Centre of mass (3,), its velocity (3,), placements of the joints (joints, 4, 3), and
            their twists (joints, 6), linear first, each in the axes of its joint.

        """
        if self._views is None:
            return self._read_one_by_one()
        com, velocity, placements, twists = self._views
        return com.copy(), velocity.copy(), placements.copy(), twists.copy()

    def read_positions(self) -> tuple[Array, Array]:
        """Return the first and third of what :meth:`read` returns."""
        if self._views is None:
            com, _, placements, _ = self._read_one_by_one()
        else:
            com, _, placements, _ = self._views
        return com.copy(), placements.copy()

    def _check_views(self, model: Any) -> None:
        """Drop the views unless they show what Pinocchio's own accessors show."""
        # Anywhere but the neutral configuration, whose rotations are often identities and so
        # equal to their transposes.
        q = pin.integrate(model, pin.neutral(model), np.linspace(0.1, 0.9, model.nv))
        pin.centerOfMass(model, self.data, q, np.linspace(-1.0, 1.0, model.nv), False)
        if not all(map(np.array_equal, self.read(), self._read_one_by_one())):
            self._views = None

    def _view_memory(self) -> tuple[Array, Array, Array, Array] | None:
        """View the C++ memory, if it is laid out as 9 + 3 and 3 + 3 doubles per joint."""
        # The first and the last tell; `_check_views` compares what lies between.
        placements, twists = self.data.oMi, self.data.v
        last = len(placements) - 1
        try:
            rotation, position = _address(placements[0].rotation), _address(
                placements[0].translation)
            linear, angular = _address(twists[0].linear), _address(twists[0].angular)
            ends = _address(placements[last].rotation), _address(twists[last].linear)
            com, velocity = _address(self.data.com[0]), _address(self.data.vcom[0])
        except (AttributeError, KeyError):
            return None
        if (position, angular, *ends) != (
                rotation + 72, linear + 24, rotation + 96 * last, linear + 48 * last):
            return None
        return (_view(com, (3,)), _view(velocity, (3,)),
                _view(rotation, (last + 1, 4, 3)), _view(linear, (last + 1, 6)))

    def _read_one_by_one(self) -> tuple[Array, Array, Array, Array]:
        data = self.data
        return (data.com[0].copy(), data.vcom[0].copy(),
                np.array([(*p.rotation.T, p.translation) for p in data.oMi]),
                np.array([t.vector for t in data.v]))


_IDENTITY = Pose.identity()
# Looked up at every update, these would take as long as a small array operation.
_center_of_mass, _multiply = pin.centerOfMass, np.multiply
_blank_state = object.__new__  # a third of the time of a constructor with as many arguments


def _address(array: Array) -> int:
    return int(array.__array_interface__['data'][0])


def _view(address: int, shape: tuple[int, ...]) -> Array:
    block = (ctypes.c_double * math.prod(shape)).from_address(address)
    # numpy.ctypeslib would take milliseconds to import.
    return np.frombuffer(memoryview(block)).reshape(shape)


def _absurd_values(model: RobotModel, positions: Array, velocities: Array | None) -> str:
    """Name the joints whose values cannot be used, at the price of looking at each."""
    kinds = {'position': positions}
    if velocities is not None:
        kinds['velocity'] = velocities
    bad = [f"{kind} of joint '{name}' is {value:g}" for kind, values in kinds.items()
           for name, value in zip(model.joint_names, values) if not abs(value) < _SUSPECT]
    return f'{"; ".join(bad)}; it must be a finite number below {_SUSPECT:g}'


def _build(urdf: str) -> Any:
    try:
        return pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
    except (ValueError, RuntimeError) as error:
        raise RobotDescriptionError(f'the URDF does not describe a robot: {error}') from None


def _unbound(model: Any, continuous: frozenset[str]) -> None:
    for name in continuous:
        index = model.joints[model.getJointId(name)].idx_q
        model.lowerPositionLimit[index] = -np.inf
        model.upperPositionLimit[index] = np.inf


def _parent(frame: Any) -> int:
    # Pinocchio 3 renamed `parent`; both names exist in some releases.
    return int(frame.parentJoint if hasattr(frame, 'parentJoint') else frame.parent)


def _pose(placement: Any) -> Pose:
    return Pose(placement.rotation.copy(), placement.translation.copy())


def _check_configured_names(
        config: RobotConfig, joints: tuple[str, ...], frames: tuple[str, ...]) -> None:
    where = f'the configuration of {config.name}; the URDF has no such name'
    for kind, valid, names in (
            ('joint', joints, _configured_joints(config)),
            ('frame', frames, _configured_frames(config))):
        for name in names:
            if name not in valid:
                raise UnknownNameError(kind, name, valid, where)
    both = set(config.passive_joints) & set(config.locked_joints)
    if both:
        raise ConfigurationError(
            f'{", ".join(sorted(both))} of {config.name} cannot be passive (measured) and locked '
            '(not measured) at once')


def _configured_joints(config: RobotConfig) -> list[str]:
    return [*config.passive_joints, *config.locked_joints,
            *(joint for group in config.groups.values() for joint in group),
            *(joint for posture in config.postures.values() for joint in posture),
            *(config.torso.joints if config.torso else ())]


def _configured_frames(config: RobotConfig) -> list[str]:
    feet = [frame for foot in config.feet.values() for frame in (foot.sole, foot.ankle)]
    sensors = [frame for s in config.wrench_sensors.values() for frame in (s.frame, s.link)]
    torso = [config.torso.lower, config.torso.upper] if config.torso else []
    return [name for name in (
        config.base_link, *feet, *sensors, *torso, *(i.frame for i in config.imus.values()),
        *(h.frame for h in config.hands.values())) if name]
