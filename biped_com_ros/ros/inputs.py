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
Subscriptions that hand over good data only.

Messages are taken raw and read with NumPy (see `codec`). Each is examined before its callback
runs: structure (names, frame), stamp, finite numbers. What is refused is counted by reason,
logged at most once per 5 s and reason, and shown in ``/diagnostics``; a silent sensor turns its
line there to ERROR. Arrays passed to callbacks are reused: copy what has to last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import time
from typing import Any

from biped_com_ros.ros import codec
from biped_com_ros.ros.conversions import nanoseconds_of, Stamp
from biped_com_ros.ros.diagnostics import Diagnostics, ERROR, OK, Report, Throttle, WARN
from biped_com_ros.ros.qos import overridable, SENSOR_INPUT
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
from rclpy.clock import ClockType
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Float64MultiArray

_SECOND = 1_000_000_000
_NEVER = -2 ** 62
_TRUST_NS = 20_000_000
_MAX_SOURCES = 32


class Input:
    """
    What all inputs share: the raw subscription, the examination of stamps, the accounts.

    Parameters
    ----------
    node
        The rclpy node.
    message_type, topic
        What to subscribe to.
    diagnostics
        Where a line about this input is added.
    qos
        Quality of service; users override it with ``qos_overrides.<topic>.subscription.*``.
    timeout
        Seconds without good data after which the input counts as dead in diagnostics.
    max_age
        Stamps further than this from the node's clock, before or after, are refused (s);
        0 accepts any.
    reset_after
        A stamp going back by more than this means that the clock was set anew (s).
    required
        Whether silence is an ERROR in diagnostics, or only a WARN.
    plain
        Use rclpy's own conversion; default: as the environment says.

    Attributes
    ----------
    refused : dict of str to int
        Number of refused messages by reason.
    last_error : str
        Why the last refused message was; '' if none was.
    rate : float
        Good messages per second, measured over the last second or so.
    stamp : Stamp or None
        Of the last good message.
    """

    def __init__(self, node: Any, message_type: Any, topic: str, *,
                 diagnostics: Diagnostics | None = None, qos: QoSProfile = SENSOR_INPUT,
                 timeout: float = 0.5, max_age: float = 1.0, reset_after: float = 1.0,
                 required: bool = True, plain: bool | None = None) -> None:
        self.node = node
        self.timeout, self.required = timeout, required
        self.max_age_ns = int(max_age * _SECOND)
        self.reset_after_ns = int(reset_after * _SECOND)
        self.refused: dict[str, int] = {}
        self.last_error = ''
        self.stamp: Stamp | None = None
        self.count = 0
        self._clock = node.get_clock()
        self._throttle = Throttle(5.0)
        self._last_refusal = -1e9
        self._since = self._now()
        self._rate_from, self._rate_count, self._rate = time.monotonic(), 0, 0.0
        self._last_ns = _NEVER
        self._trusted_ns = self._trusted_until = _NEVER
        self._reader = codec.Reader(message_type, self._select, plain)
        self.subscription = node.create_subscription(
            message_type, topic, self._received, qos, raw=True,
            qos_overriding_options=overridable())
        self.topic = self.subscription.topic_name
        if diagnostics is not None:
            diagnostics.add(f'input {self.topic}', self.report)

    # -- for users

    def age(self, now: Any = None) -> float:
        """Seconds since the stamp of the last good message (since start if there was none)."""
        at = self._now() if now is None else nanoseconds_of(now)
        return (at - (self._since if self.stamp is None else self.stamp.ns)) / _SECOND

    def stale(self, timeout: float | None = None, now: Any = None) -> bool:
        """Tell whether there was no good data for `timeout` seconds, or never any."""
        return self.stamp is None or self.age(now) > (
            self.timeout if timeout is None else timeout)

    @property
    def rate(self) -> float:
        """Return the good messages per second, measured over the last second or so."""
        now = time.monotonic()
        elapsed = now - self._rate_from
        if elapsed > 0.9:
            self._rate = (self.count - self._rate_count) / elapsed
            self._rate_from, self._rate_count = now, self.count
        return self._rate

    def report(self) -> Report:
        """Return (level, message, values) for diagnostics."""
        values = {'rate [Hz]': self.rate, 'received': self.count, 'last error': self.last_error,
                  **{f'refused: {reason}': n for reason, n in self.refused.items()}}
        if self.stale():
            return ERROR if self.required else WARN, self._why_silent(), values
        if time.monotonic() - self._last_refusal < 5.0:
            return WARN, self.last_error, values
        return OK, f'{self.rate:.0f} Hz', values

    def destroy(self) -> None:
        """Unsubscribe."""
        self.node.destroy_subscription(self.subscription)

    # -- for subclasses

    def _select(self, message: Any) -> codec.Selection:
        raise NotImplementedError

    def _handle(self, raw: bytes) -> None:
        raise NotImplementedError

    def refuse(self, reason: str, details: str) -> None:
        """Count a message that is not used, and say why."""
        self.refused[reason] = self.refused.get(reason, 0) + 1
        self.last_error = f"'{self.topic}': {details}"
        self._last_refusal = time.monotonic()
        if self._throttle(reason):
            self.node.get_logger().error(f'{self.last_error} (message not used)')

    def _received(self, raw: bytes) -> None:
        try:
            self._handle(raw)
        except Exception as error:  # noqa: B902 - nothing that arrives may end the node
            self.refuse('exception', f'{type(error).__name__}: {error}')

    def _plan(self, raw: bytes) -> Any:
        try:
            return self._reader.plan_for(raw)
        except Exception as error:  # noqa: B902 - rclpy raises various types
            self.refuse('malformed', f'cannot be read: {error}')
            return None

    def _stamp_of(self, raw: bytes, last_ns: int) -> Stamp | None:
        """
        Return the message's stamp, or None if it is refused because of it.

        The clock is asked at most every 20 ms: a stamp shortly after one that was good then
        cannot be far off.
        """
        stamp = Stamp.from_raw(raw, codec.HEADER_STAMP)
        ns = stamp.ns
        if last_ns < ns < self._trusted_ns and time.monotonic_ns() < self._trusted_until:
            return stamp
        return stamp if self._good_stamp(ns, last_ns) else None

    def _good_stamp(self, ns: int, last_ns: int) -> bool:
        if ns == 0:
            self.refuse('zero stamp', 'its stamp is zero: the driver has to set header.stamp')
            return False
        age = self._now() - ns
        if self.max_age_ns and abs(age) > self.max_age_ns:
            self._refuse_age(age)
            return False
        if ns <= last_ns and not self._clock_was_reset(ns, last_ns):
            return False
        self._trusted_ns = ns + _TRUST_NS
        self._trusted_until = time.monotonic_ns() + _TRUST_NS
        return True

    def _clock_was_reset(self, ns: int, last_ns: int) -> bool:
        back = last_ns - ns
        if back > self.reset_after_ns:
            self.node.get_logger().warning(
                f"'{self.topic}': stamps went back by {back / _SECOND:.3f} s: the clock was "
                'set anew, starting over')
            self._reset()
            return True
        self.refuse('stamp going backward' if back else 'repeated stamp', (
            f'its stamp {ns / _SECOND:.9f} s is {back / _SECOND:.6f} s before the last one'
            if back else f'its stamp {ns / _SECOND:.9f} s is the same as the last one')
            + self._publishers_hint())
        return False

    def _reset(self) -> None:
        """Forget what must not be mixed with data after a clock reset."""

    def _publishers_hint(self) -> str:
        n = self.node.count_publishers(self.topic)
        return f'; {n} publishers send on this topic' if n > 1 else ''

    def _refuse_age(self, age: int) -> None:
        side = 'behind' if age > 0 else 'ahead of'
        clock = 'simulated' if self._clock.ros_time_is_active else "computer's"
        self.refuse('stale stamp' if age > 0 else 'stamp from the future', (
            f'its stamp is {abs(age) / _SECOND:.3f} s {side} the {clock} clock (limit '
            f'{self.max_age_ns / _SECOND:g} s): check clock synchronisation and use_sim_time'))

    def _now(self) -> int:
        return int(self._clock.now().nanoseconds)

    def _why_silent(self) -> str:
        publishers = self.node.count_publishers(self.topic)
        since = (f'nothing usable for {self.age():.1f} s' if self.stamp is not None
                 else 'nothing usable yet')
        if not publishers:
            return f"{since} on '{self.topic}': nobody publishes it; check driver and remapping"
        if self._recently_refused():
            return f'{since}: {self.last_error}'
        return (f"{since} on '{self.topic}' although {publishers} publish it: check whether "
                'the driver is active, and its QoS')

    def _recently_refused(self) -> bool:
        return time.monotonic() - self._last_refusal < 5.0

    def _accept(self, stamp: Stamp) -> None:
        self.stamp = stamp
        self.count += 1


