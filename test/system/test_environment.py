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

"""Check the decisions of tools/environment.py; the set-up itself is what `make test` did."""

import dataclasses
import errno
import hashlib
import itertools
import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import zipfile

import pytest
from support.tool_modules import load_tool

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / 'requirements'
environment = load_tool('environment')
lock = load_tool('lock')


@pytest.fixture
def ros(tmp_path):
    """Return the variables of a terminal with an invented ROS 2 Jazzy sourced."""
    prefix = tmp_path / 'opt' / 'ros' / 'jazzy'
    packages = prefix / 'lib' / 'python3' / 'site-packages'
    (packages / 'rclpy' / 'impl').mkdir(parents=True)
    for name in ('__init__', 'impl/__init__', 'impl/implementation_singleton'):
        (packages / 'rclpy' / f'{name}.py').touch()
    return {**os.environ, 'ROS_DISTRO': 'jazzy', 'AMENT_PREFIX_PATH': str(prefix),
            'PYTHONPATH': str(packages)}


@pytest.fixture
def plan(tmp_path):
    """Return a plan whose directory looks like a finished environment."""
    plan = dataclasses.replace(environment.wheels_plan('runtime', 'jazzy'), directory=tmp_path)
    plan.venv_python.parent.mkdir()
    plan.venv_python.touch()
    return plan


def bare(**variables):
    """Return the variables of a terminal without ROS 2."""
    return {'PATH': os.environ['PATH'], **variables}


# ---------------------------------------------------------------------------------- planning


def test_without_ros_jazzy_comes_from_wheels():
    plan = environment.make_plan('runtime', '', False, bare())
    assert (plan.kind, plan.distribution) == ('wheels', 'jazzy')
    assert (plan.directory, plan.lock.name) == (ROOT / '.venv', 'jazzy.txt')


def test_another_distribution_has_an_environment_of_its_own():
    plan = environment.make_plan('dev', 'kilted', False, bare())
    assert plan.directory == ROOT / '.venv-kilted'
    assert {'ros-kilted.in', 'ros-kilted-lint.in', 'runtime.in', 'robots.in', 'test.in',
            'viewer.in', 'browser.in', 'colcon.in', 'lint.in', 'docs.in'
            } == {path.name for path in plan.inputs}


def test_sourced_ros_is_used(ros):
    plan = environment.make_plan('runtime', '', False, ros)
    assert (plan.kind, plan.distribution) == ('sourced', 'jazzy')
    assert (plan.directory, plan.python) == (ROOT / '.venv-ros-jazzy', environment.base_python())
    assert not any(path.name.startswith('ros-') for path in plan.inputs)


def test_a_sourced_ros_that_pypi_lacks_is_completed_from_the_first_lock(ros):
    plan = environment.make_plan('dev', '', False, {**ros, 'ROS_DISTRO': 'lyrical'})
    assert (plan.kind, plan.distribution, plan.lock.name) == ('sourced', 'lyrical', 'jazzy.txt')
    assert plan.directory == ROOT / '.venv-ros-lyrical'


@pytest.mark.parametrize('version, wheels, oldest', [
    ((3, 9), False, False), ((3, 10), True, True), ((3, 13), True, True),
    ((3, 14), True, False), ((3, 15), False, False)])
def test_a_python_without_wheels_is_an_error(monkeypatch, version, wheels, oldest):
    monkeypatch.setattr(environment.sys, 'version_info', (*version, 3))
    for is_right, make, first_to_last in (
            (wheels, lambda: environment.wheels_plan('dev', 'jazzy'), '3.10 to 3.14'),
            (oldest, environment.oldest_plan, '3.10 to 3.13')):
        if is_right:
            assert make().lock.exists()
        else:
            with pytest.raises(environment.SetupError, match=f'Python {first_to_last}'):
                make()


@pytest.mark.parametrize('sourced, distribution, match', [
    ({}, 'rolling', r"'rolling'.*jazzy, kilted"),
    ({'AMENT_PREFIX_PATH': '/nowhere'}, '', 'ros-jazzy-rclpy'),
    ({'ROS_DISTRO': 'jazzy'}, 'kilted', 'DISTRO=kilted, but ROS 2 jazzy is sourced'),
    ({'ROS_DISTRO': 'humble'}, '', r'humble.*Jazzy is the oldest')])
def test_a_distribution_that_cannot_be_used_is_an_error(ros, sourced, distribution, match):
    with pytest.raises(environment.SetupError, match=match):
        environment.make_plan('runtime', distribution, False,
                              {**ros, **sourced} if sourced else bare())


