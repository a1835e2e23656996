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
Pinocchio's model of a URDF, checked against the robot's configuration, and its kinematics.

Forward kinematics are read from Pinocchio's memory. Placements are read as one NumPy array instead
of joint by joint: four 3-vectors per joint, the columns of ``R_base_joint`` and the position of
the joint. A point (x, y, z) of that joint is then ``[x, y, z, 1] @ rows``.
"""

from __future__ import annotations

from collections.abc import Iterator
import ctypes
import math
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, RobotDescriptionError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.model.config import RobotConfig, sole_frame_name
import numpy as np
import pinocchio as pin


class Kinematics:
    """
    Pinocchio's working memory, with what is read at every update as NumPy views.

    Attributes
    ----------
    data
        Pinocchio's working memory.
    views
        NumPy views of it as :meth:`read` returns them; None where they did not pass their check
        against Pinocchio's accessors, which then are used joint by joint.
    at_rest
        Velocity of the centre of mass and twists of the joints at rest.

    """

    def __init__(self, model: Any) -> None:
        self.data = pin.Data(model)  # createData() copies it twice, 6 ms for Talos
        self.at_rest = np.zeros(3), np.zeros((model.njoints, 6))
        for array in self.at_rest:
            array.setflags(write=False)
        self.views = view_memory(self.data)
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
        if self.views is None:
            return self._read_one_by_one()
        com, velocity, placements, twists = self.views
        return com.copy(), velocity.copy(), placements.copy(), twists.copy()

    def read_positions(self) -> tuple[Array, Array]:
        """Return the first and third of what :meth:`read` returns."""
        if self.views is None:
            com, _, placements, _ = self._read_one_by_one()
            return com, placements
        com, _, placements, _ = self.views
        return com.copy(), placements.copy()

    def view_positions(self) -> tuple[Array, Array]:
        """Return the same, not copied where that can be: valid until the next pass."""
        if self.views is None:
            com, _, placements, _ = self._read_one_by_one()
        else:
            com, _, placements, _ = self.views
        return com, placements

    def _check_views(self, model: Any) -> None:
        """Drop the views unless they show what Pinocchio's own accessors show."""
        # Anywhere but the neutral configuration, whose rotations are often identities and so
        # equal to their transposes.
        q = pin.integrate(model, pin.neutral(model), np.linspace(0.1, 0.9, model.nv))
        pin.centerOfMass(model, self.data, q, np.linspace(-1.0, 1.0, model.nv), False)
        if not all(map(np.array_equal, self.read(), self._read_one_by_one())):
            self.views = None

    def _read_one_by_one(self) -> tuple[Array, Array, Array, Array]:
        data = self.data
        return (data.com[0].copy(), data.vcom[0].copy(),
                np.array([(*p.rotation.T, p.translation) for p in data.oMi]),
                np.array([t.vector for t in data.v]))


def view_memory(data: Any) -> tuple[Array, Array, Array, Array] | None:
    """View the C++ memory, if it is laid out as 9 + 3 and 3 + 3 doubles per joint."""
    # The first and the last joint show it; `Kinematics` compares what lies between.
    placements, twists = data.oMi, data.v
    last = len(placements) - 1
    try:
        rotation, position = _address(placements[0].rotation), _address(placements[0].translation)
        linear, angular = _address(twists[0].linear), _address(twists[0].angular)
        ends = _address(placements[last].rotation), _address(twists[last].linear)
        com, velocity = _address(data.com[0]), _address(data.vcom[0])
    except (AttributeError, KeyError):
        return None
    if (position, angular, *ends) != (
            rotation + 72, linear + 24, rotation + 96 * last, linear + 48 * last):
        return None
    return (_view(com, (3,)), _view(velocity, (3,)),
            _view(rotation, (last + 1, 4, 3)), _view(linear, (last + 1, 6)))


def _address(array: Array) -> int:
    return int(array.__array_interface__['data'][0])


def _view(address: int, shape: tuple[int, ...]) -> Array:
    block = (ctypes.c_double * math.prod(shape)).from_address(address)
    # numpy.ctypeslib would take milliseconds to import.
    return np.frombuffer(memoryview(block)).reshape(shape)


#: How far beyond the limit of its joint a configured position may be, rad or m.
_BEYOND = 0.05


def build_model(urdf: str) -> Any:
    """Return Pinocchio's model with a floating base."""
    try:
        return pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
    except (ValueError, RuntimeError) as error:
        raise RobotDescriptionError(f'the URDF does not describe a robot: {error}') from None


