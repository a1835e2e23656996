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

import base64
import importlib
import importlib.util
from pathlib import Path
import re
import runpy
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page for pattern in ('*.md', 'doc/**/*.rst') for page in ROOT.glob(pattern)
               if page.parent.name not in ('api', '_templates'))
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


@pytest.mark.parametrize('page', PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist_and_its_commands_work_with_spaces(page):
    """Unquoted, the shell makes two words of the path, and make takes one for another goal."""
    text = page.read_text()
    names = {*FILE.findall(text), *(LINK.findall(text) if page.suffix == '.md' else ())}
    assert [name for name in sorted(names)
            if not is_there(name) and not THEIRS.search(name)] == []
    assert re.findall(r'(?<!")\$(?:PWD|HOME)/\S*', text) == []


# Programs, whose interfaces are topics and arguments; of `ros` the page lists single modules.
NO_LIBRARY = {'demo', 'launching', 'nodes', 'ros'}
# Modules of `ros`, and a package, that serve those on the page only.
INTERNAL = {'fast', 'node.callback_errors', 'node.ending'}


def test_the_api_page_has_every_package_of_the_library():
    page = (ROOT / 'doc' / 'api.rst').read_text()
    listed = set(re.findall(r'^   (biped_com_ros\.[\w.]+)$', page, re.MULTILINE))
    packages = {path.parent.name for path in ROOT.glob('biped_com_ros/*/__init__.py')}
    assert {f'biped_com_ros.{name}' for name in packages - NO_LIBRARY} <= listed
    assert [name for name in sorted(listed)
            if importlib.util.find_spec(name) is None] == []


def test_each_module_of_ros_is_on_the_api_page_or_internal():
    base = ROOT / 'biped_com_ros' / 'ros'
    modules = {'.'.join(path.relative_to(base).with_suffix('').parts)
               for path in base.rglob('*.py') if path.stem != '__init__'}
    internal = {name for name in modules
                if name in INTERNAL or name.partition('.')[0] in INTERNAL}
    listed = set(re.findall(r'^   biped_com_ros\.ros\.([\w.]+)$',
                            (ROOT / 'doc' / 'api.rst').read_text(), re.MULTILINE))
    assert listed == modules - internal
    assert {name for name in INTERNAL
            if not (base / name.replace('.', '/')).is_dir()} <= modules


def test_the_api_page_has_what_a_node_of_ones_own_imports():
    listed = (ROOT / 'doc' / 'api.rst').read_text()
    source = (ROOT / 'doc' / 'examples' / 'com_height' / 'node.py').read_text()
    used = re.findall(r'^from (biped_com_ros\.ros\.[\w.]+) import', source, re.MULTILINE)
    assert len(used) > 3
    assert [name for name in used if f'   {name}\n' not in listed] == []


def test_every_page_is_in_a_table_of_contents():
    """Sphinx would warn, too; this is known at once."""
    entries = {(page.parent / line.strip()).resolve()
               for page in PAGES if page.suffix == '.rst'
               for block in re.findall(r'^\.\. toctree::\n((?:   .*\n|\n)+)', page.read_text(),
                                       re.MULTILINE)
               for line in block.splitlines() if re.fullmatch(r'   [\w/]+', line)}
    pages = {page.with_suffix('').resolve() for page in PAGES if page.suffix == '.rst'}
    assert pages - entries == {ROOT / 'doc' / 'index'}
    assert entries - pages == set()


# Of computers and of ROS 2, or names, units, codes: nobody looks for these in the glossary.
COMMON = set(re.findall(r'\w+', """
    AMD ARGS CAD CANCELED CPU CSV DAE EPYC ERROR FALLEN GB GLB KiB MARGINAL MATLAB MB MIT OBJ
    OK PLY ROS SI SIGINT SIGTERM SSH STABLE STL SUCCESSFUL TLS UNSTABLE URI WARN YAML"""))
# That every page may use, and a reader may not know.
FIELD = ('backbone', 'droop', 'feedforward', 'first moment', 'footprint', 'hysteresis', 'posture',
         'prior', 'residual', 'share', 'stance foot', 'support polygon', 'swing foot', 'tare',
         'wrench')


def terms():
    """Return the terms of the glossary."""
    text = (ROOT / 'doc' / 'glossary.rst').read_text()
    return {term.strip() for line in re.findall(r'^   (\S.*)$', text, re.MULTILINE)
            for term in line.split(',')}


@pytest.mark.parametrize('page', [
    page for page in PAGES if page.name == 'README.md' or (
        page.suffix == '.rst' and page.parent.name not in ('decisions', 'results')
        and page.stem not in ('api', 'architecture', 'extending', 'glossary'))],
    ids=lambda page: page.stem)
def test_abbreviations_of_the_pages_for_users_are_in_the_glossary(page):
    text = re.sub(r'```.*?```|``.*?``|`[^`]*`|https?://\S+|\]\([^)]*\)', '', page.read_text(),
                  flags=re.DOTALL)
    text = re.sub(r'::.*\n(?: *\n| {3,}\S.*\n)+', '\n', text)  # code, directives
    used = set(re.findall(r'(?<![\w./-])([A-Z]{2,}\d?|CoM|CoP|QoS|KiB)s?(?![\w-]|\.\w)', text))
    assert sorted(used - terms() - COMMON) == []


def test_terms_of_the_field_are_in_the_glossary():
    assert sorted(set(FIELD) - terms()) == []


@pytest.mark.parametrize('page', [page for page in PAGES if page.suffix == '.rst'],
                         ids=lambda page: page.stem)
def test_a_page_begins_with_what_it_is_for(page):
    """Some words before the first section, list or code."""
    begin = re.sub(r'^(?:\.\. .*\n(?:   .*\n)*\n)+', '', page.read_text())
    first = re.match(r'.+\n=+\n\n((?:(?!\.\. |[-*] |    )\S.*\n)+)', begin)
    assert first is not None and not re.search(r'^[-=]{4,}$', first[1], re.MULTILINE)
    assert len(first[1].split()) >= 5


def test_the_example_of_the_readme_runs(capsys):
    code = re.search(r'```python\n(.*?)```', (ROOT / 'README.md').read_text(), re.DOTALL)[1]
    exec(code, {})
    assert 'l_foot' in capsys.readouterr().out


def test_the_recorded_scene_is_one_file_that_the_installed_viewer_plays(tmp_path):
    viser = pytest.importorskip('viser')
    zstandard, msgspec = map(importlib.import_module, ('zstandard', 'msgspec'))
    write = runpy.run_path(str(ROOT / 'doc' / 'conf.py'), {'tags': set()})['write_recording']
    write(SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format='html')))
    text = (tmp_path / 'recording.html').read_text()
    assert len(text) < 3e6 and not re.search(r'<(?:script|link)[^>]*(?:src|href)="http', text)
    found = base64.b64decode(re.search(r'__VISER_EMBED_DATA__="([^"]+)"', text)[1])
    scene = zstandard.ZstdDecompressor().decompress(found[8:])
    size = int.from_bytes(scene[:8], 'little')
    content = msgspec.msgpack.decode(scene[8:8 + size])
    assert content['viserVersion'] == viser.__version__, 'draw it again: doc/pictures'
    assert content['durationSeconds'] > 10.0 and len(content['messages']) > 1000
    names = {message.get('name') for _, message in content['messages']}
    assert {'/robot', '/marks/truth', '/marks/com', '/marks/uncalibrated'} <= names


