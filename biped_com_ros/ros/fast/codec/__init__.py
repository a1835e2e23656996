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
Reads and writes numbers in the bytes of serialized ROS messages.

rclpy converts messages to Python objects field by field. What this saves, per message:

=================================================== =========== ========
per message                                         rclpy, us   here, us
=================================================== =========== ========
take and read JointState of 32 joints               29          4
publish JointState, PointStamped or WrenchStamped   4 to 6      1.5 to 2
publish a MarkerArray of 40 markers                 360 to 840  2
=================================================== =========== ========

* `Layout` finds the offset of each number, from the types of the fields.
* `Decoder` keeps a `Plan` for each *structure* (all strings and sequence lengths): messages with
  the same structure have the same offsets, and reading is one ``unpack`` or ``np.frombuffer``.
* `Template` keeps one serialized message whose numbers are NumPy views of the bytes.

Decoders and templates compare what they read or write with rclpy's own conversion once. They use
that conversion alone where the results differ, where the format is not known (big endian, XCDR2;
decoders, of wide strings, too), and if the environment variable ``BIPED_COM_PLAIN=1`` is set.
"""

from __future__ import annotations

from biped_com_ros.ros.fast.codec.layout import (
    ENCAPSULATION, HEADER_STAMP, Layout, LayoutError, Leaf, Path, set_value_at, value_at)
from biped_com_ros.ros.fast.codec.reading import (
    AnyPlan, DecodeError, Decoder, LONGEST_MESSAGE, PlainPlan, Plan, read_bool, Selection)
from biped_com_ros.ros.fast.codec.writing import Scatter, Template

__all__ = [
    'ENCAPSULATION', 'HEADER_STAMP', 'LONGEST_MESSAGE', 'AnyPlan', 'DecodeError', 'Decoder',
    'Layout', 'LayoutError', 'Leaf', 'Path', 'PlainPlan', 'Plan', 'Scatter', 'Selection',
    'Template', 'read_bool', 'set_value_at', 'value_at']
