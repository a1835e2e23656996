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
Package for colcon (ament_python).

A new node is a new file biped_com_ros/nodes/<name>/node.py with main(); a new launch file,
configuration or model is a file in its directory. Nothing needs to be listed in this file
(doc/extending.rst says where else).
"""

from collections import defaultdict
import os
from pathlib import Path
import sys

from setuptools import find_packages, setup

NAME = 'biped_com_ros'
PACKAGE = Path(NAME)
# Executables that are not nodes: name -> module.
TOOLS = {'calibrate': 'offline.calibrate', 'check': 'offline.check',
         'run_launch': 'launching.run'}
SHARED = ('launch', 'config', 'urdf', 'rviz', 'examples')
# For pip; with a sourced ROS 2, rosdep installs what package.xml names.
CORE = ['numpy>=1.26', 'pin>=3.3.1', 'PyYAML', 'rich', 'scipy', 'xacro']
EXTRAS = {'sim': ['mujoco>=3.2'], 'viewer': ['viser>=1.0', 'pycollada'],
          'bags': ['rosbags'], 'qp': ['proxsuite']}
EXTRAS['all'] = sorted(name for names in EXTRAS.values() for name in names)
# Of a wheel, whose executables come onto the PATH: colcon's are in lib/biped_com_ros.
ON_PATH = ('calibrate', 'check', 'run_launch')
IS_WHEEL = bool({'bdist_wheel', 'editable_wheel', 'dist_info'} & set(sys.argv))


def console_scripts():
    """Return an entry point for each node and each tool; of a wheel for the tools, prefixed."""
    if IS_WHEEL:
        return [f'biped_com_{name} = {NAME}.{TOOLS[name]}:main' for name in ON_PATH]
    nodes = {path.parent.name: f'nodes.{path.parent.name}.node'
             for path in (PACKAGE / 'nodes').glob('*/node.py')}
    modules = {**nodes, **TOOLS}
    return [f'{name} = {NAME}.{module}:main' for name, module in sorted(modules.items())]


def shared_files():
    """Return what goes to share/, directory by directory, as setuptools wants it."""
    files = defaultdict(list)
    files['share/ament_index/resource_index/packages'].append(f'resource/{NAME}')
    files[f'share/{NAME}'].append('package.xml')
    for path in (path for directory in SHARED for path in sorted(Path(directory).rglob('*'))):
        if path.is_file() and not path.name.startswith('.') and path.suffix != '.pyc':
            files[f'share/{NAME}/{path.parent}'].append(str(path))
    return sorted(files.items())


setup(
    name=NAME,
    version='0.2.0',
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['py.typed']},
    data_files=shared_files(),
    install_requires=['setuptools', *([] if os.environ.get('AMENT_PREFIX_PATH') else CORE)],
    # By the extra colcon sees that pytest runs the tests, with newer setuptools by that alone.
    extras_require=EXTRAS if IS_WHEEL else {**EXTRAS, 'test': ['pytest']},
    zip_safe=False,
    author='biped_com_ros contributors',
    author_email='maintainers@biped-com-ros.org',
    maintainer='biped_com_ros developers',
    maintainer_email='maintainers@biped-com-ros.org',
    description='Centre of mass, foot wrenches, ZMP, gravity compensation and a four-tendon torso '
                'for humanoids under ROS 2: estimates the CoM from joint positions and foot '
                'wrenches, and brings a simulated humanoid to try everything on.',
    license='Apache-2.0',
    tests_require=['pytest'],
    entry_points={'console_scripts': console_scripts()},
)
