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

"""Build the package as a ROS 2 user does, and look at what colcon has installed."""

import ast
from configparser import ConfigParser
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

from biped_com_ros.launching.files import LAUNCH_FILES
from catkin_pkg.package import parse_package
import pytest

ROOT = Path(__file__).resolve().parents[2]
NAME = 'biped_com_ros'
SHARED = ('launch', 'config', 'urdf', 'rviz', 'examples')
# rosdep keys of what is imported by another name; what no key has, or comes with Pinocchio.
PACKAGES = {'numpy': 'python3-numpy', 'rich': 'python3-rich', 'scipy': 'python3-scipy',
            'tf2_ros': 'tf2_ros_py', 'yaml': 'python3-yaml'}
NOT_FROM_APT = {'mujoco', 'proxsuite', 'coal', 'rosbags', 'pink', 'qpsolvers', 'viser', 'trimesh',
                'websockets', 'distributed'}


def clean_environment(*first):
    """Return the variables with these directories on Python's path and the source tree off it."""
    inherited = os.environ.get('PYTHONPATH', '').split(os.pathsep)
    path = [*map(str, first), *(entry for entry in inherited if entry != str(ROOT))]
    environ = {**os.environ, 'PYTHONPATH': os.pathsep.join(filter(None, path))}
    environ.setdefault('AMENT_PREFIX_PATH', sys.prefix)
    return environ


def test_pip_brings_what_core_needs_and_few_names_onto_the_path(tmp_path):
    """The metadata of a wheel, without installing it."""
    source = tmp_path / 'source'
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(
        '.*', '__pycache__', 'build', 'test', 'doc', 'benchmarks'))
    environment = {k: v for k, v in os.environ.items() if k != 'AMENT_PREFIX_PATH'}
    subprocess.run([sys.executable, 'setup.py', '-q', 'dist_info', '--output-dir', str(tmp_path)],
                   cwd=source, env=environment, check=True, capture_output=True)
    info, = tmp_path.glob('*.dist-info')
    metadata = (info / 'METADATA').read_text()
    needed = set(re.findall(r'^Requires-Dist: ([\w-]+)[^;\n]*$', metadata, re.MULTILINE))
    assert {'numpy', 'pin', 'scipy', 'PyYAML', 'rich', 'xacro'} <= needed
    assert 'mujoco' not in needed
    assert set(re.findall(r'^Provides-Extra: (\w+)$', metadata, re.MULTILINE)) >= {
        'sim', 'viewer', 'all'}
    scripts = re.findall(r'^(\S+) = ', (info / 'entry_points.txt').read_text(), re.MULTILINE)
    assert scripts and all(name.startswith('biped_com_') for name in scripts)
    page = (ROOT / 'doc' / 'api.rst').read_text().split('With pip')[1].split('Frequent')[0]
    assert set(re.findall(r'^Provides-Extra: (\w+)$', metadata, re.MULTILINE)) == set(
        re.findall(r'^``(\w+)``', page, re.MULTILINE))
    assert set(scripts) == set(re.findall(r'``(biped_com_(?!ros)\w+)``', page))


def test_pip_and_ros_describe_the_package_in_the_same_words():
    shown = subprocess.run([sys.executable, 'setup.py', '--description'], cwd=ROOT, text=True,
                           capture_output=True, check=True).stdout.split('\n')[-2]
    assert shown == ' '.join(parse_package(str(ROOT / 'package.xml')).description.split())


@pytest.fixture(scope='module')
def source(tmp_path_factory):
    """Return a copy of what belongs to the package, without environments and builds."""
    directory = tmp_path_factory.mktemp('workspace') / 'src' / NAME
    ignore = shutil.ignore_patterns('.*', '__pycache__', 'build', 'install', 'log')
    shutil.copytree(ROOT, directory, ignore=ignore)
    return directory


