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
Runs the torso's controller as its measurements arrive.

Each measurement of the upper IMU is a control cycle: the shape is published once and, while the
controller is active, tendon lengths are commanded once, with the latest measurements of the lower
IMU and of the tendons that are not stale. What is older than the upper IMU's measurement is
advanced to its time by the gyroscopes, so that neither the order of the messages nor other stamps
make a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib

from biped_com_ros.core.constants import nanoseconds, NEVER_NS, SECOND_NS
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.signals.age import age_of, is_recent
from biped_com_ros.core.torso.arc import Arc, Vector
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.constant_curvature import ELONGATION
from biped_com_ros.core.torso.controller import TendonController, TorsoCommand
from biped_com_ros.core.torso.orientation import TipReading, TorsoOrientation, UPRIGHT
from biped_com_ros.core.torso.statics import Weight
import numpy as np

CLOCK_RESET_NS = SECOND_NS
"""A time this far before the last update means that the clock was set back, ns."""


class StepTimer:
    """
    Measures the time from update to update, so that the steps add up to the total time.

    Simulated clocks tick less often than sensors are sampled: their time is mostly earlier than
    the stamp of the last update. Only a time more than `CLOCK_RESET_NS` earlier is a clock reset.

    Attributes
    ----------
    last_ns
        Time of the last update, ns.

    """

    def __init__(self) -> None:
        self.last_ns = 0

    def time_since(self, ns: int) -> float:
        """Return the time from the last update to `ns`, s; negative if `ns` is earlier."""
        if ns < self.last_ns - CLOCK_RESET_NS:
            self.last_ns = ns
        return 1e-9 * (ns - self.last_ns)

    def advance(self, ns: int) -> float:
        """
        Update at time `ns` and return the time since the last update, s.

        Returns 0 without updating if `ns` is not later, and 0 after a clock reset.
        """
        elapsed = self.time_since(ns)
        if elapsed <= 0.0:
            return 0.0
        self.last_ns = ns
        return elapsed


ShapeOutput = Callable[[int, Arc, tuple[complex, float]], None]
"""Called with stamp, ns, backbone and rates of its bend and torsion, rad/s."""

CycleOutput = Callable[[int, Arc, TorsoCommand | None], None]
"""Called with stamp, ns, backbone and command, None while the controller is inactive."""


