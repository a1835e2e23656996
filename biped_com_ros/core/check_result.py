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
"""What a comparison of measurements with the robot's model results in, for diagnostics."""

from __future__ import annotations

from typing import NamedTuple


class CheckResult(NamedTuple):
    """
    Result of a comparison.

    Attributes
    ----------
    plausible
        Whether they agree, or cannot be compared.
    message
        For the user: problem, value, remedy, if they do not.
    values
        What was compared, with units, by name.

    """

    plausible: bool
    message: str
    values: dict[str, float]
