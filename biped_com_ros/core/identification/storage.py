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
"""Captures on disk; the file is complete after every capture."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.files import write_atomically
from biped_com_ros.core.identification.captures import Capture
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

FORMAT = 1
_ARRAYS = ('positions', 'wrenches', 'in_contact', 'up', 'torques', 'position_variance',
           'wrench_variance', 'torque_variance')


class CaptureLog:
    """
    Captures of one robot in a JSON file, which is rewritten with every capture.

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
        If the file cannot be read or is of another robot.

    """

    def __init__(self, path: Path, model: RobotModel) -> None:
        self.path, self._model = path, model
        self.captures: list[Capture] = self._read() if path.exists() else []

    def append(self, capture: Capture) -> None:
        """Add a capture and write the file; one of the same name is replaced."""
        same = [i for i, c in enumerate(self.captures) if capture.name and c.name == capture.name]
        if same:
            self.captures[same[0]] = capture
        else:
            self.captures.append(capture)
        self._write()

    def clear(self) -> Path | None:
        """Remove all captures; the old file is kept under the returned path."""
        kept = None
        if self.path.exists():
            kept = _unused(self.path)
            self.path.replace(kept)
        self.captures = []
        return kept

    def _read(self) -> list[Capture]:
        try:
            values = json.loads(self.path.read_text(encoding='utf-8'))
            self._check(values)
            return [_capture(item) for item in values['captures']]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"captures in '{self.path}' cannot be read ({error}); move the file away to "
                'begin again') from None

    def _check(self, values: dict[str, Any]) -> None:
        for key, value in self._header().items():
            if values.get(key) != value:
                raise ConfigurationError(
                    f"captures in '{self.path}' are of another robot or version: {key} is "
                    f'{values.get(key)}, here it is {value}; give another directory')

    def _header(self) -> dict[str, Any]:
        config = self._model.config
        return {'format': FORMAT, 'robot': config.name,
                'joints': list(self._model.joint_names),
                'wrench_sensors': list(config.wrench_sensors), 'feet': list(config.feet)}

    def _write(self) -> None:
        values = {**self._header(), 'captures': [_plain(c) for c in self.captures]}
        write_atomically(self.path, json.dumps(values, indent=1))


def _plain(capture: Capture) -> dict[str, Any]:
    plain: dict[str, Any] = {'name': capture.name, 'up_frame': capture.up_frame}
    for key in _ARRAYS:
        value = getattr(capture, key)
        plain[key] = None if value is None else _without_nan(np.asarray(value).tolist())
    return plain


def _without_nan(value: Any) -> Any:
    """Replace NaN by None, because JSON has no NaN."""
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _capture(plain: dict[str, Any]) -> Capture:
    arrays: dict[str, Any] = {key: None if plain[key] is None else np.array(
        plain[key], dtype=bool if key == 'in_contact' else float) for key in _ARRAYS}
    return Capture(up_frame=str(plain['up_frame']), name=str(plain['name']), **arrays)


def _unused(path: Path) -> Path:
    number = 1
    while (candidate := path.with_name(f'{path.stem}.{number}{path.suffix}')).exists():
        number += 1
    return candidate