def unbound(model: Any, continuous: frozenset[str]) -> None:
    """Remove the limits of continuous joints."""
    for name in continuous:
        index = model.joints[model.getJointId(name)].idx_q
        model.lowerPositionLimit[index] = -np.inf
        model.upperPositionLimit[index] = np.inf


def range_of(model: Any, joint: str) -> tuple[float, float]:
    """Return the least and the largest position of a joint; infinite where it has no range."""
    index = model.joints[model.getJointId(joint)].idx_q
    least, most = float(model.lowerPositionLimit[index]), float(model.upperPositionLimit[index])
    return (least, most) if least < most else (-math.inf, math.inf)


def parent_joint(frame: Any) -> int:
    """Return the index of the joint that carries a frame."""
    # Pinocchio 3 renamed `parent`; both names exist in some releases.
    return int(frame.parentJoint if hasattr(frame, 'parentJoint') else frame.parent)


def pose_of(placement: Any) -> Pose:
    """Return a copy of one of Pinocchio's placements."""
    return Pose(placement.rotation.copy(), placement.translation.copy())


def add_sole_frames(config: RobotConfig, model: Any) -> None:
    """Add the frame ``<foot>_sole_frame`` of each foot, which nothing is beyond."""
    for name, foot in config.feet.items():
        if model.existFrame(foot.sole, pin.FrameType.BODY):  # else it is an error of the names
            link = model.getFrameId(foot.sole, pin.FrameType.BODY)
            placement = model.frames[link].placement * pin.SE3(
                pin.rpy.rpyToMatrix(*foot.sole_rpy), np.array(foot.sole_origin))
            model.addFrame(pin.Frame(sole_frame_name(name), parent_joint(model.frames[link]), link,
                                     placement, pin.FrameType.BODY))


def check_names(config: RobotConfig, model: Any) -> None:
    """Raise an error if the configuration names a joint or frame that the URDF does not have."""
    joints = tuple(model.names)[2:]
    frames = tuple(f.name for f in model.frames if f.type == pin.FrameType.BODY)
    for kind, valid, names in (
            ('joint', joints, _configured_joints(config)),
            ('frame', frames, _configured_frames(config))):
        for key, name in names:
            if name and name not in valid:
                raise UnknownNameError(
                    kind, name, valid, f'{key} of {config.name}; the URDF has no such name')
    both = set(config.passive_joints) & set(config.locked_joints)
    if both:
        raise ConfigurationError(
            f'{", ".join(sorted(both))} of {config.name} cannot be passive (measured) and locked '
            '(not measured) at once')


def check_postures(config: RobotConfig, model: Any) -> None:
    """Raise an error for positions outside a joint's limits, such as degrees for radians."""
    for where, positions in (('locked_joints', config.locked_joints),
                             *((f'postures.{n}', p) for n, p in config.postures.items())):
        for name, position in positions.items():
            least, most = range_of(model, name)
            if not least - _BEYOND <= position <= most + _BEYOND:
                raise ConfigurationError(
                    f"{where}.{name} of '{config.name}' is {position:g}; the URDF limits that "
                    f'joint to {least:g} ... {most:g} (rad, or m where it slides)')


def _configured_joints(config: RobotConfig) -> Iterator[tuple[str, str]]:
    """Yield the names of joints with the keys that have them."""
    for key, joints in (
            ('passive_joints', config.passive_joints), ('locked_joints', config.locked_joints),
            *((f'groups.{name}', group) for name, group in config.groups.items()),
            *((f'postures.{name}', posture) for name, posture in config.postures.items()),
            ('torso.joints', config.torso.joints if config.torso else ())):
        yield from ((key, joint) for joint in joints)


def _configured_frames(config: RobotConfig) -> Iterator[tuple[str, str]]:
    """Yield the names of frames, '' where none is given, with the keys that have them."""
    yield 'base_link', config.base_link
    for name, foot in config.feet.items():
        yield from ((f'feet.{name}.sole', foot.sole), (f'feet.{name}.ankle', foot.ankle))
    for name, sensor in config.wrench_sensors.items():
        yield from ((f'wrench_sensors.{name}.frame', sensor.frame),
                    (f'wrench_sensors.{name}.link', sensor.link))
    if config.torso:
        yield from (('torso.lower', config.torso.lower), ('torso.upper', config.torso.upper))
    for kind, framed in (('imus', config.imus), ('hands', config.hands)):
        yield from ((f'{kind}.{name}.frame', its.frame) for name, its in framed.items())
