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
What to start: a list of programs for each launch file, decided in Python.

`arguments` has the launch arguments, each once. `nodes`, `simulations` and `views` decide by them
which `programs` to start; `files` lists the launch files. ``launch/*.launch.py`` give such a list
to ROS 2's launch (`ros2_launch`); ``run_launch`` starts the same list where that is not
installed (`run`, with `supervisor`, `console` and `isolation`).

``run_launch`` differs from ``ros2 launch`` (3.4.3) in two things: its exit code is that of the
first process that failed; and the delay before a process is respawned doubles while it keeps
failing within 20 s, up to 60 s, and one that refuses its arguments (exit code 1) at its first
start is not respawned.
"""

from biped_com_ros.interrupts import end_quietly

end_quietly()
