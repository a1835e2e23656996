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
The configuration of a robot, as frozen dataclasses read from ``config/robots/<name>.yaml``.

Reading is strict: an unknown key, a value of the wrong type or an undefined name is an error that
names the place and what would be valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
import math
from pathlib import Path
import re
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.geometry.polygon import area
from biped_com_ros.core.model.corrections import check_corrections, InstrumentCorrections
from biped_com_ros.core.model.low_state_config import check_low_state, LowStateConfig
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.strict_yaml import convert, read_yaml

Vector3 = tuple[float, float, float]
ZERO: Vector3 = (0.0, 0.0, 0.0)
Six = tuple[float, float, float, float, float, float]
_ROUNDING = 1e-9
#: How far a corner of a sole may be from its frame, along either axis, m.
LONGEST_SOLE = 1.0
#: How far a sole frame may be from its link, along either axis, m.
LARGEST_ORIGIN = 1.0
_LONGEST_BACKBONE = 3.0  # m
_FULL_TURN = 2.0 * math.pi + _ROUNDING
_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_DIRECTORY = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}')
#: Relative or absolute name of a topic; rclpy itself checks it only when a node subscribes.
_TOPIC = re.compile(r'/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*')


class _Touching:
    """A foot or a hand, whose wrench sensors or joint torques may give."""

    wrench_sensors: tuple[str, ...]
    source: str

    @property
    def is_virtual(self) -> bool:
        """Whether joint torques give its wrench."""
        return self.source == 'virtual'

    @property
    def has_wrench(self) -> bool:
        """Whether anything gives its wrench."""
        return self.is_virtual or bool(self.wrench_sensors)


@dataclass(frozen=True)
class FootConfig(_Touching):
    """
    A foot: its sole and the sensors that measure its contact.

    Attributes
    ----------
    sole
        URDF link whose frame (after `sole_origin`, `sole_rpy`) lies on the ground, z up,
        x forward.
    polygon
        Corners (x, y) of the contact area in the sole frame, metres, counter-clockwise.
    wrench_sensors
        Names of the sensors whose readings add up to this foot's ground wrench.
    ankle
        URDF link of the ankle, for display and gait; may be empty.
    sole_origin, sole_rpy
        Pose of the sole frame in the frame of link `sole`, metres and radians, for robots whose
        URDF has no frame on the ground.
    source
        Where this foot's wrench comes from: ``sensor``, its sensors; ``virtual``, joint torques
        and the IMU; ``both``, its sensors, compared with joint torques. Empty: the sensors, if
        there are any.

    """

    sole: str
    polygon: tuple[tuple[float, float], ...]
    wrench_sensors: tuple[str, ...] = ()
    ankle: str = ''
    sole_origin: Vector3 = ZERO
    sole_rpy: Vector3 = ZERO
    source: str = ''

    @property
    def used_sensors(self) -> tuple[str, ...]:
        """Names of the sensors that give this foot's wrench; none where it is virtual."""
        return () if self.is_virtual else self.wrench_sensors

    @property
    def sole_is_link(self) -> bool:
        """Whether the sole frame is the frame of link `sole` itself."""
        return not any((*self.sole_origin, *self.sole_rpy))


@dataclass(frozen=True)
class HandConfig(_Touching):
    """
    A hand that may push against the environment, and the sensors that measure it.

    Attributes
    ----------
    frame
        URDF link; its origin is where the hand touches.
    wrench_sensors
        Names of its force-torque sensors.
    contact
        ``lean``: the hand only pushes; ``grip``: it holds on, and also pulls.
    normal
        Of what a leaning hand pushes against, in the hand's frame, towards the robot; zero: along
        the measured force.
    source
        Where this hand's wrench comes from: ``sensor``, its sensors; ``virtual``, joint torques
        and the IMU. Empty: the sensors, if there are any.

    """

    frame: str
    wrench_sensors: tuple[str, ...] = ()
    contact: str = 'lean'
    normal: Vector3 = ZERO
    source: str = ''


