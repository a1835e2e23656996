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
"""What tests of running processes share."""

import sys

import pytest
from support.scripted_launch import Runner, SCRIPTS


@pytest.fixture
def package(tmp_path):
    """Install the scripts as package 'fake'; return its prefix."""
    directory = tmp_path / 'prefix' / 'lib' / 'fake'
    directory.mkdir(parents=True)
    for name, text in SCRIPTS.items():
        lines = [line[8:] for line in text.splitlines()]
        (directory / name).write_text(
            f'#!{sys.executable}\nimport os, signal, subprocess, sys, time\n' + '\n'.join(lines))
        (directory / name).chmod(0o755)
    return tmp_path / 'prefix'


@pytest.fixture
def start(tmp_path, package):
    runners = []

    def run(*words, slow=''):
        runners.append(Runner(tmp_path, package, *words, slow=slow))
        return runners[-1]

    yield run
    for runner in runners:
        if runner.process.poll() is None:
            runner.process.terminate()
            runner.process.wait(timeout=100)
