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

The configuration given to Pinocchio places the *base frame* at the origin, so that one pass of
forward kinematics gives everything in the base; the pose of the base in the world is known only
later (IMU, odometry, TF) and is added by :meth:`RobotState.in_world`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import math
from typing import TypedDict

from biped_com_ros.core.errors import (
    ConfigurationError, InputError, RobotDescriptionError, UnknownNameError)
from biped_com_ros.core.geometry.pose import Array, IndexArray, Pose
from biped_com_ros.core.model import urdf as urdf_tools
from biped_com_ros.core.model.config import load_robot_config, RobotConfig
from biped_com_ros.core.model.description_check import (
    check_sensors, find_warnings, RobotDescription)
from biped_com_ros.core.model.frames import RobotFrames, ROOT
from biped_com_ros.core.model.pinocchio_model import (
    add_sole_frames, build_model, check_names, check_postures, Kinematics, range_of, unbound)
from biped_com_ros.core.model.robot_state import RobotState as RobotState
import numpy as np
import pinocchio as pin

LARGEST_VALUE = 1e4
"""Largest joint position or velocity that is accepted, rad, m and per second."""

_center_of_mass = pin.centerOfMass
#: A hundred joints at the largest value stay below this sum of squares.
_LARGEST_SUM = 1e12
_ROUNDED = 0.01
"""By how much a position in a list of all joints may differ from that of its coupling, rad, m."""
#: How many states a shared model keeps: one message's, with and without its velocities.
_RECENT = 4


class JointCorrections(TypedDict):
    """What is wrong with the joint states of some joints; empty tuples where nothing is."""

    offsets: tuple[float, ...]
    torque_offsets: tuple[float, ...]
    torque_gains: tuple[float, ...]


