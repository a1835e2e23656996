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
"""The file of captures: rewritten as a whole with each, and checked as a whole when it is read."""

from __future__ import annotations

import json
import math
from pathlib import Path
import reprlib
from typing import Any

from biped_com_ros.core.errors import BipedComError, ConfigurationError
from biped_com_ros.core.files import read_text, remove_abandoned, write_atomically
from biped_com_ros.core.identification.captures.capture import Capture, check_values
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

FORMAT = 1
_ARRAYS = ('positions', 'wrenches', 'in_contact', 'up', 'torques', 'position_variance',
           'wrench_variance', 'torque_variance', 'approach')
_OPTIONAL = _ARRAYS[5:]


class CaptureLog:
    """
    Captures of one robot in a JSON file, which is rewritten with every capture.

    What `append` has returned from is in the file, whatever happens later; what it refused is
    neither in the file nor in `captures`.

    Parameters
    ----------
    path
        The file; read if it exists.
    model
        The robot; a file of another one is not used, nor changed.

    Attributes
    ----------
    captures
        In the sequence in which they were taken.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, is damaged, or is of another robot.

    """

    def __init__(self, path: Path, model: RobotModel) -> None:
        self.path, self._model = path, model
        remove_abandoned(path)
        self.captures: list[Capture] = self._read() if path.exists() else []

    def append(self, capture: Capture) -> None:
        """
        Add a capture and write the file; one of the same name is replaced.

        Raises
        ------
        ConfigurationError
            If the file cannot be written; the capture is not added then.

        """
        captures = list(self.captures)
        same = [i for i, c in enumerate(captures) if capture.name and c.name == capture.name]
        if same:
            captures[same[0]] = capture
        else:
            captures.append(capture)
        self._write(captures)
        self.captures = captures

    def clear(self) -> Path | None:
        """
        Remove all captures; the old file is kept under the returned path.

        Raises
        ------
        ConfigurationError
            If it cannot be renamed; nothing is removed then.

        """
        kept = None
        if self.path.exists():
            kept = _unused(self.path)
            try:
                self.path.replace(kept)
            except OSError as error:
                raise ConfigurationError(
                    f"captures in '{self.path}' cannot be moved to '{kept}': {error.strerror}; "
                    'make the directory writable') from None
        self.captures = []
        return kept

    def _read(self) -> list[Capture]:
        text = read_text(self.path, 'file of captures')
        try:
            values = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise self._damaged(str(error)) from None
        if not isinstance(values, dict):
            raise self._damaged(f'it holds {_kind(values)}, not an object')
        self._check_header(values)
        items = values.get('captures')
        if not isinstance(items, list):
            raise self._damaged(f"'captures' is {_kind(items)}, not a list")
        return [self._capture(item, i + 1) for i, item in enumerate(items)]

    def _capture(self, plain: Any, number: int) -> Capture:
        try:
            capture = _from_plain(plain)
            check_values(self._model, capture)
            if capture.up_frame:
                self._model.frames((capture.up_frame,))
        except (BipedComError, KeyError, TypeError, ValueError, OverflowError) as error:
            missing = f'{error} is missing' if isinstance(error, KeyError) else error
            raise self._damaged(f'capture {number}: {missing}') from None
        return capture

    def _damaged(self, problem: str) -> ConfigurationError:
        return ConfigurationError(
            f"captures in '{self.path}' cannot be read ({problem}); move the file away to begin "
            'again')

    def _check_header(self, values: dict[str, Any]) -> None:
        for key, value in self._header().items():
            if values.get(key, {} if key == 'instruments' else None) != value:
                raise ConfigurationError(
                    f"captures in '{self.path}' are of another robot or version: {key} is "
                    f'{reprlib.repr(values.get(key))}, here it is {value!r}; give another '
                    'directory')

    def _header(self) -> dict[str, Any]:
        config = self._model.config
        return {'format': FORMAT, 'robot': config.name,
                'joints': list(self._model.joint_names),
                'wrench_sensors': list(config.wrench_sensors), 'feet': list(config.feet),
                'instruments': config.instruments.to_plain()}

    def _write(self, captures: list[Capture]) -> None:
        values = {**self._header(), 'captures': [_to_plain(c) for c in captures]}
        write_atomically(self.path, json.dumps(values, indent=1, allow_nan=False))


def _to_plain(capture: Capture) -> dict[str, Any]:
    plain: dict[str, Any] = {'name': capture.name, 'up_frame': capture.up_frame,
                             'time': _without_nan(float(capture.time))}
    for key in _ARRAYS:
        value = getattr(capture, key)
        plain[key] = None if value is None else _without_nan(np.asarray(value).tolist())
    return plain


def _without_nan(value: Any) -> Any:
    """Replace NaN by None, because JSON has no NaN."""
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _from_plain(plain: Any) -> Capture:
    """Return a capture; values that JSON can hold, but not those of a capture, are errors."""
    if not isinstance(plain, dict):
        raise TypeError(f'it is {_kind(plain)}, not an object')
    plain = {'approach': None, 'time': None, **plain}  # files of 0.1.0 do not have them
    for key in ('up_frame', 'name'):
        if not isinstance(plain[key], str):
            raise TypeError(f"'{key}' is {_kind(plain[key])}, not a string")
    time = plain['time']
    if time is not None and type(time) not in (int, float):
        raise TypeError(f"'time' is {_kind(time)}, not a number")
    return Capture(up_frame=plain['up_frame'], name=plain['name'],
                   time=math.nan if time is None else float(time),
                   **{key: _array(key, plain[key]) for key in _ARRAYS})


def _array(key: str, value: Any) -> Any:
    if value is None and key in _OPTIONAL:
        return None
    is_truth = key == 'in_contact'
    if not _holds_only(value, (bool,) if is_truth else (int, float, type(None))):
        raise TypeError(f"'{key}' must be a list of {'true and false' if is_truth else 'numbers'}")
    return np.array(value, dtype=bool if is_truth else float)


def _holds_only(value: Any, valid: tuple[type, ...], depth: int = 2) -> bool:
    """Whether a value is a list of only these, or of such lists."""
    return isinstance(value, list) and all(
        type(item) in valid or (depth > 1 and _holds_only(item, valid, depth - 1))
        for item in value)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f'{name} is not a number')


def _kind(value: Any) -> str:
    names = {dict: 'an object', list: 'a list', str: 'a string', type(None): 'null',
             bool: 'a truth value'}
    return names.get(type(value), 'a number')


def _unused(path: Path) -> Path:
    number = 1
    while (candidate := path.with_name(f'{path.stem}.{number}{path.suffix}')).exists():
        number += 1
    return candidate