class VectorInput(Input):
    """
    Stamped float64 values of one message type, as one vector.

    Parameters
    ----------
    node, message_type, topic
        What to subscribe to; the type has a header.
    fields
        Paths of the values, e.g. ``['point.x', 'point.y', 'point.z']``.
    callback
        Called with (stamp, values (k,)).
    frame_id
        The header's frame_id has to be this; '' accepts any (see `frame`).
    options
        See `Input`.

    Attributes
    ----------
    frame : str
        frame_id of the last message.
    """

    def __init__(self, node: Any, message_type: Any, topic: str, fields: Sequence[str],
                 callback: Callable[[Stamp, np.ndarray], None], frame_id: str = '',
                 **options: Any) -> None:
        self.frame_id, self.frame = frame_id, frame_id
        self.values = np.zeros(len(fields))
        self._zeros = np.zeros(len(fields))
        self._fields = list(fields)
        self._paths = [_path(field) for field in fields]
        self._callback = callback
        super().__init__(node, message_type, topic, **options)

    def _select(self, message: Any) -> codec.Selection:
        return codec.Selection(self._paths, message.header.frame_id)

    def _handle(self, raw: bytes) -> None:
        plan = self._plan(raw)
        if plan is None or not self._right_frame(plan.data):
            return
        stamp = self._stamp_of(raw, self._last_ns)
        if stamp is None:
            return
        plan.gather(raw, self.values)
        if self._zeros.dot(self.values) != 0.0:
            self._refuse_values()
            return
        if not self._good_values():
            return
        self._last_ns = stamp.ns
        self._accept(stamp)
        self._deliver(stamp)

    def _good_values(self) -> bool:
        return True

    def _unit(self, quaternion: np.ndarray) -> bool:
        norm_squared = float(quaternion.dot(quaternion))
        if 0.98 < norm_squared < 1.02:
            return True
        self.refuse('no unit quaternion', f'orientation {quaternion.tolist()} (x, y, z, w) has '
                    f'length {norm_squared ** 0.5:.4g}; valid: 1')
        return False

    def _deliver(self, stamp: Stamp) -> None:
        self._callback(stamp, self.values)

    def _right_frame(self, frame: str) -> bool:
        if self.frame_id and frame != self.frame_id:
            self.refuse('wrong frame',
                        f"its frame_id is '{frame}'; valid: '{self.frame_id}'")
            return False
        self.frame = frame
        return True

    def _refuse_values(self) -> None:
        bad = ', '.join(f'{field} = {value}' for field, value in zip(self._fields, self.values)
                        if not np.isfinite(value))
        self.refuse('not finite', f'{bad}')


