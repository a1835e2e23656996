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
The simulated robot behind a small interface: commands in, sensor readings out.

All values of an :class:`Observation` and a :class:`Truth` belong to one instant: the start of the
last physics step, where MuJoCo evaluated positions, forces and sensors together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import math
from typing import Any

from biped_com_ros.core.errors import ConfigurationError, InputError, UnknownNameError
from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.sim import gains, hidden, torso
from biped_com_ros.sim.contacts import Grips, GroundContacts, PLAY, zero_moment_point
from biped_com_ros.sim.description import Description, parse
from biped_com_ros.sim.drives import Drives, JointFriction, ModelJoints
from biped_com_ros.sim.faults import WrenchFaults
from biped_com_ros.sim.frames import Array, quaternion_wxyz, rotation_from_rpy
from biped_com_ros.sim.hoist import Hoist
from biped_com_ros.sim.instruments import ErrorSource
from biped_com_ros.sim.interface import Command, Observation, PlantOptions, Truth
from biped_com_ros.sim.loads import Loads, Pushes
from biped_com_ros.sim.mjcf import RobotSpec, stiff_torso_joints
from biped_com_ros.sim.placement import Place, place_of, put_on_soles, sole_centre
from biped_com_ros.sim.readings import Readings, sensor_slots, WXYZ_TO_XYZW
from biped_com_ros.sim.sensors import Delay, steps_of
from biped_com_ros.sim.tendons import TendonTorso
import mujoco
import numpy as np

STICKING = 0.9999
"""Impedance of dry friction in MuJoCo: a joint that sticks creeps by some 1e-5 rad/s."""


