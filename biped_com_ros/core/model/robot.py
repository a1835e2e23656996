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
A robot by its URDF and configuration: names, masses, and its kinematics at each update.

The configuration handed to Pinocchio places the *base frame* at the origin, so that one pass of
forward kinematics gives everything in the base; where the base is in the world is known only
later (IMU, odometry, TF) and is attached with :meth:`RobotState.in_world`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from biped_com_ros.core.errors import InputError, RobotDescriptionError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.model import urdf as urdf_tools
from biped_com_ros.core.model.config import FootConfig, load_robot_config, RobotConfig
from biped_com_ros.core.model.frames import FrameSet as FrameSet, PointSet, ROOT as ROOT
from biped_com_ros.core.model.kinematics import Kinematics as Kinematics
from biped_com_ros.core.model.pinocchio_model import (
    build_model, check_names, check_postures, parent_joint, pose_of, range_of, unbound)
from biped_com_ros.core.model.robot_state import blank_state, RobotState as RobotState
import numpy as np
from numpy.typing import NDArray
import pinocchio as pin

#: rad, m and per second: a hundred joints at this value stay below the absurd.
_SUSPECT = 1e4
_ABSURD_SQUARED = 1e12
#: How many states a shared model keeps: one message's, with and without its velocities.
_RECENT = 4
_ROOT_POSE, _MOVING = slice(7), slice(7, None)  # of Pinocchio's configuration
_JOINTS = slice(6, None)  # of its velocity
_IDENTITY = Pose.identity()
# Looked up at every update, it would take as long as a small array operation.
_center_of_mass = pin.centerOfMass


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
    stance_frames
        The soles, then the link of the IMU that gives the base's orientation, if there is one:
        what everybody asks for who wants to know where the base is.
    points
        The links' centres of mass, then the soles' origins, as a :class:`PointSet`.

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
        self.pin_model = build_model(urdf_tools.for_kinematics(robot))
        check_names(config, tuple(self.pin_model.names)[2:], self.frame_names)
        unbound(self.pin_model, urdf_tools.continuous_joints(robot))
        check_postures(config, self.pin_model)
        self._set_joints(mimics)
        self._set_links(inertials)
        self.soles = self._make_soles()
        self.stance_frames = (
            self.soles + self.frames((config.imu.frame,)) if config.imus else self.soles)
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

    @cached_property
    def credible_positions(self) -> tuple[tuple[float, float], ...]:
        """
        Least and largest position that each of :attr:`joint_names` can truly have, rad or m.

        Half a radian or metre beyond the limits of the URDF: encoders have offsets, stops give
        way. Infinite where there are no limits.
        """
        limits = (range_of(self.pin_model, name) for name in self.joint_names)
        return tuple((least - 0.5, most + 0.5) for least, most in limits)

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
        return FrameSet(
            names, map(parent_joint, found), [pose_of(f.placement) for f in found])

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
        state = blank_state(RobotState)
        state.model, state.base, state.q, state.v = self, _IDENTITY, q, v
        state._points_in_base = state._points_in_world = None
        state._stance = state._soles = state._along_world = None
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
        if self._moves_as_told and len(joint_positions) == len(self.joint_names):
            q = self._q_template.copy()
            q[_MOVING] = joint_positions
            return q
        # A matrix of mostly zeros: one product takes less than picking and scaling the entries.
        try:
            q = self._q_from_joints.dot(joint_positions)
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
        if self._moves_as_told and len(joint_velocities) == len(self.joint_names):
            v = self._v_at_rest.copy()
            v[_JOINTS] = joint_velocities
            return v
        try:
            v = self._v_from_joints.dot(joint_velocities)
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

    def _set_joints(self, mimics: dict[str, urdf_tools.MimicRelation]) -> None:
        """Prepare ``q = (root pose, offsets) + q_from_joints @ positions``."""
        moving = tuple(self.pin_model.names)[2:]
        locked = self.config.locked_joints
        self.joint_names = tuple(n for n in moving if n not in mimics and n not in locked)
        column = {name: i for i, name in enumerate(self.joint_names)}
        gains, offsets = np.zeros((len(moving), len(column))), np.zeros(len(moving))
        for i, name in enumerate(moving):
            relation = mimics.get(name, urdf_tools.MimicRelation(name, 1.0, 0.0))
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
        #: Whether Pinocchio has the measured joints, in their order, and no others.
        self._moves_as_told = self.joint_names == moving
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
        in_joints = np.concatenate((
            np.einsum('li,lij->lj', coms, links.placement_in_joint),
            self.soles.placement_in_joint[:, 3]))
        self.points = PointSet(np.concatenate((links.joints, self.soles.joints)), in_joints)
        self.links_of_points = slice(len(self.link_names)), slice(3)

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
        poses = [pose @ sole_in_link(foot)
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
        self._q_template = np.concatenate((self._root_pose, np.zeros(self.pin_model.nq - 7)))


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


def sole_in_link(foot: FootConfig) -> Pose:
    """Return the pose of a foot's sole frame in the frame of link `sole`."""
    return Pose.from_rpy(foot.sole_rpy, np.array(foot.sole_origin))


def _absurd_values(model: RobotModel, positions: Array, velocities: Array | None) -> str:
    """Name the joints whose values cannot be used, at the price of looking at each."""
    kinds = {'position': positions}
    if velocities is not None:
        kinds['velocity'] = velocities
    bad = [f"{kind} of joint '{name}' is {value:g}" for kind, values in kinds.items()
           for name, value in zip(model.joint_names, values) if not abs(value) < _SUSPECT]
    return f'{"; ".join(bad)}; it must be a finite number below {_SUSPECT:g}'
