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
Functions of the core with what they are called with in test/unit/test_any_input.py.

Two kinds of input. What a person writes (files, parameters, options, plans) may be any number,
NaN and infinity too: the functions themselves check it. What messages bring has passed
``biped_com_ros/ros/fast``: it is finite, of the right size, and credible, however senseless; to
check it again with each message would cost without effect.
"""