def _path(field: str) -> codec.Path:
    return tuple(int(step) if step.isdigit() else step for step in field.split('.'))


def _fields(prefix: str, names: str = 'xyz') -> list[str]:
    return [f'{prefix}.{name}' for name in names]


class WrenchInput(VectorInput):
    """WrenchStamped; calls back with (stamp, wrench (6,)), force first, in its frame."""

    def __init__(self, node: Any, topic: str, frame_id: str,
                 callback: Callable[[Stamp, np.ndarray], None], **options: Any) -> None:
        super().__init__(node, WrenchStamped, topic,
                         _fields('wrench.force') + _fields('wrench.torque'), callback,
                         frame_id, **options)


class PointInput(VectorInput):
    """PointStamped; calls back with (stamp, point (3,))."""

    def __init__(self, node: Any, topic: str, frame_id: str,
                 callback: Callable[[Stamp, np.ndarray], None], **options: Any) -> None:
        super().__init__(node, PointStamped, topic, _fields('point'), callback, frame_id,
                         **options)


class Vector3Input(VectorInput):
    """Vector3Stamped; calls back with (stamp, vector (3,))."""

    def __init__(self, node: Any, topic: str, frame_id: str,
                 callback: Callable[[Stamp, np.ndarray], None], **options: Any) -> None:
        super().__init__(node, Vector3Stamped, topic, _fields('vector'), callback, frame_id,
                         **options)


