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
from typing import Any

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.demo import chapter_names, CHAPTERS
from biped_com_ros.demo.chapter import Chapter, ChapterFailed, Comparison
from biped_com_ros.demo.screen import Screen
from biped_com_ros.demo.stage import Stage
from biped_com_ros.demo.terminal import tabbed
from biped_com_ros.ros.node.callback_errors import log_exception
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.qos import STATE_OUTPUT
from lifecycle_msgs.msg import Transition
from std_msgs.msg import String


def chosen_chapters(chosen: str) -> list[Chapter]:
    """
    Return the chapters with these names, separated by commas; or 'all' but some, or 'none'.

    Raises
    ------
    UnknownNameError
        If there is no such chapter.

    """
    chapters: list[Chapter] = []
    for name in chapter_names(chosen):
        module, _, cls = CHAPTERS[name].partition(':')
        chapters.append(getattr(import_module(module), cls)())
    return chapters


class Story:
    """
    Runs chapters one after the other.

    Parameters
    ----------
    chapters
        In order.
    stage, screen
        The robot, and the output.

    Attributes
    ----------
    heading
        Number and title of the running chapter; '' between chapters.
    is_over
        Whether all chapters have ended.
    outcomes
        Result of each chapter so far, by name; a text if it was skipped or failed.
    results
        Title and table of the last chapter, a row per line with tabs between its cells.
    failures
        Why a chapter failed, by name. One that is not for this robot is skipped, and no failure.

    """

    def __init__(self, chapters: Sequence[Chapter], stage: Stage, screen: Screen) -> None:
        self.chapters, self.stage, self.screen = list(chapters), stage, screen
        self.heading, self.is_over, self.results = '', False, ''
        self.outcomes: dict[str, Comparison | str] = {}
        self.failures: dict[str, str] = {}

    def summary(self) -> str:
        """Return a line for each chapter so far: what it found, or why it did not."""
        titles = {chapter.name: chapter.title for chapter in self.chapters}
        return '\n'.join(f'{titles[name]} ({name}): {self._describe(name, outcome)}'
                         for name, outcome in self.outcomes.items())

    def _describe(self, name: str, outcome: Comparison | str) -> str:
        if isinstance(outcome, str):
            return outcome
        return f'failed: {self.failures[name]}' if name in self.failures else (
            outcome.conclusion or 'done')

    def run(self, settle: float) -> Generator[Array | None, None, None]:
        """Yield commands; at the end None for ever, so that others can command the robot."""
        stage = self.stage
        yield from stage.wait(settle)
        for number, chapter in enumerate(self.chapters, 1):
            self.heading = f'{number}/{len(self.chapters)} {chapter.title}'
            self.screen.begin_chapter(number, len(self.chapters), chapter)
            stage.measurements.start(stage.stamp_ns)
            outcome = yield from self._run_chapter(chapter)
            if isinstance(outcome, Comparison) and outcome.problem:
                self.failures[chapter.name] = outcome.problem
            stage.unsubscribe()
            self.outcomes[chapter.name] = outcome
            text = outcome if isinstance(outcome, str) else tabbed(outcome)
            self.results = f'{chapter.title}\n{text}'
            self.screen.end_chapter(chapter, outcome)
            yield from self._recover()
        self.heading, self.is_over = '', True
        stage.set_activity('stands')
        stage.measurements.start(stage.stamp_ns)
        yield stage.commanded
        # The drives hold it. Two that command at a time, as the demo and a walk from the page,
        # would move the joints to and fro.
        stage.release()
        if stage.model.config.torso is not None:
            yield from self._control_torso()
        while True:
            yield None

    def _control_torso(self) -> Generator[Array | None, None, None]:
        """
        Activate `torso_controller`, until a calibration bends the torso itself.

        Both at a time would pull the tendons to different lengths.
        """
        stage, progress = self.stage, list[Any]()
        try:
            yield from stage.activate('torso_controller')
            # Not the last message of the calibration that was a chapter: what comes from now on.
            stage.subscribe(String, names.CALIBRATION_PROGRESS, progress.append, STATE_OUTPUT)
            while not progress:
                yield stage.commanded
            yield from stage.change_state('torso_controller', Transition.TRANSITION_DEACTIVATE)
            yield from stage.change_state('torso_controller', Transition.TRANSITION_CLEANUP)
        except ChapterFailed as error:
            stage.node.get_logger().warning(f'the torso is not controlled: {error}')

    def _run_chapter(
            self, chapter: Chapter) -> Generator[Array | None, None, Comparison | str]:
        if reason := chapter.missing_for(self.stage.model):
            return f'skipped: {reason}'
        try:
            return (yield from chapter.run(self.stage))
        except BipedComError as error:
            problem = str(error)
        except Exception as error:  # noqa: B902 - the next chapter begins
            log_exception(self.stage.node, error)
            problem = f'{type(error).__name__}: {error}'
        self.failures[chapter.name] = problem
        return f'failed: {problem}'

    def _recover(self) -> Generator[Array | None, None, None]:
        self.stage.set_activity('returns to the posture stand')
        try:
            yield from self.stage.return_to_stand()
        except ChapterFailed as error:
            self.stage.node.get_logger().error(f'the robot cannot be reset: {error}')