class RobotModel(RobotFrames):
    """
    A floating-base robot built from its URDF and its configuration.

    Parameters
    ----------
    config
        The robot's configuration.
    urdf
        URDF text.

    Attributes
    ----------
    pin_model
        Pinocchio's model, free flyer first, then every moving joint.
    joint_names
        Joints that are measured, in the order in which positions are expected; without the
        mimicking and the locked ones.
    actuated_joint_names
        Those without the passive ones.
    coupling
        Velocity of each moving joint, in the order of Pinocchio, per velocity of each measured
        one, (joints, n): 1 for itself, the multiplier for a joint that mimics it, 0 for locked
        ones. Transposed, it gives what a motor has to hold: forces on its own joint, and on those
        that follow it.
    children_of_links
        Joints below each link of the URDF with their child links, by name.
    joint_offsets
        Measured minus true position of each measured joint, shape (n,), rad or m, as configured
        under ``instruments``; positions given to a model are true ones.
    torque_gains, torque_offsets
        Relative error of each torque constant and effort that is reported without any, shape (n,),
        N m or N, as configured under ``instruments``.
    credible_positions
        Least and largest position that each measured joint can have, rad or m: half a radian or
        metre beyond the limits of the URDF, since encoders have offsets and stops give way.
        Infinite where there are no limits.
    kinematics
        Pinocchio's kinematics as of the last :meth:`state`.
    warnings
        What is probably wrong in configuration or URDF, each in a sentence for the log.
    is_calibrated
        Whether the masses are those of another URDF, by :meth:`use_inertials`.

    Raises
    ------
    ConfigurationError
        If a foot's wrench sensor carries another foot, or a posture is beyond a joint's limits.
    RobotDescriptionError
        If the URDF is broken, has no inertials, or has the base on a moving link.
    UnknownNameError
        If the configuration names a joint or frame that the URDF does not have.

    """

    def __init__(self, config: RobotConfig, urdf: str) -> None:
        self.urdf = urdf
        robot = urdf_tools.parse_urdf(urdf)
        # Before Pinocchio, whose parser reports wrong numbers only on stderr.
        inertials, mimics = urdf_tools.link_inertials(robot), urdf_tools.mimic_joints(robot)
        pin_model = build_model(urdf_tools.for_kinematics(robot))
        add_sole_frames(config, pin_model)
        check_names(config, pin_model)
        unbound(pin_model, urdf_tools.continuous_joints(robot))
        check_postures(config, pin_model)
        super().__init__(config, pin_model, inertials)
        self.children_of_links = urdf_tools.children_of_links(robot)
        self._set_joints(mimics)
        self._dependent = {*mimics, *config.locked_joints}
        self.joint_offsets = self.positions(config.instruments.joint_offsets)
        self.torque_gains = self.positions(config.instruments.torque_gains)
        self.torque_offsets = self.positions(config.instruments.torque_offsets)
        for values in (self.joint_offsets, self.torque_gains, self.torque_offsets):
            values.setflags(write=False)
        self._set_base()
        self._check_postures()
        self.kinematics = Kinematics(pin_model)
        self.warnings = self._check_description()
        self.is_calibrated = False

    def _check_description(self) -> tuple[str, ...]:
        sensors, postures = self.config.wrench_sensors, self.config.postures
        posture = 'stand' if 'stand' in postures else ''
        joints = self.posture(posture) if posture else self.positions({})
        state, at_zero = (RobotModel.state(self, at) for at in (joints, self.positions({})))
        description = RobotDescription(self, posture, state, at_zero, {
            name: self.subtree(sensor.link or sensor.frame) for name, sensor in sensors.items()})
        check_sensors(description)
        return find_warnings(description)

    @classmethod
    def load(cls, name_or_path: str) -> RobotModel:
        """Build from the name of a robot that comes with the package, or a YAML file's path."""
        config = load_robot_config(name_or_path)
        return cls(config, urdf_tools.load_urdf(config))

    def use_inertials(self, urdf: str) -> None:
        """
        Take masses, centres of mass and inertias from another URDF of the same robot.

        Whoever keeps values that follow from masses has to compute them again.

        Parameters
        ----------
        urdf
            Text, with the same links, joints and frames.

        Raises
        ------
        RobotDescriptionError
            If it is broken, links, joints or frames differ, or the mass is not credible.

        """
        other = RobotModel(self.config, urdf)
        if not 1.0 / _LARGEST_CHANGE < other.mass / self.mass < _LARGEST_CHANGE:
            raise RobotDescriptionError(
                f'the inertials of the new URDF are not credible: {other.mass:.3f} kg instead of '
                f'{self.mass:.3f} kg; check its units, or restart with that URDF')
        if problem := different_kinematics(self, other):
            raise RobotDescriptionError(
                f'the inertials of the new URDF cannot be used while running: {problem}; restart '
                'with that URDF')
        for i in range(self.pin_model.njoints):
            self.pin_model.inertias[i] = other.pin_model.inertias[i]
        self.urdf, self.mass, self.warnings = other.urdf, other.mass, other.warnings
        self.link_masses, self.points = other.link_masses, other.points
        self.link_coms_in_link = other.link_coms_in_link
        self.is_calibrated = True

    def corrections_of(self, names: Iterable[str]) -> JointCorrections:
        """
        Return what is wrong with the joint states of some joints, as a subscriber takes it.

        The keys are ``offsets``, ``torque_offsets`` and ``torque_gains``; empty where all are
        zero.
        """
        index = self.joint_index(names)
        offsets, torque_offsets, torque_gains = (
            tuple(values[index].tolist()) if values[index].any() else ()
            for values in (self.joint_offsets, self.torque_offsets, self.torque_gains))
        return {'offsets': offsets, 'torque_offsets': torque_offsets, 'torque_gains': torque_gains}

    def corrected_torques(self, torques: Array) -> Array:
        """Return true torques (n,) from those that the drives report, N m or N."""
        return np.asarray((torques - self.torque_offsets) / (1.0 + self.torque_gains))

    def joint_index(self, names: Iterable[str]) -> IndexArray:
        """Return where `names` stand in :attr:`joint_names`."""
        position = {name: i for i, name in enumerate(self.joint_names)}
        for name in (names := tuple(names)):
            if name not in position:
                raise UnknownNameError('joint', name, self.joint_names, self.config.name)
        return np.array([position[name] for name in names], dtype=np.intp)

    def group_index(self, group: str) -> IndexArray:
        """Return where the measured joints of a group stand in :attr:`joint_names`."""
        if group not in self.config.groups:
            raise UnknownNameError('group', group, self.config.groups, self.config.name)
        return self.joint_index(
            name for name in self.config.groups[group] if name not in self._dependent)

    def posture(self, name: str = 'stand') -> Array:
        """
        Return a configured posture as positions in the order of :attr:`joint_names`.

        Lists of all joints also name those that follow others, or are locked.
        """
        if name not in self.config.postures:
            raise UnknownNameError('posture', name, self.config.postures, self.config.name)
        return self.positions({joint: position for joint, position in self.config.postures[
            name].items() if joint not in self._dependent})

    def _check_postures(self) -> None:
        """Raise an error where a posture contradicts the coupling of its joints."""
        for name, posture in self.config.postures.items():
            q = self.configuration(self.posture(name))
            for joint in self._dependent.intersection(posture):
                position = float(q[self.pin_model.joints[self.pin_model.getJointId(joint)].idx_q])
                if abs(posture[joint] - position) > _ROUNDED:
                    raise ConfigurationError(
                        f"postures.{name}.{joint} of '{self.config.name}' is {posture[joint]:g}, "
                        f'but by its mimic or locked_joints this joint is at {position:g}: leave '
                        'it out')

    def usual_posture(self) -> Array:
        """
        Return posture ``stand``; without one zeros, or the limits of joints that exclude zero.

        For what depends on the posture only roughly.
        """
        if 'stand' in self.config.postures:
            return self.posture()
        limits = np.array([range_of(self.pin_model, name) for name in self.joint_names])
        usual: Array = np.clip(0.0, *limits.reshape(-1, 2).T)
        return usual

    @property
    def com_height(self) -> float:
        """Distance of the CoM from the middle of the soles in the usual posture, m: its size."""
        state = self.state(self.usual_posture())
        soles = state.placements_in_base(self.soles)[:, 3]
        return float(np.linalg.norm(state.com_in_base - soles.mean(axis=0)))

    def positions(self, by_name: Mapping[str, float]) -> Array:
        """Return joint positions given by name, the others zero, in :attr:`joint_names` order."""
        positions = np.zeros(len(self.joint_names))
        positions[self.joint_index(by_name)] = list(by_name.values())
        return positions

    def subtree_links(self, link: str) -> IndexArray:
        """Return the indices into :attr:`link_names` of `link` and all links below it."""
        self.frames((link,))  # raises if there is none
        subtree = self.subtree(link)
        return np.array([i for i, name in enumerate(self.link_names) if name in subtree], np.intp)

    def subtree(self, link: str) -> list[str]:
        """Return the names of `link` and of all links, with or without mass, below it."""
        subtree = [link]
        for name in subtree:
            subtree.extend(child for _, child in self.children_of_links.get(name, ()))
        return subtree

    def foot_index(self, foot: str) -> int:
        """Return the index of a foot in the configuration and in :attr:`soles`."""
        if foot not in self.config.feet:
            raise UnknownNameError('foot', foot, self.config.feet, self.config.name)
        return list(self.config.feet).index(foot)

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
        # One scalar test on the common path; single values are only examined when it fails. NaN
        # fails it as well.
        if not (q.dot(q) < _LARGEST_SUM and (at_rest or v.dot(v) < _LARGEST_SUM)):
            raise InputError(_describe_wrong_values(self, joint_positions, joint_velocities))
        kinematics = self.kinematics
        if at_rest:
            _center_of_mass(self.pin_model, kinematics.data, q, False)
            com, placements = kinematics.read_positions()
            return RobotState(self, q, v, com, kinematics.at_rest[0], placements,
                              kinematics.at_rest[1])
        _center_of_mass(self.pin_model, kinematics.data, q, v, False)
        return RobotState(self, q, v, *kinematics.read())

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
            q = self._q_from_joints.dot(joint_positions)
        except ValueError:
            raise self._wrong_shape('positions', joint_positions) from None
        if self._root_pose is None:
            q[6] = 1.0
        else:
            q[:7] = self._root_pose
        if self._offsets is not None:
            q[7:] += self._offsets
        return q

    def velocity(self, joint_velocities: Array | None) -> Array:
        """
        Return Pinocchio's v (nv,) with the base at rest; `joint_velocities` as positions.

        Without them it is all zero and read-only.
        """
        if joint_velocities is None:
            return self._v_at_rest
        try:
            return self._v_from_joints.dot(joint_velocities)
        except ValueError:
            raise self._wrong_shape('velocities', joint_velocities) from None

    def _wrong_shape(self, kind: str, values: Array) -> InputError:
        return InputError(
            f'joint {kind} must be {len(self.joint_names)} values, one per joint of '
            f'{self.config.name}, not {len(values)}')

    def _set_joints(self, mimics: dict[str, urdf_tools.MimicRelation]) -> None:
        """Prepare ``q = (root pose, offsets) + q_from_joints @ positions``."""
        moving = tuple(self.pin_model.names)[2:]
        locked = self.config.locked_joints
        self.joint_names = tuple(n for n in moving if n not in mimics and n not in locked)
        self.actuated_joint_names = tuple(
            n for n in self.joint_names if n not in self.config.passive_joints)
        limits = (range_of(self.pin_model, name) for name in self.joint_names)
        self.credible_positions = tuple((least - 0.5, most + 0.5) for least, most in limits)
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
        self._q_from_joints = np.concatenate((np.zeros((7, len(column))), gains))
        self._v_from_joints = np.concatenate((np.zeros((6, len(column))), gains))
        self.coupling: Array = self._v_from_joints[6:]
        self.coupling.setflags(write=False)
        self._v_at_rest: Array = np.zeros(6 + len(moving))
        self._v_at_rest.setflags(write=False)

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
        pose = np.array((*pose_base_root.position, *pose_base_root.quaternion))
        #: Pinocchio's pose of the root; None if the base is the root.
        self._root_pose = None if np.array_equal(pose, (0, 0, 0, 0, 0, 0, 1)) else pose