class ImuInput(VectorInput):
    """
    Imu; calls back with (stamp, quaternion xyzw (4,), angular velocity (3,), acceleration (3,)).

    Unless `need_orientation` is False, messages without an orientation (first covariance -1,
    REP-145) are refused, and so are quaternions whose length is not 1 within 1 %.
    """

    def __init__(self, node: Any, topic: str, frame_id: str,
                 callback: Callable[[Stamp, np.ndarray, np.ndarray, np.ndarray], None],
                 need_orientation: bool = True, **options: Any) -> None:
        self._need_orientation = need_orientation
        self._deliver_imu = callback
        super().__init__(
            node, Imu, topic,
            _fields('orientation', 'xyzw') + _fields('angular_velocity')
            + _fields('linear_acceleration') + ['orientation_covariance.0'], callback,
            frame_id, **options)
        self._orientation = self.values[:4]
        self._angular_velocity, self._acceleration = self.values[4:7], self.values[7:10]

    def _good_values(self) -> bool:
        if not self._need_orientation:
            return True
        orientation = self._orientation
        if self.values[10] == -1.0:
            self.refuse('no orientation', 'has no orientation (orientation_covariance[0] is -1)'
                        ': run a filter such as imu_filter_madgwick')
            return False
        return self._unit(orientation)

    def _deliver(self, stamp: Stamp) -> None:
        self._deliver_imu(stamp, self._orientation, self._angular_velocity, self._acceleration)


class OdometryInput(VectorInput):
    """Odometry; calls back with (stamp, position (3,), quaternion xyzw (4,), twist (6,))."""

    def __init__(self, node: Any, topic: str,
                 callback: Callable[[Stamp, np.ndarray, np.ndarray, np.ndarray], None],
                 frame_id: str = '', child_frame_id: str = '', **options: Any) -> None:
        self.child_frame_id, self.child_frame = child_frame_id, child_frame_id
        self._deliver_odometry = callback
        super().__init__(
            node, Odometry, topic,
            _fields('pose.pose.position') + _fields('pose.pose.orientation', 'xyzw')
            + _fields('twist.twist.linear') + _fields('twist.twist.angular'),
            lambda stamp, values: None, frame_id, **options)
        self._position, self._quaternion = self.values[:3], self.values[3:7]
        self._twist = self.values[7:13]

    def _select(self, message: Any) -> codec.Selection:
        return codec.Selection(self._paths, (message.header.frame_id, message.child_frame_id))

    def _right_frame(self, frame: Any) -> bool:
        frame, child = frame
        if self.child_frame_id and child != self.child_frame_id:
            self.refuse('wrong frame', f"its child_frame_id is '{child}'; valid: "
                        f"'{self.child_frame_id}'")
            return False
        self.child_frame = child
        return super()._right_frame(frame)

    def _good_values(self) -> bool:
        return self._unit(self._quaternion)

    def _deliver(self, stamp: Stamp) -> None:
        self._deliver_odometry(stamp, self._position, self._quaternion, self._twist)