class Plant:
    """
    A robot on a floor.

    Parameters
    ----------
    config, urdf
        The robot's configuration and URDF, as the estimators have them.
    options
        How it is simulated, and how it differs from `urdf`.
    joint_names, link_names
        Order of the measured joints and of the links with mass; by default the URDF's.

    Attributes
    ----------
    joint_names, actuated_joint_names, link_names, sensor_names, imu_names
        Order of the arrays of observations, commands and truth.
    link_masses
        True masses, kg.
    gains
        Of the actuated joints.
    velocity_limits
        From the URDF, of the actuated and then the virtual joints, rad/s and m/s.
    divergences
        How often the physics diverged; each time, the robot was reset.
    hoist
        Lifts and lowers the robot.
    grips
        Hands that hold on.
    tendon_torso
        Tendons of the torso; None without.
    friction
        Of the actuated joints.
    instrument_errors
        True errors of the instruments by name (joint, sensor, foot), by error.

    Raises
    ------
    BipedComError
        If the URDF, the configuration and the options do not fit together.

    """

    def __init__(self, config: RobotConfig, urdf: str, options: PlantOptions = PlantOptions(),
                 joint_names: Iterable[str] | None = None,
                 link_names: Iterable[str] | None = None) -> None:
        # MuJoCo would write its warnings to a file; `step` detects divergence itself.
        mujoco.set_mju_user_warning(lambda message: None)
        self.config, self.options = config, options
        self._R_world_floor, self._floor_point = options.world.R_world_floor, np.zeros(3)
        self._description = self._make_description(urdf)
        self._has_tendons = config.torso is not None and options.tendons
        self._errors = ErrorSource(options.seed, options.instrument_errors)
        self.instrument_errors = self._errors.values
        feet = tuple(config.feet)
        offsets = self._errors.draw('position', feet, options.sole_position)
        spec = RobotSpec(self._description, config, options.world, self._has_tendons,
                         dict(zip(feet, offsets)))
        self.model, self._mount = spec.make_model(), spec.mount
        self.data = mujoco.MjData(self.model)
        self._before = np.zeros(self.model.nv)  # velocities before the last physics step
        self._substeps = self._count_substeps()
        self._pushes, self._loads = Pushes(self.model, self.data), Loads(self.model)
        self.grips = Grips(self.model, self.data)
        self.tendon_torso: TendonTorso | None = None
        self._virtual_positions: Array | None = None
        self.divergences = 0
        self._name_joints(joint_names)
        self._name_links(link_names)
        self._make_readings()
        self._contacts = GroundContacts(self.model, self.data, config.feet)
        self.hoist = Hoist(self.model, self.data, self._ground_force)
        self._add_friction()
        self._set_gains()
        self._errors.require_all_used()
        self._make_buffers()
        self.reset()

    @property
    def faults(self) -> WrenchFaults:
        """Return the faults of the wrench sensors."""
        return self._readings.faults

    @property
    def dt(self) -> float:
        """Time between two observations, s."""
        return self.options.dt

    @property
    def mass(self) -> float:
        """Return the true total mass, kg."""
        return float(self.model.body_subtreemass[0])

    @property
    def virtual_joint_names(self) -> tuple[str, ...]:
        """Joints moved by the tendons only, in the order of the torso's; may be empty."""
        return tuple(self.joint_names[i] for i in self._virtual)

    @property
    def start_of_virtual_joints(self) -> Array:
        """Positions of the virtual joints at the last reset, rad and m."""
        return self._start[self._virtual]

    @property
    def tendon_count(self) -> int:
        """Return the number of tendons, 0 without a tendon torso."""
        return int(self.model.ntendon)

    def reset(self, posture: str | Mapping[str, float] = 'stand', height: float = 0.0,
              place: Place = (0.0, 0.0, 0.0)) -> Observation:
        """
        Put the robot on its soles, at rest.

        Parameters
        ----------
        posture
            Name of a configured posture, or joint positions by name; unnamed joints at zero.
        height
            Of the lowest corner of a sole above the floor, m.
        place
            x, y of the centre of the soles, m, and heading of the base, rad; see :meth:`place`.

        """
        positions = self._posture(posture)
        mujoco.mj_resetData(self.model, self.data)
        self._place(positions, height, place)
        self._command_delay.clear()
        self._drives.clear()
        self._readings.clear()
        self._pushes.clear()
        self.grips.clear()
        self._loads.clear()
        self._held = self.hold()
        self._drive()
        mujoco.mj_forward(self.model, self.data)
        self._virtual_positions = None
        self._observe(self.data.time)
        return self.observation

    def tilt_floor(self, roll: float, pitch: float, through: Any = (0.0, 0.0, 0.0)) -> None:
        """
        Tilt the floor; call :meth:`reset` then.

        Parameters
        ----------
        roll, pitch
            About the world's x and then y axis, rad.
        through
            A point of the floor, (3,), m.

        """
        tilted, point = rotation_from_rpy((roll, pitch, 0.0)), np.array(through, dtype=float)
        has_changed = (tilted != self._R_world_floor).any() or (point != self._floor_point).any()
        self._R_world_floor, self._floor_point = tilted, point
        if has_changed and self.options.world.floor:
            floor = self.model.geom('floor')
            floor.pos[:], floor.quat[:] = point, quaternion_wxyz(tilted)
            # Compiled are its pose, where it is the world's, and bounding volumes.
            floor.sameframe[:] = int(mujoco.mjtSameFrame.mjSAMEFRAME_NONE)
            self.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)

    def hold(self) -> Command:
        """Return a command that holds the posture of the last reset."""
        n = len(self.actuated_joint_names)
        return Command(
            position=self._start[self._actuated], velocity=np.zeros(n), effort=np.zeros(n),
            tendon_lengths=self.tendon_lengths_for(self._start[self._virtual]))

    def tendon_lengths_for(self, virtual_positions: Array) -> Array:
        """Return tendon lengths (m) that give a torso posture; empty without tendons."""
        if self.tendon_torso is None:
            return np.zeros(0)
        return self.tendon_torso.lengths_for(virtual_positions)

    def step(self, command: Command | None = None) -> Observation:
        """
        Simulate one period `dt`.

        Parameters
        ----------
        command
            New command; None keeps the last one. Positions are clamped to the joints' limits.

        Raises
        ------
        InputError
            If a command has the wrong shape or is not finite; the last one stays in use.

        """
        if command is not None:
            self._accept(command)
        start = self.data.ctrl.copy()
        self._drive()
        before = self.data.time
        self._advance(start)
        if self.data.time <= before:  # MuJoCo has reset itself after a NaN.
            self.divergences += 1
            return self.reset()
        self._observe(self.data.time - self.options.world.timestep)
        return self.observation

    def push(self, link: str, wrench: Any, duration: float) -> None:
        """
        Push a URDF link from the next step on; see `Pushes.add`.

        Raises
        ------
        UnknownNameError
            If there is no such link.

        """
        self._pushes.add(self.body_index(link), wrench, duration)

    def grip(self, link: str, largest_force: float, point: Any = (0.0, 0.0, 0.0),
             play: float = PLAY) -> None:
        """
        Let a URDF link hold on to where it is now, until the next reset; see `Grips.hold`.

        Raises
        ------
        UnknownNameError
            If there is no such link.

        """
        self.grips.hold(self.body_index(link), point, largest_force, play)

    def put_load(self, link: str, mass: float, com: Any, inertia: Any = None) -> None:
        """
        Put a load on a URDF link within a fifth of a second; see `Loads.put`.

        The true centre of mass contains it; that of its link does, too.

        Raises
        ------
        UnknownNameError
            If there is no such link.

        """
        self._loads.put(self.body_index(link), mass, com, inertia)

    def body_index(self, link: str) -> int:
        """Return the index of the body that a link is a part of in MuJoCo."""
        if link not in self._bodies:
            raise UnknownNameError('link', link, self._bodies, self.config.name)
        return self._bodies[link]

    def truth(self) -> Truth:
        """Return the true state at the instant of the last observation."""
        data, at_origin = self.data, self._contacts.wrenches_at_origin()
        base = data.sensordata[self._base_slots]
        return Truth(
            com=data.subtree_com[0].copy(), com_velocity=self._com_velocity(),
            link_coms=data.xipos[self._link_bodies],
            zmp=zero_moment_point(at_origin, self._R_world_floor[:, 2], self._floor_point),
            sole_wrenches=self._contacts.wrenches_at_soles(at_origin),
            base_position=base[:3], base_quaternion=base[3:7][WXYZ_TO_XYZW], base_twist=base[7:])

    @property
    def has_fallen(self) -> bool:
        """Whether the base leans by more than 60 deg or is below half its initial height."""
        base = self.data.site('base')
        return bool(base.xmat[8] < 0.5 or base.xpos[2] < 0.5 * self._start_height)

    def place(self) -> Place:
        """Return x, y of the centre of the soles, m, and the heading of the base, rad."""
        return place_of(self.data, self.config.feet)

    def ground_point(self) -> Array:
        """Return the point of the ground between the soles of the standing robot, (3,), m."""
        return sole_centre(self.data, self.config.feet)

    def saturated_joints(self) -> tuple[str, ...]:
        """Names of the actuated joints at their effort limit."""
        force, limits = self.data.actuator_force, self.model.actuator_forcerange
        at_limit = self.model.actuator_forcelimited.astype(bool) & (
            (force <= limits[:, 0]) | (force >= limits[:, 1]))
        return tuple(name for name, i in zip(self.actuated_joint_names, self._motors)
                     if at_limit[i])

    def _make_description(self, urdf: str) -> Description:
        o, nominal = self.options, parse(urdf)
        self._nominal = nominal
        if not (o.com_sigma or o.mass_sigma or o.errors):
            return nominal
        drawn = hidden.draw(nominal, o.seed, o.com_sigma, o.mass_sigma)
        return hidden.apply(hidden.apply(nominal, drawn), o.errors)

    def _count_substeps(self) -> int:
        ratio = self.options.dt / self.options.world.timestep
        if ratio < 0.5 or abs(ratio - round(ratio)) > 1e-6:
            raise ConfigurationError(
                f'dt {self.options.dt} s must be a multiple of the physics timestep '
                f'{self.options.world.timestep} s')
        return round(ratio)

    def _name_joints(self, order: Iterable[str] | None) -> None:
        """Find joints: measured, actuated (in that order) and virtual ones."""
        config, robot = self.config, self._description
        measured = tuple(name for name in robot.joints
                         if name not in robot.mimics and name not in config.locked_joints)
        self.joint_names = _reordered('joint', measured, order)
        virtual = config.torso.joints if config.torso and self._has_tendons else ()
        position = {name: i for i, name in enumerate(self.joint_names)}
        self._virtual = np.array([position[n] for n in virtual], dtype=int)
        self._real = np.array([i for n, i in position.items() if n not in virtual], dtype=int)
        self.actuated_joint_names = tuple(
            n for n in self.joint_names if n not in config.passive_joints and n not in virtual)
        self._actuated = np.array([position[n] for n in self.actuated_joint_names], dtype=int)
        self._joints = ModelJoints(
            self.model, robot, tuple(self.joint_names[i] for i in self._real),
            config.locked_joints)
        self._motors = np.array(
            [self.model.actuator(f'motor/{n}').id for n in self.actuated_joint_names], dtype=int)
        self._find_limits()

    def _find_limits(self) -> None:
        joints = [self._description.joints[name] for name in self.actuated_joint_names]
        self._lower = np.array([joint.lower for joint in joints])
        self._upper = np.array([joint.upper for joint in joints])
        names = (*self.actuated_joint_names, *self.virtual_joint_names)
        self.velocity_limits = np.array([self._description.joints[n].velocity for n in names])

    def _name_links(self, order: Iterable[str] | None) -> None:
        links = self._description.links
        self._bodies = {
            name: body for name in links if (body := mujoco.mj_name2id(
                self.model, mujoco.mjtObj.mjOBJ_BODY, f'link/{name}')) >= 0}
        massive = tuple(name for name, link in links.items() if link.mass > 0.0)
        self.link_names = _reordered('link', massive, order)
        self.link_masses = np.array([links[name].mass for name in self.link_names])
        # The mass of a link between the virtual joints is in the vertebrae.
        middle = mujoco.mj_name2id(
            self.model, mujoco.mjtObj.mjOBJ_BODY, f'vertebra/{torso.SEGMENTS // 2}')
        self._link_bodies = np.array([self._bodies.get(n, middle) for n in self.link_names])

    def _set_gains(self) -> None:
        """Derive gains in the starting posture, without contact."""
        model, data, names = self.model, self.data, self.actuated_joint_names
        mujoco.mj_resetData(model, data)
        self._set_positions(self._posture('stand'))
        mujoco.mj_forward(model, data)
        self.gains = gains.joint_gains(
            model, data, self.config, self._description, names, self.friction.breakaway)
        model.actuator_biasprm[self._motors, 1] = -self.gains.stiffness
        model.actuator_biasprm[self._motors, 2] = -self.gains.damping
        rotors = self._errors.settle('rotor_inertia', names, self.options.drives.rotor_inertia * (
            gains.moved_inertias(model, data, names)[:, np.newaxis]))[:, 0]
        gains.set_rotor_inertias(model, data, names, self.gains, rotors)
        if self.config.torso is not None and self._mount is not None:
            self.tendon_torso = TendonTorso(
                model, data, self._mount, self.config.torso, self._nominal_upper_body())

    def _add_friction(self) -> None:
        joints = [self._description.joints[name] for name in self.actuated_joint_names]
        self.friction = JointFriction.draw(joints, self.options.drives, self._errors)
        self._friction_dofs = np.array(
            [self.model.joint(f'joint/{joint.name}').dofadr[0] for joint in joints], dtype=int)
        model, dofs = self.model, self._friction_dofs
        model.dof_damping[dofs] += self.friction.viscous
        model.dof_frictionloss[dofs] = self.friction.breakaway
        model.dof_solref[dofs], model.dof_solimp[dofs, :2] = (
            (2.0 * self.options.world.timestep, 1.0), STICKING)

    def _nominal_upper_body(self) -> gains.UpperBody | None:
        """Return the upper body of the URDF, for which the tendon servos are tuned."""
        if self._description is self._nominal:
            return None
        model = RobotSpec(
            self._nominal, self.config, self.options.world, self._has_tendons).make_model()
        data = mujoco.MjData(model)
        data.qpos[:] = self.data.qpos
        mujoco.mj_forward(model, data)
        return gains.UpperBody.of(model, data)

    def _make_readings(self) -> None:
        names = tuple(self.joint_names[i] for i in self._real)
        self._readings = Readings(
            self.model, self.data, self.config, names, self.options, self._errors)
        self.sensor_names, self.imu_names = (
            tuple(self.config.wrench_sensors), tuple(self.config.imus))
        self._base_slots = sensor_slots(self.model, (
            f'base/{k}' for k in ('framepos', 'framequat', 'velocimeter', 'gyro')))
        at = {name: i for i, name in enumerate(names)}
        self._motor_offsets = self._readings.encoder_offsets[
            [at[name] for name in self.actuated_joint_names]]

    def _make_buffers(self) -> None:
        drives = self.options.drives
        steps = steps_of(drives.command_delay, self.dt, 'command_delay')
        self._command_delay = Delay(steps, self.model.nu)
        motors = len(self.actuated_joint_names)
        efforts = [self._description.joints[n].effort for n in self.actuated_joint_names]
        self._drives = Drives(
            drives, self.gains, offsets=self._motor_offsets, effort_limits=np.array(efforts),
            velocity_limits=self.velocity_limits[:motors], tendons=self.tendon_count,
            dt=self.dt, seed=self.options.seed)
        self._control = np.zeros(self.model.nu)
        n, k, m, t = (len(self.joint_names), len(self.sensor_names), len(self.imu_names),
                      self.tendon_count)
        self.observation = Observation(
            time=0.0, joint_positions=np.zeros(n), joint_velocities=np.zeros(n),
            joint_efforts=np.zeros(n), wrenches=np.zeros((k, 6)),
            imu_quaternions=np.zeros((m, 4)), angular_velocities=np.zeros((m, 3)),
            linear_accelerations=np.zeros((m, 3)), tendon_lengths=np.zeros(t),
            tendon_tensions=np.zeros(t))

    def _posture(self, posture: str | Mapping[str, float]) -> Array:
        if isinstance(posture, str):
            if posture not in self.config.postures and posture != 'stand':
                raise UnknownNameError('posture', posture, self.config.postures, self.config.name)
            # Lists of all joints also name those that follow others, or are locked.
            dependent = {*self._description.mimics, *self.config.locked_joints}
            posture = {name: value for name, value in self.config.postures.get(
                posture, {}).items() if name not in dependent}
        positions = np.zeros(len(self.joint_names))
        for name, value in posture.items():
            if name not in self.joint_names:
                raise UnknownNameError('joint', name, self.joint_names, self.config.name)
            positions[self.joint_names.index(name)] = value
            self._require_within_limits(name, value)
        return positions

    def _require_within_limits(self, name: str, value: float) -> None:
        joint = self._description.joints[name]
        if not joint.lower - 1e-6 <= value <= joint.upper + 1e-6:
            raise ConfigurationError(
                f"posture of {self.config.name}: joint '{name}' cannot be at {value:g}; valid: "
                f'{joint.lower:g} to {joint.upper:g}')

    def _set_positions(self, positions: Array) -> None:
        """Write joint positions (n,) to MuJoCo's ``qpos``."""
        self._joints.write(self.data.qpos, positions[self._real])
        if self.tendon_torso is not None:
            self.tendon_torso.place(positions[self._virtual])
        for name in stiff_torso_joints(self.config, self._has_tendons):
            self.model.equality(f'hold/{name}').data[0] = positions[self.joint_names.index(name)]

    def _place(self, positions: Array, height: float, place: Place) -> None:
        self._start = positions
        self._set_positions(positions)
        put_on_soles(self.model, self.data, self.config.feet, height, place,
                     self._R_world_floor, self._floor_point)
        self._start_height = float(self.data.site('base').xpos[2])
        self.hoist.put_down(self._start_height)

    def _accept(self, command: Command) -> None:
        held = self._held
        for name in ('position', 'velocity', 'effort', 'tendon_lengths'):
            given, kept = np.asarray(getattr(command, name)), getattr(held, name)
            if given.shape != kept.shape:
                raise InputError(
                    f'command: {name} must have shape {kept.shape}, not {given.shape}')
            if not math.isfinite(given.sum()):
                raise InputError(f'command: {name} is not finite: {given}')
        np.clip(command.position, self._lower, self._upper, out=held.position)
        held.velocity[:], held.effort[:] = command.velocity, command.effort
        held.tendon_lengths[:] = command.tendon_lengths

    def _drive(self) -> None:
        control = self._control
        control[self._motors] = self._drives.controls(self._held)
        if self.tendon_torso is not None:
            self.tendon_torso.drive(control, self._drives.tendon_lengths(self._held))
        self.data.ctrl[:] = self._command_delay.push(control)

    def _advance(self, start: Array) -> None:
        """
        Make the physics steps of one observation, with controls interpolated from `start`.

        Setpoints that change in one step per observation would excite the stiff drives at the
        sampling rate, so that all samples have the same phase: the measured weight of a moving
        robot would be off by several percent.
        """
        data, end = self.data, self.data.ctrl.copy()
        for step in range(1, self._substeps + 1):
            data.ctrl[:] = start + (step / self._substeps) * (end - start)
            self._pushes.apply()
            self.grips.apply()
            self._loads.step()
            self.hoist.step(self.options.world.timestep)
            self._before[:] = data.qvel
            if self.friction.depends_on_speed:
                self.model.dof_frictionloss[self._friction_dofs] = self.friction.dry(
                    data.qvel[self._friction_dofs])
            mujoco.mj_step(self.model, data)
        self._update_acceleration_sensors()

    def _update_acceleration_sensors(self) -> None:
        """
        Recompute force and acceleration sensors with the acceleration of the last physics step.

        The integrator applies the drives' damping at the end of the step. MuJoCo's sensors use
        the acceleration without it, in which even standing feet vibrate: the measured force of a
        swaying robot was off by 1 %.
        """
        model, data, after = self.model, self.data, self.data.qvel.copy()
        data.qacc[:] = (after - self._before) / self.options.world.timestep
        data.qvel[:] = self._before
        mujoco.mj_rnePostConstraint(model, data)
        mujoco.mj_sensorAcc(model, data)
        data.qvel[:] = after

    def _observe(self, time: float) -> None:
        observation, data = self.observation, self.data
        observation.time = time
        self._readings.read(observation, self._real)
        if self.tendon_torso is not None:
            self._observe_torso(self.tendon_torso)
            observation.tendon_lengths[:] = data.ten_length
            self.tendon_torso.tensions(out=observation.tendon_tensions)

    def _observe_torso(self, backbone: TendonTorso) -> None:
        """Write the backbone's shape as the positions of the URDF's six virtual joints."""
        observation, before = self.observation, self._virtual_positions
        positions = backbone.virtual_positions()
        observation.joint_positions[self._virtual] = positions
        observation.joint_velocities[self._virtual] = (
            0.0 if before is None else (positions - before) / self.dt)
        self._virtual_positions = positions

    def _ground_force(self) -> float:
        """Return the vertical force of the ground, N."""
        return float(self._contacts.wrenches_at_origin()[:, 2].sum())

    def _com_velocity(self) -> Array:
        mujoco.mj_subtreeVel(self.model, self.data)
        return self.data.subtree_linvel[0].copy()


def _reordered(kind: str, names: tuple[str, ...], order: Iterable[str] | None) -> tuple[str, ...]:
    """Return `order`, which must have the same names as `names`; None: `names`."""
    if order is None:
        return names
    order = tuple(order)
    for name in order:
        if name not in names:
            raise UnknownNameError(kind, name, names, f'{kind}_names of the simulated robot')
    missing = set(names) - set(order)
    if missing:
        raise ConfigurationError(
            f'{kind}_names of the simulated robot lack {", ".join(sorted(missing))}')
    return order
