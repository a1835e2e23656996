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
Walking, from footsteps to joint positions over time, for robots with two legs of six joints.

Slowly, as in the paper: by equation (9) the centre of mass is the zero-moment point, so it
follows the S-shaped reference itself (``'static'``). Faster: the centre of mass follows from the
reference by preview control of the cart-table (``'preview'``, :class:`PreviewController`); the
effect of the limbs is then computed from the motion of all links and compensated by a second
preview, twice.

The trunk stays upright at a constant height. At each sample the base is placed such that the
centre of mass of all links is the required one, with the legs in closed form. Samples are joined
by quintic polynomials: continuous up to the acceleration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
import math
from typing import NamedTuple

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError, InputError
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.geometry.wrench import cop_on_sole
from biped_com_ros.core.legs.footsteps import Footstep, forward_steps, Phase, StepPlan, StepTiming
from biped_com_ros.core.legs.keyframes import minimum_jerk
from biped_com_ros.core.legs.limb import SidewaysLimitError
from biped_com_ros.core.legs.stance_ik import pose_of, StanceIk
from biped_com_ros.core.model.robot import RobotModel, velocity_limits
import numpy as np
import pinocchio as pin


class PreviewController:
    """
    Moves a cart on a table so that its zero-moment point follows a reference.

    A point mass at a constant height h over the plane has its zero-moment point at
    ``p = c - h/g c''``. The jerk of c is chosen by optimal control of that system with an
    integrator on the error, from a reference that is known some time ahead (Kajita et al. 2003,
    after Katayama et al. 1985). It is constant over each interval, so that the acceleration is
    continuous.

    Parameters
    ----------
    height
        Of the centre of mass over the ground, m.
    dt
        Interval, s.
    horizon
        Time for which the reference is known ahead, s; several times the time constant
        ``sqrt(h/g)`` of the pendulum is needed.
    jerk_weight
        R of the quadratic costs, whose Q is one.

    Attributes
    ----------
    A, B, C
        State (position, velocity, acceleration) from one interval to the next, (3, 3) and (3,),
        and the zero-moment point from it, (3,).
    preview_gains
        On the reference 1, 2, ... intervals ahead, (N,).
    state_gains, integral_gain
        On the state, (3,), and on the sum of errors.

    Raises
    ------
    ConfigurationError
        If a parameter is not positive.

    """

    def __init__(self, height: float, dt: float = 0.005, horizon: float = 1.6,
                 jerk_weight: float = 1e-6) -> None:
        for name, value in (('height', height), ('dt', dt), ('horizon', horizon),
                            ('jerk_weight', jerk_weight)):
            if not 0.0 < value < np.inf:
                raise ConfigurationError(f'{name} of the preview must be positive, not {value}')
        self.height, self.dt = height, dt
        self.A = np.array(((1.0, dt, 0.5 * dt * dt), (0.0, 1.0, dt), (0.0, 0.0, 1.0)))
        self.B = np.array((dt ** 3 / 6.0, 0.5 * dt * dt, dt))
        self.C = np.array((1.0, 0.0, -height / GRAVITY))
        self._solve(jerk_weight, max(round(horizon / dt), 1))

    @property
    def horizon_samples(self) -> int:
        """Return the number of future samples of the reference that are used."""
        return len(self.preview_gains)

    def track(self, reference: Array, start: Array) -> Array:
        """
        Return the motion of the cart for a whole reference.

        Parameters
        ----------
        reference
            Zero-moment point every `dt`, shape (n, axes), m; constant after its end.
        start
            State at the first sample: position, velocity and acceleration, shape (3, axes).

        Returns
        -------
        numpy.ndarray
            Shape (n, 3, axes): states at the samples.

        """
        ahead = np.concatenate((reference, np.repeat(reference[-1:], self.horizon_samples, 0)))
        states = np.empty((len(reference), *start.shape))
        state, total = start.astype(float), np.zeros(start.shape[1])
        for k in range(len(reference)):
            states[k] = state
            total += self.C @ state - reference[k]
            jerk = self.jerk(state, total, ahead[k + 1:k + 1 + self.horizon_samples])
            state = self.A @ state + np.outer(self.B, jerk)
        return states

    def jerk(self, state: Array, error_sum: Array, reference_ahead: Array) -> Array:
        """
        Return the jerk until the next sample, m/s^3, shape (axes,).

        Parameters
        ----------
        state
            Shape (3, axes).
        error_sum
            Sum of the zero-moment point's errors until now, (axes,), m.
        reference_ahead
            Reference at the next samples, (N, axes), m.

        """
        return (self.preview_gains @ reference_ahead - self.state_gains @ state
                - self.integral_gain * error_sum)

    def _solve(self, jerk_weight: float, count: int) -> None:
        """Find all gains from the Riccati equation of the system with its integrator."""
        A, B = np.eye(4), np.empty((4, 1))
        A[0, 1:], A[1:, 1:] = self.C @ self.A, self.A
        B[0, 0], B[1:, 0] = self.C @ self.B, self.B
        costs = np.diag((1.0, 0.0, 0.0, 0.0))
        P = self._cost_to_go(A, B, costs, jerk_weight)
        denominator = jerk_weight + float((B.T @ P @ B)[0, 0])
        gains = (B.T @ P @ A)[0] / denominator
        self.integral_gain, self.state_gains = float(gains[0]), gains[1:]
        closed = A - B @ gains[np.newaxis]
        self.preview_gains = np.empty(count)
        weights = P[:, 0].copy()
        for i in range(count):
            self.preview_gains[i] = float(B[:, 0] @ weights) / denominator
            weights = closed.T @ weights

    @staticmethod
    def _cost_to_go(A: Array, B: Array, Q: Array, R: float) -> Array:
        """
        Return P of ``P = A'PA - A'PB (R + B'PB)^-1 B'PA + Q``.

        Raises
        ------
        ConfigurationError
            If there is none.

        """
        from scipy.linalg import solve_discrete_are  # slow to import, and not needed by all gaits
        try:
            P: Array = solve_discrete_are(A, B, Q, np.array([[R]]))
        except (np.linalg.LinAlgError, ValueError) as error:
            raise ConfigurationError(
                f'the Riccati equation of the preview has no solution with jerk weight {R:g} '
                f'({error}): check the height of the centre of mass, the sample time and the '
                'weights') from None
        return P


