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
The state machine of gravity compensation: when efforts follow the robot, hold, or ramp to zero.

::

    idle --start--> waiting --inputs usable--> starting --ramp done--> active
      ^                ^                          |  ^                   |
      |              zero             input unusable  usable again       |
      |                |                          v  |                   |
      +--zero---- ramping to zero <--hold_time--- holding <--------------+
                       ^------------------stop, from any state

Inputs are known by name and by the stamp of their last message. An input is unusable while its
stamp differs from that of the joint states by more than `input_timeout`; joint states are, when
none arrived for 2.5 of their measured periods (between 30 and 500 ms). Every effort passes
:class:`~biped_com_ros.core.gravity.effort_limiter.EffortLimiter`.

Times are seconds of a clock that never jumps, or of the simulated one, which may be set back:
then all measurements are discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from biped_com_ros.core.constants import nanoseconds, NEVER_NS, SECOND_NS, SET_BACK_NS
from biped_com_ros.core.errors import BipedComError, InputError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.gravity.compensation import GravityCompensator
from biped_com_ros.core.signals.age import is_recent

#: Number of periods after which joint states are late, and limits of that time, s.
_LATE_PERIODS, _LEAST_LATE, _MOST_LATE = 2.5, 0.03, 0.5
#: Period that is assumed until the rate is known, s.
_FIRST_PERIOD = 0.04
#: Largest number of periods that a gap counts as: one stall must not hide later ones.
_LONGEST_GAP = 3.0
#: Weight of a new period in their mean.
_SMOOTHING = 0.1
_SET_BACK = SET_BACK_NS / SECOND_NS  # s
#: The name of the joint states among the inputs.
JOINT_STATES = 'joint_states'


