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
Chapters of the demo.

A chapter is a generator. It is resumed at every command period (10 ms of simulated time) and
yields the commanded joint positions (n,) in the order of ``stage.model.joint_names``, or None if
another node commands the robot. It returns the small table that is printed at its end::

    class Sag(Chapter):
        name = 'sag'
        title = 'Arms are heavy'
        description = 'The arms are stretched out and sag; then feedforward holds them.'

        def missing_for(self, model):
            return '' if model.config.hands else 'the robot has no hands'

        def run(self, stage):
            stage.set_activity('stretches its arms out')
            yield from stage.move_to(stage.model.posture('arms_out'), 2.0)
            yield from stage.wait(1.0)              # holds the last command
            before = sag_of(stage.positions)
            yield from stage.trigger('helper/begin')
            yield from stage.wait_until(lambda: stage.time > 5.0, 'the helper', 30.0)
            return Comparison(('without', 'with'), [('a hand sags by', f'{before} mm', '0 mm')])

Rules:

* At its start the robot stands in posture ``stand``. The node moves it back there afterwards, or
  resets it if it has fallen.
* It must not block or compute for more than a second, because Ctrl-C and the live table wait for
  it. Long computations belong into a node.
* Time is simulated: ``stage.time``, s.
* Subscriptions made with ``stage.subscribe`` end with the chapter.
* If a node that it needs is not running, ``stage.call`` raises :class:`ChapterFailed`; the reason
  is printed, the next chapter begins, and the demo ends with exit code 1.
* What was only partly done is a :class:`Comparison` with a `problem`, which counts as failed, too.
* Results for later chapters are in ``stage.shared`` (``calibrated_urdf``: path of the corrected
  URDF).
* It takes about 20 s to 40 s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from typing import ClassVar

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.demo.stage import ChapterFailed, Commands, Stage
from biped_com_ros.demo.terminal import Comparison

__all__ = ['Chapter', 'ChapterFailed', 'ChapterRun', 'Comparison']

#: A running chapter: it yields joint positions, and returns its table.
ChapterRun = Generator[Array | None, None, Comparison]


def and_then(run: ChapterRun, end: Callable[[], Commands]) -> ChapterRun:
    """Run a part of a chapter, and what has to follow it, also after a failure."""
    try:
        table = yield from run
    except ChapterFailed:
        yield from end()
        raise
    yield from end()
    return table


class Chapter(ABC):
    """
    A part of the demo; see the module.

    Attributes
    ----------
    name
        As in ``make demo CHAPTERS=...``.
    title
        Heading of a few words.
    description
        What the chapter shows, in one sentence.

    """

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]

    def missing_for(self, model: RobotModel) -> str:
        """Return why this robot cannot run the chapter; '' if it can."""
        return ''

    @abstractmethod
    def run(self, stage: Stage) -> ChapterRun:
        """
        Run the chapter: yield commands, return the results.

        Raises
        ------
        ChapterFailed
            If a node that it needs is missing.

        """
