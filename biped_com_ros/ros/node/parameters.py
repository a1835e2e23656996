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
Parameters of a node as a frozen dataclass: declared with ranges, typed, and validated.

Those of former versions in files of users are ignored, with a warning that names a remedy.

Examples
--------
>>> @dataclass(frozen=True)
... class Parameters:
...     tf_rate: float = setting(30.0, 'How often TF is sent', unit='Hz', minimum=0.0)
>>> handle = declare_parameters(node, Parameters)

"""

from __future__ import annotations

from collections.abc import Callable, Collection
import functools
import math
import typing
from typing import Any, Generic, TypeVar

from biped_com_ros.core.errors import BipedComError, ConfigurationError
from biped_com_ros.core.settings import make_settings, setting, setting_fields, SettingInfo
from biped_com_ros.ros.fast.compat import parameter_override, parameter_overrides
from rcl_interfaces.msg import (
    FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult)
from rclpy.node import Node
from rclpy.parameter import Parameter

_CONSTANTS = frozenset((
    'anticipation', 'approach_angle', 'approach_speed', 'arrival_tolerance', 'bias_force_drift',
    'bias_force_temperature', 'bias_lift', 'bias_torque', 'bias_torque_drift',
    'bias_torque_temperature', 'broken_time', 'com_tolerance', 'contact_engage_dwell',
    'contact_period', 'contact_release_dwell', 'contact_tolerance', 'cop_min_share',
    'cop_tolerance', 'dcm_margin_unstable', 'edge_height', 'effort_deviation', 'evidence',
    'fallback_rate', 'filter_accelerometer_noise', 'filter_gyro_noise', 'filter_leg_deviation',
    'filter_odometry_heading', 'filter_slip', 'follow_time', 'force_deviation', 'force_scale',
    'fusion_delay_deviation', 'fusion_kinematics', 'fusion_link_com', 'fusion_link_mass',
    'fusion_load_mass', 'fusion_load_moment', 'fusion_sensor_bias', 'fusion_sensor_crosstalk',
    'fusion_sensor_frame', 'fusion_sensor_gain', 'fusion_sensor_rotation', 'halt_margin',
    'hand_deviation', 'hand_force', 'imu_disagreement', 'joy_dead_zone', 'knot_period', 'lead',
    'lean_time', 'lean_unstable', 'level_dwell', 'low_pass_order', 'margin_hysteresis',
    'marker_density', 'marker_scale', 'max_browsers', 'max_correction', 'max_ground_tilt',
    'max_turn_rate', 'min_force_share', 'model_cutoff', 'model_deviation', 'moment_deviation',
    'observer_time', 'payload_rate', 'payload_timeout', 'posture_tolerance', 'recovery_time',
    'settle', 'settle_time', 'share_full', 'share_rate', 'slack_tension', 'slack_time',
    'smoothing', 'sole_margin', 'step_height', 'still_joint_range', 'tare_max_offset_share',
    'tare_max_torque_deviation', 'temperature_timeout', 'tilt_hysteresis', 'torque_lever',
    'torsional_friction', 'trail', 'virtual_cutoff', 'virtual_hand_cutoff',
    'virtual_hand_effort_deviation', 'virtual_hand_link_com', 'virtual_hand_link_mass',
    'walking_timeout', 'weight_excess', 'wrench_cutoff', 'yaw_drift_time'))
_ELEMENTS = frozenset((
    'accelerometer_noise', 'command_delay', 'cross_talk', 'drive_noise', 'drive_speed',
    'effort_gain', 'effort_noise', 'encoder_noise', 'encoder_offset', 'floor_tilt', 'force_bias',
    'force_drift', 'force_noise', 'force_range', 'force_temperature', 'friction_scatter',
    'gyro_noise', 'imu_delay', 'imu_rotation', 'joint_delay', 'joint_friction', 'joint_stiction',
    'moment_bias', 'moment_drift', 'moment_noise', 'recording_gain', 'rotor_inertia',
    'sensor_shift', 'sensor_turn', 'sole_contact', 'sole_height', 'sole_position', 'sole_turn',
    'stribeck_velocity', 'tendon_delay', 'tendon_noise', 'tendon_speed', 'tilt_bias',
    'tilt_noise', 'torque_bias', 'torque_drift', 'torque_gain', 'torque_noise', 'torque_range',
    'torque_temperature', 'velocity_noise', 'viscous_friction', 'warming', 'warming_time',
    'wrench_gain', 'wrench_position', 'wrench_rotation'))
_REMOVED = {
    'contact_topics': 'contacts have stamps: publish sensor_msgs/JointState with the names of the '
                      'feet and positions 1 or 0 on wrench_aggregator/contacts',
    'command_rate': 'the demo commands 100 times per second; remove it',
    'display': 'the demo shows a table on a terminal, else plain lines; remove it',
    'period': 'the demo shows its table each second; remove it',
    'model_method': "the model's ZMP is always that of the whole angular momentum; remove it",
    'record_storage': "recordings are MCAP; remove it, and convert with 'ros2 bag convert'",
    'filter_floor_deviation': "it is 'filter_level_floor' now; set that to false where it was 0",
    'tare_samples': 'a tare averages over a time: set tare_duration, in seconds'}
_RENAMED = {
    'contact_timeout': 'sensor_timeout', 'fusion_wrench_delay': 'wrench_delay',
    'share_lift': 'unload_threshold', 'unlimited_joints': 'default_effort_limit',
    'weight_missing': 'max_missing_weight'}


def remedy(name: str) -> str:
    """Return what became of a former parameter, and what to do; '' if there was none."""
    if name in _CONSTANTS:
        return 'it is a constant now; remove it from your parameter file'
    if name in _ELEMENTS:
        return (f"since version 0.2.0 it is an element '{name} <value>' of the list errors "
                '(simulator) or noise (com_calibrator)')
    if name in _REMOVED:
        return _REMOVED[name]
    if name in _RENAMED:
        return f"since version 0.2.0 its name is '{_RENAMED[name]}'"
    return ''


_T = TypeVar('_T')
_LARGEST_INTEGER = 2 ** 63 - 1


#: `setting` that can only be set at start.
read_only = functools.partial(setting, read_only=True)


def declare_parameters(node: Node, parameters_class: type[_T],
                       on_change: Callable[[_T], None] | None = None,
                       check: Callable[[_T], object] | None = None) -> _T:
    """
    Declare the parameters of a frozen dataclass on a node and read them.

    Parameters
    ----------
    node
        The rclpy node.
    parameters_class
        Frozen dataclass whose fields come from `setting` and `settings`.
    on_change
        Called with a new instance after parameters were changed at run time; a
        ConfigurationError that it raises is logged. Invalid values are rejected before.
    check
        Called with a new instance before parameters are changed at run time; raises a
        BipedComError if its values do not go together, and the change is rejected with it.

    Returns
    -------
    parameters_class
        The values at start.

    Raises
    ------
    ConfigurationError
        If a value has the wrong type or is out of range.

    """
    declared = _DeclaredParameters(node, parameters_class, on_change, check)
    return declared.instance()


class _DeclaredParameters(Generic[_T]):
    """The parameters of a dataclass on a node."""

    def __init__(self, node: Node, parameters_class: type[_T],
                 on_change: Callable[[_T], None] | None,
                 check: Callable[[_T], object] | None) -> None:
        self._node, self._class = node, parameters_class
        self._on_change, self._check = on_change, check
        self._fields = setting_fields(parameters_class)
        self._values = {name: _declare(node, name, *field) for name, field in self._fields.items()}
        _warn_of_unknown(node, self._values)
        node.add_on_set_parameters_callback(self._validate)
        if on_change is not None:
            node.add_post_set_parameters_callback(self._apply)

    def instance(self, **changes: Any) -> _T:
        """Return the values, with these changes."""
        return make_settings(self._class, {**self._values, **changes})

    def _checked(self, changes: list[Parameter]) -> dict[str, Any]:
        return {change.name: check_value(change.name, self._fields[change.name][0],
                                         self._fields[change.name][2], change.value)
                for change in changes if change.name in self._fields}

    def _validate(self, changes: list[Parameter]) -> SetParametersResult:
        """Return whether parameters may be changed so at run time."""
        try:
            checked = self._checked(changes)
            if checked and self._check is not None:
                self._check(self.instance(**checked))
        except BipedComError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _apply(self, changes: list[Parameter]) -> None:
        checked = self._checked(changes)
        if not checked or self._on_change is None:
            return
        self._values.update(checked)
        try:
            self._on_change(self.instance())
        except ConfigurationError as error:
            self._node.get_logger().error(str(error))


def _warn_of_unknown(node: Node, known: Collection[str]) -> None:
    """
    Warn of given parameters that do not exist but resemble one that does.

    Others are ignored: in a composed process a node gets the parameters of other nodes, too.
    """
    for name, value in parameter_overrides(node).items():
        if name in known or node.has_parameter(name):
            continue
        if text := remedy(name):
            node.get_logger().warning(f"parameter '{name}' = {value!r} is ignored: {text}")
            continue
        import difflib  # slow to import, and rarely needed
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if close:
            node.get_logger().warning(
                f"parameter '{name}' = {value!r} does not exist and is ignored; did you "
                f"mean '{close[0]}'? (valid: {', '.join(sorted(known))})")


def _declare(node: Node, name: str, kind: Any, default: Any, info: SettingInfo) -> Any:
    """
    Declare one parameter and return its checked value.

    It is declared with dynamic typing and converted here, so that ``tf_rate:=50`` is accepted as
    a float, and an error names the valid values.
    """
    descriptor = _descriptor(kind, info)
    given = parameter_override(node, name)
    checked = check_value(name, kind, info, default if given is None else given)
    node.declare_parameter(name, checked, descriptor, ignore_override=True)
    return checked


def _descriptor(kind: Any, info: SettingInfo) -> ParameterDescriptor:
    unit = f' [{info.unit}]' if info.unit else ''
    descriptor = ParameterDescriptor(
        description=info.description + unit, read_only=info.read_only, dynamic_typing=True,
        additional_constraints=info.constraint())
    if kind is float and (info.minimum is not None or info.maximum is not None):
        descriptor.floating_point_range = [FloatingPointRange(
            from_value=-math.inf if info.minimum is None else float(info.minimum),
            to_value=math.inf if info.maximum is None else float(info.maximum))]
    elif kind is int and (info.minimum is not None or info.maximum is not None):
        descriptor.integer_range = [IntegerRange(
            from_value=-_LARGEST_INTEGER if info.minimum is None else int(info.minimum),
            to_value=_LARGEST_INTEGER if info.maximum is None else int(info.maximum))]
    return descriptor


def check_value(name: str, kind: Any, info: SettingInfo, value: Any) -> Any:
    """
    Return the value converted to its type.

    Raises
    ------
    ConfigurationError
        If it is invalid; the message names the parameter, the value and the valid values.

    """
    element_kind = typing.get_args(kind)
    if element_kind:
        if isinstance(value, (str, bytes)) or not hasattr(value, '__len__'):
            raise _invalid(name, value, info, f'has to be a list of {element_kind[0].__name__}')
        return typing.get_origin(kind)(
            _check_element(f'{name}[{i}]', element_kind[0], info, element)
            for i, element in enumerate(value))
    return _check_element(name, kind, info, value)


def _check_element(name: str, kind: Any, info: SettingInfo, value: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _invalid(name, value, info, f'has to be a {_name_of(kind)}')
    if problem := info.problem(value):
        raise _invalid(name, value, info, problem)
    return value


def _name_of(kind: type) -> str:
    return {float: 'number', int: 'whole number', bool: 'bool (true or false)',
            str: 'string'}[kind]


def _invalid(name: str, value: Any, info: SettingInfo, problem: str) -> ConfigurationError:
    constraint = info.constraint()
    valid = f'; valid: {constraint}' if constraint else ''
    return ConfigurationError(f"parameter '{name}': {value!r} {problem}{valid}")
