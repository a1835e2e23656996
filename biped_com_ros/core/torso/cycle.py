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
Runs the steps of the torso's controller as its measurements arrive.

Each measurement of the upper IMU opens a control cycle. In each cycle the shape is published once
and, while the controller is active, tendon lengths are commanded once. If the lower IMU and the
tendons have measurements with the same stamps, the work is divided between the messages: the
first one of a cycle plans the reference, the second of the two IMUs gives the shape, and the last
of all three commands lengths. A sensor that misses a cycle is waited for until the next
measurement of the upper IMU, and then no more until it is in step again, see
:class:`.MessageGroups`. Sensors with other stamps are not waited for: everything is done with the
upper IMU, with the latest measurements that are not stale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib

from biped_com_ros.core.constants import nanoseconds, NEVER_NS, SECOND_NS
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.torso.arc import Arc, Vector
from biped_com_ros.core.torso.body import TorsoBody
from biped_com_ros.core.torso.constant_curvature import ELONGATION
from biped_com_ros.core.torso.controller import TendonController, TorsoCommand
from biped_com_ros.core.torso.orientation import TipReading, TorsoOrientation, UPRIGHT
from biped_com_ros.core.torso.statics import Weight
import numpy as np

MIN_IN_STEP = 20
"""Number of consecutive groups that a sensor has to be part of before it is waited for."""


class MessageGroups:
    """
    Groups that a leading sensor opens, and the other sensors whose messages complete them.

    Sensors that are read by one driver have identical stamps for each sample, while their messages
    arrive one after the other in any order. Other sensors have stamps and rates of their own.

    A sensor is *in step* if it had a message with the stamp of each of the last
    :data:`MIN_IN_STEP` groups before the next group was opened. Only sensors in step are waited
    for. One that misses a group is out of step again: a sensor that stops, is late or has a lower
    rate delays one group, and at most one in :data:`MIN_IN_STEP`.

    Parameters
    ----------
    count
        Number of other sensors; they are identified by their index.

    Attributes
    ----------
    ns
        Stamp of the group that was opened last.
    missing
        Sensors in step whose message of this group is missing, as a bit mask.

    """

    def __init__(self, count: int) -> None:
        self._count, self.ns = count, 0
        self._latest = [-1] * count
        self.reset()

    def reset(self) -> None:
        """Count no sensor as in step, and wait for none."""
        self._in_step_count, self.missing = [0] * self._count, 0

    def start_group(self, ns: int) -> int:
        """Open the group with stamp `ns`; return the sensors to wait for as a bit mask."""
        before, counts, missing = self.ns, self._in_step_count, 0
        for i, latest in enumerate(self._latest):
            if latest == ns:
                counts[i] += 1
            elif latest == before:
                counts[i] += 1
                missing |= (counts[i] >= MIN_IN_STEP) << i
            else:
                counts[i] = 0
        self.ns, self.missing = ns, missing
        return missing

    def add(self, sensor: int, ns: int) -> bool:
        """Add the stamp of a sensor's message; return whether the open group waited for it."""
        self._latest[sensor] = ns
        # A later stamp means that the message of the open group will not come any more.
        if not self.missing >> sensor & 1 or ns < self.ns:
            return False
        self.missing -= 1 << sensor
        return True

    def is_in_step(self, sensor: int) -> bool:
        """Return whether a sensor is waited for."""
        return self._in_step_count[sensor] >= MIN_IN_STEP


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


