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

Of ROS 2's launch XML it knows these; anything else is an error that names file, line and what
would be valid, and so is what ``ros2 launch`` of Jazzy refuses:

- ``arg`` (with ``choice``), ``let``, ``include`` (with ``arg``), ``group``, ``log``,
  ``push_ros_namespace``, ``set_parameter``, ``set_remap``, ``set_env``, ``unset_env``, all with
  ``if`` and ``unless``;
- ``node`` with ``param`` (inline, nested, typed, ``from`` files), ``remap``, ``env``, and
  ``executable``; ``respawn``, ``on_exit="shutdown"``, time limits for signals;
- ``$(var)``, ``$(env)``, ``$(eval)`` (whitelisted expressions only), ``$(find-pkg-share)``,
  ``$(dirname)``, ``$(filename)``, ``$(command)``, ``$(not)``, ``$(and)``, ``$(or)``.

The way of a file: `xml_reader` and `schema` read and check it, `actions` walks it in a `context`
with `substitutions`, `expression` and `parameters`, and `supervisor` runs what comes out, shown
by `console`; `launch` is the command line.
"""