class EffortSupervisor:
    """
    Gives the efforts to command at each step, or none, and the reason.

    Parameters
    ----------
    compensator
        Computes the efforts; its limiter bounds them.
    describe_input
        Returns why an input, by name, has no usable messages, with a remedy; '' if it has.

    Attributes
    ----------
    limiter
        Of the compensator; its state is that of the efforts.
    required
        Names of the inputs, besides the joint states, that have to be up to date.
    input_timeout
        Largest difference between their stamps and that of the joint states, s.
    problem
        Why there are no new efforts: problem, value, remedy; '' if there are.
    target
        The efforts of the last step before ramps and limits, (n,), N m or N; None if they could
        not be computed.

    """

    def __init__(self, compensator: GravityCompensator,
                 describe_input: Callable[[str], str]) -> None:
        self._compensator, self.limiter = compensator, compensator.limiter
        self._describe_input = describe_input
        self._stamps_ns: dict[str, int] = {}
        self._period = _FIRST_PERIOD
        self._stepped_at = self._received_at = 0.0
        self.problem, self._recent_problem = 'waiting for inputs', ''
        self.target: Array | None = None
        self.configure((), 0.1)

    def configure(self, required: Sequence[str], input_timeout: float) -> None:
        """Change :attr:`required` and :attr:`input_timeout`."""
        self.required, self.input_timeout = tuple(required), input_timeout
        self._timeout_ns = nanoseconds(input_timeout)

    def start(self, now: float) -> None:
        """Command efforts from now (s) on."""
        self._stepped_at = self._received_at = now
        self.problem, self._recent_problem = 'waiting for inputs', ''
        self.limiter.start()

    def continue_from(self, commanded: Array, now: float) -> None:
        """
        Start from efforts (n,) that the controller applies already, N m or N.

        They are held for `hold_time` from now (s) on, unless new ones can be computed.
        """
        self._stepped_at = now
        self.limiter.continue_from(commanded)

    def stop(self) -> None:
        """Ramp to zero; steps are needed until the state is IDLE."""
        self.limiter.stop()

    def take_problem(self) -> str:
        """Return :attr:`problem`, or else the last one since this was called before."""
        problem, self._recent_problem = self.problem or self._recent_problem, ''
        return problem

    @property
    def joint_state_timeout(self) -> float:
        """Age at which joint states are late, s; follows their rate."""
        return min(max(_LATE_PERIODS * self._period, _LEAST_LATE), _MOST_LATE)

    # -- steps

    def receive(self, name: str, stamp_ns: int) -> None:
        """Note the stamp (ns) of a good message of an input."""
        self._stamps_ns[name] = stamp_ns

    def update(self, positions: Array, stamp_ns: int, now: float,
               inhibited: str = '', is_applied: bool = False) -> Array | None:
        """
        Step with new joint states.

        Parameters
        ----------
        positions
            Shape (n,), rad or m.
        stamp_ns
            Their stamp, ns.
        now
            Time, s.
        inhibited
            Why nothing may be commanded although inputs are good; '' if it may.
        is_applied
            Whether the controller still applies the last efforts while inhibited: then they are
            held, and later continued. Else they ramp to zero, and begin there.

        Returns
        -------
        numpy.ndarray or None
            The efforts to command, (n,), N m or N; None while idle.

        """
        if self.limiter.idle:
            return None
        if now < self._stepped_at - _SET_BACK:
            self._restart(now)
        self._measure_period(now)
        self.target = None
        try:
            self._check_ages(stamp_ns)
            self.target = self._compensator.efforts_at(positions, stamp_ns)
            self.problem = inhibited
        except BipedComError as error:
            self._note(str(error))
        except Exception as error:  # noqa: B902 - whatever fails, the efforts have to ramp down
            self._note(f'computing the efforts failed: {type(error).__name__}: {error}; '
                       'please report it')
        if inhibited and is_applied and self.limiter.active:
            self._stepped_at = now
            return self.limiter.efforts
        efforts = self._step(None if inhibited else self.target, now)
        if not self.problem and not self.limiter.has_target:
            self.target = None
            self._note('the computed efforts are not finite: check the inputs, and the masses in '
                       'the URDF')
        return efforts

    def watch(self, now: float, is_applied: bool = False) -> Array | None:
        """
        Step without joint states if they are late, or rarer than the steps of a ramp to zero.

        Parameters
        ----------
        now
            Time, s.
        is_applied
            Whether no command is sent and the last one is still applied: the efforts stay.

        Returns
        -------
        numpy.ndarray or None
            The efforts to command, (n,), N m or N; None while idle and while joint states
            come in time.

        """
        if self.limiter.idle:
            return None
        if now < self._stepped_at - _SET_BACK:
            self._restart(now)
        age = now - self._received_at
        if age <= self.joint_state_timeout:
            limiter, since = self.limiter, now - self._stepped_at
            ramps = not limiter.active or not (limiter.has_target or is_applied)
            return self._step(None, now) if ramps and since >= limiter.settings.max_dt else None
        self._note(self._describe(JOINT_STATES) or (
            f'the last joint_states arrived {1e3 * age:.0f} ms ago (limit '
            f'{1e3 * self.joint_state_timeout:.0f} ms): check the rate of the driver and the load '
            'of the computer'))
        self.target = None
        if is_applied and self.limiter.active:
            self._stepped_at = now
            return self.limiter.efforts
        return self._step(None, now)

    def _step(self, target: Array | None, now: float) -> Array:
        efforts = self.limiter.update(target, now - self._stepped_at)
        self._stepped_at = max(self._stepped_at, now)
        return efforts

    def _restart(self, now: float) -> None:
        """Discard the measurements of a clock that was set back."""
        self._stamps_ns.clear()
        self._compensator.reset()
        self._stepped_at = self._received_at = now

    def _measure_period(self, now: float) -> None:
        gap = min(now - self._received_at, _LONGEST_GAP * self._period, _MOST_LATE / _LATE_PERIODS)
        self._period += _SMOOTHING * (gap - self._period)
        self._received_at = max(self._received_at, now)

    def _check_ages(self, stamp_ns: int) -> None:
        """Raise InputError if a required input is too old, or too far ahead."""
        for name in self.required:
            input_ns = self._stamps_ns.get(name, NEVER_NS)
            if not is_recent(input_ns, stamp_ns, self._timeout_ns):
                raise InputError(
                    self._describe(name) or self._describe_age(name, stamp_ns - input_ns))

    def _describe(self, name: str) -> str:
        """Return why an input has no usable messages; nothing may keep a step from being made."""
        try:
            return self._describe_input(name)
        except Exception as error:  # noqa: B902
            return f'{name} is not usable: {error}'

    def _describe_age(self, name: str, age_ns: int) -> str:
        if name not in self._stamps_ns:
            return f'{name} has not arrived yet: wait, or check its publisher'
        side = 'behind' if age_ns > 0 else 'ahead of'
        return (f'the stamps of {name} are {abs(age_ns) / SECOND_NS:.2f} s {side} those of '
                f'joint_states (input_timeout {self.input_timeout:g} s): check its clock and the '
                'load of the computer')

    def _note(self, problem: str) -> None:
        """Keep why there are no new efforts, however soon there are some again."""
        self.problem = self._recent_problem = problem
