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
Ends of processes that take too long.

Fast DDS 2 hangs in about one of a hundred ends, when another process ends at the same time:
``DomainParticipant::set_listener`` spins on a lock that a discovery thread needs to go on. rclpy
holds Python's global lock meanwhile, so that no thread of Python could end the process.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import ctypes
import faulthandler
import os
import sys
import threading

from biped_com_ros.core.constants import nanoseconds, SECOND_NS

#: A process is ended if its own code does not end in this time, with exit code 1, s. On a busy
#: computer ends take long; ros2 launch and run_launch wait for 5 s before they send SIGTERM.
LONGEST_END = 2.3
#: The same with its own exit code if rclpy does not, s.
LONGEST_HANG = 2.9

_CLOCK_MONOTONIC, _SIGEV_THREAD = 1, 2  # of Linux


class _Event(ctypes.Structure):
    """``struct sigevent``, 64 bytes: calls `function` with `value`."""

    _fields_ = [('value', ctypes.c_long), ('signal', ctypes.c_int), ('notify', ctypes.c_int),
                ('function', ctypes.c_void_p), ('attributes', ctypes.c_void_p),
                ('padding', ctypes.c_byte * (48 - 2 * ctypes.sizeof(ctypes.c_void_p)))]


class _Times(ctypes.Structure):
    """``struct itimerspec``: period and first time."""

    _fields_ = [(name, ctypes.c_long) for name in (
        'period_seconds', 'period_nanoseconds', 'seconds', 'nanoseconds')]


@contextlib.contextmanager
def limited(code: int) -> Iterator[None]:
    """
    End the process if the block does not end in time.

    Parameters
    ----------
    code
        Exit code if it hangs within rclpy, where nothing of the project's is left to do; its own
        code that hangs is reported, and the exit code is 1.

    """
    own = threading.Timer(LONGEST_END, _report)
    own.daemon = True
    own.start()
    middleware = _exit_after(LONGEST_HANG, code)
    try:
        yield
    finally:
        own.cancel()
        ctypes.CDLL(None).timer_delete(middleware)


def _report() -> None:
    faulthandler.dump_traceback(sys.__stderr__ or sys.stderr)
    os._exit(1)


def _exit_after(seconds: float, code: int) -> ctypes.c_void_p:
    """Start a timer of the C library, which needs no lock of Python's."""
    library, timer = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
    leave = ctypes.cast(library._exit, ctypes.c_void_p).value
    event = _Event(code, 0, _SIGEV_THREAD, leave, None)
    times = _Times(0, 0, *divmod(nanoseconds(seconds), SECOND_NS))
    if library.timer_create(_CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)) or \
            library.timer_settime(timer, 0, ctypes.byref(times), None):
        raise OSError(ctypes.get_errno(), 'no timer')
    return timer
