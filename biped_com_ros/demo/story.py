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
"""Plays the chapters one after the other."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from importlib import import_module
from typing import Protocol

from biped_com_ros.core.errors import BipedComError, UnknownNameError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.demo import CHAPTERS
from biped_com_ros.demo.chapter import Chapter, Comparison, Skipped
from biped_com_ros.demo.stage import Stage
from biped_com_ros.ros.node.callback_errors import log_exception

#: Values of the parameter that ask for every chapter, and for none.
ALL, NONE = 'all', 'none'


class Teller(Protocol):
    """Where the story is told."""

    def begin(self, number: int, count: int, chapter: Chapter) -> None:
        """Announce a chapter."""

    def end(self, chapter: Chapter, outcome: Comparison | str) -> None:
        """Tell what a chapter showed, or why it did not."""


def chosen_chapters(names: str) -> list[Chapter]:
    """
    Return the chapters named, separated by commas, in that order; 'all' or 'none' of them.

    Raises
    ------
    UnknownNameError
        If there is no such chapter.

    """
    if names.strip() == NONE:
        return []
    wanted = ','.join(CHAPTERS) if names.strip() == ALL else names
    chapters: list[Chapter] = []
    for name in map(str.strip, wanted.split(',')):
        if name not in CHAPTERS:
            raise UnknownNameError(
                'chapter', name, (*CHAPTERS, ALL, NONE), "parameter 'chapters'")
        module, _, cls = CHAPTERS[name].partition(':')
        chapters.append(getattr(import_module(module), cls)())
    return chapters


class Story:
    """
    The chosen chapters.

    Parameters
    ----------
    chapters
        In the order in which they are played.
    stage, teller
        On which, and who tells of it.

    Attributes
    ----------
    heading
        Of the chapter that is played, with its number; '' between chapters.
    over
        Whether all of it was played.
    outcomes
        What became of each chapter so far, by its name: in words where it was skipped.

    """

    def __init__(self, chapters: Sequence[Chapter], stage: Stage, teller: Teller) -> None:
        self.chapters, self.stage, self.teller = list(chapters), stage, teller
        self.heading, self.over = '', False
        self.outcomes: dict[str, Comparison | str] = {}

    def summary(self) -> str:
        """Return a line for each chapter so far."""
        return '\n'.join(f"{name}: {outcome if isinstance(outcome, str) else 'shown'}"
                         for name, outcome in self.outcomes.items())

    def play(self, settle: float) -> Generator[Array | None, None, None]:
        """Yield what to command; stands on for ever at the end."""
        stage = self.stage
        yield from stage.wait(settle)
        for number, chapter in enumerate(self.chapters, 1):
            self.heading = f'{number}/{len(self.chapters)} {chapter.title}'
            self.teller.begin(number, len(self.chapters), chapter)
            stage.measurements.begin(stage.stamp_ns)
            outcome = yield from self._play(chapter)
            stage.clear()
            self.outcomes[chapter.name] = outcome
            self.teller.end(chapter, outcome)
            yield from self._recover()
        self.heading, self.over = '', True
        stage.say('stands')
        stage.measurements.begin(stage.stamp_ns)
        while True:
            yield stage.commanded

    def _play(self, chapter: Chapter) -> Generator[Array | None, None, Comparison | str]:
        lack = chapter.lacks(self.stage.model)
        if lack:
            return f'skipped: {lack}'
        try:
            return (yield from chapter.run(self.stage))
        except Skipped as reason:
            return f'skipped: {reason}'
        except BipedComError as error:
            return f'ended early: {error}'
        except Exception as error:  # noqa: B902 - the story goes on
            log_exception(self.stage.node, error)
            return f'ended early: {error}'

    def _recover(self) -> Generator[Array | None, None, None]:
        self.stage.say('comes back')
        try:
            yield from self.stage.stand()
        except Skipped as reason:
            self.stage.node.get_logger().error(f'the robot cannot be put back: {reason}')
