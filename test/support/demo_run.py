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
"""The demo as users start it, for the time of a test."""

from __future__ import annotations

from contextlib import contextmanager
import os
import signal
import subprocess
import sys
import uuid

MARK = 'BIPED_COM_ROS_TEST_RUN'
"""Environment variable by which the processes of a test are found."""

LIMIT = 300.0
"""Time for starting and running on a busy machine, s."""


@contextmanager
def demo(*arguments, stdout=subprocess.PIPE, mark=None):
    """Start the demo as `make demo` does; end it hard if the test did not."""
    command = [sys.executable, '-m', 'biped_com_ros.launch_runner.launch', '--foreground', 'demo',
               'demo.launch.xml', 'viewer:=false', *arguments]
    environment = {**os.environ, MARK: mark or uuid.uuid4().hex, 'COLUMNS': '100'}
    process = subprocess.Popen(command, env=environment, stdout=stdout, text=True,
                               start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def run(*arguments, limit=LIMIT, exit_code=0):
    """Run the demo until it ends by itself; return what it printed."""
    with demo(*arguments) as process:
        output, _ = process.communicate(timeout=limit)
    assert process.returncode == exit_code, output
    return output
