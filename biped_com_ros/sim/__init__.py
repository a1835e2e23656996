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
Simulated robot in MuJoCo: ground truth that shares no code with the estimators.

No ROS: topics and services are in `nodes.simulator`.
"""

from __future__ import annotations

from biped_com_ros.core.errors import MissingPackageError

try:
    import mujoco  # noqa: F401
except ImportError as error:
    raise MissingPackageError(
        f'the simulator needs the Python package mujoco, which cannot be imported ({error}): '
        'pip install mujoco (with ROS 2 from apt: pip install --user --break-system-packages '
        'mujoco)', name='mujoco') from None
