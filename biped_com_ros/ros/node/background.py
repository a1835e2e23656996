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
"""Work that takes longer than a callback may."""

from __future__ import annotations

from collections.abc import Callable
import sys
import threading
from typing import Any

_OFTEN, _AS_USUAL = 1e-4, sys.getswitchinterval()


class Background:
    """
    One piece of work at a time, in a thread; its result is used where :meth:`finish` is called.

    The thread does not keep the process alive. While it works, the interpreter changes threads
    fifty times as often as usual: callbacks that each wait for their turn would pile up.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._outcome: list[Any] = []
        self._use: Callable[[Any], None] = _ignore

    @property
    def is_busy(self) -> bool:
        """Whether work goes on, or its result waits to be used."""
        return self._thread is not None

    def start(self, work: Callable[[], Any], use: Callable[[Any], None]) -> None:
        """
        Begin.

        Parameters
        ----------
        work
            What to do; must not touch what other threads use meanwhile.
        use
            Takes the result.

        Raises
        ------
        RuntimeError
            If something is being done already.

        """
        if self._thread is not None:
            raise RuntimeError('the background is busy')
        outcome: list[Any] = []
        self._outcome, self._use = outcome, use
        sys.setswitchinterval(_OFTEN)
        self._thread = threading.Thread(target=_run, args=(work, outcome), daemon=True)
        self._thread.start()

    def finish(self) -> bool:
        """Use the result if there is one, or raise what went wrong; return whether there was."""
        if self._thread is None or self._thread.is_alive():
            return False
        self._thread.join()
        self._thread = None
        sys.setswitchinterval(_AS_USUAL)
        result, error = self._outcome
        if error is not None:
            raise error
        self._use(result)
        return True

    def forget(self) -> None:
        """Do not use the result of what is going on."""
        self._use = _ignore


def _run(work: Callable[[], Any], outcome: list[Any]) -> None:
    try:
        outcome[:] = work(), None
    except Exception as error:  # noqa: B902 - raised again where the result is wanted
        outcome[:] = None, error


def _ignore(_: Any) -> None:
    """Leave the result."""
