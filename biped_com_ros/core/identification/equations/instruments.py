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
Errors of the instruments that stay the same over all poses, and their estimates.

What is measured is related to what is true by

- joint positions: ``measured = true + offset``;
- joint torques: ``measured = (1 + gain) true + offset + friction s``, with s = +1 or -1 the
  direction in which the joint came to rest, 0 where that is unknown;
- the direction of gravity: ``measured = exp(tilt) true``;
- the floor, which counts as level, and the soles, which stand on it (:mod:`soles`);
- wrenches: ``measured = (1 + E) w + bias + drift t`` with w the wrench in the frame where the
  sensor really is, shifted by ``shift`` and turned by the rotation vector ``turn`` from its frame
  in the URDF, and t the time, from -1/2 at the first to 1/2 at the last capture.

From statics alone shift and turn of a sensor cannot be distinguished from the skew parts of E: the
priors divide the error between them, and what is used, the product of both, is known much better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
import enum
from functools import cached_property
import math
from operator import attrgetter
from typing import Any

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import wrench_adjoint
from biped_com_ros.core.identification.captures.capture import Capture
import numpy as np
import pinocchio as pin

MOMENT_ARM = 0.1
"""Ratio of moments to forces of a sensor, m: cross-talk is a share of forces times this."""

SIGNIFICANT = 2.58
"""An error is significant if it is this many standard deviations from zero (99 %)."""

AXES = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
XYZ = ('x', 'y', 'z')
MATRIX_AXES = tuple(f'{row},{column}' for row in AXES for column in AXES)


class InstrumentKind(enum.Enum):
    """
    What is wrong with an instrument; the value is its name in files.

    Attributes
    ----------
    words
        The kind in words.
    axes
        Names of the numbers that each instrument has of it.
    remedy
        What makes it observable where the poses cannot separate it from other errors.

    """

    words: str
    axes: tuple[str, ...]
    remedy: str

    def __new__(cls, value: str, words: str = '', axes: tuple[str, ...] = (),
                remedy: str = '') -> InstrumentKind:
        """Make a kind of these attributes."""
        kind = object.__new__(cls)
        kind._value_, kind.words, kind.axes, kind.remedy = value, words, axes, remedy
        return kind

    JOINT_OFFSET = ('joint_offset', 'joint offset', ('',),
                    'capture these joints over a wider range, hoisted as well')
    TORQUE_GAIN = ('torque_gain', 'torque constant', ('',), 'add poses that load these joints in '
                   'both directions, or a known payload')
    TORQUE_OFFSET = ('torque_offset', 'torque offset', ('',),
                     'add poses that load these joints in both directions')
    FRICTION = 'friction', 'friction', ('',), 'approach the same poses from both sides'
    TILT = ('tilt', 'IMU mounting', XYZ,
            'add hoisted poses, or turn the robot around on the same floor')
    WRENCH_MATRIX = ('wrench_matrix', 'gain or cross-talk', MATRIX_AXES,
                     'weigh the robot on a scale, and load the soles at known places')
    WRENCH_BIAS = 'wrench_bias', 'bias', AXES, 'tare with the feet in the air'
    WRENCH_DRIFT = 'wrench_drift', 'drift', AXES, 'repeat the first poses at the end'
    SENSOR_SHIFT = ('sensor_shift', 'place', XYZ, 'measure the place of the sensor; only its '
                    'product with gain and cross-talk counts, and that is known')
    SENSOR_TURN = ('sensor_turn', 'mounting angle', XYZ, 'measure how the sensor is mounted; only '
                   'its product with cross-talk counts, and that is known')
    FLOOR_TILT = ('floor_tilt', 'tilt', XYZ[:2],
                  'measure the floor with a level, and set floor_tilt')
    SOLE_TURN = ('sole_turn', 'sole rotation', XYZ[:2],
                 'stand on a floor that is known to be level, and set floor_tilt')
    SOLE_HEIGHT = ('sole_height', 'sole height', XYZ[2:],
                   'capture poses with both soles on a flat floor')


K = InstrumentKind
OF_JOINTS = K.JOINT_OFFSET, K.TORQUE_GAIN, K.TORQUE_OFFSET, K.FRICTION
OF_SENSORS = K.WRENCH_MATRIX, K.WRENCH_BIAS, K.WRENCH_DRIFT, K.SENSOR_SHIFT, K.SENSOR_TURN
OF_GROUND = K.FLOOR_TILT, K.SOLE_TURN, K.SOLE_HEIGHT


