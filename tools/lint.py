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

"""Run all linters; list those that find problems, and fail if there are any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
PYTHON_TREES = ['biped_com_ros', 'launch', 'test', 'tools', 'benchmarks', 'doc', 'examples',
                'setup.py']
XML_PATTERNS = ['package.xml', 'urdf/*.urdf', 'urdf/*.xacro',
                'tools/*/package.xml']
HEADER = """\
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
HEADER_PATTERN = re.compile(r'(#!.*\n)?# Copyright \d{4} biped_com_ros contributors\n#\n'
                            + re.escape(HEADER))


def existing(names: Sequence[str]) -> list[str]:
    """Return those of the names that exist."""
    return [name for name in names if (ROOT / name).exists()]


def complaints_of(*command: str) -> str:
    """Run a linter; return its output, of a verbose one the problems alone (path:line...)."""
    result = subprocess.run(command, cwd=ROOT, check=False, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    if result.returncode == 0:
        return ''
    problems = re.findall(r'^\S+:\d+.*$', result.stdout, flags=re.MULTILINE)
    return '\n'.join(problems) or result.stdout or f'ended with {result.returncode}'


def ament_flake8() -> str:
    """Check style as ROS reviewers do: single quotes, 99 columns, import order."""
    return complaints_of(sys.executable, '-m', 'ament_flake8.main', *existing(PYTHON_TREES))


def ament_pep257() -> str:
    """Check docstrings as ROS reviewers do."""
    return complaints_of(sys.executable, '-m', 'ament_pep257.main', *existing(PYTHON_TREES))


def ruff() -> str:
    """Check for what is probably a mistake."""
    return complaints_of(sys.executable, '-m', 'ruff', 'check', '--output-format=concise',
                         *existing(PYTHON_TREES))


def mypy() -> str:
    """Check types, strictly in core and papers."""
    return complaints_of(sys.executable, '-m', 'mypy')


def sources() -> Iterator[Path]:
    """Yield the files that need the licence header."""
    for name in existing(PYTHON_TREES):
        path = ROOT / name
        yield from [path] if path.is_file() else sorted(path.rglob('*.py'))
    yield from sorted(ROOT.glob('tools/*/CMakeLists.txt'))
    yield from (ROOT / 'tools' / 'python', ROOT / '.ci' / 'run', ROOT / 'Makefile')


def copyright_headers() -> str:
    """Check that every source begins with the full licence header (ament_copyright)."""
    return '\n'.join(f'{path.relative_to(ROOT)}: does not begin with the Apache-2.0 header'
                     for path in sources()
                     if path.stat().st_size and not HEADER_PATTERN.match(path.read_text()))


def xml() -> str:
    """Check that XML files are well-formed (xmllint where it is installed)."""
    files = [path for pattern in XML_PATTERNS for path in sorted(ROOT.glob(pattern))]
    if shutil.which('xmllint'):
        return complaints_of('xmllint', '--noout', '--nonet', *map(str, files))
    return '\n'.join(error for path in files for error in xml_errors(path))


def xml_errors(path: Path) -> list[str]:
    """Return what keeps a file from being well-formed XML."""
    try:
        ElementTree.parse(path)
    except ElementTree.ParseError as error:
        return [f'{path.relative_to(ROOT)}: {error}']
    return []


# The slowest first; each returns its complaints.
LINTERS = [mypy, ament_flake8, ament_pep257, ruff, copyright_headers, xml]


def main() -> int:
    """Run them all, side by side."""
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for linter, complaints in zip(LINTERS, pool.map(lambda linter: linter(), LINTERS)):
            print(f'--- {linter.__name__}', complaints, sep='\n' if complaints else '', flush=True)
            if complaints:
                failed.append(linter.__name__)
    print(f'\n{", ".join(failed)} complained.' if failed else '\nNo linter complains.')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