@dataclass(frozen=True)
class WrenchSensorConfig:
    """
    A force-torque sensor, or one that measures the vertical force alone.

    Attributes
    ----------
    frame
        URDF link in whose frame, and about whose origin, readings are expressed; or
        ``<foot>_sole_frame`` for wrenches that are given at the sole, which nothing is beyond.
    topic
        Relative name of its ``geometry_msgs/WrenchStamped`` topic.
    link
        First URDF link beyond the sensor: the sensor carries it and all below it.
        Empty means `frame` itself.
    scale
        What readings are multiplied by to be environment on robot along right-handed axes, N and
        N m: one number, such as -1 where they are robot on environment, or six, force first.
    measures
        ``wrench``, or ``force_z``: the force along z of `frame`, and nothing else.
    deviation
        By how much its forces may differ from the truth besides noise, N, and its moments, over
        0.1 m; for sources that a calibration must not trust.
    temperature_topic
        Relative name of the ``sensor_msgs/Temperature`` topic with its temperature, which its
        bias follows; empty: not measured.

    """

    frame: str
    topic: str
    link: str = ''
    scale: float | Six = 1.0
    measures: str = 'wrench'
    deviation: float = 0.0
    temperature_topic: str = ''

    @property
    def factors(self) -> Six:
        """Return `scale` as six numbers."""
        scale = self.scale
        return scale if isinstance(scale, tuple) else (scale,) * 6

    @property
    def measures_force_z(self) -> bool:
        """Whether it measures the vertical force alone."""
        return self.measures == 'force_z'


@dataclass(frozen=True)
class ImuConfig:
    """An IMU: its URDF link and its ``sensor_msgs/Imu`` topic."""

    frame: str
    topic: str


@dataclass(frozen=True)
class SimulationConfig:
    """Joint gains of the simulated robot by joint or group name, N m/rad and N m s/rad."""

    stiffness: Mapping[str, float] = field(default_factory=dict)
    damping: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class DrivesConfig:
    """
    What the drives add to the joints, by joint or group name; where nothing is given, zero.

    Attributes
    ----------
    rotor_inertia
        Inertia of the rotors, reflected to the joint, kg m^2.
    friction, damping
        Coulomb and viscous friction, N m and N m s/rad.

    """

    rotor_inertia: Mapping[str, float] = field(default_factory=dict)
    friction: Mapping[str, float] = field(default_factory=dict)
    damping: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TorsoConfig:
    """
    A tendon-driven torso with one flexible backbone (Russo et al. 2021), as six virtual joints.

    Attributes
    ----------
    lower, upper
        URDF links at the two ends of the backbone.
    joints
        The virtual joints from `lower` to `upper`: x, y, z, roll, pitch, yaw.
    backbone_length, radius
        Rest length of the backbone and radius of the tendon circle, m.
    attachment_angles_deg
        Angle of each tendon on that circle, deg.
    bending_stiffness, torsion_stiffness, axial_stiffness
        k_b and k_t in N m/rad, k_c in N/m.
    max_bend_deg
        Largest bend of the backbone, deg.

    """

    lower: str
    upper: str
    joints: tuple[str, str, str, str, str, str]
    backbone_length: float
    radius: float
    bending_stiffness: float
    torsion_stiffness: float
    axial_stiffness: float
    attachment_angles_deg: tuple[float, ...] = (180.0, 270.0, 0.0, 90.0)
    max_bend_deg: float = 15.0


@dataclass(frozen=True)
class WalkingConfig:
    """
    How a robot walks.

    Attributes
    ----------
    crouch
        By how much the base is lowered while walking, as a share of the length of a leg: enough
        for the legs to reach, and within the limits of knees and ankles.
    time_scale
        Factor of the durations of a step, where they are not given; 0: by height and soles.
    quick_steps
        How many it takes in the demo, after a slow one: 0 where soles are so narrow that the
        divergent component of motion is outside of them for long.

    """

    crouch: float = 0.08
    time_scale: float = 0.0
    quick_steps: int = 6

    def __post_init__(self) -> None:
        if not 0.0 <= self.crouch <= 0.5:
            raise ConfigurationError(
                f'walking.crouch is {self.crouch:g}, a share of the length of a leg: it must be '
                'between 0 and 0.5')
        if not 0 <= self.quick_steps <= 200:
            raise ConfigurationError(
                f'walking.quick_steps is {self.quick_steps}: it must be between 0 and 200')
        if self.time_scale and not 0.1 <= self.time_scale <= 10.0:
            raise ConfigurationError(
                f'walking.time_scale is {self.time_scale:g}, a factor of the durations of a '
                'step: it must be between 0.1 and 10')