@dataclass(frozen=True, kw_only=True)
class InstrumentErrors:
    """
    Errors of all instruments of a robot.

    Attributes
    ----------
    positions, torque_gains, torque_offsets, friction
        Of ``model.joint_names``, shape (n,); rad or m, 1, N m, N m.
    tilts
        Rotation vector of the direction of gravity by the link in which it is measured, (3,), rad.
    wrench_matrices
        E of each of ``config.wrench_sensors``, (sensors, 6, 6), in N and N m.
    wrench_biases, wrench_drifts
        (sensors, 6), N and N m; drifts from the first to the last capture.
    shifts, turns
        Of the sensors' frames, along the axes of the URDF's, (sensors, 3), m and rad.
    floor
        Tilt of the floor about the soles' x and y axes, (2,), rad.
    soles
        Rotation about x and y, and height, of ``config.feet``'s soles in the URDF's frame,
        (feet, 3), rad and m; (0, 3) if they were not estimated.

    """

    positions: Array
    torque_gains: Array
    torque_offsets: Array
    friction: Array
    tilts: Mapping[str, Array]
    wrench_matrices: Array
    wrench_biases: Array
    wrench_drifts: Array
    shifts: Array
    turns: Array
    floor: Array
    soles: Array

    @staticmethod
    def of(values: Mapping[InstrumentKind, Array], frames: Sequence[str]) -> InstrumentErrors:
        """
        Return the errors, given all numbers of each kind in sequence.

        Parameters
        ----------
        values
            By kind, name by name and axis by axis; without those of the ground, the floor is
            level and no sole is estimated.
        frames
            The links of the tilts.

        """
        none: Array = np.zeros(0)
        return InstrumentErrors(
            positions=values[K.JOINT_OFFSET], torque_gains=values[K.TORQUE_GAIN],
            torque_offsets=values[K.TORQUE_OFFSET], friction=values[K.FRICTION],
            tilts=dict(zip(frames, values[K.TILT].reshape(-1, 3))),
            wrench_matrices=values[K.WRENCH_MATRIX].reshape(-1, 6, 6),
            wrench_biases=values[K.WRENCH_BIAS].reshape(-1, 6),
            wrench_drifts=values[K.WRENCH_DRIFT].reshape(-1, 6),
            shifts=values[K.SENSOR_SHIFT].reshape(-1, 3),
            turns=values[K.SENSOR_TURN].reshape(-1, 3),
            floor=values.get(K.FLOOR_TILT, np.zeros(2)),
            soles=np.column_stack((values.get(K.SOLE_TURN, none).reshape(-1, 2),
                                   values.get(K.SOLE_HEIGHT, none))))

    def correction(self, sensor: int) -> Array:
        """Return the matrix (6, 6) that turns readings less bias into true wrenches."""
        R = pin.exp3(self.turns[sensor])
        X = wrench_adjoint(R, self.shifts[sensor])
        return np.asarray(X @ np.linalg.inv(np.eye(6) + self.wrench_matrices[sensor]))

    @cached_property
    def corrections(self) -> Array:
        """Return those matrices of all sensors, (sensors, 6, 6)."""
        return np.array([self.correction(i) for i in range(len(self.turns))]).reshape(-1, 6, 6)

    def corrected(self, capture: Capture, when: float = 0.0) -> Capture:
        """
        Return a capture as perfect instruments would have measured it.

        Parameters
        ----------
        capture
            As measured.
        when
            From -1/2, the first capture, to 1/2, the last one; see `times_of`.

        """
        tilt = self.tilts.get(capture.up_frame)
        up = capture.up if tilt is None else pin.exp3(-tilt) @ capture.up
        wrenches = np.einsum(
            'sij,sj->si', self.corrections,
            capture.wrenches - self.wrench_biases - when * self.wrench_drifts)
        torques = capture.torques - self.torque_offsets - self.friction * directions_of(capture)
        return replace(capture, positions=capture.positions - self.positions, up=up,
                       wrenches=wrenches, torques=torques / (1.0 + self.torque_gains))


