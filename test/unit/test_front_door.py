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
"""What programs import: the names of doc/api.rst, cheaply; names that moved; its calls run."""

from importlib import import_module
import re
import subprocess
import sys
import warnings

from biped_com_ros._moved import find_moved, MODULES, NAMES, ROOT as PREFIX
import numpy as np
import pytest
from support.sources import PACKAGE, ROOT
from support.statics_data import TrueRobot

PAGE = (ROOT / 'doc' / 'api.rst').read_text()
#: Each package of the core with its names, as the page lists them.
LISTED = {package: re.findall(r'``(\w+)``', names) for package, names in re.findall(
    r'^   \* - ``(core\.\w+)``\n     - (.*(?:\n       .*)*)', PAGE, re.MULTILINE)}
CODE = [block.replace('\n    ', '\n') for block in re.findall(
    r'^\.\. code-block:: python\n((?:\n|    .*\n)+)', PAGE, re.MULTILINE)]
CALLS = re.findall(r'^   \* - (.+)\n     - ``(.+\(.*|.+\..+)``$', PAGE, re.MULTILINE)


def test_the_page_lists_what_each_package_exports():
    packages = {f'core.{path.parent.name}' for path in PACKAGE.glob('core/*/__init__.py')}
    assert LISTED.keys() == packages
    for package, names in LISTED.items():
        module = import_module(PREFIX + package)
        assert module.__all__ == sorted(names) and set(names) <= set(dir(module))
        for name in names:
            assert getattr(module, name).__module__.startswith(f'{PREFIX}{package}.'), name
    assert 70 < sum(map(len, LISTED.values())) < 100
    with pytest.raises(ImportError, match="cannot import name 'Backbones'"):
        from biped_com_ros.core.torso import Backbones  # noqa: F401


def test_importing_a_package_imports_none_of_its_modules():
    """So that each node pays for the modules it uses, and for no other one."""
    packages = ', '.join(PREFIX + package for package in LISTED)
    code = f'import biped_com_ros, {packages}, sys; print(*sys.modules)'
    loaded = subprocess.run([sys.executable, '-c', code], cwd=PACKAGE.parent, text=True,
                            stdout=subprocess.PIPE, check=True).stdout.split()
    own = {name.removeprefix(PREFIX) for name in loaded if name.startswith(PREFIX)}
    assert own == {*LISTED, 'core', 'core.lazy', '_moved'}
    assert not {'numpy', 'pinocchio', 'yaml', 'inspect'} & set(loaded)


@pytest.fixture(scope='module')
def namespace():
    """Return what the code of the page defines, and what its text says that one has."""
    true = TrueRobot('biped', extra=0.2, lumps=1)
    upright, names = true.model.posture('stand'), list(true.model.joint_names)
    leaning = upright.copy()
    leaning[[names.index(f'{side}_ankle_pitch') for side in 'lr']] += 0.1
    bodies = ''.join(f'<body name="{name}"></body>' for name in true.model.link_names)
    found = {'captures': true.captures(6), **{
        name: true.capture(('left', 'right'), positions=positions)
        for name, positions in (('upright', upright), ('leaning', leaning))},
        'mjcf': f'<mujoco><worldbody>{bodies}</worldbody></mujoco>'}
    for block in CODE:
        exec(block, found)
    return found


@pytest.mark.parametrize('call', [call for _, call in CALLS])
def test_calls_of_the_page_run(namespace, call):
    result = eval(call, namespace)
    assert result is not None
    if isinstance(result, np.ndarray):
        assert np.isfinite(result).all()


def test_the_page_has_each_paper():
    papers = {path.stem for path in PACKAGE.glob('papers/*_*.py')} - {'__init__'}
    assert len(papers) == 4 and len(CALLS) > 30
    assert all(f'{paper}.' in ' '.join(call for _, call in CALLS) for paper in papers)


@pytest.mark.parametrize('old', NAMES)
def test_renamed_names_are_found_where_they_are(old):
    module, _, name = old.rpartition('.')
    with pytest.warns(DeprecationWarning, match=f'{re.escape(PREFIX + old)} is {PREFIX}'):
        found = getattr(import_module(PREFIX + module), name)
    there, _, renamed = NAMES[old].rpartition('.')
    assert found is vars(import_module(PREFIX + there))[renamed]


@pytest.mark.parametrize('old', MODULES)
def test_modules_that_are_gone_have_their_names(old):
    module = import_module(PREFIX + old)
    for place in MODULES[old].split():
        there = import_module(PREFIX + place)
        name = next(name for name, value in vars(there).items() if (not name.startswith('_')
                    and getattr(value, '__module__', '') == there.__name__)
                    or (place == 'core.constants' and name == 'GRAVITY'))
        with pytest.warns(DeprecationWarning, match=rf'\.{name} is {PREFIX}'):
            assert find_moved(module.__name__, name) is not None
    with pytest.raises(AttributeError, match='has no attribute'):
        find_moved(module.__name__, 'never_was')


def test_moved_names_are_imported_as_before():
    with pytest.warns(DeprecationWarning, match='core.geometry.pose.Pose now') as found:
        from biped_com_ros.core.pose import Pose
    assert found[0].filename == __file__ and Pose.__module__ == 'biped_com_ros.core.geometry.pose'
    with pytest.raises(ImportError, match='never_was'):
        from biped_com_ros.core.pose import never_was  # noqa: F401
    with warnings.catch_warnings():
        warnings.simplefilter('error')  # names that are where they were
        from biped_com_ros.core.gravity import GravityModel
        from biped_com_ros.core.legs.kinematics import Leg
    assert GravityModel and Leg
