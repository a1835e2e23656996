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
"""Launch files as users start them, for the time of a test."""

from __future__ import annotations

from contextlib import contextmanager
import os
import signal
import subprocess
import sys


@contextmanager
def launched(*arguments):
    """Run a launch file without ``ros2 launch``; end it hard if it does not end in 10 s."""
    process = subprocess.Popen(
        [sys.executable, '-m', 'biped_com_ros.launch_runner.launch', *arguments],
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