#: Offsets of the reference from the middle of a foot towards the other one, as shares of the
#: distance to the edge: less sway, less margin. The first with which the legs reach is taken: hips
#: that hardly turn inwards do not bring the base over the middle of a foot.
_INWARD = (0.1, 0.3, 0.5)

METHODS = ('static', 'preview')
"""Methods to find the centre of mass for a reference of the zero-moment point."""


@dataclass(frozen=True, kw_only=True)
class GaitOptions:
    """
    Settings of a gait.

    Attributes
    ----------
    timing
        Durations and lift of the steps.
    method
        One of :data:`METHODS`.
    crouch
        By how much the base is lowered while walking, as a share of the length of the leg; None:
        that of the robot's YAML.
    dt
        Between samples, s.
    compensations
        Number of compensations of the effect of the limbs (``'preview'`` only).

    """

    timing: StepTiming = field(default_factory=StepTiming)
    method: str = 'static'
    crouch: float | None = None
    dt: float = 0.01
    compensations: int = 2

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigurationError(
                f"a gait cannot be made by '{self.method}'; valid: {', '.join(METHODS)}")
        for name, low, high in (('crouch', 0.0, 0.5), ('dt', 1e-3, 0.05)):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise ConfigurationError(
                    f'{name} of a gait must be between {low} and {high}, not {value}')


QUICK = GaitOptions(
    timing=StepTiming(single_support=0.6, double_support=0.3, start=1.0, stop=1.0, rest=1.0),
    method='preview')
"""Steps of 0.9 s by preview control."""


class GaitSample(NamedTuple):
    """
    State of a gait at a time.

    Attributes
    ----------
    positions, velocities
        Of all joints, in the order of ``model.joint_names``, shape (n,).
    base
        Pose of the base in the frame of the gait: on the ground below the base at its start.
    zmp_reference
        Shape (2,), m.
    shares
        How the feet share the weight, (2,).
    in_contact
        Which soles are on the ground.

    """

    positions: Array
    velocities: Array
    base: Pose
    zmp_reference: Array
    shares: Array
    in_contact: tuple[bool, bool]


