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
The force of the environment on hands without sensors, from joint torques and an IMU.

A hand touches at the origin of its frame, where it transmits a force f and no moment. The rows x
of :mod:`biped_com_ros.core.wrench.dynamics` for the root and the joints above the hands, minus
what measured contacts (feet, other hands) contribute, are

    x = sum over hands of J^T f + e

The covariance of e contains errors of the masses and centres of mass of all links, gain, friction
and offset of joint torques, and errors of the measured contacts. With the prior f ~ N(0, P) and
S = J^T P J + cov(e), the estimate is P J S^-1 x, and its covariance P - P J S^-1 J^T P. P grows
with the force of the instant before: what carries much may carry much.

While no hand touches, f is known to be zero, and gains, friction and offsets are learnt
(:mod:`biped_com_ros.core.wrench.drive_errors`). A contact begins where the force exceeds three
deviations beside them, and lasts while it exceeds 1.5, beyond which one is likelier than none.

That is done twice, with the rows of the arms alone and with all. By how much x^T S^-1 x grows
shows whether the rows that contain measured contacts agree with the arms: something that pushes
the robot elsewhere, or carries it, is in these rows only. They count less the more they disagree.

A force through all axes of an arm, such as one along a stretched arm, needs no torque. Only the
root's rows show it; without them the covariance there is that of the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from biped_com_ros.core.constants import LONGEST_STEP_NS, NEVER_NS
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array, BoolArray, IndexArray
from biped_com_ros.core.geometry.wrench import set_twist_adjoint
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.settings import settings
from biped_com_ros.core.wrench.contact import ContactThresholds
from biped_com_ros.core.wrench.drive_errors import drive_errors, RowErrors, RowErrorSettings
from biped_com_ros.core.wrench.dynamics import EstimateErrors, ExternalForces
import eigenpy  # comes with Pinocchio; takes a part of NumPy's time
import numpy as np

#: Period of updates of the covariance of the rows, s: it follows posture and acceleration.
_MODEL_PERIOD = 0.05
#: Mean square of what measured contacts add, in deviations, from which on it counts less.
_DISAGREEMENT = 2.0
#: Standard deviations that the force of a hand that begins to touch exceeds: errors of masses and
#: friction last as long as the posture, and the more certain contact is, the rarer is a false one.
#: Then those that it exceeds as long as it touches: contacts last, too.
_BEGINS, _LASTS = 3.0, 1.5
#: Standard deviations below which it is certain enough that a hand does not touch to learn from.
_IDLE = 2.0
#: How much more a hand may carry than at the instant before.
_MORE = 2.0
#: Time after which errors of links are others, by another posture, s.
_POSTURE_TIME = 0.5
#: Time after which the low-pass has settled, in its time constants.
_SETTLING = 3.0
#: Standard deviation of friction and offset of a joint's torque, as a share of its effort limit,
#: before they are learnt.
_EFFORT_DEVIATION = 0.03
#: Time constant of the variance of noise, s.
_NOISE_TIME = 0.2


@dataclass(frozen=True, kw_only=True)
class VirtualHandSettings(RowErrorSettings):
    """How forces on hands are estimated from joint torques."""

    #: Cut-off frequency of the low-pass of forces (gain of the momentum observer over 2 pi), Hz.
    cutoff: float = 20.0
    #: Prior standard deviation of a hand's force along each axis, as a share of body weight, of a
    #: hand that carries less.
    largest_force: float = 0.3
    thresholds: ContactThresholds = settings(
        ContactThresholds, engage=0.01, release=0.005, engage_dwell=0.02, release_dwell=0.01)