@dataclass(frozen=True)
class RobotConfig:
    """
    Everything about a robot that its URDF does not hold.

    Attributes
    ----------
    name
        Short name, used for namespaces and messages.
    base_link
        URDF link rigidly attached to the root, the `base_link` of REP-105.
    urdf
        A path, ``package://`` URI or xacro file; empty means the latched topic
        ``robot_description``.
    xacro_arguments
        Arguments for a xacro file.
    base_rpy
        Orientation of the REP-103 base frame (x forward, z up) in `base_link`, rad, for robots
        whose base link points elsewhere.
    feet, hands, wrench_sensors, imus
        What touches the environment and what measures it, by name.
    groups
        Joint names by group name (``left_arm``).
    postures
        Joint positions by posture name, rad; a joint that is not named is at zero.
    passive_joints
        Measured but not actuated.
    locked_joints
        Not measured, assumed at the given position, rad.
    torso
        The tendon-driven torso, if there is one.
    walking
        How it walks.
    simulation
        Gains of the simulated robot.
    drives
        Rotor inertia and friction of the joints, for virtual foot sensors.
    instruments
        Known errors of joint positions, wrench sensors and IMUs, which a calibration writes.
    low_state
        Unitree's message of motors and IMU, for robots of that maker.

    """

    name: str
    base_link: str
    feet: Mapping[str, FootConfig]
    urdf: str = ''
    xacro_arguments: Mapping[str, str] = field(default_factory=dict)
    base_rpy: Vector3 = ZERO
    hands: Mapping[str, HandConfig] = field(default_factory=dict)
    wrench_sensors: Mapping[str, WrenchSensorConfig] = field(default_factory=dict)
    imus: Mapping[str, ImuConfig] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    postures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    passive_joints: tuple[str, ...] = ()
    locked_joints: Mapping[str, float] = field(default_factory=dict)
    torso: TorsoConfig | None = None
    walking: WalkingConfig = WalkingConfig()
    simulation: SimulationConfig = SimulationConfig()
    drives: DrivesConfig = DrivesConfig()
    instruments: InstrumentCorrections = InstrumentCorrections()
    low_state: LowStateConfig | None = None

    def __post_init__(self) -> None:
        if not _DIRECTORY.fullmatch(self.name):  # results are written to one of this name
            raise ConfigurationError(
                f"name is '{self.name}': use up to 64 letters, digits, _, - and ., and begin with "
                'a letter or digit')
        _check_angles('base_rpy', self.base_rpy)
        _check_feet(self)
        _check_sensors(self)
        _check_torso(self.torso)
        _check_instruments(self)
        check_low_state(self.name, self.low_state)
        if self.low_state is not None:
            _check_topic(self, 'low_state.topic', self.low_state.topic)

    @property
    def imu(self) -> ImuConfig:
        """Return the IMU that gives the base's orientation: ``base``, or else the first one."""
        if not self.imus:
            raise ConfigurationError(
                f"robot '{self.name}' has no IMU; add one under 'imus', or choose another "
                'base_source')
        return self.imus.get('base') or next(iter(self.imus.values()))

    @property
    def required_torso(self) -> TorsoConfig:
        """Return the tendon-driven torso; ConfigurationError names robots that have one."""
        if self.torso is None:
            having = [name for name in robot_names() if load_robot_config(name).torso]
            raise ConfigurationError(
                f"robot '{self.name}' has no tendon-driven torso; choose {' or '.join(having)}, "
                "or describe one under 'torso' in its YAML as config/robots/biped.yaml does")
        return self.torso

    @property
    def has_foot_wrenches(self) -> bool:
        """Whether the wrench of every foot is known, by sensors or joint torques."""
        return all(foot.has_wrench for foot in self.feet.values())

    @property
    def virtual_hands(self) -> tuple[str, ...]:
        """Return the names of the hands whose wrenches joint torques give."""
        return tuple(name for name, hand in self.hands.items() if hand.is_virtual)

    def hand_label(self, hand: str) -> str:
        """Return the name of a hand among the contacts; not that of a foot."""
        return f'{hand}_hand' if hand in self.feet else hand

    def sole_frame(self, foot: str) -> str:
        """Return the name of a foot's sole frame: of its link, or one that the URDF lacks."""
        config = self.feet[foot]
        return config.sole if config.sole_is_link else sole_frame_name(foot)

    @property
    def feet_with_force_z(self) -> tuple[str, ...]:
        """Return the feet of which the vertical force alone is measured, not where it acts."""
        return tuple(name for name, foot in self.feet.items() if any(
            self.wrench_sensors[sensor].measures_force_z for sensor in foot.used_sensors))

    @property
    def force_z_restriction(self) -> str:
        """Return, for messages, of which feet too little is measured; empty if of none."""
        feet = self.feet_with_force_z
        return '' if not feet else (
            f'the sensors of {" and ".join(feet)} measure the vertical force alone (measures: '
            'force_z), not where it acts')