def test_the_accuracy_of_a_calibration_is_that_of_the_benchmark():
    results = (ROOT / 'doc' / 'results' / 'identification.txt').read_text()
    page = (ROOT / 'doc' / 'calibration.rst').read_text()
    compared = 0
    for robot, lines in re.findall(r'^(\w+): 40 poses.*?\n(.*?)^└', results,
                                   re.MULTILINE | re.DOTALL):
        header, row = ([cell.strip() for cell in re.split('[┃│]', line)]
                       for line in lines.splitlines() if line[0] in '┃│')
        values = dict(zip(header, row))
        if values['wrong'] == 'all':
            quoted, = re.findall(rf'^{robot} +(\S+ .*)$', page, re.MULTILINE)
            assert quoted.split() == [values[key] for key in ('CAD', 'now', 'worst', 'CoM %')]
            compared += 1
    assert compared == 5


def test_the_page_on_upgrading_names_parameters_that_are_and_are_not_there():
    def is_parameter(node, name):
        text = (ROOT / 'config' / f'{node.strip("`")}.yaml').read_text()
        return re.search(rf'^    {name}:', text, re.MULTILINE) is not None
    text = (ROOT / 'doc' / 'upgrading.rst').read_text()
    renamed = re.findall(r'^``(\w+)`` +``(\w+)`` +``(\w+)``$', text, re.MULTILINE)
    assert len(renamed) == 5
    assert [(is_parameter(node, old), is_parameter(node, new))
            for node, old, new in renamed] == [(False, True)] * 5
    table = text.split('These are constants now')[1].split('Where you set')[0]
    constants = re.split(r'^``(\w+)`` ', table, flags=re.MULTILINE)[1:]
    assert len(constants) == 14
    assert [(node, name) for node, names in zip(constants[::2], constants[1::2])
            for name in re.findall(r'``(\w+)``', names) if is_parameter(node, name)] == []


EXAMPLES = sorted(path.stem for path in (ROOT / 'examples').glob('*.py')
                  if '__main__' in path.read_text())


@pytest.mark.parametrize('name', EXAMPLES)
def test_each_example_is_on_a_page_and_in_a_test(name):
    def is_named(paths):
        return any(re.search(rf'examples[./]{name}\b|examples. / .{name}\.py', path.read_text())
                   for path in paths)
    assert is_named(PAGES)
    assert is_named((ROOT / 'test').rglob('*.py'))
