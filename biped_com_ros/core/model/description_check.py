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
Contradictions between a robot's configuration and URDF, and values that are hardly right.

What cannot be right is an error. What may be right, but hardly ever is, becomes a warning: a
sentence for the log that names the value and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
import math
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.frames import FrameSet, RobotFrames, sole_in_link
from biped_com_ros.core.model.pinocchio_model import range_of
from biped_com_ros.core.model.robot_state import RobotState
import numpy as np
import pinocchio as pin

_ROBOT_SIZE = 10.0  # m; of links at most so far from the base
_LINK_SIZE = 2.0  # m; of a centre of mass at most so far from the frame of its link
_MASSES = 0.2, 1000.0  # kg
_LARGEST_RANGE = 4.0 * math.pi  # rad
_LARGEST_DEGREES = 720.0  # larger limits stand for none
_TILT = math.radians(45.0)
_UNEVEN = 0.02  # m


@dataclass(frozen=True)
class RobotDescription:
    """
    What the checks look at.

    Attributes
    ----------
    frames
        Configuration, names and frames of the robot.
    posture
        Name of the posture; '' where all joints are at zero.
    state, at_zero
        The robot in it, and with all joints at zero.
    subtrees
        Names of the links that each wrench sensor carries, by its name.

    """

    frames: RobotFrames
    posture: str
    state: RobotState
    at_zero: RobotState
    subtrees: dict[str, list[str]]


def check_sensors(description: RobotDescription) -> None:
    """
    Check that each foot stands on its own sensors.

    Raises
    ------
    ConfigurationError
        If a sensor of a foot does not carry its sole, is not fixed to it, or carries another one.

    """
    frames, config = description.frames, description.frames.config
    for index, (name, foot) in enumerate(config.feet.items()):
        for sensor in foot.wrench_sensors:
            carried = [other for other, its in config.feet.items()
                       if its.sole in description.subtrees[sensor]]
            if carried == [name]:
                continue
            at = config.wrench_sensors[sensor]
            if not carried and _is_fixed(frames, at.link or at.frame, index):
                continue
            raise ConfigurationError(
                f"wrench_sensors.{sensor} of '{config.name}' measures at link "
                f"'{at.link or at.frame}', which {_carries(carried)}, but feet.{name} stands on "
                f'it: {_remedy(name, carried)}')


def _is_fixed(frames: RobotFrames, link: str, foot: int) -> bool:
    """Return whether a link is rigidly connected with a sole: a pressure pad, for example."""
    return bool(frames.frames((link,)).joints[0] == frames.soles.joints[foot])


def _carries(feet: list[str]) -> str:
    return f'carries the sole of foot {" and ".join(feet)}' if feet else 'carries no sole'


def _remedy(foot: str, carried: list[str]) -> str:
    if len(carried) == 1:
        return f'the sensors of {foot} and {carried[0]} are swapped, or their frames are'
    return "give the frame of the sensor at this foot's ankle"


def find_warnings(description: RobotDescription) -> tuple[str, ...]:
    """Return what is probably wrong, each with value and remedy."""
    return tuple(warning for check in (
        _sizes, _ranges, _masses, _moving_sensors, _turned_soles, _swapped_feet, _uneven_soles)
        for warning in check(description))


def _sizes(description: RobotDescription) -> Iterator[str]:
    frames = description.frames
    links = frames.frames(frames.frame_names)
    far = np.abs(_in_base(description, links)[:, 3]).max(axis=1)
    if far.max() > _ROBOT_SIZE:
        yield (f"link '{links.names[int(far.argmax())]}' is {far.max():.4g} m from the base: "
               'check whether origins in the URDF are in millimetres')
    off = np.linalg.norm(frames.link_coms_in_link, axis=1)
    if off.max() > _LINK_SIZE:
        yield (f"the centre of mass of link '{frames.link_names[int(off.argmax())]}' is "
               f'{off.max():.4g} m from its frame: check whether inertials in the URDF are in '
               'millimetres')


