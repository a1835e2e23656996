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

"""The documentation names files that exist, and its Python runs."""

from pathlib import Path
import re

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob('*.md'), *ROOT.glob('doc/*.rst'), *ROOT.glob('doc/decisions/*.rst')])
# A file is named from the root of the repository, or from the package.
BASES = (ROOT, ROOT / 'biped_com_ros')
FOLDERS = ('(?:biped_com_ros|core|ros|nodes|sim|viz|test|tools|config|doc|examples|benchmarks|'
           'launch|urdf|rviz)')
FILE = re.compile(rf'`+({FOLDERS}/[\w./-]+)`+')
LINK = re.compile(r'\]\(([^)#:]+)\)')
# What readers are told to write themselves.
THEIRS = re.compile(r'com_height')


def is_there(name):
    return any((base / name).exists() for base in BASES)


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page):
    text = page.read_text()
    names = {*FILE.findall(text), *(LINK.findall(text) if page.suffix == '.md' else ())}
    assert [name for name in sorted(names)
            if not is_there(name) and not THEIRS.search(name)] == []


def test_the_example_of_the_readme_runs(capsys):
    code = re.search(r'```python\n(.*?)```', (ROOT / 'README.md').read_text(), re.DOTALL)[1]
    exec(code, {})
    assert 'leg_left_6_link' in capsys.readouterr().out
