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
"""Work in a thread, for what takes longer than a callback may."""

from __future__ import annotations

from collections.abc import Callable
import sys
import threading
from typing import Any, Generic, TypeVar

_USUAL_SWITCH_INTERVAL = sys.getswitchinterval()
_SHORT_SWITCH_INTERVAL = 1e-4

Result = TypeVar('Result')


class BackgroundTask(Generic[Result]):
    """
    Runs one function at a time in a daemon thread; a callback polls for its result.

    While it runs, the interpreter switches threads every 0.1 ms instead of every 5 ms: callbacks
    that each wait 5 ms for their turn would pile up.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._outcome: list[Any] = []
        self._on_result: Callable[[Result], object] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether the function runs, or its result was not polled yet."""
        return self._thread is not None

    def start(self, work: Callable[[], Result], on_result: Callable[[Result], object]) -> None:
        """
        Run `work` in a thread.

        Parameters
        ----------
        work
            The function; it must not touch what other threads use.
        on_result
            Called with the result, by `poll`.

        Raises
        ------
        RuntimeError
            If another function runs.

        """
        if self._thread is not None:
            raise RuntimeError('another background task is running')
        outcome: list[Any] = []
        self._outcome, self._on_result = outcome, on_result
        sys.setswitchinterval(_SHORT_SWITCH_INTERVAL)
        self._thread = threading.Thread(target=_run, args=(work, outcome), daemon=True)
        self._thread.start()

    def poll(self) -> bool:
        """Pass the result on if there is one, or raise what `work` raised; return if it ended."""
        if self._thread is None or self._thread.is_alive():
            return False
        self._thread.join()
        self._thread = None
        sys.setswitchinterval(_USUAL_SWITCH_INTERVAL)
        result, error = self._outcome
        if error is not None:
            raise error
        if self._on_result is not None:
            self._on_result(result)
        return True

    def discard_result(self) -> None:
        """Do not pass the result of the running function on."""
        self._on_result = None


def _run(work: Callable[[], Any], outcome: list[Any]) -> None:
    try:
        outcome[:] = work(), None
    except Exception as error:  # noqa: B902 - raised again by `poll`
        outcome[:] = None, error
