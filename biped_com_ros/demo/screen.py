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
"""Terminal output of the demo: plain lines, or a live table."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import Any

from biped_com_ros.demo.chapter import Chapter
from biped_com_ros.demo.terminal import (
    Comparison, comparison_table, comparison_text, line, Snapshot, table)

#: Number of updates between two plain lines without a change of activity.
_RARELY = 5


class Screen:
    """Plain lines, for pipes and logs."""

    def __init__(self) -> None:
        self._activity, self._skipped = '', 0

    def begin_chapter(self, number: int, count: int, chapter: Chapter) -> None:
        """Print the title and the description of a chapter."""
        print(_introduction(number, count, chapter), flush=True)

    def end_chapter(self, chapter: Chapter, outcome: Comparison | str) -> None:
        """Print the results of a chapter, or why there are none."""
        text = outcome if isinstance(outcome, str) else comparison_text(outcome)
        print(textwrap.indent(text, '    '), flush=True)

    def show_message(self, text: str) -> None:
        """Print a message."""
        print(text, flush=True)

    def update(self, shot: Snapshot, whole: Snapshot) -> None:
        """Show the measurements of the last period, and those since the chapter began."""
        self._skipped += 1
        if shot.waiting or shot.activity != self._activity or self._skipped >= _RARELY:
            self._activity, self._skipped = shot.activity, 0
            print(line(shot), flush=True)

    def close(self, text: str) -> None:
        """Print the last message, if there is one, and release the terminal."""
        if text:
            print(text, flush=True)


class LiveScreen(Screen):
    """A table that stays below the other output; needs ``rich``."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.live import Live
        super().__init__()
        self._heading = ''
        print(title, flush=True)
        # Not with an ellipsis where the terminal is low.
        self._live = Live(console=Console(), auto_refresh=False, transient=False,
                          vertical_overflow='crop')
        self._live.start()

    def begin_chapter(self, number: int, count: int, chapter: Chapter) -> None:
        self._print(_introduction(number, count, chapter))
        self._heading = f'[{number}/{count}] {chapter.title}'

    def end_chapter(self, chapter: Chapter, outcome: Comparison | str) -> None:
        self._print(outcome if isinstance(outcome, str) else comparison_table(outcome))
        self._heading = ''

    def show_message(self, text: str) -> None:
        self._print(text)

    def update(self, shot: Snapshot, whole: Snapshot) -> None:
        self._reserve_width()
        self._live.update(table(shot, whole, self._heading), refresh=True)
        # Without results the last table says nothing: it does not stay on the terminal.
        self._live.transient = not whole.has_results

    def close(self, text: str) -> None:
        self._live.stop()
        super().close(text)

    def _print(self, what: Any) -> None:
        """Print above the table."""
        from rich.text import Text
        self._reserve_width()
        # A Text is never parsed as markup.
        self._live.console.print(Text(what) if isinstance(what, str) else what)

    def _reserve_width(self) -> None:
        # The terminal echoes ^C beside the table: in a new line, it would break the redrawing.
        self._live.console.width = shutil.get_terminal_size().columns - len('^C ')


def make_screen(title: str) -> Screen:
    """Return a live table on a terminal, else plain lines."""
    if sys.stdout.isatty():
        try:
            return LiveScreen(title)
        except ImportError:
            print('The live table needs the package rich, which is not installed; plain lines '
                  'instead. Install it with: sudo apt install python3-rich')
    print(title, flush=True)
    return Screen()


def _introduction(number: int, count: int, chapter: Chapter) -> str:
    text = textwrap.fill(chapter.description, 90, initial_indent='    ', subsequent_indent='    ')
    return f'\n[{number}/{count}] {chapter.title} ({chapter.name})\n{text}'