def test_each_level_contains_those_below():
    files = [environment.level_files(level) for level in environment.LEVELS]
    for lower, higher in itertools.pairwise(files):
        assert higher[:len(lower)] == lower
        assert len(higher) > len(lower)


def test_active_virtual_environment_makes_no_difference(tmp_path):
    code = ('import runpy; print(runpy.run_path("tools/environment.py")["make_plan"]'
            '("dev", "jazzy", False, {}).python)')
    base = environment.base_python()
    subprocess.run([base, '-m', 'venv', '--without-pip', tmp_path], check=True)
    plans = [subprocess.run([python, '-c', code], cwd=ROOT, text=True, capture_output=True,
                            check=True).stdout for python in (base, tmp_path / 'bin' / 'python')]
    assert plans == [f'{base}\n'] * 2


# ----------------------------------------------------------------------- what the machine has


def test_missing_packages_are_named_with_the_apt_line(plan, monkeypatch):
    monkeypatch.setattr(environment.shutil, 'which', lambda name: None)
    monkeypatch.setattr(environment, 'python_has', lambda python, code: False)
    monkeypatch.setattr(environment.os, 'geteuid', lambda: 1000)
    plan = dataclasses.replace(plan, python='/usr/bin/python3')
    with pytest.raises(environment.SetupError) as error:
        environment.check_machine(plan)
    assert 'sudo apt install python3-venv python3-dev cmake g++ make' in str(error.value)


def test_second_python_has_packages_of_its_own(plan):
    version = f'{sys.version_info[0]}.{sys.version_info[1]}'
    assert environment.debian_python('/opt/python3', 'venv') == f'python{version}-venv'


def test_old_cmake_is_as_good_as_none(plan, monkeypatch, tmp_path):
    old = tmp_path / 'bin' / 'cmake'
    old.write_text('#!/bin/sh\necho cmake version 3.18.4\n')
    old.chmod(0o755)
    monkeypatch.setenv('PATH', f'{old.parent}{os.pathsep}{os.environ["PATH"]}')
    assert environment.cmake_version() == (3, 18)
    assert 'cmake' in dict(environment.missing_pieces(plan))


def test_a_sourced_ros_gets_pinocchio_from_apt(plan, monkeypatch):
    monkeypatch.setattr(environment, 'python_has',
                        lambda python, code: code != 'import pinocchio')
    plan = dataclasses.replace(plan, kind='sourced')
    assert list(dict(environment.missing_pieces(plan))) == ['ros-jazzy-pinocchio']


# ------------------------------------------------------------------------------------- stamps


@pytest.fixture
def steps(monkeypatch):
    """Return a list of the set-ups that are done from now on: plans and their steps."""
    done = []
    monkeypatch.setattr(environment, 'check_machine', lambda plan: None)
    monkeypatch.setattr(environment, 'run_steps', lambda *step: done.append(step))
    return done


def higher_than(plan):
    return dataclasses.replace(plan, inputs=(*plan.inputs, REQUIREMENTS / 'test.in'))


def test_a_finished_environment_is_good_for_its_level_and_extended_for_a_higher_one(plan, steps):
    environment.write_stamps(plan, [environment.fingerprint(plan)])
    environment.set_up([plan])
    assert not steps
    environment.set_up([plan, higher_than(plan)])
    assert [chosen for _, chosen in steps] == [environment.EXTEND_STEPS['wheels']]


def test_higher_level_is_good_for_lower_ones(plan, steps):
    environment.set_up([plan, higher_than(plan)])
    steps.clear()
    environment.set_up([plan])
    assert not steps


def test_a_new_lock_file_does_not_cost_the_higher_level(plan, steps, tmp_path):
    environment.write_stamps(plan, [environment.fingerprint(p) for p in (plan, higher_than(plan))])
    plan = dataclasses.replace(plan, lock=changed_lock(plan, tmp_path))
    environment.set_up([plan], lambda: [higher_than(plan)])
    assert steps == [(higher_than(plan), environment.CREATE_STEPS['wheels'])]
    assert environment.read_stamps(plan) == [
        environment.fingerprint(p) for p in (plan, higher_than(plan))]


def changed_lock(plan, directory):
    file = directory / 'jazzy.txt'
    file.write_text(plan.lock.read_text() + 'another==1.0\n')
    return file


