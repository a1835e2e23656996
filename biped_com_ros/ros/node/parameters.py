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

Examples
--------
>>> @dataclass(frozen=True)
... class Parameters:
...     tf_rate: float = parameter(30.0, 'How often TF is sent', unit='Hz', minimum=0.0)
>>> handle = declare_parameters(node, Parameters)

"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
import dataclasses
from dataclasses import dataclass
import functools
import math
import typing
from typing import Any, Generic, TypeVar

from biped_com_ros.core.errors import BipedComError, ConfigurationError, SettingError
from biped_com_ros.ros.fast.compat import parameter_override, parameter_overrides
from rcl_interfaces.msg import (
    FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult)
from rclpy.node import Node
from rclpy.parameter import Parameter

_T = TypeVar('_T')
_KEY = 'biped_com_ros'
_LARGEST_INTEGER = 2 ** 63 - 1
#: Former parameters, which files of users may still set.
_CONSTANTS = frozenset((
    'anticipation', 'bias_force_drift', 'bias_force_temperature', 'bias_torque',
    'bias_torque_drift', 'bias_torque_temperature', 'contact_engage_dwell', 'contact_period',
    'contact_release_dwell', 'cop_tolerance', 'dcm_margin_unstable', 'evidence',
    'filter_accelerometer_noise', 'filter_gyro_noise', 'filter_leg_deviation',
    'filter_odometry_heading', 'filter_slip', 'force_scale', 'fusion_kinematics',
    'fusion_load_mass', 'fusion_load_moment', 'fusion_sensor_bias', 'fusion_sensor_crosstalk',
    'fusion_sensor_frame', 'fusion_sensor_gain', 'fusion_sensor_rotation', 'halt_margin',
    'hand_deviation', 'imu_disagreement', 'knot_period', 'lean_time', 'low_pass_order',
    'margin_hysteresis', 'marker_density', 'marker_scale', 'max_correction', 'max_turn_rate',
    'min_force_share', 'model_deviation', 'moment_deviation', 'share_full', 'share_rate',
    'slack_time', 'tare_max_offset_share', 'temperature_timeout', 'tilt_hysteresis',
    'torque_lever', 'trail', 'virtual_hand_link_com', 'virtual_hand_link_mass',
    'walking_timeout', 'weight_excess'))


@dataclass(frozen=True)
class ParameterInfo:
    """Description and valid values of a parameter."""

    description: str
    unit: str = ''
    minimum: float | None = None
    maximum: float | None = None
    options: tuple[Any, ...] = ()
    read_only: bool = False

    def text(self) -> str:
        """Return description, unit and valid values, as in parameter files."""
        unit = f' [{self.unit}]' if self.unit else ''
        valid = f' ({self.constraint()})' if self.constraint() else ''
        return f'{self.description}{unit}{valid}'

    def constraint(self) -> str:
        """Return the valid values as text; '' if every value of the type is valid."""
        unit = f' {self.unit}' if self.unit else ''
        if self.options:
            return 'one of ' + ', '.join(repr(option) for option in self.options)
        if self.minimum is not None and self.maximum is not None:
            return f'{self.minimum:g} to {self.maximum:g}{unit}'
        if self.minimum is not None:
            return f'at least {self.minimum:g}{unit}'
        return f'at most {self.maximum:g}{unit}' if self.maximum is not None else ''


