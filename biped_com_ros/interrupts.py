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
"""Ctrl-C ends an executable without a traceback, also while its modules are imported."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType, TracebackType

from biped_com_ros.core.errors import MissingPackageError

_MARK = 'biped_com'
"""What the command line of an executable has: its module, its directory or its prefix."""


def end_quietly() -> None:
    """
    Let ctrl-C and missing packages end an executable of this package without a traceback.

    `make` blocks ctrl-C while Python itself starts; here it is unblocked. Programs that only
    import the package are left as they are.
    """
    if not any(_MARK in word for word in sys.orig_argv[1:3]):
        return
    sys.excepthook = _report_others
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _on_interrupt)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    """End at once before `main` runs: while modules are imported, an exception may get lost."""
    caller = frame
    while caller is not None:
        if caller.f_code.co_name == 'main':
            signal.default_int_handler(number, frame)
        caller = caller.f_back
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _report_others(kind: type[BaseException], error: BaseException,
                   traceback: TracebackType | None) -> None:
    """Report all but an interrupt; of a package that is not installed, what to do."""
    if issubclass(kind, MissingPackageError):
        print(error, file=sys.stderr)
    elif not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