class Gait:
    """
    A walk as joint positions over time.

    Parameters
    ----------
    stance
        Inverse kinematics of the robot.
    steps
        Landings of the feet, in order.
    options
        Settings.

    Attributes
    ----------
    plan
        Phases, footprints and the reference of the zero-moment point.
    times
        Of the samples, shape (N,), s.
    positions, velocities, accelerations
        Of all joints at the samples, shape (N, n).
    base
        x, y, z (m) and yaw (rad) of the base at the samples, (N, 4).
    zmp_reference, com, zmp
        At the samples: reference, centre of mass on the ground, and zero-moment point by the
        motion of all links, shape (N, 2), m.
    inward
        Where the weight is on one foot: from its middle towards the other foot, as a share of the
        distance to the edge.

    Raises
    ------
    InputError
        If the legs do not reach, or exceed limits of their positions or velocities.

    """

    def __init__(self, stance: StanceIk, steps: Sequence[Footstep],
                 options: GaitOptions = GaitOptions()) -> None:
        self.model, self.options, self._stance = stance.model, options, stance
        crouch = self.model.config.walking.crouch if options.crouch is None else options.crouch
        self._lowered = crouch * stance.leg_length
        for self.inward in _INWARD:
            stance.restart()
            try:
                self._make(steps, options)
                return
            except SidewaysLimitError:
                if self.inward == _INWARD[-1]:
                    raise

    def _make(self, steps: Sequence[Footstep], options: GaitOptions) -> None:
        """Plan and sample with the present offset of the reference."""
        stance = self._stance
        self.plan = StepPlan(stance.footprints, steps, _targets(stance.model, self.inward),
                             stance.com[:2].tolist(), options.timing, stance.rest.tolist())
        count = math.ceil(self.plan.duration / options.dt) + 1
        self.times = np.linspace(0.0, self.plan.duration, count)
        self._dt = float(self.times[1])
        self.zmp_reference = np.array([self.plan.zmp(t) for t in self.times.tolist()])
        self.com = self.zmp_reference.copy()
        if options.method == 'preview':
            self._preview()
        else:
            self._sample()

    @property
    def duration(self) -> float:
        """Time from standing to standing, s."""
        return self.plan.duration

    @property
    def swings(self) -> list[Phase]:
        """Return the phases in which a foot is in the air."""
        return [phase for phase in self.plan.phases if phase.step is not None]

    @property
    def com_offset(self) -> Array:
        """Measured minus modelled centre of mass, in base axes, (2,), m."""
        return self._stance.com_offset[:2]

    @property
    def speed_reserve(self) -> float:
        """Factor by which the gait could be faster, as far as the joints are fast enough."""
        fastest = np.abs(self.velocities).max(axis=0)
        return 1.0 / max(float((fastest / velocity_limits(self.model)).max()), 1e-9)

    def at(self, time: float) -> GaitSample:
        """Return the state at a time, s; at rest before the start and after the end."""
        stands = not 0.0 <= time <= self.duration
        time = min(max(time, 0.0), self.duration)
        values, rates, _ = self.motion(time)
        if stands:
            rates = np.zeros_like(rates)
        return GaitSample(values[:-4], rates[:-4], pose_of(values[-4:]), self.plan.zmp(time),
                          self.plan.shares(time), self.plan.in_contact(time))

    def motion(self, time: float) -> Array:
        """
        Return positions of all joints, then x, y, z and yaw of the base, and derivatives.

        Parameters
        ----------
        time
            Between 0 and :attr:`duration`, s.

        Returns
        -------
        numpy.ndarray
            Shape (3, n + 4): values, rates and second derivatives.

        """
        k = min(int(time / self._dt), len(self.times) - 2)
        return _quintic(self._knots[k], self._knots[k + 1], self._dt,
                        (time - float(self.times[k])) / self._dt)

    def height(self, time: float) -> float:
        """Return the height of the base, m: lower between the first and the last phase."""
        stance = self._stance
        walking = stance.standing_height - self._lowered
        return (stance.height + self.plan.start_progress(time) * (walking - stance.height)
                + self.plan.stop_progress(time) * self._lowered)

    def zmp_of(self, knots: Array) -> Array:
        """Return :func:`zmp_of_motion` with the measured centre of mass."""
        return zmp_of_motion(self.model, knots) + self._offsets(knots[:, 0, -1])

    def _preview(self) -> None:
        raised = self._stance.standing_height - self._stance.height
        height = float(self._stance.com[2]) + raised - self._lowered
        controller = PreviewController(height, self._dt)
        start = np.zeros((3, 2))
        start[0] = self.zmp_reference[0]
        self._settle(controller.track(self.zmp_reference, start)[:, 0])
        self._sample()
        for _ in range(self.options.compensations):
            error = self.zmp_reference - self.zmp
            self._settle(self.com + controller.track(error, np.zeros((3, 2)))[:, 0])
            self._sample()

    def _settle(self, com: Array) -> None:
        """Let a motion of the centre of mass begin and end exactly at rest."""
        resting = 0.5 * self.options.timing.rest
        if resting:
            shares = np.array([[minimum_jerk(min(t, self.duration - t) / resting)]
                               for t in self.times.tolist()])
            com = shares * com + (1.0 - shares) * self.zmp_reference
        self.com = com

    def _sample(self) -> None:
        """Find positions, base and derivatives for the motion of the centre of mass."""
        found = [self._stance.solve(com, self.height(t), self.plan.soles(t))
                 for com, t in zip(self.com, self.times.tolist())]
        everything = np.array([np.concatenate(pair) for pair in found])
        rates, changes = _derivatives(everything, self._dt)
        self._knots = np.stack((everything, rates, changes), axis=1)
        self.positions, self.base = everything[:, :-4], everything[:, -4:]
        self.velocities, self.accelerations = rates[:, :-4], changes[:, :-4]
        self._check_speed()
        self.zmp = self.zmp_of(self._knots)

    def _offsets(self, yaw: Array) -> Array:
        """Return the offset of the centre of mass in the world, (N, 2), m."""
        x, y, _ = self._stance.com_offset.tolist()
        c, s = np.cos(yaw), np.sin(yaw)
        return np.column_stack((c * x - s * y, s * x + c * y))

    def _check_speed(self) -> None:
        fastest = np.abs(self.velocities).max(axis=0)
        for name, speed, limit in zip(
                self.model.joint_names, fastest, velocity_limits(self.model)):
            if speed > limit:
                raise InputError(
                    f"this gait needs {speed:.2f} rad/s of '{name}' (limit {limit:.2f} rad/s); "
                    'take more time or step shorter')