def _ranges(description: RobotDescription) -> Iterator[str]:
    model: Any = description.frames.pin_model
    for name in tuple(model.names)[2:]:
        least, most = range_of(model, name)
        widest = max(abs(least), abs(most))
        slides = model.joints[model.getJointId(name)].shortname().startswith('JointModelP')
        if _LARGEST_RANGE < widest <= _LARGEST_DEGREES and not slides:
            yield (f"joint '{name}' has limits of {least:g} to {most:g} rad: check whether limits "
                   'in the URDF are in degrees')
            return


def _masses(description: RobotDescription) -> Iterator[str]:
    total = float(description.frames.link_masses.sum())
    if not _MASSES[0] <= total <= _MASSES[1]:
        yield f'the robot weighs {total:.4g} kg: check the units of masses in the URDF'


def _moving_sensors(description: RobotDescription) -> Iterator[str]:
    frames = description.frames
    for name, sensor in frames.config.wrench_sensors.items():
        frame, link = frames.frames((sensor.frame, sensor.link or sensor.frame)).joints
        if frame != link:
            yield (f"wrench_sensors.{name} has frame '{sensor.frame}' and link '{sensor.link}', "
                   'which move relative to each other: give two frames on the same side of a '
                   'joint')


def _turned_soles(description: RobotDescription) -> Iterator[str]:
    soles = description.frames.soles
    at_zero = description.at_zero.placements_in_base(soles)
    first = '' if description.posture else 'add postures.stand in which it does, or '
    for name, placement, its_at_zero in zip(soles.names, _soles(description), at_zero):
        axes = placement[:3]  # rows: the axes of the sole in the base
        for k, direction in ((2, 'up'), (0, 'forward')):
            tilt = _angle(axes[k, k])
            if tilt <= _TILT:
                continue
            remedy = (f', as it does with joints at zero: correct postures.{description.posture}'
                      if _angle(its_at_zero[k, k]) <= _TILT else
                      f': {first}set feet.{name}.sole_rpy to '
                      f'{_level_rpy(description, name, axes)}, or base_rpy if it is the base that '
                      'is turned')
            yield (f"the {'xyz'[k]} axis of the sole of foot '{name}' is "
                   f"{math.degrees(tilt):.0f} deg from the base's {_where(description)}; it "
                   f'must point {direction}{remedy}')
            break


def _angle(cosine: float) -> float:
    return math.acos(min(max(float(cosine), -1.0), 1.0))


def _level_rpy(description: RobotDescription, foot: str, axes: Array) -> str:
    """Return the `sole_rpy` with which a sole has the base's axes, from those it has (rows)."""
    config = description.frames.config.feet[foot]
    rotation = sole_in_link(config).rotation @ axes  # from the base to the link
    angles = np.round(pin.rpy.matrixToRpy(rotation), 3) + 0.0
    return f'[{", ".join(f"{angle:g}" for angle in angles.tolist())}]'


def _swapped_feet(description: RobotDescription) -> Iterator[str]:
    feet = tuple(description.frames.config.feet)
    if not {'left', 'right'} <= set(feet):
        return
    y = _soles(description)[:, 3, 1]
    left, right = float(y[feet.index('left')]), float(y[feet.index('right')])
    if left < right:
        yield (f"foot 'left' is {1e3 * (right - left):.0f} mm to the right of foot 'right' "
               f'{_where(description)}: swap their soles, or set base_rpy (x forward, z up)')


def _uneven_soles(description: RobotDescription) -> Iterator[str]:
    heights = _soles(description)[:, 3, 2]
    if description.posture and np.ptp(heights) > _UNEVEN:
        yield (f'the soles differ in height by {1e3 * np.ptp(heights):.0f} mm '
               f'{_where(description)}: check sole_origin and the posture')


def _soles(description: RobotDescription) -> Array:
    return _in_base(description, description.frames.soles)


def _in_base(description: RobotDescription, frames: FrameSet) -> Array:
    return description.state.placements_in_base(frames)


def _where(description: RobotDescription) -> str:
    return f"in posture '{description.posture}'" if description.posture else 'with joints at zero'