def times_of(captures: Sequence[Capture]) -> Array:
    """
    Return when each capture was taken, from -1/2, the first, to 1/2, the last one, (captures,).

    By their sequence where one of them does not have its time.
    """
    times = np.array([capture.time for capture in captures])
    if not np.isfinite(times).all():
        times = np.arange(len(captures), dtype=float)
    duration = np.ptp(times) if len(times) else 0.0
    return np.asarray((times - times.min()) / duration - 0.5 if duration else 0.0 * times)


def directions_of(capture: Capture) -> Array:
    """Return the direction in which each joint came to rest, 0 where unknown, (n,)."""
    return np.zeros(len(capture.positions)) if capture.approach is None else capture.approach


@dataclass(frozen=True, kw_only=True)
class InstrumentEstimate:
    """
    One number that describes what is wrong with an instrument.

    Attributes
    ----------
    kind
        What is wrong.
    name
        Joint, wrench sensor, or the link in which the direction of gravity is measured.
    axis
        Of vectors ``x``; of wrenches ``fx``; of matrices ``fx,ty``: how the second enters the
        reading of the first; else ''.
    unit
        Of the numbers.
    prior_sd, estimate, sd
        Standard deviation before the data (around zero), estimate, standard deviation after.

    """

    kind: InstrumentKind
    name: str
    axis: str
    unit: str
    prior_sd: float
    estimate: float
    sd: float

    @property
    def is_significant(self) -> bool:
        """Whether it differs from zero significantly."""
        return abs(self.estimate) > SIGNIFICANT * self.sd

    @property
    def data_share(self) -> float:
        """Return the share of the variance that the data removed."""
        return 1.0 - min(1.0, (self.sd / self.prior_sd) ** 2) if self.prior_sd > 0.0 else 0.0

    @property
    def remedy(self) -> str:
        """Return what to do about it; '' if it is not significant."""
        return _remedy(self) if self.is_significant else ''

    def describe(self) -> str:
        """Return what it is of, in words."""
        axis = f' {self.axis}' if self.axis else ''
        return f'{self.kind.words}{axis} of {self.name or "the base"}'


def _remedy(e: InstrumentEstimate) -> str:
    value, degrees, millimetres = e.estimate, math.degrees(e.estimate), 1e3 * e.estimate
    excess = 'too little' if value < 0.0 else 'too much'
    return {
        K.JOINT_OFFSET: f'zero the encoder again: it reads {abs(degrees):.2f} deg {excess}'
                        if e.unit == 'rad' else
                        f'zero the position again: it reads {abs(millimetres):.2f} mm {excess}',
        K.TORQUE_GAIN: f'divide the torque constant by {1.0 + value:.3f}',
        K.TORQUE_OFFSET: f'tare the torque: it reads {abs(value):.2f} {e.unit} {excess}',
        K.FRICTION: f'model {value:.2f} {e.unit} of friction' if value > 0.0 else
                    'none is negative: rest longer before a capture, and check the side from '
                    'which the joint came',
        K.TILT: f'shim or declare the mounting: turned by {degrees:+.2f} deg about {e.axis}',
        K.WRENCH_MATRIX: 'recalibrate the sensor, or apply the estimated matrix',
        K.WRENCH_BIAS: f'tare the sensor: it reads {abs(value):.3g} {e.unit} {excess}',
        K.WRENCH_DRIFT: f'let the sensor warm up: it drifts by {value:+.3g} {e.unit}',
        K.SENSOR_SHIFT: f'move the frame in the URDF by {millimetres:+.1f} mm along {e.axis}',
        K.SENSOR_TURN: f'turn the frame in the URDF by {degrees:+.2f} deg about {e.axis}',
        K.FLOOR_TILT: f"level the floor: it is turned by {degrees:+.2f} deg about the soles' "
                      f'{e.axis} axis',
        K.SOLE_TURN: f"turn the sole's frame in the URDF by {degrees:+.2f} deg about {e.axis}",
        K.SOLE_HEIGHT: f"move the sole's frame in the URDF by {millimetres:+.1f} mm along "
                       f'{e.axis}'}[e.kind]


