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
The one place that knows the bytes of serialized ROS messages.

rclpy turns messages into Python objects field by field, which costs more than all mathematics
of a node together. Here the numbers are read from, and written into, the serialized bytes:

* `Layout` walks a message along its type description and finds where each value lies.
* `Decoder` keeps a `Plan` per *structure* (all strings and sequence lengths) that it has met:
  where the structure's bytes are the same, so are the offsets, and reading is one
  ``np.frombuffer`` and one ``take``.
* `Template` keeps one serialized message whose numbers are NumPy views into the bytes.

Each of the three has a plain path through rclpy's own conversion, taken where bytes are not
understood (big endian, XCDR2, wide strings), where a comparison fails, or where the environment
variable ``BIPED_COM_PLAIN=1`` asks for it.
"""

from __future__ import annotations

from biped_com_ros.ros.fast.codec.layout import (
    ENCAPSULATION, HEADER_STAMP, Layout, LayoutError, Leaf, Path, set_value_at, value_at)
from biped_com_ros.ros.fast.codec.reading import (
    AnyPlan, DecodeError, Decoder, PlainPlan, Plan, read_bool, Selection)
from biped_com_ros.ros.fast.codec.writing import Scatter, Template

__all__ = [
    'ENCAPSULATION', 'HEADER_STAMP', 'AnyPlan', 'DecodeError', 'Decoder', 'Layout', 'LayoutError',
    'Leaf', 'Path', 'PlainPlan', 'Plan', 'Scatter', 'Selection', 'Template', 'read_bool',
    'set_value_at', 'value_at']