def sole_frame_name(foot: str) -> str:
    """Return the name that the sole frame of a foot has beside that of its link."""
    return f'{foot}_sole_frame'


def robot_names() -> tuple[str, ...]:
    """Names of the robots that come with the package."""
    return tuple(sorted(path.stem for path in (package_share() / 'config/robots').glob('*.yaml')))


def robot_file(name_or_path: str | Path) -> Path:
    """
    Return the YAML of a robot.

    Parameters
    ----------
    name_or_path
        A name of :func:`robot_names`, or the path of a YAML file.

    Raises
    ------
    UnknownNameError
        If there is no robot of that name.

    """
    text = str(name_or_path)
    if text.endswith(('.yaml', '.yml')):
        return Path(text)
    if text not in robot_names():
        raise UnknownNameError('robot', text, (*robot_names(), '/path/to/robot.yaml'))
    return package_share() / 'config' / 'robots' / f'{text}.yaml'


def load_robot_config(name_or_path: str | Path) -> RobotConfig:
    """
    Read a robot's YAML.

    Parameters
    ----------
    name_or_path
        A name of :func:`robot_names`, or the path of a YAML file; its `urdf` may be a path
        relative to it. With ``extends: talos`` (or an absolute path) it holds only what differs
        from another robot.

    Raises
    ------
    ConfigurationError
        If there is no such robot, or the file is not valid.

    """
    path = robot_file(name_or_path)
    return robot_config_from_mapping(_read_robot(path), where=path.name)


def _read_robot(path: Path) -> Mapping[str, Any]:
    """Return what a robot's YAML holds; a URDF beside it by its absolute path."""
    values = read_yaml(path)
    urdf = values.get('urdf')
    if isinstance(urdf, str) and urdf and (path.parent / urdf).is_file():
        return {**values, 'urdf': str((path.parent / urdf).resolve())}
    return values