LOWER, TENDONS = 0, 1
"""The sensors that may complete a cycle, see :class:`.MessageGroups`."""

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
        Called in each cycle as soon as the shape is known.
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
        self._groups, self._checked_ns = MessageGroups(2), 0
        self._timer, self._plan_timer = StepTimer(), StepTimer()
        self._base, self._base_ns = body.imus.read_base(UPRIGHT), NEVER_NS
        self._upper_values, self._upper_ns = UPRIGHT, NEVER_NS
        self._lengths: Sequence[float] = ()
        self._tensions: Sequence[float] | None = None
        self._tendons_ns = NEVER_NS
        self.load, self.inertia = Weight(body.mass, (0j, 0.0), self.gravity_in_base), 0.0
        # Of the open cycle.
        self._ns, self._dt, self._has_shape = 0, 0.0, False
        self._tip: TipReading | None = None

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
    def is_waiting(self) -> bool:
        """Whether the open cycle waits for a measurement."""
        return self._groups.missing > 0

    @property
    def tensions(self) -> Sequence[float] | None:
        """Measured tensions, N; None if unknown or stale."""
        return self._tensions if self._are_tendons_fresh else None

    def activate(self, now_ns: int) -> None:
        """Command lengths from now on, starting from the present shape."""
        self._ns, self._tip = now_ns, self._fresh_tip(now_ns)
        self.controller.reset(self._arc(self._orientation()).shape)
        self._groups.reset()
        self.is_active = True

    def deactivate(self) -> None:
        """Command no more lengths."""
        self.is_active, self.command = False, None
        self._groups.reset()

    # -- measurements

    def add_lower(self, ns: int, values: Array) -> None:
        """Add quaternion and angular velocity (7,) of the lower IMU, see :class:`.ImuPair`."""
        self._base, self._base_ns = self._imus.read_base(values), ns
        self.load.gravity_in_base = self.gravity_in_base
        self._add(LOWER, ns)

    def add_tendons(self, ns: int, lengths: Sequence[float],
                    tensions: Sequence[float] | None) -> None:
        """Add lengths, m, and tensions, N, of all tendons; None if they are not measured."""
        before, self._tendons_ns = self._tendons_ns, ns
        self._lengths, self._tensions = lengths, tensions
        self.controller.set_tendons(1e-9 * (ns - before), lengths, tensions)
        self._add(TENDONS, ns)

    def add_upper(self, ns: int, values: Array) -> None:
        """Add quaternion and angular velocity (7,) of the upper IMU: open a cycle."""
        self._upper_values, self._upper_ns = values, ns
        if self._groups.missing:
            self._continue(0)  # its other messages will not come any more
        self._open(ns, self._imus.read_tip(values))

    def check(self, now_ns: int) -> bool:
        """
        Continue without measurements that are late; to be called periodically.

        Returns
        -------
        bool
            Whether measurements are late.

        """
        groups, late = self._groups, self._timer.time_since(now_ns)
        is_stale = late > 1e-9 * self._timeout_ns
        if groups.missing and (is_stale or self._checked_ns == groups.ns):
            self._continue(0)
        self._checked_ns = groups.ns
        if is_stale:
            self._open(now_ns, None)
        elif self._tip is None and late > 0.9 * self._fallback_period:
            self._open(now_ns, self._fresh_tip(now_ns))
        return self._tip is None or groups.missing > 0

    # -- steps of a cycle

    def _add(self, sensor: int, ns: int) -> None:
        """Continue the cycle that waits for this measurement, or plan the next one."""
        groups, controller = self._groups, self.controller
        if groups.add(sensor, ns):
            if groups.missing >> LOWER & 1:
                controller.distribute()
            self._continue(groups.missing)
        elif self.is_active and not groups.missing and groups.is_in_step(sensor):
            if ns != self._plan_timer.last_ns:
                self._plan(ns)
                if groups.is_in_step(LOWER + TENDONS - sensor):
                    return  # the tensions are distributed with the message of that one
            controller.distribute()

    def _open(self, ns: int, tip: TipReading | None) -> None:
        """Open a cycle and make all steps that are possible."""
        dt = self._timer.advance(ns)
        if not dt:
            return
        self._ns, self._dt, self._tip, self._has_shape = ns, dt, tip, False
        if not self.is_active:
            self._publish_shape()
            return
        if tip is None:
            self._groups.reset()
            missing = 0
        else:
            missing = self._groups.start_group(ns)
        if ns != self._plan_timer.last_ns:
            self._plan(ns)
        elif missing >> LOWER & 1:
            self.controller.distribute()
        self._continue(missing)

    def _continue(self, missing: int) -> None:
        """Make the steps of the open cycle that are possible without the missing sensors."""
        self._groups.missing = missing
        if not (self._has_shape or missing >> LOWER & 1):
            self._set_shape()
        if not missing:
            self._command()

    def _plan(self, ns: int) -> None:
        dt = self._plan_timer.advance(ns)
        if dt:
            self.controller.plan(dt, self.load, self.inertia)

    def _set_shape(self) -> None:
        controller = self.controller
        self._has_shape = True
        if not self._are_tendons_fresh:
            controller.set_tendons(0.0)
        controller.set_orientation(self._orientation())
        self._on_shape(self._ns, controller.arc, controller.rates)

    def _command(self) -> None:
        try:
            command = self.controller.command(self._dt, 1e-9 * (self._ns - self._tendons_ns))
        except InputError as error:
            self.problem = f'{error}; no lengths sent'
            return
        self.command, self.problem = command, '; '.join(command.problems)
        self._on_end(self._ns, command.arc, command)

    def _publish_shape(self) -> None:
        """Publish the measured shape while the controller is inactive."""
        if not self._are_tendons_fresh:
            self.controller.set_tendons(0.0)
        self.controller.estimate_yaw_offset(self._dt, self._orientation())
        orientation = self._orientation()
        arc = self._arc(orientation)
        self._on_shape(self._ns, arc, orientation.rates(arc))
        self._on_end(self._ns, arc, None)

    # -- latest measurements

    @property
    def _are_tendons_fresh(self) -> bool:
        return self._tendons_ns >= self._ns - self._timeout_ns

    def _fresh_tip(self, now_ns: int) -> TipReading | None:
        if now_ns - self._upper_ns > self._timeout_ns:
            return None
        return self._imus.read_tip(self._upper_values)

    def _orientation(self) -> TorsoOrientation:
        """Return the orientation by the IMUs that are not stale."""
        is_fresh = self._base_ns >= self._ns - self._timeout_ns
        return self._imus.combine(
            self._base, self._tip if is_fresh else None, self.controller.yaw_offset.value)

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
        timeout, age = self.timeouts.get(self.source, 0.0), 1e-9 * (now_ns - self._last_ns)
        if not timeout or age <= timeout:
            self._is_holding = False
            return ''
        if not self._is_holding:
            self._is_holding = True
            self.controller.hold()
        return f'no message from {self.source} for {age:.1f} s: holding'
