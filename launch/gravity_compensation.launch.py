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
Gravity compensation, for a robot whose estimators run.

::

    ros2 launch biped_com_ros gravity_compensation.launch.py robot:=talos
    run_launch gravity_compensation robot:=talos      # without ros2 launch
"""

from biped_com_ros.launching.ros2_launch import description


def generate_launch_description():
    """Return what is executed."""
    return description('gravity_compensation')