@dataclass(frozen=True)
class InstrumentCalibration:
    """
    Estimates of all instrument errors, as they are written to files and used.

    Attributes
    ----------
    estimates
        Of single numbers; those that were not estimated are missing and count as zero.

    """

    estimates: tuple[InstrumentEstimate, ...] = ()

    def of(self, kind: InstrumentKind, name: str = '') -> tuple[InstrumentEstimate, ...]:
        """Return those of one kind, and of one joint, sensor or link if `name` is given."""
        return tuple(e for e in self.estimates if e.kind is kind and name in ('', e.name))

    def errors(self, joints: Sequence[str], sensors: Sequence[str]) -> InstrumentErrors:
        """Return the errors of these joints and wrench sensors, in their order."""
        found = {(e.kind, e.name, e.axis): e.estimate for e in self.estimates}
        frames = sorted({e.name for e in self.of(K.TILT)})
        names = {**dict.fromkeys(OF_JOINTS, joints), K.TILT: frames,
                 **dict.fromkeys(OF_SENSORS, sensors)}
        return InstrumentErrors.of({
            kind: np.array([found.get((kind, name, axis), 0.0) for name in names[kind]
                            for axis in kind.axes]) for kind in names}, frames)

    def to_json(self) -> dict[str, Any]:
        """
        Return plain numbers for ``calibration.json``.

        Returns
        -------
        dict
            ``joint_offsets``, ``torque_gains``, ``torque_offsets`` and ``friction`` by joint and
            ``tilts`` by link and axis, each with estimate, sd, prior_sd, significant, unit and
            remedy; ``wrench_sensors`` by sensor with ``correction`` (6, 6) and ``bias`` (6,), so
            that the true wrench in the URDF's frame is ``correction @ (measured - bias)``, and
            every number behind them in ``parameters``; ``ground`` by kind, ``floor`` or foot, and
            axis.

        """
        sensors = dict.fromkeys(e.name for kind in OF_SENSORS for e in self.of(kind))
        ground = [e for kind in OF_GROUND for e in self.of(kind)]
        return {**{_key(kind): _tree(self.of(kind), 'name') for kind in OF_JOINTS},
                'tilts': _tree(self.of(K.TILT), 'name', 'axis'),
                'ground': _tree(ground, 'kind.value', 'name', 'axis'),
                'wrench_sensors': {name: self._sensor(name) for name in sensors}}

    def _sensor(self, name: str) -> dict[str, Any]:
        errors = self.errors((), (name,))
        return {'correction': errors.correction(0).tolist(),
                'bias': errors.wrench_biases[0].tolist(),
                'parameters': {kind.value: _tree(self.of(kind, name), 'axis')
                               for kind in OF_SENSORS}}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> InstrumentCalibration:
        """Return what `to_json` wrote; correction and bias follow from the parameters."""
        found = [_estimate(kind, name, '', item) for kind in OF_JOINTS
                 for name, item in values.get(_key(kind), {}).items()]
        named = [(K.TILT, name, axes) for name, axes in values.get('tilts', {}).items()]
        named += [(K(kind), name, axes)
                  for name, sensor in values.get('wrench_sensors', {}).items()
                  for kind, axes in sensor['parameters'].items()]
        named += [(K(kind), name, axes) for kind, names in values.get('ground', {}).items()
                  for name, axes in names.items()]
        found += [_estimate(kind, name, axis, item) for kind, name, axes in named
                  for axis, item in axes.items()]
        return InstrumentCalibration(tuple(found))


def _key(kind: InstrumentKind) -> str:
    """Return the key of a kind of errors of joints."""
    return kind.value if kind is K.FRICTION else f'{kind.value}s'


def _tree(estimates: Iterable[InstrumentEstimate], *levels: str) -> dict[str, Any]:
    """Return plain values of estimates by these attributes."""
    tree: dict[str, Any] = {}
    for e in estimates:
        node = tree
        *path, last = (attrgetter(level)(e) for level in levels)
        for key in path:
            node = node.setdefault(key, {})
        node[last] = {'estimate': e.estimate, 'sd': e.sd, 'prior_sd': e.prior_sd,
                      'significant': e.is_significant, 'unit': e.unit, 'remedy': e.remedy}
    return tree


def _estimate(kind: InstrumentKind, name: str, axis: str,
              item: Mapping[str, Any]) -> InstrumentEstimate:
    return InstrumentEstimate(
        kind=kind, name=name, axis=axis, unit=str(item['unit']),
        prior_sd=float(item['prior_sd']), estimate=float(item['estimate']), sd=float(item['sd']))
