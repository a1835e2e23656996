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
Keep test runs apart from each other and from a robot on the same network.

Set before anything imports rclpy, and inherited by the processes that tests start. Workers of
pytest-xdist (``-n 2``) take one domain each.
"""

import functools
import importlib.util
import os
from pathlib import Path
import re

from biped_com_ros.launching.isolation import DOMAIN, DOMAINS, Isolation, RANGE
import pytest

NEEDS_ROS = re.compile(r'^(from|import) (rclpy|biped_com_ros\.(ros|nodes))\b', re.MULTILINE)


def isolate():
    """
    Set a ROS domain that no other session, worker or demo uses; return what reserves it.

    ``BIPED_COM_ROS_TEST_DOMAIN`` asks for one, which is not reserved; workers take those that
    follow.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in (DOMAIN, RANGE)}
    if chosen := inherited.get('BIPED_COM_ROS_TEST_DOMAIN'):
        worker = int(inherited.get('PYTEST_XDIST_WORKER', 'gw-1').removeprefix('gw'))
        inherited[DOMAIN] = str((int(chosen) + worker) % len(DOMAINS) + 1)
    isolated = Isolation(inherited)
    os.environ.clear()
    os.environ.update(isolated.environment)
    return isolated


_reserved = isolate()

# Several tests at a time fill the cores. OpenBLAS' threads, waiting for each other in busy loops,
# would make the tests of gaits and of the identification take seven times the CPU.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')


ROBOTS = Path(__file__).resolve().parents[1] / 'urdf'


def expand_own_robots_once():
    """Let xacro expand the files of the package, which no test changes, once per process."""
    import xacro
    expand = xacro.process_file

    @functools.cache
    def expand_once(path, mappings):
        return expand(path, mappings=dict(mappings))

    def process_file(path, mappings=None, **options):
        if options or not Path(path).is_relative_to(ROBOTS):
            return expand(path, mappings=mappings, **options)
        return expand_once(path, tuple((mappings or {}).items()))

    xacro.process_file = process_file


if importlib.util.find_spec('xacro'):
    expand_own_robots_once()


@pytest.fixture(scope='session')
def model():
    """Return the demo robot, for tests in which it does not matter which one it is."""
    return _robot('biped')


@pytest.fixture(scope='session')
def talos():
    return _robot('talos')


def _robot(name):
    from biped_com_ros.core.model.robot import RobotModel
    return RobotModel.load(name)


def pytest_configure(config):
    """Leave thorough cases out of `colcon test`, whose users want an answer soon."""
    if 'COLCON' in os.environ:
        config.option.markexpr = config.option.markexpr or 'not thorough'


def pytest_report_header():
    """Name the domain, for whoever wants to look on."""
    return f'ROS_DOMAIN_ID: {os.environ["ROS_DOMAIN_ID"]}'


_left = []
"""Number of thorough cases that each worker has left out."""


def pytest_sessionfinish(session):
    """Let a worker report how many cases it has left out."""
    if hasattr(session.config, 'workeroutput'):
        session.config.workeroutput['left'] = len(_left)


def pytest_deselected(items):
    """Count what is left to `make test-all`."""
    _left.extend(item for item in items if item.get_closest_marker('thorough'))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take over the number of a worker; all of them collect the same cases."""
    _left[:] = [None] * getattr(node, 'workeroutput', {}).get('left', 0)


def pytest_unconfigure(config):
    """End with one line that says what passed, and what was left out."""
    reporter = config.pluginmanager.get_plugin('terminalreporter')
    if reporter is None or config.option.markexpr != 'not thorough':
        return
    passed, failed = (len(reporter.stats.get(kind, ())) for kind in ('passed', 'failed'))
    failed += len(reporter.stats.get('error', ()))
    print(f'make test: {passed} passed, {failed} failed; {len(_left)} thorough cases are left to '
          '`make test-all`.')


def pytest_ignore_collect(collection_path):
    """Leave out what cannot be imported where there is no ROS 2 (`make test-oldest`)."""
    if collection_path.suffix != '.py' or importlib.util.find_spec('rclpy'):
        return None
    return bool(NEEDS_ROS.search(collection_path.read_text())) or None


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    """Skip files of tests that simulate where MuJoCo is not installed: rosdep has it not."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and 'mujoco' in str(report.longrepr) and (
            importlib.util.find_spec('mujoco') is None):
        report.outcome = 'skipped'
        report.longrepr = (report.nodeid, 0, 'Skipped: pip install mujoco')
