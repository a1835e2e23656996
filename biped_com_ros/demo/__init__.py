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
The demonstration of ``make demo``: chapters that the node `demo` runs one after the other.

To add a chapter, write a subclass of :class:`~biped_com_ros.demo.chapter.Chapter` in a module of
this package, add it to :data:`CHAPTERS`, and start the nodes that it needs in
``launch/demo.launch.py``.
"""

from __future__ import annotations

from biped_com_ros.core.errors import UnknownNameError

#: Chapters by name, 'module:class', in order.
CHAPTERS = {
    'measure': 'biped_com_ros.demo.measure:Measure',
    'calibration': 'biped_com_ros.demo.calibration:Calibration',
    'gravity': 'biped_com_ros.demo.gravity:Gravity',
    'steps': 'biped_com_ros.demo.steps:Steps',
    'slope': 'biped_com_ros.demo.slope:Slope',
    'rail': 'biped_com_ros.demo.rail:Rail',
    'push': 'biped_com_ros.demo.push:Push',
}

#: Chapters that 'all' leaves out: slope is in slow motion, rail needs hands with wrenches.
SEPARATE = frozenset({'slope', 'rail'})

#: Values of the parameter `chapters` for every chapter, and for none.
ALL, NONE = 'all', 'none'


def chapter_names(chosen: str) -> list[str]:
    """
    Return the names in a list separated by commas; of 'all' every name but some, of 'none' none.

    Raises
    ------
    UnknownNameError
        If there is no such chapter.

    """
    if chosen.strip() == NONE:
        return []
    if chosen.strip() == ALL:
        return [name for name in CHAPTERS if name not in SEPARATE]
    names = [name.strip() for name in chosen.split(',')]
    for name in names:
        if name not in CHAPTERS:
            raise UnknownNameError(
                'chapter', name, (*CHAPTERS, ALL, NONE), "parameter 'chapters'")
    return names
