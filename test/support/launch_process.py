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
"""A launch file that runs."""

from __future__ import annotations

import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import time


class Launched:
    """One run_launch process."""

    def __init__(self, tmp_path: Path, words: list[str], prefix: str = '') -> None:
        self.file = tmp_path / 'output.txt'
        environment = {**os.environ, 'ROS_LOG_DIR': str(tmp_path / 'log'),
                       'AMENT_PREFIX_PATH': os.pathsep.join(filter(None, [
                           prefix, os.environ.get('AMENT_PREFIX_PATH', '')]))}
        with self.file.open('w') as output:
            self.process = subprocess.Popen(
                [sys.executable, '-m', 'biped_com_ros.launch_runner.launch', *words],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)

    @property
    def output(self) -> str:
        return self.file.read_text()

    def pids(self) -> list[int]:
        return [int(pid) for pid in re.findall(r'process started with pid \[(\d+)\]', self.output)]

    def interrupt(self) -> tuple[int, float]:
        """Send SIGINT; return the exit code and the seconds until the end."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=20), time.monotonic() - start
