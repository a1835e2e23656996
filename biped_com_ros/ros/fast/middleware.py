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
Lets Fast DDS wake a process less often, where nobody has set it up otherwise.

After each message to a reliable subscriber, a controller say, Fast DDS 2 starts a timer of no
duration, and its thread interrupts the one that computes, several times per message. The profiles
in ``config/fast_dds.xml`` give the timer a duration; what they change is said there.
"""

from __future__ import annotations

from collections.abc import MutableMapping
import os
from pathlib import Path

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.resources import resolve_uri
import rclpy

#: What Fast DDS 2 (up to Jazzy) reads; so does Fast DDS 3, which has other words for the profiles.
_VARIABLE = 'FASTRTPS_DEFAULT_PROFILES_FILE'
_OWN_VARIABLES = (_VARIABLE, 'FASTDDS_DEFAULT_PROFILES_FILE', 'RMW_FASTRTPS_USE_QOS_FROM_XML')
_OWN_FILES = ('DEFAULT_FASTRTPS_PROFILES.xml', 'DEFAULT_FASTDDS_PROFILES.xml')


def tune_middleware(environment: MutableMapping[str, str] | None = None) -> None:
    """
    Name the profiles to Fast DDS, unless the user has profiles; before rclpy is initialised.

    Parameters
    ----------
    environment
        Default: the process's.

    """
    environment = os.environ if environment is None else environment
    if (any(name in environment for name in _OWN_VARIABLES)
            or any(Path(name).exists() for name in _OWN_FILES) or not is_fast_dds_2()):
        return
    try:
        environment[_VARIABLE] = str(resolve_uri('config/fast_dds.xml'))
    except ConfigurationError:  # nothing but time is lost
        pass


def is_fast_dds_2() -> bool:
    """Tell whether ROS 2 is installed with version 2, whose library has another name than 3's."""
    # rclpy is in lib/python3.*/site-packages/rclpy.
    return any(Path(rclpy.__file__).parents[3].glob('libfastrtps.so*'))
