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
"""`lowstate_bridge` receives LowState over DDS by its real type, which rosidl builds here."""

import json
import os
from pathlib import Path
import shutil
import subprocess
import sys

import numpy as np
import pytest
from support.low_states import DEFINITIONS, LowStates

WHEELS = Path(__file__).parents[2] / 'tools' / 'wheels.cmake'
CMAKE = f"""cmake_minimum_required(VERSION 3.21)
project(unitree_hg)
find_package(ament_cmake REQUIRED)
find_package(rosidl_default_generators REQUIRED)
include({WHEELS})
rosidl_generate_interfaces(unitree_hg msg/IMUState.msg msg/MotorState.msg msg/LowState.msg)
ament_package()
"""
PACKAGE = """<?xml version="1.0"?>
<package format="3"><name>unitree_hg</name><version>0.0.0</version>
<description>LowState</description>
<maintainer email="test@example.com">test</maintainer><license>BSD-3-Clause</license>
<buildtool_depend>ament_cmake</buildtool_depend>
<buildtool_depend>rosidl_default_generators</buildtool_depend>
<exec_depend>rosidl_default_runtime</exec_depend>
<member_of_group>rosidl_interface_packages</member_of_group></package>
"""


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """Return the prefix of the package, built from the vendor's definitions."""
    if not shutil.which('cmake') or not shutil.which('g++'):
        pytest.skip('no cmake or g++ to build messages')
    root = tmp_path_factory.mktemp('unitree_hg')
    (root / 'source/msg').mkdir(parents=True)
    (root / 'source/CMakeLists.txt').write_text(CMAKE)
    (root / 'source/package.xml').write_text(PACKAGE)
    for name, text in DEFINITIONS['unitree_hg'].items():
        (root / f'source/msg/{name}.msg').write_text(f'{text}\n')
    options = {'CMAKE_INSTALL_PREFIX': root / 'install', 'CMAKE_PREFIX_PATH': sys.prefix,
               'Python3_EXECUTABLE': sys.executable, 'Python3_FIND_VIRTUALENV': 'ONLY',
               'BUILD_TESTING': 'OFF'}
    environment = {**os.environ, 'AMENT_PREFIX_PATH': os.pathsep.join(filter(None, (
        sys.prefix, os.environ.get('AMENT_PREFIX_PATH'))))}
    for command in (['-S', str(root / 'source'), '-B', str(root / 'build'),
                     *(f'-D{key}={value}' for key, value in options.items())],
                    ['--build', str(root / 'build'), '--parallel=2'],
                    ['--install', str(root / 'build')]):
        done = subprocess.run(['cmake', *command], env=environment, text=True, timeout=900,
                              capture_output=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return root / 'install'


def made():
    """Return messages with 20 random ones, and one that was damaged on the way."""
    states, rng = LowStates('unitree_hg'), np.random.default_rng(0)
    found = []
    for i in range(20):
        message = states.message(rng)
        message.mode_pr, message.tick = 0, 1000 + 20 * i
        for motor in message.motor_state:
            motor.motorstate = 0
        if i == 7:
            message.motor_state[5].motorstate = 3
        message.imu_state.quaternion[:] = 1.0, 0.0, 0.0, 0.0
        raw = states.serialize(message)
        if i == 11:
            raw = raw[:80] + bytes([raw[80] ^ 1]) + raw[81:]
        found.append((message, raw))
    return found


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_the_bridge_receives_the_vendors_type(installed, tmp_path):
    sent = made()
    file = tmp_path / 'messages'
    file.write_text(''.join(f'{raw.hex()}\n' for _, raw in sent))
    modules = next(installed.glob('lib/python*/site-packages'))
    environment = {
        **os.environ,
        'AMENT_PREFIX_PATH': f"{installed}:{os.environ.get('AMENT_PREFIX_PATH', sys.prefix)}",
        'LD_LIBRARY_PATH': f"{installed / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        'PYTHONPATH': os.pathsep.join((str(modules), *filter(None, sys.path)))}
    script = Path(__file__).parents[1] / 'support' / 'low_state_peer.py'
    done = subprocess.run([sys.executable, str(script), str(file)], env=environment, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    # rosidl writes the bytes that rosbags wrote, but for padding.
    assert [len(text) for text in found['serialized']] == [2 * len(raw) for _, raw in sent]
    good = [message for i, (message, _) in enumerate(sent) if i != 11]
    assert len(found['positions']) == len(good) == len(found['gyroscope'])
    for positions, gyroscope, message in zip(found['positions'], found['gyroscope'], good):
        assert positions['left_knee_joint'] == message.motor_state[3].q
        assert positions['right_wrist_yaw_joint'] == message.motor_state[28].q
        assert gyroscope == message.imu_state.gyroscope[2]
    assert 'checksum' in found['statuses']['input /lowstate']