class ControlCycle:
    """
    Control cycles of the torso, driven by measurements.

    Parameters
    ----------
    body, controller
        The torso with its IMUs and its controller.
    on_shape
        Called in each cycle, before the lengths are computed.
    on_end
        Called at the end of each cycle.
    gravity
        m/s^2.
    imu_timeout
        Age from which measurements are not used, s.
    fallback_period
        Period of cycles without the upper IMU, s.

    Attributes
    ----------
    is_active
        Whether lengths are commanded.
    command
        The last one since the activation; None if there was none.
    problem
        Description of what is wrong; '' if nothing is.
    load, inertia
        Load of the upper body on the tip, and its inertia across the backbone, kg m^2.

    """

    def __init__(self, body: TorsoBody, controller: TendonController, on_shape: ShapeOutput,
                 on_end: CycleOutput, *, gravity: float, imu_timeout: float,
                 fallback_period: float) -> None:
        self._imus, self.controller = body.imus, controller
        self._on_shape, self._on_end = on_shape, on_end
        self._fallback_period, self.gravity = fallback_period, gravity
        self.set_timeout(imu_timeout)
        self.is_active, self.problem = False, ''
        self.command: TorsoCommand | None = None
        self._timer = StepTimer()
        self._lower_values, self._lower_ns = UPRIGHT, NEVER_NS
        self._upper_values, self._upper_ns = UPRIGHT, NEVER_NS
        self._base = body.imus.read_base(UPRIGHT)
        self._tip: TipReading | None = None
        self._lengths: Sequence[float] = ()
        self._tensions: Sequence[float] | None = None
        self._tendons_ns = NEVER_NS
        self.load, self.inertia = Weight(body.mass, (0j, 0.0), self.gravity_in_base), 0.0
        self._ns = 0  # of the last cycle

    # -- settings

    def set_timeout(self, imu_timeout: float) -> None:
        """Set the age from which measurements are not used, s."""
        self._timeout_ns = nanoseconds(imu_timeout)

    def set_load(self, load: Weight, inertia: float) -> None:
        """Set the load of the upper body on the tip, and its inertia, kg m^2."""
        self.load, self.inertia = load, inertia

    @property
    def gravity_in_base(self) -> Vector:
        """Acceleration of gravity in the base of the backbone, m/s^2."""
        across, along = self._base.up
        return -self.gravity * across, -self.gravity * along

    @property
    def last_ns(self) -> int:
        """Time of the last cycle, ns."""
        return self._timer.last_ns

    @property
    def tensions(self) -> Sequence[float] | None:
        """Measured tensions, N; None if unknown or stale."""
        return self._tensions if self._are_tendons_fresh else None

    def activate(self, now_ns: int) -> None:
        """Command lengths from now on, starting from the present shape and lengths."""
        self._read(now_ns)
        self.controller.resume(
            self._arc(self._orientation()).shape,
            self._lengths if self._are_tendons_fresh else None)
        self.is_active = True

    def deactivate(self) -> None:
        """Command no more lengths."""
        self.is_active, self.command = False, None

    # -- measurements

    def add_lower(self, ns: int, values: Array) -> None:
        """Add quaternion and angular velocity (7,) of the lower IMU, see :class:`.ImuPair`."""
        self._lower_values, self._lower_ns = values, ns

    def add_tendons(self, ns: int, lengths: Sequence[float],
                    tensions: Sequence[float] | None) -> None:
        """Add lengths, m, and tensions, N, of all tendons; None if they are not measured."""
        before, self._tendons_ns = self._tendons_ns, ns
        self._lengths, self._tensions = lengths, tensions
        self.controller.set_tendons(1e-9 * (ns - before), lengths, tensions)

    def add_upper(self, ns: int, values: Array) -> None:
        """Add quaternion and angular velocity (7,) of the upper IMU, and make a cycle."""
        self._upper_values, self._upper_ns = values, ns
        self._run(ns)

    def check(self, now_ns: int) -> bool:
        """
        Make a cycle if the upper IMU's measurement is late; to be called periodically.

        Returns
        -------
        bool
            Whether that IMU has no data.

        """
        late = self._timer.time_since(now_ns)
        if late > 1e-9 * self._timeout_ns or (
                self._tip is None and late > 0.9 * self._fallback_period):
            self._run(now_ns)
        return self._tip is None

    # -- a cycle

    def _run(self, ns: int) -> None:
        """Make all steps of a cycle."""
        dt = self._timer.advance(ns)
        if not dt:
            return
        self._read(ns)
        if not self._are_tendons_fresh:
            self.controller.set_tendons(0.0)
        if self.is_active:
            self._command(dt)
        else:
            self._publish_shape(dt)

    def _command(self, dt: float) -> None:
        controller = self.controller
        controller.plan(dt, self.load, self.inertia)
        controller.set_orientation(self._orientation())
        self._on_shape(self._ns, controller.arc, controller.rates)
        try:
            command = controller.command(dt, 1e-9 * (self._ns - self._tendons_ns))
        except InputError as error:
            self.problem = f'{error}; no lengths sent'
            return
        self.command, self.problem = command, '; '.join(command.problems)
        self._on_end(self._ns, command.arc, command)

    def _publish_shape(self, dt: float) -> None:
        """Publish the measured shape while the controller is inactive."""
        self.controller.estimate_yaw_offset(dt, self._orientation())
        orientation = self._orientation()
        arc = self._arc(orientation)
        self._on_shape(self._ns, arc, orientation.rates(arc))
        self._on_end(self._ns, arc, None)

    # -- latest measurements

    def _read(self, ns: int) -> None:
        """Read the IMUs at a time, ns; the tip's orientation needs both."""
        self._ns = ns
        age_ns = ns - self._lower_ns if self._is_fresh(self._lower_ns) else 0
        self._base = self._imus.read_base(self._lower_values, 1e-9 * age_ns)
        self.load.gravity_in_base = self.gravity_in_base
        is_tip_fresh = self._is_fresh(self._upper_ns)
        self._tip = self._imus.read_tip(self._upper_values) if is_tip_fresh else None

    def _is_fresh(self, ns: int) -> bool:
        return is_recent(ns, self._ns, self._timeout_ns)

    @property
    def _are_tendons_fresh(self) -> bool:
        return self._is_fresh(self._tendons_ns)

    def _orientation(self) -> TorsoOrientation:
        """Return the orientation by the IMUs that are not stale."""
        return self._imus.combine(
            self._base, self._tip if self._is_fresh(self._lower_ns) else None,
            self.controller.yaw_offset.value)

    def _arc(self, orientation: TorsoOrientation) -> Arc:
        """Return the backbone: bend by IMUs unless ruled out, else by lengths, else straight."""
        backbone, bend, elongation = self.controller.backbone, orientation.bend, 0.0
        if self._are_tendons_fresh:
            with contextlib.suppress(InputError):
                by_lengths = backbone.shape_from_lengths(np.array(self._lengths))
                if self.controller.find_imu_problem(bend):
                    return backbone.arc_of(by_lengths)
                elongation = float(by_lengths[ELONGATION])
        return backbone.arc(bend or 0j, orientation.torsion, elongation)


class TargetInput:
    """
    Sets the target of a controller, and holds the torso when its source stops.

    Parameters
    ----------
    controller
        Its target is set.

    Attributes
    ----------
    controller
        As given.
    timeouts
        Time without a target after which the torso is held, by source, s; 0 or none: never.
    source
        Source of the last target; '' for none.
    is_enabled, is_frozen
        Targets are ignored unless enabled and not frozen.

    """

    def __init__(self, controller: TendonController) -> None:
        self.controller = controller
        self.timeouts: dict[str, float] = {}
        self.source, self._last_ns, self._is_holding = '', 0, False
        self.is_enabled = self.is_frozen = False

    def enable(self, enabled: bool) -> None:
        """Enable or disable all sources, and drop the last one."""
        self.is_enabled, self.source, self._is_holding = enabled, '', False

    def freeze(self, frozen: bool) -> None:
        """Hold the torso and ignore targets, or accept them again."""
        self.is_frozen = frozen
        if frozen:
            self.controller.hold()

    def set_target(self, source: str, shape: Array, now_ns: int) -> bool:
        """
        Set the target to a shape (4,); return whether it was accepted.

        Raises
        ------
        InputError
            If the shape is not finite.

        """
        if not self.is_enabled or self.is_frozen:
            return False
        self.controller.set_target(shape)
        self.source, self._last_ns, self._is_holding = source, now_ns, False
        return True

    def check(self, now_ns: int) -> str:
        """Hold the torso if the source has timed out; return a description, '' if it has not."""
        self._last_ns = min(self._last_ns, now_ns)  # later if the clock was set back
        timeout, age = self.timeouts.get(self.source, 0.0), 1e-9 * age_of(self._last_ns, now_ns)
        if not timeout or age <= timeout:
            self._is_holding = False
            return ''
        if not self._is_holding:
            self._is_holding = True
            self.controller.hold()
        return f'no message from {self.source} for {age:.1f} s: holding'
