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
What a chapter of the demo is.

A chapter is a generator: it goes on to its next ``yield`` at every command period (10 ms of
simulated time), and yields what the robot's joints shall do until then: positions (n,) in the
order of ``stage.model.joint_names``, or None where somebody else commands the robot. What it
returns is the small table that the viewer sees at the end::

    class Sag(Chapter):
        name = 'sag'
        title = 'Arms are heavy'
        shows = 'The arms are stretched out and sag; then feedforward holds them.'

        def lacks(self, model):
            return '' if model.config.hands else 'it has no hands'

        def run(self, stage):
            stage.say('stretches its arms out')
            yield from stage.move_to(stage.model.posture('arms_out'), 2.0)
            yield from stage.wait(1.0)              # holds what was commanded last
            before = how_far(stage.positions)
            yield from stage.trigger('helper/begin')
            yield from stage.until(lambda: stage.time > 5.0, 'the helper', 30.0)
            return Comparison(('without', 'with'), [('a hand sags by', f'{before} mm', '0 mm')])

What to keep to:

* It begins with the robot standing in posture ``stand``, and need not bring it back there: the
  node moves it back, and puts it down again where it has fallen.
* It never blocks and never computes for long (a second at most, in pieces): ctrl-C and the live
  table wait for it. Long work belongs into a node, of which it waits for the answer.
* Time is simulated: ``stage.time``, s.
* What it subscribes to with ``stage.listen`` is taken away after it.
* Nodes that it needs may be absent: ``stage.call`` raises :class:`Skipped` then, which says to
  the viewer what is missing, and the story goes on.
* What later chapters may use, it leaves in ``stage.shared`` (``calibrated_urdf``: path of the
  corrected URDF).
* About 20 s to 40 s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import ClassVar, TYPE_CHECKING, TypeAlias

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.viz.terminal import Comparison

if TYPE_CHECKING:
    from biped_com_ros.demo.stage import Stage

__all__ = ['Act', 'Chapter', 'Comparison', 'Skipped']


class Skipped(BipedComError):
    """A chapter cannot go on: a node is absent, or does not answer. Says what is missing."""


#: What a chapter yields and returns.
Act: TypeAlias = 'Generator[Array | None, None, Comparison]'


class Chapter(ABC):
    """
    A part of the demo's story; see the module.

    Attributes
    ----------
    name
        As in ``make demo CHAPTERS=...``.
    title
        A headline of a few words.
    shows
        One sentence: what the viewer sees, and why it matters.

    """

    name: ClassVar[str]
    title: ClassVar[str]
    shows: ClassVar[str]

    def lacks(self, model: RobotModel) -> str:
        """Return what this robot lacks for the chapter, in words; '' if it has everything."""
        return ''

    @abstractmethod
    def run(self, stage: Stage) -> Act:
        """
        Play the chapter: yield commands, return what was seen.

        Raises
        ------
        Skipped
            If something that it needs is missing.

        """