def test_interrupted_set_up_leaves_no_stamp(plan):
    def interrupt(*_):
        raise KeyboardInterrupt

    environment.write_stamps(plan, [environment.fingerprint(plan)])
    with pytest.raises(KeyboardInterrupt):
        environment.run_steps(plan, [('wait', interrupt)])
    assert environment.read_stamps(plan) == []


def test_a_linked_environment_of_another_directory_is_not_changed(plan, tmp_path):
    environment.write_stamps(plan, ['of another directory'])
    link = tmp_path / 'linked'
    link.symlink_to(plan.directory, target_is_directory=True)
    with pytest.raises(environment.SetupError, match='is a link to .*Run make there'):
        environment.run_steps(dataclasses.replace(plan, directory=link), [])
    assert environment.read_stamps(plan) == ['of another directory']


@pytest.mark.parametrize('text', ['', '{', '{}', 'null'])
def test_damaged_stamps_count_as_none(plan, text):
    (plan.directory / 'stamps.json').write_text(text)
    assert environment.read_stamps(plan) == []


def test_stamps_do_not_count_when_the_interpreter_is_gone(plan):
    environment.write_stamps(plan, [environment.fingerprint(plan)])
    plan.venv_python.unlink()
    assert environment.read_stamps(plan) == []


def test_fingerprint_depends_on_the_versions(plan, tmp_path):
    changed = dataclasses.replace(plan, lock=changed_lock(plan, tmp_path))
    assert environment.fingerprint(changed) != environment.fingerprint(plan)


# ------------------------------------------------------------------------------------ running


def test_commands_have_the_names_that_colcon_gives_them(plan):
    setup = (ROOT / 'setup.py').read_text()
    for name, module in environment.COMMANDS.items():
        assert f"'{name}': '{module.removeprefix('biped_com_ros.')}'" in setup
    environment.write_commands(plan)
    plan.venv_python.unlink(missing_ok=True)
    plan.venv_python.symlink_to(sys.executable)
    result = subprocess.run([plan.directory / 'bin' / 'run_launch', 'no.launch.py'], text=True,
                            capture_output=True, cwd=ROOT, check=False)
    assert result.returncode == 2
    assert 'no.launch.py' in result.stderr and 'demo.launch.py' in result.stderr


@pytest.mark.parametrize('name', ['plain', 'Büro', "it's \\"])
def test_python_starts_in_the_locale_c_wherever_the_repository_is(tmp_path, name):
    """Files with paths are read in the encoding of the locale."""
    repository, environments = tmp_path / name / 'repository', tmp_path / 'environment'
    repository.mkdir(parents=True)
    (repository / 'a_module.py').write_text('print("imported")')
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', environments], check=True)
    packages, = environments.glob('lib/python3*/site-packages')
    (packages / 'x.pth').write_text(environment.path_line(repository), encoding='ascii')
    result = subprocess.run(
        [environments / 'bin' / 'python', '-c', 'import a_module'], text=True, cwd='/',
        capture_output=True, env={**bare(), 'LC_ALL': 'C'}, check=False)
    assert (result.stdout, result.stderr) == ('imported\n', '')


@pytest.mark.parametrize('name', ['plain', 'Büro'])
def test_messages_are_built_below_a_path_in_ascii(tmp_path, name):
    directory = tmp_path / name
    directory.mkdir()
    (directory / 'here').touch()
    with environment.ascii_path(directory) as path:
        assert str(path).isascii() and (path / 'here').exists()
        assert (path == directory) == (name == 'plain')
    assert (directory / 'here').exists()


@pytest.mark.parametrize('command, match', [
    ([sys.executable, '-c', 'print("the reason"); raise SystemExit(3)'],
     r'(?s)the reason.*code 3.*setup\.log'),
    (['no-such-cmake'], 'cmake` cannot be started: No such')])
def test_a_failed_step_is_named_with_the_end_of_the_log(plan, command, match):
    with (pytest.raises(environment.SetupError, match=match),
          environment.Progress('step') as progress):
        environment.call(plan, progress, command)


def test_a_full_disk_is_named_and_what_to_do(monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), 'stamps.json')

    monkeypatch.setattr(environment, 'set_up', full)
    assert environment.main(['--', 'echo']) == 1
    printed = capsys.readouterr().err
    assert "No space left on device: 'stamps.json'" in printed
    assert f'needs {environment.NEEDED_SPACE["runtime"]:g} GB of free space in {ROOT}' in printed