class BoolInput(Input):
    """Bool; calls back with (stamp, value), the stamp being the time of arrival."""

    def __init__(self, node: Any, topic: str, callback: Callable[[Stamp, bool], None],
                 **options: Any) -> None:
        self._callback = callback
        self.value: bool | None = None
        super().__init__(node, Bool, topic, **options)

    def _handle(self, raw: bytes) -> None:
        if len(raw) <= codec.ENCAPSULATION:
            self.refuse('malformed', f'has only {len(raw)} bytes')
            return
        self.value = codec.read_bool(raw)
        stamp = Stamp.from_ns(self._now())
        self._accept(stamp)
        self._callback(stamp, self.value)


class ArrayInput(Input):
    """
    Float64MultiArray of n numbers; calls back with (stamp of arrival, values (n,)).

    Parameters
    ----------
    node, topic, callback
        As for the other inputs.
    n
        Number of values each message has to have; None accepts any.
    """

    def __init__(self, node: Any, topic: str, n: int | None,
                 callback: Callable[[Stamp, np.ndarray], None], **options: Any) -> None:
        self.n = n
        self._callback = callback
        self.values = np.zeros(n or 0)
        super().__init__(node, Float64MultiArray, topic, **options)

    def _select(self, message: Any) -> codec.Selection:
        n = len(message.data)
        return codec.Selection([('data', i) for i in range(n)], n)

    def _handle(self, raw: bytes) -> None:
        plan = self._plan(raw)
        if plan is None:
            return
        if self.n is not None and plan.data != self.n:
            self.refuse('wrong length', f'has {plan.data} values; valid: {self.n}')
            return
        if len(self.values) != plan.data:
            self.values = np.zeros(plan.data)
        plan.gather(raw, self.values)
        if not np.isfinite(self.values).all():
            index = int(np.flatnonzero(~np.isfinite(self.values))[0])
            self.refuse('not finite', f'data[{index}] = {self.values[index]}')
            return
        stamp = Stamp.from_ns(self._now())
        self._accept(stamp)
        self._callback(stamp, self.values)


class _Source:
    """What the JointState messages of one structure contribute."""

    def __init__(self, message: Any, joint_indices: dict[str, int], required: int) -> None:
        names = list(message.name)
        columns = {name: i for i, name in enumerate(names) if name in joint_indices}
        self.problem = _joint_state_problem(message, names, joint_indices)
        #: Indices of the joints, ascending, and where they are in the message.
        found = sorted((joint_indices[name], column) for name, column in columns.items())
        self.targets = np.array([target for target, _ in found], np.intp)
        self.columns = [column for _, column in found]
        self.rows = [field for field in ('position', 'velocity', 'effort')
                     if len(getattr(message, field)) and not self.problem]
        self.values = np.zeros((len(self.rows), len(found)))
        self.flat = self.values.reshape(-1)
        self.zeros = np.zeros(self.flat.size)
        #: Optional fields that were ever finite: NaN in them is an error from then on.
        self.measured: dict[str, bool] = {'velocity': False, 'effort': False}
        self.is_whole = len(self.rows) == 3 and len(found) == len(joint_indices)
        self.is_complete = bool(np.count_nonzero(self.targets < required) == required)
        self.last_ns = _NEVER

    def paths(self) -> list[codec.Path]:
        return [(field, column) for field in self.rows for column in self.columns]