@pytest.fixture(scope='module')
def prefix(source):
    """Build with colcon and return the package's install prefix."""
    pytest.importorskip('colcon_core', reason='colcon is not installed')
    workspace = source.parents[1]
    result = subprocess.run(
        [sys.executable, '-m', 'colcon', 'build', '--base-paths', 'src'], cwd=workspace, text=True,
        env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert result.returncode == 0, result.stdout
    return workspace / 'install' / NAME


def executables():
    """Return the names of the executables that the sources stand for."""
    nodes = {path.parent.name for path in (ROOT / NAME / 'nodes').glob('*/node.py')}
    return nodes | {'calibrate', 'check', 'run_launch'}


def test_manifest_is_valid():
    package = parse_package(str(ROOT))
    package.validate()
    assert package.name == NAME
    assert package.get_build_type() == 'ament_python'
    assert package.package_format == 3
    assert [m.email for m in package.maintainers] == ['maintainers@biped-com-ros.org']


def imported_packages():
    """Return the names of the top-level packages that the nodes and the mathematics import."""
    nodes = (node for path in (ROOT / NAME).rglob('*.py')
             for node in ast.walk(ast.parse(path.read_text())))
    return {name.split('.')[0] for node in nodes for name in (
        [alias.name for alias in node.names] if isinstance(node, ast.Import)
        else [node.module] if isinstance(node, ast.ImportFrom) else [])}


def test_manifest_names_what_is_imported_and_what_launch_files_start_and_include():
    imported = imported_packages() - sys.stdlib_module_names - {NAME}
    assert {'rclpy', 'numpy', 'pinocchio'} <= imported
    launched = {program.package for name, given in (
        ('gazebo', {}), ('torso', {'joy': 'true'}),
        ('view', {'robot': 'biped'}))
        for program in LAUNCH_FILES[name].plan(given)}
    assert {'rviz2', 'ros_gz_sim', 'joy', 'robot_state_publisher'} <= launched
    needed = {PACKAGES.get(name, name) for name in imported - NOT_FROM_APT} | launched - {NAME}
    missing = needed - {depend.name for depend in parse_package(str(ROOT)).exec_depends}
    assert not missing, f'add <exec_depend> to package.xml: {missing}'


@pytest.mark.thorough
def test_it_is_installed_as_a_ros_package_with_all_executables_and_files(prefix):
    assert (prefix / 'share/ament_index/resource_index/packages' / NAME).is_file()
    share = prefix / 'share' / NAME
    assert (share / 'package.xml').is_file()
    # Written by colcon only for a package that it takes for an ament one.
    assert (share / 'hook' / 'ament_prefix_path.sh').is_file()
    assert {path.name for path in (prefix / 'lib' / NAME).iterdir()} == executables()
    for directory in SHARED:
        expected = {path.relative_to(ROOT) for path in (ROOT / directory).rglob('*')
                    if path.is_file() and not path.name.startswith('.') and path.suffix != '.pyc'}
        installed = {path.relative_to(share) for path in (share / directory).rglob('*')
                     if path.is_file()}
        assert installed == expected and expected, directory


@pytest.mark.thorough
def test_colcon_runs_its_tests(prefix, source):
    """Of a file of some seconds; without a hint in setup.py it runs none, and says OK."""
    workspace = source.parents[1]
    command = [sys.executable, '-m', 'colcon', 'test', '--base-paths', 'src', '--pytest-args',
               'test/unit/geometry/test_wrench.py']
    result = subprocess.run(command, cwd=workspace, text=True, env=clean_environment(),
                            capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    found = ElementTree.parse(workspace / 'build' / NAME / 'pytest.xml').getroot()
    assert sum(int(suite.get('tests')) for suite in found.iter('testsuite')) > 10


def run_installed(prefix, *command, cwd='/'):
    """Return the output of a command that finds the installed package only."""
    (packages,) = prefix.glob('lib/python3*/site-packages')
    result = subprocess.run(command, cwd=cwd, env=clean_environment(packages), text=True,
                            capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.thorough
def test_every_executable_can_be_loaded_from_the_installed_package(prefix):
    (metadata,) = prefix.glob(f'lib/python3*/site-packages/{NAME}-*/entry_points.txt')
    parser = ConfigParser()
    parser.read(metadata)
    lines = ['import importlib, biped_com_ros',
             f'assert biped_com_ros.__file__.startswith({str(prefix)!r}), biped_com_ros.__file__']
    for target in parser['console_scripts'].values():
        module, function = target.split(':')
        lines.append(f'assert callable(importlib.import_module({module!r}).{function})')
    run_installed(prefix, sys.executable, '-c', '\n'.join(lines))


@pytest.mark.thorough
def test_an_installed_example_and_an_installed_executable_run(prefix):
    assert 'Jacobian' in run_installed(
        prefix, sys.executable, '-B', '-m', 'examples.wang_errata', '10',
        cwd=prefix / 'share' / NAME)
    assert 'launch' in run_installed(prefix, str(prefix / 'lib' / NAME / 'run_launch'), '--help')
