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
Run the XML launch files where ``ros2 launch`` is not installed.

It supports this part of ROS 2's launch XML. Anything else, and whatever ``ros2 launch`` of Jazzy
refuses, is an error that names the file, the line and the valid options:

- ``arg`` (with ``choice``), ``let``, ``include`` (with ``arg``), ``group``, ``log``,
  ``push_ros_namespace``, ``set_parameter``, ``set_remap``, ``set_env`` and ``unset_env``, all with
  ``if`` and ``unless``;
- ``node`` with ``param`` (inline, nested, typed, or ``from`` a file), ``remap`` and ``env``, and
  ``executable``; ``respawn``, ``on_exit="shutdown"``, ``cwd``, ``shell``, ``launch-prefix``,
  timeouts for signals;
- ``$(var)``, ``$(env)``, ``$(eval)`` (comparisons, conditions, arithmetic), ``$(not)``,
  ``$(and)``, ``$(or)``, ``$(find-pkg-share)``, ``$(dirname)``, ``$(filename)``, ``$(command)``.

`xml_reader` and `schema` read and check a file. `actions` executes it in a `context`, with
`substitutions`, `expression` and `parameters`, and lists the processes to start. `supervisor`
runs them and `console` prints their output. `launch` is the command line.

Stricter than ``ros2 launch`` (3.4.3), which ignores arguments that no file declares, and returns 0
whatever its processes return: an undeclared argument is an error, and the exit code is that of the
first process that failed; 2 if the file or an argument is wrong. So ``exit_code.launch.py``, which
is written in Python and lets ``ros2 launch`` return 1, is skipped where a file includes it.

Two things differ in respawning, where ``ros2 launch`` starts whatever ends, after the same delay
each time: the delay doubles while a process keeps failing within 20 s, up to 60 s, and one that
refuses its arguments (exit code 1) at its first start is not respawned.
"""

from biped_com_ros.interrupts import end_quietly

end_quietly()
