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
What the sensors measure beyond the robot's model, and how a payload would show in it.

A body fixed to a hand, with mass m and first moment h in the frame of the hand, adds to the
equations of motion (:mod:`biped_com_ros.core.wrench.dynamics`) linearly:

    RNEA(q, v, a) - tau - J^T f_feet = Phi (m, h)

There are rows of the root, where the wrenches of the feet enter, of the joints above the hands,
and of the force-torque sensors of the hands. A body has its inertia about its own centre of mass,
too, which is neglected: at rest it does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.pose import Array, BoolArray
from biped_com_ros.core.geometry.wrench import sum_wrenches, wrench_adjoint
from biped_com_ros.core.model.robot import RobotModel, RobotState
from biped_com_ros.core.settings import gravity_setting, Settings
from biped_com_ros.core.wrench.dynamics import by_joint, ExternalForces
import numpy as np

#: Cut-off of a low-pass that is not used, Hz.
_UNUSED = 50.0


#: How far measurements may be from the model without a payload, as standard deviations: of the sum
#: of the foot forces, as a share of body weight.
_FORCE_DEVIATION = 0.001
#: Of their moment, as a lever of body weight, m.
_MOMENT_DEVIATION = 0.001
#: Of the torque of a joint, as a share of its effort limit: friction that changes its direction.
EFFORT_DEVIATION = 0.02
#: Of the force of a hand's sensor; of its moment over 0.1 m, N.
_HAND_DEVIATION = 0.5


@dataclass(frozen=True, kw_only=True)
class ResidualSettings(Settings):
    """How far measurements may be from the model without a payload, as standard deviations."""

    gravity: float = gravity_setting()


class PayloadMeasurement(NamedTuple):
    """
    What was measured at one instant.

    Attributes
    ----------
    state
        The robot in its base, with joint velocities.
    efforts
        Torques of the motors, (n,), in the order of ``model.joint_names``, N m or N; None if they
        are not measured.
    angular_velocity, acceleration
        Of the IMU in its frame, (3,), rad/s and proper m/s^2.
    feet
        Wrench on each foot in its sole frame, (F, 6), N and N m; None if not measured.
    hands
        Wrench on each hand that has sensors, in the frame of the hand, (H, 6); None if not
        measured.

    """

    state: RobotState
    efforts: Array | None
    angular_velocity: Array
    acceleration: Array
    feet: Array | None
    hands: Array | None


class PayloadResiduals:
    """
    Residuals of successive instants.

    Parameters
    ----------
    model
        The robot.
    settings
        Deviations.

    Attributes
    ----------
    hands
        Names of the hands that may carry, in the order of the configuration.
    frames
        Their frames.
    measured_hands
        Names of those that have sensors.
    value
        Measured minus model, (m,), N and N m: rows of the root, joints, sensors of hands.
    required
        What the model requires in the same rows, (m,); zero in those of the hands' sensors.
    columns
        How a payload in each hand shows in them: mass, kg, and first moment, kg m, (K, m, 4).
    is_measured
        Which rows are measured now, (m,).
    deviations
        Of the rows, (m,), N and N m.

    Raises
    ------
    ConfigurationError
        If the robot has no hands or no IMU.

    """

    def __init__(self, model: RobotModel, settings: ResidualSettings) -> None:
        config = model.config
        if not config.hands:
            raise ConfigurationError(
                f"robot '{config.name}' has no hands, so nothing can be put in them; add 'hands' "
                'to its YAML')
        self._model, self.hands = model, tuple(config.hands)
        self.frames = model.frames(hand.frame for hand in config.hands.values())
        self.measured_hands = tuple(
            name for name, hand in config.hands.items() if hand.wrench_sensors)
        self._forces = ExternalForces(model, _UNUSED, self.frames)
        self._root = model.frames(model.frame_names[:1])
        self._count = len(self._forces.rows)
        self._sensor_rows = {
            name: slice(self._count + 6 * i, self._count + 6 * i + 6)
            for i, name in enumerate(self.measured_hands)}
        rows = self._count + 6 * len(self.measured_hands)
        self.value, self.required = np.zeros(rows), np.zeros(rows)
        self.columns = np.zeros((len(self.hands), rows, 4))
        self.is_measured: BoolArray = np.zeros(rows, dtype=bool)
        self._place_hands()
        self._set_deviations(settings)

    def reset(self) -> None:
        """Drop the last instant: the next one only begins."""
        self._forces.reset()

    def update(self, dt: float, measured: PayloadMeasurement) -> bool:
        """
        Take the measurements of one instant, `dt` after the last one, s.

        Returns
        -------
        bool
            Whether there are residuals: from the second instant on.

        """
        forces, state, count = self._forces, measured.state, self._count
        efforts = measured.efforts
        if not forces.update(dt, state, self._no_efforts if efforts is None else efforts,
                             measured.angular_velocity, measured.acceleration):
            return False
        self.value[:count], self.required[:count] = forces.raw, forces.required
        self.is_measured[:6] = measured.feet is not None
        self.is_measured[6:count] = forces.measured[6:] & (efforts is not None)
        self.is_measured[count:] = measured.hands is not None
        if measured.feet is not None:
            self.value[:6] -= self._at_root(state, measured.feet)
        if measured.hands is not None:
            self.value[count:] = measured.hands.reshape(-1)
        self._set_columns(state)
        return True

    def _set_columns(self, state: RobotState) -> None:
        self._forces.place(state.q)
        for hand, (name, joint) in enumerate(zip(self.hands, self.frames.joints.tolist())):
            wrench, added = self._forces.of_added_body(joint)
            columns = self.columns[hand]
            columns[:self._count] = added.dot(self._to_joint[hand])
            if name in self._sensor_rows:
                columns[self._sensor_rows[name]] = self._to_hand[hand].dot(wrench).dot(
                    self._to_joint[hand])

    def _at_root(self, state: RobotState, feet: Array) -> Array:
        """Return the sum of the wrenches of the feet at and along the root, (6,)."""
        root = state.placements_in_base(self._root)[0]
        soles = state.placements_in_base(self._model.soles).tolist()
        total: Array = np.array(sum_wrenches(feet.tolist(), soles, root[3].tolist()))
        return total.reshape(2, 3).dot(root[:3].T).reshape(-1)

    def _place_hands(self) -> None:
        """Find what takes payloads from the hands to their joints, and wrenches back."""
        self._no_efforts = np.zeros(len(self._model.joint_names))
        self._to_joint, self._to_hand = [], []
        for pose in self.frames.poses_in_joint():
            moved = np.zeros((4, 4))
            moved[0, 0], moved[1:, 0], moved[1:, 1:] = 1.0, pose.position, pose.rotation
            self._to_joint.append(moved)
            hand = pose.inverse()
            self._to_hand.append(wrench_adjoint(hand.rotation, hand.position))

    def _set_deviations(self, settings: ResidualSettings) -> None:
        model, names = self._model, self._forces.names
        weight = model.mass * settings.gravity
        of_joints = self._forces.effort_scales
        friction = by_joint(model.config.drives.friction, model.config.groups, names)
        force, moment = _HAND_DEVIATION, 0.1 * _HAND_DEVIATION
        self.deviations = np.concatenate((
            [_FORCE_DEVIATION * weight] * 3, [_MOMENT_DEVIATION * weight] * 3,
            np.hypot(EFFORT_DEVIATION * of_joints, friction),
            [force, force, force, moment, moment, moment] * len(self.measured_hands)))