class SharedRobotModel(RobotModel):
    """
    A model for several nodes in one thread, which computes equal states once.

    Nodes of one process that receive the same joint states need the same state, one after the
    other.

    Attributes
    ----------
    recent
        A few recent states by the bytes of their positions and velocities.

    """

    def __init__(self, config: RobotConfig, urdf: str) -> None:
        super().__init__(config, urdf)
        self.recent: dict[tuple[bytes, bytes | None], RobotState] = {}

    def use_inertials(self, urdf: str) -> None:
        """Take inertials from another URDF; see `RobotModel.use_inertials`."""
        super().use_inertials(urdf)
        self.recent.clear()

    def state(self, joint_positions: Array, joint_velocities: Array | None = None) -> RobotState:
        """Run the kinematics once, or return the recent state of the same values."""
        key = (joint_positions.tobytes(),
               None if joint_velocities is None else joint_velocities.tobytes())
        state = self.recent.get(key)
        if state is None:
            if len(self.recent) >= _RECENT:
                self.recent.clear()
            state = self.recent[key] = super().state(joint_positions, joint_velocities)
        return state


def different_kinematics(model: RobotModel, other: RobotModel) -> str:
    """Return in what two models differ besides masses and inertias; '' if in nothing."""
    for what in ('link_names', 'joint_names', 'frame_names', 'credible_positions'):
        if getattr(model, what) != getattr(other, what):
            return f'its {what.replace("_", " ")} differ'
    positions = np.linspace(-0.3, 0.4, len(model.joint_names))
    placed = [one.state(positions).placements_in_base(one.frames(one.frame_names))
              for one in (model, other)]
    distances = np.abs(placed[0] - placed[1]).max(axis=(1, 2))
    worst = int(distances.argmax())
    return (f"link '{model.frame_names[worst]}' is at another place"
            if distances[worst] > 1e-6 else '')


