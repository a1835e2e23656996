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
Makes the sample recording of doc/calibration.rst, and the truth beside it.

::

    python doc/sample/record.py [DIRECTORY]

A simulated ``sabian`` whose masses differ from the URDF takes the poses of ``com_calibrator``, all
over DDS as users run them. Of what the simulator recorded, every
``EVERY``-th instant of the topics that ``calibrate`` reads goes into ``sabian.mcap``; the true
masses and centres of mass go into ``sabian_true.urdf``. Both are written beside this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import os
from pathlib import Path
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from biped_com_ros.core.bags import opened_bag
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial, with_inertials
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.sim import hidden
from biped_com_ros.sim.description import parse
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import get_typestore, Stores
import yaml

HERE = Path(__file__).resolve().parent
ROBOT, SEED, POSES = 'sabian', 5, 12
RATE, EVERY = 50.0, 2  # Hz
# Masses and centres of mass that the URDF does not know, and noisy, tared sensors; N, N m.
HIDDEN = {'hidden_com_sigma': 0.012, 'hidden_mass_sigma': 0.08}
NOISE = {'encoder_noise': 0.0002, 'velocity_noise': 0.01, 'effort_noise': 0.3, 'force_noise': 1.0,
         'torque_noise': 0.05, 'gyro_noise': 0.002, 'accelerometer_noise': 0.03,
         'force_bias': 0.5, 'torque_bias': 0.02, 'encoder_offset': 0.001, 'tilt_bias': 0.001}
LIMIT = 1500.0  # s
DOMAIN = '94'


def main(directory: str = str(HERE)) -> None:
    """Record, thin the recording out, and write both files."""
    model, config = RobotModel.load(ROBOT), package_share() / 'config'
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        simulator = {
            'robot': ROBOT, 'seed': SEED, 'rate': RATE, 'real_time_factor': 3.0,
            'record': str(work / 'bag'), **HIDDEN, **NOISE}
        calibrator = {
            'robot': ROBOT, 'poses': POSES, 'candidates': 30, 'move': True, 'use_sim_time': True,
            'approach': 'shortest', 'joint_speed': 0.8, 'directory': str(work)}
        with (_node('simulator', simulator, work),
              _node('com_calibrator', calibrator, work,
                    config / 'demo' / 'simulated_calibration.yaml')):
            _wait_for(work / ROBOT / 'report.html', work)
        topics = ('joint_states', model.config.imu.topic,
                  *(sensor.topic for sensor in model.config.wrench_sensors.values()))
        thin_out(work / 'bag', Path(directory) / f'{ROBOT}.mcap', topics)
    (Path(directory) / f'{ROBOT}_true.urdf').write_text(true_urdf(model))


def true_urdf(model: RobotModel) -> str:
    """Return the URDF with the masses and centres of mass that the simulator hid."""
    description = parse(model.urdf)
    errors = hidden.draw(
        description, SEED, HIDDEN['hidden_com_sigma'], HIDDEN['hidden_mass_sigma'])
    links = hidden.apply(description, errors).links
    return with_inertials(model.urdf, {
        name: NewInertial(links[name].mass, links[name].com) for name in errors})


def thin_out(bag: Path, path: Path, topics: tuple[str, ...]) -> None:
    """Write every ``EVERY``-th instant of the topics of a recording to an MCAP file."""
    names = {f'/{topic}' for topic in topics}
    types = get_typestore(Stores.ROS2_JAZZY)
    with tempfile.TemporaryDirectory() as temporary:
        writer = Writer(Path(temporary) / 'thin', version=9, storage_plugin=StoragePlugin.MCAP)
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        with opened_bag(bag) as reader, writer:
            chosen = [c for c in reader.connections if c.topic in names]
            outputs = {c.topic: writer.add_connection(c.topic, c.msgtype, typestore=types)
                       for c in chosen}
            first = min(stamp for _, stamp, _ in reader.messages(chosen[:1]))
            for connection, stamp, raw in reader.messages(chosen):
                if round((stamp - first) * 1e-9 * RATE) % EVERY == 0:
                    writer.write(outputs[connection.topic], stamp, raw)
        next((Path(temporary) / 'thin').glob('*.mcap')).replace(path)


@contextmanager
def _node(name: str, parameters: dict[str, Any], work: Path, *files: Path) -> Iterator[None]:
    own = work / f'{name}.yaml'
    own.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}))
    given = [part for path in (*files, own) for part in ('--params-file', str(path))]
    with (work / f'{name}.log').open('wb') as log:
        process = subprocess.Popen(
            [sys.executable, '-m', f'biped_com_ros.nodes.{name}.node', '--ros-args', *given],
            stdout=log, stderr=subprocess.STDOUT, env={
                **os.environ, 'ROS_DOMAIN_ID': DOMAIN,
                'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'})
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)  # the simulator finishes its recording
        process.wait(60.0)


def _wait_for(path: Path, work: Path) -> None:
    end = time.monotonic() + LIMIT
    while not path.exists():
        if time.monotonic() > end:
            raise SystemExit((work / 'com_calibrator.log').read_text()[-3000:])
        time.sleep(0.5)


if __name__ == '__main__':
    main(*sys.argv[1:])