def _joint_state_problem(message: Any, names: list[str],
                         wanted: dict[str, int]) -> tuple[str, str] | None:
    """Return (reason, details) if no message of this structure can be used."""
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1 and name in wanted})
        if twice:
            return 'duplicate joints', f'names joint {_quoted(twice)} more than once'
    if len(message.position) != len(names):
        return 'malformed', f'has {len(names)} names but {len(message.position)} positions'
    for field in ('velocity', 'effort'):
        n = len(getattr(message, field))
        if n not in (0, len(names)):
            return 'malformed', f'has {len(names)} names but {n} values of {field}'
    if not set(names) & set(wanted):
        return 'no known joint', (f'has none of the joints {_quoted(wanted)}; it has '
                                  f'{_quoted(names) or "no joints at all"}')
    return None


def _quoted(names: Any, limit: int = 8) -> str:
    names = list(names)
    more = f' and {len(names) - limit} more' if len(names) > limit else ''
    return ', '.join(f"'{name}'" for name in names[:limit]) + more


class JointStateInput(Input):
    """
    JointState in a fixed order of joints.

    Calls back with (stamp, positions (n,), velocities (n,), efforts (n,)) in the order of
    `joint_names` followed by `optional_joints`; the order in the messages does not matter, other
    joints are ignored. Where several nodes publish parts of the robot on one topic, the parts
    are put together: once every joint was seen, each message of the largest part calls back, as
    long as no part is older than `timeout`.

    Velocities that are not measured (empty or, as ros2_control reports them, NaN) are backward
    differences of the positions; efforts that are not measured are zero (see
    `efforts_measured`). A velocity or effort that becomes NaN later is refused like a position.

    Attributes
    ----------
    positions, velocities, efforts : ndarray (n,)
        Last good values: the arrays the callback gets.
    velocities_measured, efforts_measured : bool
        Whether all of them are.
    """

    def __init__(self, node: Any, joint_names: Sequence[str],
                 callback: Callable[[Stamp, np.ndarray, np.ndarray, np.ndarray], None],
                 topic: str = 'joint_states', optional_joints: Sequence[str] = (),
                 **options: Any) -> None:
        names = (*joint_names, *optional_joints)
        self.joint_names = names
        self._indices = {name: i for i, name in enumerate(names)}
        self._n_required = len(joint_names)
        self._callback = callback
        self._values = np.zeros((3, len(names)))
        self.positions, self.velocities, self.efforts = self._values
        self._measured = {field: np.zeros(len(names), bool) for field in ('velocity', 'effort')}
        self._sources: dict[Any, _Source] = {}
        self._first_arrival: float | None = None
        self._reset()
        super().__init__(node, JointState, topic, **options)

    @property
    def velocities_measured(self) -> bool:
        """Tell whether all velocities are measured."""
        return bool(self._measured['velocity'].all())

    @property
    def efforts_measured(self) -> bool:
        """Tell whether all efforts are measured."""
        return bool(self._measured['effort'].all())

    def _reset(self) -> None:
        self._leader: _Source | None = None
        #: The source that alone brings everything, measured: it needs no merging.
        self._express: _Source | None = None
        self._updated_ns = np.full(len(self.joint_names), _NEVER)
        self._last_positions = np.zeros(len(self.joint_names))
        self._last_ns = self._last_delivery_ns = _NEVER
        for source in self._sources.values():
            source.last_ns = _NEVER

    def _select(self, message: Any) -> codec.Selection:
        key = (tuple(message.name), len(message.position), len(message.velocity),
               len(message.effort))
        source = self._sources.get(key)
        if source is None:
            if len(self._sources) >= _MAX_SOURCES:
                self._sources.pop(next(iter(self._sources)))
            source = _Source(message, self._indices, self._n_required)
            self._sources[key] = source
        return codec.Selection(source.paths(), source)

    def _handle(self, raw: bytes) -> None:
        plan = self._plan(raw)
        if plan is None:
            return
        source = plan.data
        if source.problem is not None:
            self._refuse_structure(*source.problem)
            return
        last_ns = self._last_ns if source.is_complete else source.last_ns
        stamp = self._stamp_of(raw, last_ns)
        if stamp is None:
            return
        plan.gather(raw, source.flat)
        if source.zeros.dot(source.flat) != 0.0 and not self._usable(source):
            return
        source.last_ns = stamp.ns
        if source is self._express:
            self._values[...] = source.values
            self._finish(stamp)
        elif self._merge(source, stamp.ns):
            self._finish(stamp)

    def _finish(self, stamp: Stamp) -> None:
        self._last_ns = stamp.ns
        self._accept(stamp)
        self._callback(stamp, self.positions, self.velocities, self.efforts)

    def _refuse_structure(self, reason: str, details: str) -> None:
        if reason == 'no known joint' and self.count:
            self.refused[reason] = self.refused.get(reason, 0) + 1  # another device's messages
        else:
            self.refuse(reason, details)

    def _usable(self, source: _Source) -> bool:
        """Examine a message that holds NaN or infinity; refuses it unless that is harmless."""
        for row, field in enumerate(source.rows):
            values = source.values[row]
            bad = ~np.isfinite(values)
            never = field != 'position' and not source.measured[field]
            if bad.any() and not (never and not np.isinf(values).any()):
                names = [f"'{self.joint_names[i]}' = {value}" for i, value in
                         zip(source.targets[bad], values[bad])]
                self.refuse('not finite', f'{field} of ' + ', '.join(names[:5]))
                return False
        return True

    def _merge(self, source: _Source, ns: int) -> bool:
        """Take over what the source has; tell whether all is there and it is time to deliver."""
        self._express = None
        targets = source.targets
        self._updated_ns[targets] = ns
        self.positions[targets] = source.values[0]
        self._take_optional(source, 'velocity', self.velocities)
        self._take_optional(source, 'effort', self.efforts)
        if not self._leads(source, ns) or self._lacks_joints(ns):
            return False
        self._difference(ns)
        if source.is_whole and all(source.measured.values()):
            self._express = source
        return True

    def _take_optional(self, source: _Source, field: str, out: np.ndarray) -> None:
        present = field in source.rows
        values = source.values[source.rows.index(field)] if present else None
        finite = values is not None and np.isfinite(values).all()
        source.measured[field] = source.measured[field] or bool(finite)
        self._measured[field][source.targets] = finite
        out[source.targets] = values if finite else 0.0

    def _leads(self, source: _Source, ns: int) -> bool:
        """Tell whether this source sets the pace: complete, or the largest that is alive."""
        leader = self._leader
        if (leader is None or source.is_complete
                or ns - leader.last_ns > self.timeout * _SECOND
                or len(source.targets) > len(leader.targets)):
            self._leader = leader = source
        return source is leader and ns > self._last_ns

    def _lacks_joints(self, ns: int) -> bool:
        required = self._updated_ns[:self._n_required]
        late = np.flatnonzero(required < ns - int(self.timeout * _SECOND))
        if not len(late):
            return False
        now = time.monotonic()
        self._first_arrival = now if self._first_arrival is None else self._first_arrival
        if now - self._first_arrival > self.timeout or self.count:
            never = bool((required[late] == _NEVER).any())
            self.refuse('missing joints', (
                f'joint {_quoted([self.joint_names[i] for i in late])} '
                + ('was never received' if never
                   else f'not received for {(ns - required[late].min()) / _SECOND:.2f} s')))
        return True

    def _difference(self, ns: int) -> None:
        """Replace velocities that are not measured by differences of the positions."""
        unknown = ~self._measured['velocity']
        dt = (ns - self._last_delivery_ns) / _SECOND
        if unknown.any() and self._last_delivery_ns != _NEVER and dt > 0.0:
            self.velocities[unknown] = (self.positions - self._last_positions)[unknown] / dt
        self._last_positions[...] = self.positions
        self._last_delivery_ns = ns