def _describe_wrong_values(model: RobotModel, positions: Array, velocities: Array | None) -> str:
    kinds = {'position': positions}
    if velocities is not None:
        kinds['velocity'] = velocities
    bad = [f"{kind} of joint '{name}' is {value:g}" for kind, values in kinds.items()
           for name, value in zip(model.joint_names, values) if not abs(value) < LARGEST_VALUE]
    return f'{"; ".join(bad)}; it must be a finite number below {LARGEST_VALUE:g}'


#: Stands for a missing limit in some URDFs, of efforts and velocities.
UNLIMITED = 1e9
#: Larger velocity limits are placeholders, rad/s or m/s: no joint of a humanoid is so fast.
FASTEST = 50.0
#: No calibration changes the mass by more than this factor.
_LARGEST_CHANGE = 3.0


def position_limits(model: RobotModel) -> tuple[Array, Array]:
    """
    Return lower and upper limits of ``model.joint_names``, (n,) each, rad or m.

    Those of the URDF, narrowed by what the joints allow that are coupled to one (mimic).
    """
    pin_model, n = model.pin_model, len(model.joint_names)
    index = [pin_model.joints[pin_model.getJointId(name)].idx_q for name in model.joint_names]
    lower, upper = (np.array(limits)[index] for limits in (
        pin_model.lowerPositionLimit, pin_model.upperPositionLimit))
    offsets = model.configuration(np.zeros(n))[7:]
    for name, gain, offset in zip(list(pin_model.names)[2:], model.coupling, offsets.tolist()):
        if name not in model.joint_names and gain.any():
            leader = int(np.abs(gain).argmax())
            low, high = sorted((end - offset) / float(gain[leader])
                               for end in range_of(pin_model, name))
            lower[leader], upper[leader] = max(lower[leader], low), min(upper[leader], high)
    return lower, upper