def single_step(model: RobotModel, length: float, first: int = 1,
                options: GaitOptions = GaitOptions()) -> Gait:
    """
    Return the paper's single step: a shift of weight, a step, and the shift back.

    Parameters
    ----------
    model
        With two legs of six joints and a posture ``stand``.
    length
        Of the step, m.
    first
        Index of the foot that steps, in ``model.soles.names``.
    options
        Settings.

    """
    return walk(model, 1, length, first, options)


def walk(model: RobotModel, count: int, length: float, first: int = 1,
         options: GaitOptions = GaitOptions()) -> Gait:
    """Return `count` steps straight ahead from posture ``stand``; see :func:`single_step`."""
    stance = StanceIk(model, model.posture('stand'))
    return Gait(stance, forward_steps(stance.footprints, count, length, first), options)


def zmp_of_motion(model: RobotModel, knots: Array) -> Array:
    """
    Return the zero-moment point of a motion, on the ground, (N, 2), m.

    By inverse dynamics of the floating base.

    Parameters
    ----------
    model
        The robot.
    knots
        Shape (N, 3, n + 4): joint positions, then x, y, z and yaw of the base, with their first
        and second derivatives.

    """
    data, pin_model = pin.Data(model.pin_model), model.pin_model
    root = Pose.from_quaternion(*np.split(model.configuration(knots[0, 0, :-4])[:7], [3])[::-1])
    poses = [pose_of(row) @ root for row in knots[:, 0, -4:]]
    v, a = np.zeros((2, len(knots), pin_model.nv))
    v[:, 6:], a[:, 6:] = (knots[:, i, :-4].dot(model.coupling.T) for i in (1, 2))
    v[:, :6], a[:, :6] = _root_motions(poses, knots[:, :, -4:])
    zmp = np.empty((len(knots), 2))
    for i, (pose, values) in enumerate(zip(poses, knots[:, 0, :-4])):
        q = model.configuration(values)
        q[:3], q[3:7] = pose.position, pose.quaternion
        wrench = data.liMi[1].act(pin.Force(pin.rnea(pin_model, data, q, v[i], a[i])[:6]))
        zmp[i] = cop_on_sole(wrench.vector)
    return zmp


