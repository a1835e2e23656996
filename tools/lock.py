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
Write the lock files in requirements/, for Python 3.10 to 3.14.

Locked versions change only if they have to; ``--upgrade`` uses the newest ones. Runs in an
environment of tools/environment.py, and installs uv. Index options of the machine are not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
import subprocess
import sys
import tempfile
import venv

REQUIREMENTS = Path(__file__).resolve().parent.parent / 'requirements'
COMMON = ['runtime.in', 'viewer.in', 'robots.in', 'test.in', 'browser.in', 'colcon.in', 'lint.in',
          'docs.in']
OPTIONS = ['--quiet', '--universal', '--python-version=3.10', '--generate-hashes',
           '--annotation-style=line', '--custom-compile-command=make lock']
LOCKS = {
    'jazzy.txt': ['ros-jazzy.in', 'ros-jazzy-lint.in', *COMMON],
    'kilted.txt': ['ros-kilted.in', 'ros-kilted-lint.in', *COMMON],
    'oldest.txt': ['runtime.in', 'robots.in', 'test.in', '--override=oldest.in'],
}


def install_uv(directory: Path) -> Path:
    """Install uv into a throw-away environment and return its path."""
    venv.create(directory, with_pip=True)
    subprocess.run([directory / 'bin' / 'pip', 'install', '--quiet', 'uv'], check=True)
    return directory / 'bin' / 'uv'


def write_lock(uv: Path, name: str, inputs: Sequence[str], extra: Sequence[str]) -> None:
    """Resolve the inputs into one lock file, with `extra` options of uv."""
    print(f'requirements/{name}', flush=True)
    command = [str(uv), 'pip', 'compile', *OPTIONS, *extra, f'--output-file={name}', *inputs]
    subprocess.run(command, check=True, cwd=REQUIREMENTS, stdout=subprocess.DEVNULL)


def main(arguments: Sequence[str] = ()) -> int:
    """Write all lock files."""
    with tempfile.TemporaryDirectory() as directory:
        uv = install_uv(Path(directory) / 'venv')
        for name, inputs in LOCKS.items():
            write_lock(uv, name, inputs, arguments)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
