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
"""The made-up robot of ``test/data/sim_robot.urdf`` in the simulator, and helpers of its tests."""

from dataclasses import replace
from pathlib import Path

from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
import numpy as np

DATA = Path(__file__).parents[1] / 'data'
CONFIG = load_robot_config(DATA / 'sim_robot.yaml')
URDF = (DATA / 'sim_robot.urdf').read_text()
MASS = 16.34
SIMULATOR = {'robot': str(DATA / 'sim_robot.yaml'), 'urdf': str(DATA / 'sim_robot.urdf'),
             'tendons': False}
"""Parameters of a simulator with this robot."""


def make_plant(config=CONFIG, **options):
    """Return a plant, by default with the torso's virtual joints, which make it stiffer."""
    return Plant(config, URDF, PlantOptions(**{'tendons': False, **options}))


def with_simulation(**changes):
    """Return the configuration with other gains."""
    return replace(CONFIG, simulation=replace(CONFIG.simulation, **changes))


def run(plant, seconds, command=None):
    """Let time pass under a constant command and return the last observation."""
    observation = plant.observation
    for _ in range(round(seconds / plant.dt)):
        observation = plant.step(command)
    return observation


def rotation(quaternion_xyzw):
    """Rotation matrix of a quaternion, written out independently of the package."""
    x, y, z, w = quaternion_xyzw
    return np.array((
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y))))