def _targets(model: RobotModel, inward: float) -> list[tuple[float, float]]:
    """Return where the zero-moment point rests in each sole in single support, m."""
    y = [row[1] for row in model.state(model.posture('stand')).placements_in_base(
        model.soles)[:, 3].tolist()]
    targets = []
    for i, foot in enumerate(model.config.feet.values()):
        corners = np.array(foot.polygon)
        low, high = corners.min(axis=0), corners.max(axis=0)
        middle = 0.5 * (low + high)
        inner = high[1] if y[1 - i] > y[i] else low[1]
        targets.append((float(middle[0]), float(middle[1] + inward * (inner - middle[1]))))
    return targets


def _derivatives(values: Array, dt: float) -> tuple[Array, Array]:
    """Return first and second derivatives of samples (N, n) that begin and end at rest."""
    padded = np.concatenate((values[:1], values[:1], values, values[-1:], values[-1:]))
    one, two = padded[3:-1] - padded[1:-3], padded[4:] - padded[:-4]
    rates = (8.0 * one - two) / (12.0 * dt)
    near, far = padded[3:-1] + padded[1:-3], padded[4:] + padded[:-4]
    changes = (16.0 * near - far - 30.0 * values) / (12.0 * dt * dt)
    return rates, changes


def _quintic(start: Array, end: Array, dt: float, s: float) -> Array:
    """Interpolate between knots (3, n) of value, rate and second derivative, at share s."""
    p0, v0, a0 = start[0], dt * start[1], dt * dt * start[2]
    p1, v1, a1 = end[0], dt * end[1], dt * dt * end[2]
    gap = p1 - p0 - v0 - 0.5 * a0
    slope, bend = v1 - v0 - a0, a1 - a0
    c3 = 10.0 * gap - 4.0 * slope + 0.5 * bend
    c4 = -15.0 * gap + 7.0 * slope - bend
    c5 = 6.0 * gap - 3.0 * slope + 0.5 * bend
    joined: Array = np.empty_like(start)
    joined[0] = p0 + s * (v0 + s * (0.5 * a0 + s * (c3 + s * (c4 + s * c5))))
    joined[1] = (v0 + s * (a0 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))) / dt
    joined[2] = (a0 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))) / (dt * dt)
    return joined


def _root_motions(poses: Sequence[Pose], base: Array) -> tuple[Array, Array]:
    """
    Return the spatial velocity and acceleration (N, 6) of the root, in its own axes.

    Parameters
    ----------
    poses
        Of the root in the world, N of them.
    base
        x, y, z and yaw of the base and their first and second derivatives, (N, 3, 4).

    """
    R_root_world = np.array([pose.rotation.T for pose in poses])
    lever = np.array([pose.position for pose in poses]) - base[:, 0, :3]
    spin, turn = np.zeros((2, len(poses), 3))
    spin[:, 2], turn[:, 2] = base[:, 1, 3], base[:, 2, 3]
    centripetal = np.cross(spin, lever)
    linear = base[:, 1, :3] + centripetal
    # Spatial acceleration is the derivative along the moving axes.
    acceleration = (base[:, 2, :3] + np.cross(turn, lever) + np.cross(spin, centripetal)
                    - np.cross(spin, linear))
    v = np.concatenate([np.einsum('nij,nj->ni', R_root_world, x) for x in (linear, spin)], axis=1)
    a = np.concatenate([np.einsum('nij,nj->ni', R_root_world, x) for x in (acceleration, turn)],
                       axis=1)
    return v, a