def _on_base(values: Mapping[str, Any], where: str, chain: tuple[Path, ...] = ()
             ) -> Mapping[str, Any]:
    """Return mappings of a robot on top of those of the robot that it extends, if any."""
    if not isinstance(values, Mapping) or 'extends' not in values:
        return values
    name = values['extends']
    base = robot_file(str(name))
    if name not in robot_names() and not base.is_absolute():
        raise ConfigurationError(f"{where}: extends is '{name}'; give the name of a robot of the "
                                 'package, or the absolute path of a robot YAML')
    if base.resolve() in chain:
        raise ConfigurationError(f'{base.name} extends itself: '
                                 f'{" -> ".join(file.name for file in (*chain, base))}')
    below = _on_base(_read_robot(base), base.name, (*chain, base.resolve()))
    return _merged(below, {key: value for key, value in values.items() if key != 'extends'})


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return both, where mappings are merged and all else is replaced by that above."""
    return {**below, **{
        key: _merged(below[key], value)
        if isinstance(value, Mapping) and isinstance(below.get(key), Mapping) else value
        for key, value in above.items()}}


def robot_config_from_mapping(values: Mapping[str, Any], where: str = 'robot') -> RobotConfig:
    """Build a :class:`RobotConfig` from nested mappings, strictly; `where` begins messages."""
    config = convert(RobotConfig, _on_base(values, where), where)
    assert isinstance(config, RobotConfig)
    return config


def _check_feet(config: RobotConfig) -> None:
    if not config.feet:
        raise ConfigurationError(f"robot '{config.name}' has no feet; add at least one")
    for kind in ('feet', 'hands', 'wrench_sensors'):
        for name in getattr(config, kind):
            _check_name(config, kind, name)
    for name, foot in config.feet.items():
        _check_names(config, f'feet.{name}', foot.wrench_sensors)
        _check_source(f'feet.{name}', foot, 'sensor', 'virtual', 'both')
        if len(foot.polygon) < 3 or area(foot.polygon) <= 0.0:
            raise ConfigurationError(
                f"feet.{name}.polygon of '{config.name}' must have three or more corners in "
                f'counter-clockwise order, not {foot.polygon}')
        _check_corners(name, foot)
        _check_origin(name, foot)
    _check_soles(config)
    for name, hand in config.hands.items():
        _check_names(config, f'hands.{name}', hand.wrench_sensors)
        if hand.contact not in ('lean', 'grip'):
            raise ConfigurationError(f"hands.{name}.contact is '{hand.contact}'; use lean or grip")
        _check_source(f'hands.{name}', hand, 'sensor', 'virtual')
        _check_virtual_hand(name, hand)
        for sensor in hand.wrench_sensors:
            if config.wrench_sensors[sensor].measures_force_z:
                raise ConfigurationError(
                    f"wrench_sensors.{sensor} of '{config.name}' measures force_z, which is for "
                    f'soles, but hands.{name} uses it: a hand needs a wrench, or source: virtual')
    _check_owners(config)


def _check_source(where: str, body: FootConfig | HandConfig, *valid: str) -> None:
    """Raise an error for an unknown source of a wrench, and for sensors that there are not."""
    if body.source not in ('', *valid):
        raise ConfigurationError(
            f"{where}.source is '{body.source}'; use {', '.join(valid[:-1])} or {valid[-1]}")
    if body.source in ('sensor', 'both') and not body.wrench_sensors:
        raise ConfigurationError(
            f"{where}.source is '{body.source}', but {where} has no wrench_sensors; name them, "
            'or use virtual')


def _check_virtual_hand(name: str, hand: HandConfig) -> None:
    if hand.is_virtual and hand.wrench_sensors:
        raise ConfigurationError(
            f"hands.{name}.source is 'virtual', but the hand has wrench_sensors "
            f'({", ".join(hand.wrench_sensors)}), which measure it better; leave out source or '
            'wrench_sensors')


def _check_corners(name: str, foot: FootConfig) -> None:
    corners = foot.polygon
    for corner, following, next_one in zip(
            corners, corners[1:] + corners[:1], corners[2:] + corners[:2]):
        if corners.count(corner) > 1:
            raise ConfigurationError(
                f'feet.{name}.polygon gives corner {corner} twice; the last corner is joined '
                'to the first one anyway')
        if area((corner, following, next_one)) < -_ROUNDING:
            raise ConfigurationError(
                f'feet.{name}.polygon goes inward or crosses itself at corner {following}; give '
                'the corners of a convex outline only')
        if max(map(abs, corner)) > LONGEST_SOLE:
            raise ConfigurationError(
                f'feet.{name}.polygon has a corner at {corner}, in metres: a sole reaches at '
                f'most {LONGEST_SOLE:g} m from its frame')


def _check_origin(name: str, foot: FootConfig) -> None:
    if max(map(abs, foot.sole_origin)) > LARGEST_ORIGIN:
        raise ConfigurationError(
            f'feet.{name}.sole_origin is {foot.sole_origin}, in metres: a sole is at most '
            f'{LARGEST_ORIGIN:g} m from its link')
    _check_angles(f'feet.{name}.sole_rpy', foot.sole_rpy)


def _check_angles(where: str, angles: Vector3) -> None:
    if max(map(abs, angles)) > _FULL_TURN:
        raise ConfigurationError(
            f'{where} is {angles}, in radians: more than a full turn; convert degrees '
            f'({", ".join(f"{math.radians(angle):.6g}" for angle in angles)})')


def _check_soles(config: RobotConfig) -> None:
    """Raise an error for two feet with one sole, as copying and pasting gives them."""
    owners: dict[tuple[str, Vector3], str] = {}
    for name, foot in config.feet.items():
        other = owners.setdefault((foot.sole, foot.sole_origin), name)
        if other != name:
            raise ConfigurationError(
                f"feet.{other} and feet.{name} of '{config.name}' have the same sole "
                f"'{foot.sole}'; give each foot its own link, or its own sole_origin")


def _check_torso(torso: TorsoConfig | None) -> None:
    if torso is None:
        return
    for key in ('backbone_length', 'radius'):
        if not 0.0 < getattr(torso, key) <= _LONGEST_BACKBONE:
            raise ConfigurationError(
                f'torso.{key} is {getattr(torso, key):g}, in metres: it must be above 0 and at '
                f'most {_LONGEST_BACKBONE:g}')
    if not 0.0 < torso.max_bend_deg <= 180.0:
        raise ConfigurationError(
            f'torso.max_bend_deg is {torso.max_bend_deg:g}, in degrees: it must be above 0 and '
            'at most 180')


def _check_names(config: RobotConfig, where: str, sensors: tuple[str, ...]) -> None:
    for sensor in sensors:
        if sensor not in config.wrench_sensors:
            raise UnknownNameError('wrench sensor', sensor, config.wrench_sensors,
                                   f'{where}.wrench_sensors of {config.name}')


def _check_owners(config: RobotConfig) -> None:
    """Raise an error for a sensor of two feet or hands."""
    owners: dict[str, str] = {}
    bodies = [(name, foot.wrench_sensors) for name, foot in config.feet.items()]
    bodies += [(name, hand.wrench_sensors) for name, hand in config.hands.items()]
    for name, sensors in bodies:
        for sensor in sensors:
            if sensor in owners:
                raise ConfigurationError(
                    f"wrench sensor '{sensor}' of '{config.name}' is listed for "
                    f"'{owners[sensor]}' and for '{name}'; its force would count twice")
            owners[sensor] = name


def _check_sensors(config: RobotConfig) -> None:
    for name, sensor in config.wrench_sensors.items():
        if not all(sensor.factors):
            raise ConfigurationError(
                f"wrench_sensors.{name}.scale of '{config.name}' is {sensor.scale}: a zero would "
                'remove what is measured; use 1, -1 for robot on environment, or six factors')
        if sensor.measures not in ('wrench', 'force_z'):
            raise ConfigurationError(
                f"wrench_sensors.{name}.measures of '{config.name}' is '{sensor.measures}'; use "
                'wrench or force_z')
        _check_topic(config, f'wrench_sensors.{name}.topic', sensor.topic)
        if sensor.temperature_topic:
            _check_topic(config, f'wrench_sensors.{name}.temperature_topic',
                         sensor.temperature_topic)
    topics = [sensor.topic for sensor in config.wrench_sensors.values()]
    for name, sensor in config.wrench_sensors.items():
        if topics.count(sensor.topic) > 1:
            raise ConfigurationError(
                f"wrench_sensors.{name} of '{config.name}' shares topic '{sensor.topic}' with "
                'another sensor; every sensor publishes on its own topic')
    for name, imu in config.imus.items():
        _check_topic(config, f'imus.{name}.topic', imu.topic)


def _check_instruments(config: RobotConfig) -> None:
    known = config.instruments
    check_corrections(known)
    imu_links = [imu.frame for imu in config.imus.values()]
    for kind, key, names, valid in (
            ('wrench sensor', 'wrench_sensors', known.wrench_sensors, [*config.wrench_sensors]),
            ('link of an IMU', 'tilts', known.tilts, imu_links)):
        for name in names:
            if name not in valid:
                raise UnknownNameError(kind, name, valid, f'instruments.{key} of {config.name}')


def _check_name(config: RobotConfig, kind: str, name: str) -> None:
    if not _NAME.fullmatch(name) or '__' in name:
        raise ConfigurationError(
            f"'{name}' under {kind} of '{config.name}' cannot be part of a topic's name: use "
            'letters, digits and single _, and begin with a letter')


def _check_topic(config: RobotConfig, where: str, topic: str) -> None:
    check_topic(f"{where} of '{config.name}'", topic)


def check_topic(where: str, topic: str) -> None:
    """
    Check the name of a topic or service, which rclpy checks only when a node uses it.

    Raises
    ------
    ConfigurationError
        If it is not one; `where` it was found is named.

    """
    if not _TOPIC.fullmatch(topic) or '__' in topic:
        raise ConfigurationError(
            f"{where} is '{topic}', which is not a valid topic name: "
            'use names of letters, digits and _ that do not begin with a digit, with / between '
            'them, as in left_foot/wrench')
