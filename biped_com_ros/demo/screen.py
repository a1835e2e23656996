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
"""Where the demo shows itself: a table that stays in its place, or plain lines."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import Any, Protocol

from biped_com_ros.demo.chapter import Chapter
from biped_com_ros.viz.terminal import (
    Comparison, comparison_table, comparison_text, line, Snapshot, table)

#: Of plain lines, one of so many is printed while the robot goes on doing the same.
_RARELY = 5


class Screen(Protocol):
    """What both can do."""

    def begin(self, number: int, count: int, chapter: Chapter) -> None:
        """Announce a chapter."""

    def end(self, chapter: Chapter, outcome: Comparison | str) -> None:
        """Tell what a chapter showed, or why it did not."""

    def say(self, text: str) -> None:
        """Tell something besides the story."""

    def show(self, shot: Snapshot, whole: Snapshot) -> None:
        """Show the last period and what was seen since the chapter began."""

    def close(self, text: str) -> None:
        """Give the terminal back, and print the last words."""


class PlainScreen:
    """Lines, for pipes and logs."""

    def __init__(self) -> None:
        self._doing, self._kept_back = '', 0

    def begin(self, number: int, count: int, chapter: Chapter) -> None:
        print(_announcement(number, count, chapter), flush=True)

    def end(self, chapter: Chapter, outcome: Comparison | str) -> None:
        text = outcome if isinstance(outcome, str) else comparison_text(outcome)
        print(textwrap.indent(text, '    '), flush=True)

    def say(self, text: str) -> None:
        print(text, flush=True)

    def show(self, shot: Snapshot, _: Snapshot) -> None:
        self._kept_back += 1
        if shot.waiting or shot.doing != self._doing or self._kept_back >= _RARELY:
            self._doing, self._kept_back = shot.doing, 0
            print(line(shot), flush=True)

    def close(self, text: str) -> None:
        print(text, flush=True)


class LiveScreen:
    """A table that stays below what has been told; needs ``rich``."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.live import Live
        self._heading = ''
        print(title, flush=True)
        self._live = Live(console=Console(), auto_refresh=False, transient=False)
        self._live.start()

    def begin(self, number: int, count: int, chapter: Chapter) -> None:
        self._print(_announcement(number, count, chapter))
        self._heading = f'[{number}/{count}] {chapter.title}'

    def end(self, chapter: Chapter, outcome: Comparison | str) -> None:
        self._print(outcome if isinstance(outcome, str) else comparison_table(outcome))
        self._heading = ''

    def say(self, text: str) -> None:
        self._print(text)

    def show(self, shot: Snapshot, whole: Snapshot) -> None:
        self._make_room()
        self._live.update(table(shot, whole, self._heading), refresh=True)

    def close(self, text: str) -> None:
        self._live.stop()
        print(text, flush=True)

    def _print(self, what: Any) -> None:
        """Print above the table."""
        from rich.text import Text
        self._make_room()
        # The table is printed along: what must not be read as markup is a Text, not an option.
        self._live.console.print(Text(what) if isinstance(what, str) else what)

    def _make_room(self) -> None:
        # Beside a narrower table there is room for the ^C that the terminal writes: in the next
        # line, it would leave the first one standing.
        self._live.console.width = shutil.get_terminal_size().columns - len('^C ')


def make_screen(display: str, title: str) -> Screen:
    """Return what the parameter `display` asks for: auto, table or plain."""
    if display == 'table' or (display == 'auto' and sys.stdout.isatty()):
        try:
            return LiveScreen(title)
        except ImportError:
            print('For the live table: sudo apt install python3-rich. Plain lines until then.')
    print(title, flush=True)
    return PlainScreen()


def _announcement(number: int, count: int, chapter: Chapter) -> str:
    words = textwrap.fill(chapter.shows, 90, initial_indent='    ', subsequent_indent='    ')
    return f'\n[{number}/{count}] {chapter.title} ({chapter.name})\n{words}'