@pytest.mark.parametrize('options', [[], ['--block-interrupt']])
def test_ctrl_c_is_blocked_for_a_command_that_unblocks_it(monkeypatch, options):
    """While its Python starts, ctrl-C would print a traceback."""
    blocked = []
    monkeypatch.setattr(environment, 'set_up', lambda *_: None)
    monkeypatch.setattr(os, 'execvpe', lambda *_: blocked.append(
        signal.SIGINT in signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})))
    assert environment.main([*options, '--', 'echo']) == 0
    assert blocked == [bool(options)]


def test_ctrl_c_in_the_set_up_prints_what_the_next_start_does(monkeypatch, capsys):
    def interrupt(*_):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(environment, 'set_up', interrupt)
    assert environment.main([]) == 130
    assert 'Interrupted; the next start begins the set-up again' in capsys.readouterr().err


def test_wheels_are_shielded_from_other_environments(plan):
    variables = environment.environment_of(
        plan, bare(PYTHONPATH='/elsewhere', ROS_DISTRO='foxy', AMENT_PREFIX_PATH='/opt/ros/foxy',
                   LD_LIBRARY_PATH='/opt/ros/foxy/lib:/usr/local/lib'))
    assert 'PYTHONPATH' not in variables
    assert 'ROS_DISTRO' not in variables
    assert variables['LD_LIBRARY_PATH'] == '/usr/local/lib'
    assert variables['AMENT_PREFIX_PATH'] == str(plan.directory)
    assert variables['PATH'].startswith(f'{plan.directory}/bin{os.pathsep}')


def test_sourced_ros_is_kept(plan, ros):
    plan = dataclasses.replace(plan, kind='sourced')
    variables = environment.environment_of(plan, ros)
    assert variables['PYTHONPATH'] == f'{ROOT}{os.pathsep}{ros["PYTHONPATH"]}'
    assert variables['AMENT_PREFIX_PATH'] == ros['AMENT_PREFIX_PATH']


# --------------------------------------------------------------------------------- lock files


@pytest.mark.parametrize('requirement, name', [
    ('PyYAML>=6', 'pyyaml'), ('types-PyYAML', 'types-pyyaml'), ('catkin_pkg', 'catkin-pkg'),
    ("numpy==1.26.4 ; python_version < '3.13'", 'numpy'), ('a[b]==1', 'a')])
def test_project_names_are_normalised(requirement, name):
    assert environment.project_name(requirement) == name


@pytest.mark.parametrize('name', lock.LOCKS)
def test_lock_has_everything_that_is_required(name):
    locked = {package.name for package in environment.read_lock(REQUIREMENTS / name)}
    for source in (entry for entry in lock.LOCKS[name] if not entry.startswith('-')):
        for line in environment.requirement_lines(REQUIREMENTS / source):
            assert environment.project_name(line) in locked, f'{line}: run `make lock`'


@pytest.mark.parametrize('path', sorted(REQUIREMENTS.iterdir()), ids=lambda path: path.name)
def test_requirements_name_no_index(path):
    for line in environment.requirement_lines(path):
        assert line.startswith('--hash=sha256:') or not line.startswith('-'), line
        assert '://' not in line


@pytest.mark.parametrize('name', lock.LOCKS)
def test_every_package_of_a_lock_has_one_version_and_hashes(name):
    packages = environment.read_lock(REQUIREMENTS / name)
    assert len(packages) > (10 if name == 'fleet.txt' else 50)
    for package in packages:
        assert '==' in package.text.splitlines()[0], package.text
        hashes = re.findall(r'--hash=sha256:([0-9a-f]+)', package.text)
        assert hashes and all(len(digest) == 64 for digest in hashes), package.name
        assert package.needed_by, package.name


@pytest.mark.parametrize('name', ['jazzy', 'kilted'])
def test_levels_divide_a_lock(name):
    """The highest level needs all of it, each level more than the one below."""
    packages = environment.read_lock(REQUIREMENTS / f'{name}.txt')
    needed = []
    for level in environment.LEVELS:
        files = [f'ros-{name}.in', *environment.level_files(level)]
        files += [f'ros-{name}-lint.in'] if level == 'dev' else []
        names = [line for file in files
                 for line in environment.requirement_lines(REQUIREMENTS / file)]
        needed.append({package.name for package in environment.needed_by(names, packages)})
        assert set(map(environment.project_name, names)) <= needed[-1]
    assert all(lower < higher for lower, higher in zip(needed, needed[1:]))
    assert needed[-1] == {package.name for package in packages}
    assert {'numpy', f'ros-{name}-rclpy', 'websockets'} <= needed[0]
    assert 'pytest' not in needed[0]