def velocity_limits(model: RobotModel) -> Array:
    """
    Return the limits of the velocities of ``model.joint_names``, (n,), rad/s or m/s; or inf.

    Those of the URDF up to `FASTEST`, narrowed by what the joints allow that are coupled to one
    (mimic).
    """
    with np.errstate(divide='ignore'):
        found: Array = (_urdf_limits(model, 'Velocity', FASTEST)[:, np.newaxis]
                        / np.abs(model.coupling)).min(axis=0, initial=math.inf)
    return found


def motor_effort_limits(model: RobotModel) -> Array:
    """Return the URDF's effort limits of ``model.joint_names``, (n,), N m or N; or inf."""
    names = list(model.pin_model.names)[2:]
    return _urdf_limits(model, 'Effort')[[names.index(name) for name in model.joint_names]]


def _urdf_limits(model: RobotModel, kind: str, largest: float = UNLIMITED) -> Array:
    """Return limits of ``Velocity`` or ``Effort`` of all moving joints; inf from `largest` on."""
    pin_model = model.pin_model
    # Older Pinocchio has one limit for both directions.
    name = f'upper{kind}Limit' if hasattr(pin_model, f'upper{kind}Limit') else (
        f'{kind.lower()}Limit')
    limits = np.array(getattr(pin_model, name))[6:]
    return np.where((limits > 0.0) & (limits < largest), limits, math.inf)
