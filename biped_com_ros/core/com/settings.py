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
"""How uncertain the inputs of the fused CoM are."""

from __future__ import annotations

from dataclasses import dataclass

from biped_com_ros.core.com.foot_sensors import FootSensorErrors
from biped_com_ros.core.com.link_errors import LinkErrors
from biped_com_ros.core.errors import check_positive
from biped_com_ros.core.model.robot import RobotModel


_VIRTUAL = 3.0
"""Lasting errors of wrenches from joint torques, over those of sensors: the CoP is 5-10 mm off."""

_LARGEST_LOAD = 0.5
"""Share of the robot's mass above which no load is credible, nor below zero by as much."""


def is_credible_mass(mass: float, of_model: float) -> bool:
    """Return whether an estimated mass can be that of the robot with a load, kg."""
    return abs(mass - of_model) < _LARGEST_LOAD * of_model


@dataclass(frozen=True, kw_only=True)
class ComFilterSettings:
    """
    Uncertainties: standard deviations, those of forces as shares of the weight.

    Attributes
    ----------
    kinematic_position, kinematic_velocity, acceleration
        Of the kinematic CoM, m and m/s, and of the acceleration by the foot forces, m/s^2, all as
        means over 10 ms: the least ones, to which measured white noise is added.
    moment, momentum
        Of the horizontal CoM by the moments of the feet, m, and the relative error of the model's
        rate of angular momentum; measured white noise is added.
    load_cutoff
        Bandwidth of the comparison of moments, Hz.
    initial_moment, moment_drift
        Of h initially, m, and its random walk, m per square root of a second.
    initial_mass, mass_drift
        Of s initially, and its random walk per square root of a second.
    force_drift, force_time
        Random walk of the external force without a push, share of the weight per square root of a
        second, and the time constant with which it decays, s.
    push_sigmas, push_delay, push_force
        A push begins or ends where the kinematic velocity, smoothed over `push_delay`, s, differs
        by more than `push_sigmas` standard deviations from what the known forces explain. At each
        such sample `push_force`, share of the weight, is added to the external force's deviation.
    push_lever
        Of the point where a push acts from the CoM, m.
    least_acceleration
        Horizontal acceleration, m/s^2, above which moments determine the height of the load, if
        it exceeds measured noise, too.
    push_calm, push_hold
        Moments are used where the external force is less than this share of the weight, and no
        push begins within `push_hold`, s, after them.
    unknown_acceleration
        Of the CoM while the foot forces are unknown, m/s^2.
    longest_gap
        Gap in the inputs after which position and velocity are initialized again, s; the
        estimated load is kept.
    wrench_delay, delay_deviation
        Delay of the wrenches of the feet, by filters and drivers, and its uncertainty, s. That of
        a Butterworth low-pass of second order is 0.225 over its cut-off.
    sensor_rotation, sensor_frame, sensor_gain
        Uncertainty of each foot sensor: its orientation, rad, its place, m, and the gain of each
        of its axes. All are constant.
    link_mass, link_com
        Uncertainty of each link of the URDF: share of its mass, and its centre of mass per axis,
        m. The unknown load comes in addition.

    """

    kinematic_position: float = 0.00001
    kinematic_velocity: float = 0.0001
    acceleration: float = 0.02
    moment: float = 0.00001
    momentum: float = 0.005
    load_cutoff: float = 3.0
    initial_moment: float = 0.015
    moment_drift: float = 0.00001
    initial_mass: float = 0.1
    mass_drift: float = 0.0003
    force_drift: float = 0.0003
    force_time: float = 10.0
    push_sigmas: float = 3.8
    push_delay: float = 0.02
    push_force: float = 0.1
    push_lever: float = 0.3
    least_acceleration: float = 0.02
    push_calm: float = 0.003
    push_hold: float = 0.1
    unknown_acceleration: float = 3.0
    longest_gap: float = 0.5
    wrench_delay: float = 0.0045
    delay_deviation: float = 0.003
    sensor_rotation: float = 0.002
    sensor_frame: float = 0.003
    sensor_gain: float = 0.02
    link_mass: float = 0.08
    link_com: float = 0.005

    def __post_init__(self) -> None:
        may_be_zero = {name for name in vars(self) if name.startswith(
            ('wrench_', 'delay_', 'sensor_', 'link_'))}
        check_positive('the CoM filter', self, *(vars(self).keys() - may_be_zero))
        check_positive('the CoM filter', self, *may_be_zero, or_zero=True)

    def sensor_errors(self, model: RobotModel) -> FootSensorErrors | None:
        """Return the errors of the sensors of the feet; None if they have none."""
        if self.sensor_rotation or self.sensor_frame or self.sensor_gain:
            is_virtual = any(foot.is_virtual for foot in model.config.feet.values())
            wider = _VIRTUAL if is_virtual else 1.0
            return FootSensorErrors(model, wider * self.sensor_rotation,
                                    wider * self.sensor_frame, wider * self.sensor_gain)
        return None

    def link_errors(self, model: RobotModel) -> LinkErrors | None:
        """Return the errors of the links; None if they have none."""
        if self.link_mass or self.link_com:
            return LinkErrors(model, self.link_mass, self.link_com, self.load_cutoff)
        return None