LOCK = """# This file was autogenerated
a==1 ; python_full_version < '3.11' \\
    --hash=sha256:11
    # via -r x.in, d
a==2 ; python_full_version >= '3.11' \\
    --hash=sha256:22 \\
    --hash=sha256:23
    # via -r x.in, d
b-c==1 \\
    --hash=sha256:33
    # via a[extra]
d==1 \\
    --hash=sha256:44
    # via -r y.in
"""


def test_what_is_needed_is_found_in_a_lock(tmp_path):
    (tmp_path / 'lock.txt').write_text(LOCK)
    packages = environment.read_lock(tmp_path / 'lock.txt')
    assert [package.name for package in packages] == ['a', 'a', 'b-c', 'd']
    assert packages[1].text.splitlines()[1:] == ['    --hash=sha256:22 \\', '    --hash=sha256:23']
    assert 'via' not in packages[1].text
    for requirement, found in (('A', ['a', 'a', 'b-c']), ('B_c', ['b-c']),
                               ('d>=1', ['a', 'a', 'b-c', 'd'])):
        assert [p.name for p in environment.needed_by([requirement], packages)] == found


def test_the_time_left_is_that_of_packages_that_are_not_there_yet(tmp_path, monkeypatch):
    now = 0.0
    monkeypatch.setattr(environment.time, 'monotonic', lambda: now)
    old = tmp_path / 'there-1.0.dist-info'
    old.mkdir()
    os.utime(old, (0.0, 0.0))
    packages = environment.PackageCount(tmp_path, 8)
    for line in ('Requirement already satisfied: there==1.0 in lib', "Ignoring a: markers '...'",
                 *(f'Collecting {name}' for name in 'bcde')):
        packages.add(line)
    now = 30.0
    assert str(packages) == '3 of 6 downloaded, about 30 s left'
    packages.add('Collecting f')
    packages.add('Collecting g')
    packages.add('Installing collected packages: b, c, d, e, f, g')
    for name in 'bc':
        (tmp_path / f'{name}-1.0.dist-info').mkdir()
    now = 40.0
    assert str(packages) == '2 of 6 unpacked, about 20 s left'


def test_progress_of_each_package_of_messages_is_one_of_three(plan, monkeypatch, capsys):
    shown = []
    progress = environment.Progress('build')
    monkeypatch.setattr(environment, 'call', lambda plan, progress, command: (
        progress.add('[ 31%] Building'), shown.append(progress.detail)))
    monkeypatch.setattr(environment.shutil, 'rmtree', lambda _: None)
    environment.build_interfaces(
        environment.replace(plan, directory=environment.ROOT / '.venv'), progress)
    assert list(dict.fromkeys(shown)) == [f'{i} of 3 [ 31%]' for i in (1, 2, 3)]


@pytest.mark.thorough
def test_a_package_that_is_not_the_locked_one_is_refused(plan, tmp_path, monkeypatch):
    """With pip itself: a wheel that somebody has exchanged is not installed."""
    wheel = tmp_path / 'tiny-1.0-py3-none-any.whl'
    with zipfile.ZipFile(wheel, 'w') as archive:
        archive.writestr('tiny.py', 'x = 1')
        archive.writestr('tiny-1.0.dist-info/METADATA',
                         'Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n')
        archive.writestr('tiny-1.0.dist-info/WHEEL',
                         'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        archive.writestr('tiny-1.0.dist-info/RECORD', '')
    plan.venv_python.parent.mkdir(parents=True, exist_ok=True)
    plan.venv_python.unlink(missing_ok=True)
    plan.venv_python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    plan.venv_python.chmod(0o755)
    for name, value in (('NO_INDEX', '1'), ('FIND_LINKS', tmp_path), ('TARGET', tmp_path / 'to'),
                        ('CONFIG_FILE', os.devnull)):
        monkeypatch.setenv(f'PIP_{name}', str(value))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()

    def install(line):
        progress = environment.Progress('install')
        environment.install_locked(
            plan, progress, [environment.Locked('tiny', line, frozenset())])

    for wrong in (f'tiny==1.0 --hash=sha256:{digest[::-1]}', 'tiny==1.0',
                  f'tiny>=1.0 --hash=sha256:{digest}'):
        with pytest.raises(environment.SetupError, match='failed with code'):
            install(wrong)
        assert not (tmp_path / 'to' / 'tiny.py').exists()
    install(f'tiny==1.0 --hash=sha256:{digest}')
    assert (tmp_path / 'to' / 'tiny.py').exists()