def parameter(default: Any, description: str, unit: str = '', minimum: float | None = None,
              maximum: float | None = None, options: Sequence[Any] = (),
              read_only: bool = False) -> Any:
    """
    Return a dataclass field that is a ROS parameter.

    Parameters
    ----------
    default
        Default value; lists are copied.
    description, unit
        For ``ros2 param describe``.
    minimum, maximum
        Valid range, both included (of each element, if it is a list).
    options
        Valid values (of each element, if it is a list), if they can be listed.
    read_only
        Whether it can only be set at start.

    """
    info = ParameterInfo(description, unit, minimum, maximum, tuple(options), read_only)
    metadata = {_KEY: info}
    if isinstance(default, (list, tuple)):
        values = list(default)
        return dataclasses.field(default_factory=lambda: list(values), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


#: `parameter` that can only be set at start.
read_only = functools.partial(parameter, read_only=True)


def settings_from(params: object, settings_class: Callable[..., _T], prefix: str = '',
                  names: Mapping[str, str] | None = None, **others: Any) -> _T:
    """
    Build a settings object from the parameters that are named like its fields.

    Parameters
    ----------
    params
        Values of a dataclass of parameters.
    settings_class
        A dataclass. Fields for which there is neither a parameter nor a value keep their default.
    prefix
        Which the names of the parameters have before the names of the fields.
    names
        Parameters that are named differently, by field.
    others
        Values of fields that are computed.

    Raises
    ------
    ConfigurationError
        If a value is out of range; the message names the parameter.

    """
    fields: Any = dataclasses.fields(settings_class)  # type: ignore[arg-type]
    names = {**{field.name: prefix + field.name for field in fields}, **(names or {})}
    given = {field: getattr(params, name) for field, name in names.items()
             if field not in others and hasattr(params, name)}
    try:
        return settings_class(**given, **others)
    except SettingError as error:
        raise error.renamed({field: names[field] for field in given}) from None


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
        Frozen dataclass whose fields come from `parameter`.
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
        self._fields = parameter_fields(parameters_class)
        self._values = {name: _declare(node, name, *field)
                        for name, field in self._fields.items()}
        _warn_of_unknown(node, self._values)
        node.add_on_set_parameters_callback(self._validate)
        if on_change is not None:
            node.add_post_set_parameters_callback(self._apply)

    def instance(self, **changes: Any) -> _T:
        """Return the values, with these changes."""
        return self._class(**{**self._values, **changes})

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
        if name in _CONSTANTS:
            node.get_logger().warning(
                f"parameter '{name}' = {value!r} is ignored: it is a constant since version "
                '0.2.0; remove it from your parameter file')
            continue
        import difflib  # slow to import, and rarely needed
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if close:
            node.get_logger().warning(
                f"parameter '{name}' = {value!r} does not exist and is ignored; did you "
                f"mean '{close[0]}'? (valid: {', '.join(sorted(known))})")


def parameter_fields(parameters_class: type) -> dict[str, tuple[Any, Any, ParameterInfo]]:
    """Return type, default and `ParameterInfo` of each parameter of a dataclass, by name."""
    types = typing.get_type_hints(parameters_class)
    return {field.name: (types[field.name], _default_of(field), field.metadata[_KEY])
            for field in dataclasses.fields(parameters_class)}


def _default_of(field: Any) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _declare(node: Node, name: str, kind: Any, default: Any, info: ParameterInfo) -> Any:
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


def _descriptor(kind: Any, info: ParameterInfo) -> ParameterDescriptor:
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


def check_value(name: str, kind: Any, info: ParameterInfo, value: Any) -> Any:
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
        return [_check_element(f'{name}[{i}]', element_kind[0], info, element)
                for i, element in enumerate(value)]
    return _check_element(name, kind, info, value)


def _check_element(name: str, kind: Any, info: ParameterInfo, value: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _invalid(name, value, info, f'has to be a {_name_of(kind)}')
    if kind is float and not math.isfinite(value):
        raise _invalid(name, value, info, 'has to be finite')
    if info.options and value not in info.options:
        raise _invalid(name, value, info, 'is not an option')
    too_small = info.minimum is not None and value < info.minimum
    too_large = info.maximum is not None and value > info.maximum
    if too_small or too_large:
        raise _invalid(name, value, info, 'is out of range')
    return value


def _name_of(kind: type) -> str:
    return {float: 'number', int: 'whole number', bool: 'bool (true or false)',
            str: 'string'}[kind]


def _invalid(name: str, value: Any, info: ParameterInfo, problem: str) -> ConfigurationError:
    constraint = info.constraint()
    valid = f'; valid: {constraint}' if constraint else ''
    return ConfigurationError(f"parameter '{name}': {value!r} {problem}{valid}")