class VirtualHandForces:
    """
    Estimates the force on each virtual hand from successive instants.

    Parameters
    ----------
    model
        The robot.
    settings
        How.

    Attributes
    ----------
    names
        Of the hands, in the order of the configuration.
    others
        Names of the contacts that sensors measure: feet, if all of them are, and hands. Their
        wrenches are arguments of :meth:`update`.
    uses_feet
        Whether the feet are among them.
    estimates
        Force of the environment on each hand at the origin of its frame and along its axes,
        (H, 3), N.
    covariance
        Of all of them, hand by hand, (3 H, 3 H).
    touching
        Which hands touch.
    forces
        :attr:`estimates` of the hands that touch, exactly zero for the others, (H, 3), N.
    rows
        Transposed Jacobian: what the hands' velocities along their axes are by those of the rows
        of :attr:`external`, (3 H, m).
    external
        The measured generalized forces.
    drives
        Errors of the torques of the arms.

    Raises
    ------
    ConfigurationError
        If the robot has no IMU, no virtual hand, or a hand whose arm has no motor.

    """

    def __init__(self, model: RobotModel, settings: VirtualHandSettings) -> None:
        config = model.config
        self._model, self._settings = model, settings
        self._weight = model.mass * settings.gravity
        self.names = config.virtual_hands
        if not self.names:
            raise ConfigurationError(
                f"no hand of '{config.name}' is virtual; give hands.<name>.source: virtual")
        self._frames = model.frames(config.hands[name].frame for name in self.names)
        self.external = ExternalForces(model, settings.cutoff, self._frames)
        self._moves_hands = self.external.moves(self._frames)
        self._check_arms(np.any(self._moves_hands, axis=1))
        self._arrange_rows()
        self._row_errors = RowErrors(model, self.external, settings)
        self.drives = drive_errors(
            model, self.external, (_EFFORT_DEVIATION,) * 2, settings.cutoff)
        count = len(self.names)
        self._least_prior = (settings.largest_force * self._weight) ** 2
        self._prior = np.full(3 * count, self._least_prior)
        self._errors = EstimateErrors(len(self.external.rows), 3 * count, _NOISE_TIME)
        self._twists_to_hands = np.zeros((count, 6, 6))
        self._twists_to_others = np.zeros((len(self.others), 6, 6))
        self.estimates, self.forces = np.zeros((count, 3)), np.zeros((count, 3))
        self.covariance = np.zeros((3 * count, 3 * count))
        self.rows = np.zeros((3 * count, len(self.external.rows)))
        #: Beside the columns, the covariance of rows and forces.
        self._right = np.zeros((len(self._all_rows), 3 + 3 * count))
        self._detectors = [settings.thresholds.trigger(self._weight) for _ in self.names]
        self._settling_time = _SETTLING / (2.0 * math.pi * settings.cutoff)
        self._last_ns = NEVER_NS
        self.reset()

    def reset(self) -> None:
        """Begin anew after a gap."""
        self.external.reset()
        self.drives.reset()
        self._has_others, self._model_age, self._age = False, math.inf, 0.0
        self._errors.begins = True
        self.touching = [False] * len(self.names)
        self.forces[:], self._prior[:] = 0.0, self._least_prior
        for detector in self._detectors:
            detector.reset()

    def update(self, stamp_ns: int, state: RobotState, efforts: Array, angular_velocity: Array,
               acceleration: Array, others: Sequence[Sequence[float]] | None = None) -> bool:
        """
        Estimate the forces of one instant.

        Parameters
        ----------
        stamp_ns
            Its time, ns.
        state
            The robot in its base, with joint velocities.
        efforts
            Torques of the motors, (n,), N m or N, in the order of ``model.joint_names``.
        angular_velocity, acceleration
            Of the IMU in its frame, (3,), rad/s and proper m/s^2.
        others
            Wrenches of the environment on :attr:`others` in the frames of sole or hand, (B, 6),
            N and N m; None if they are not all measured now.

        Returns
        -------
        bool
            Whether there is an estimate: not at the first instants after a gap, until the
            low-pass has settled, nor without all efforts.

        """
        step_ns, self._last_ns = stamp_ns - self._last_ns, stamp_ns
        is_measured = math.isfinite(float(efforts.sum()))
        if not (0 < step_ns < LONGEST_STEP_NS and is_measured):
            self.reset()
        if not is_measured:
            return False
        dt, external = 1e-9 * step_ns, self.external
        external.place(state.q)
        has_others, known = others is not None and bool(self.others), None
        if others is not None and has_others:
            known = self._of_others(state, others)
        if not external.update(dt, state, efforts, angular_velocity, acceleration, known):
            return False
        self.drives.update(dt, state.v[external.rows[6:]], external.efforts)
        self._choose_rows(has_others)
        updates = self._update_model(dt, state)
        if not math.isfinite(float(external.value.sum() + self._row_covariance.trace())):
            self.reset()  # a motion beyond what numbers hold
            return False
        self._place_hands(state)
        value = external.value.copy()
        value[6:] += self.drives.torques
        self._errors.set_columns(external, value)
        lag, difference = self._solve()
        self._errors.add_to(self.covariance, lag, difference, dt, np.zeros(len(lag)),
                            1e-6 * self._prior)
        self._errors.begins = False
        self._age += dt
        if self._age < self._settling_time:
            return False
        self._detect(stamp_ns)
        if updates:
            self._learn_drives()
        return True

    @property
    def deviations(self) -> Array:
        """Return the standard deviations of the forces, (H, 3), N."""
        return np.sqrt(self.covariance.diagonal()).reshape(-1, 3)

    def on_root(self) -> tuple[Array, Array]:
        """
        Return the wrench of the hands that touch at the origin of the root and along its axes.

        Returns
        -------
        tuple of numpy.ndarray
            The wrench and its variances, (6,) each, N and N m.

        """
        to_root = self.rows[:, :6] * np.repeat(self.touching, 3)[:, np.newaxis]
        return (self.forces.reshape(-1).dot(to_root),
                (self.covariance.dot(to_root) * to_root).sum(axis=0))

    # -- set-up

    def _check_arms(self, moves_hands: BoolArray) -> None:
        for name, moved in zip(self.names, moves_hands):
            if not (self.external.measured & moved)[6:].any():
                raise ConfigurationError(
                    f"no joint above hand '{name}' of '{self._model.config.name}' has a motor, so "
                    'its torques give no force on it: use wrench_sensors')

    def _arrange_rows(self) -> None:
        """Find the rows that only virtual hands load, and those that measured contacts load."""
        model, config = self._model, self._model.config
        self.uses_feet = not config.feet_with_force_z and all(
            foot.used_sensors for foot in config.feet.values())
        hands = {name: hand for name, hand in config.hands.items()
                 if hand.has_wrench and not hand.is_virtual}
        frames = model.frames(hand.frame for hand in hands.values())
        self._other_frames = model.soles + frames if self.uses_feet else frames
        self.others = (*config.feet, *hands) if self.uses_feet else tuple(hands)
        self._moves_others = self.external.moves(self._other_frames)
        is_shared = self._moves_others.any(axis=(0, 1))
        is_root = np.arange(len(self.external.rows)) < 6
        measured = self.external.measured
        own = np.flatnonzero(measured & ~is_shared & ~is_root)
        # Without sensors in the feet nothing tells what they carry of the root's force.
        shared = np.flatnonzero(measured & is_shared & (~is_root | self.uses_feet))
        self._own_rows: IndexArray = own
        self._all_rows: IndexArray = np.concatenate((own, shared))
        self._decompositions = eigenpy.LLT(len(own)), eigenpy.LLT(len(self._all_rows))

    # -- every instant

    def _of_others(self, state: RobotState, wrenches: Sequence[Sequence[float]]) -> Array:
        """Return what measured contacts contribute to the rows, (m,)."""
        twists = set_twist_adjoint(
            self._twists_to_others, state.placements_in_base(self._other_frames))
        at_base = np.matmul(np.asarray(wrenches)[:, np.newaxis], twists)[:, 0]
        jacobians = self.external.jacobians(self._moves_others)
        known: Array = np.matmul(at_base[:, np.newaxis], jacobians).sum(axis=(0, 1))
        return known

    def _choose_rows(self, has_others: bool) -> None:
        """Use the rows of measured contacts while these are measured."""
        external = self.external
        if has_others and not self._has_others:
            shared = self._all_rows[len(self._own_rows):]
            external.value[shared] = external.delayed[shared] = external.raw[shared]
        if has_others != self._has_others:
            self._errors.begins, self._model_age = True, math.inf
        self._has_others = has_others
        self._used = self._all_rows if has_others else self._own_rows

    def _update_model(self, dt: float, state: RobotState) -> bool:
        """Update the covariance of the rows without drives, at a low rate; return whether now."""
        self._model_age += dt
        if self._model_age < _MODEL_PERIOD:
            return False
        self._model_age = 0.0
        covariance, used = self._row_errors.covariance(state, _MODEL_PERIOD), self._used
        self._row_covariance = covariance[np.ix_(used, used)]
        return True

    def _learn_drives(self) -> None:
        """Learn from the arms of idle hands, as often as the covariance of their rows changes."""
        own, count = self._own_rows, len(self._own_rows)
        joints = own - 6
        value, late = self._errors.columns[own, 0], self._errors.columns[own, 1]
        information = np.zeros((len(self.external.names),) * 2)
        residual = np.zeros(len(information))
        if self._is_idle:
            # What a hand transmits unnoticed, and what changes within the low-pass.
            rows = self.rows[:, own]
            covariance = self._row_covariance[:count, :count] + rows.T.dot(
                self.covariance).dot(rows)
            covariance.flat[::count + 1] += late * late
            inverse = np.linalg.inv(covariance) * (_MODEL_PERIOD / _POSTURE_TIME)
            information[np.ix_(joints, joints)] = inverse
            residual[joints] = inverse.dot(value)
        self.drives.learn(information, residual, _MODEL_PERIOD)

    def _place_hands(self, state: RobotState) -> None:
        """Compute the Jacobian of the hands' velocities, transposed: (3 H, m)."""
        twists = set_twist_adjoint(self._twists_to_hands, state.placements_in_base(self._frames))
        jacobians = self.external.jacobians(self._moves_hands)
        self.rows = np.matmul(twists[:, :3], jacobians).reshape(-1, jacobians.shape[-1])

    def _solve(self) -> tuple[Array, Array]:
        """
        Find the forces and their covariance without delay and noise.

        Returns
        -------
        tuple of numpy.ndarray
            How much the low-pass delays the forces, and how much they change from instant to
            instant, (3 H,) each.

        """
        own = len(self._own_rows)
        rows, right = self.rows.take(self._used, axis=1), self._right[:len(self._used)]
        self._errors.columns.take(self._used, axis=0, out=right[:, :3], mode='clip')
        by_prior = np.multiply(rows.T, self._prior, out=right[:, 3:])
        covariance = by_prior.dot(rows)
        covariance += self._row_covariance
        used = self._used
        covariance.flat[::len(used) + 1] += np.where(used < 6, 0.0, self.drives.variance[used - 6])
        found, gained, square = self._condition(covariance[:own, :own], right[:own])
        # Errors beyond the stated ones show in the arms' own rows.
        scale = max(1.0, square / own)
        if len(right) > own:
            of_all, gained_of_all, square_of_all = self._condition(covariance, right)
            disagreement = max(square_of_all - square, 1e-9) / (len(right) - own)
            share = min(1.0, (_DISAGREEMENT / disagreement) ** 2)
            found += share * (of_all - found)
            gained += share * (gained_of_all - gained)
        forces, lag, difference = found.T
        self.estimates[:] = forces.reshape(-1, 3)
        np.multiply(gained, -scale, out=self.covariance)
        self.covariance.flat[::len(forces) + 1] += scale * self._prior
        carried = np.square(self.estimates).sum(axis=1)
        self._prior[:] = np.repeat(np.maximum(_MORE ** 2 * carried, self._least_prior), 3)
        return lag, difference

    def _condition(self, covariance: Array, right: Array) -> tuple[Array, Array, float]:
        """
        Condition the forces on rows.

        Parameters
        ----------
        covariance
            Of the rows, with the forces' prior, (m, m).
        right
            The columns of the rows, and the covariance of rows and forces, (m, 3 + 3 H).

        Returns
        -------
        tuple
            Forces by each of the columns, (3 H, 3), by how much their covariance falls, (3 H,
            3 H), and the squared deviations of the first column.

        """
        decomposition = self._decompositions[len(right) > len(self._own_rows)]
        decomposition.compute(covariance)
        solved = decomposition.solve(right)
        of_forces = right[:, 3:].T.dot(solved)
        return of_forces[:, :3], of_forces[:, 3:], float(right[:, 0].dot(solved[:, 0]))

    def _detect(self, stamp_ns: int) -> None:
        """Decide which hands touch, by what their forces exceed their deviations."""
        self._is_idle = True
        for hand, detector in enumerate(self._detectors):
            force, own = self.estimates[hand], slice(3 * hand, 3 * hand + 3)
            size = math.hypot(*force.tolist())
            deviation = math.sqrt(
                float(force.dot(self.covariance[own, own]).dot(force))) / max(size, 1e-9)
            exceeded = _LASTS if self.touching[hand] else _BEGINS
            touches = detector.update(size - exceeded * deviation, stamp_ns)
            self.touching[hand] = touches
            self._is_idle &= not touches and size < _IDLE * deviation
            self.forces[hand] = force if touches else 0.0
