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
"""Robots of the package whose soles have pads in place of force-torque sensors."""

from dataclasses import replace

from biped_com_ros.core.model.config import load_robot_config
import numpy as np
import yaml


def with_pads(robot):
    """Return the configuration of a robot whose feet measure the vertical force alone."""
    config = load_robot_config(robot)
    pads = {sensor: replace(
        config.wrench_sensors[sensor], frame=f'{foot}_sole_frame', measures='force_z')
        for foot, its in config.feet.items() for sensor in its.wrench_sensors}
    return replace(config, wrench_sensors={**config.wrench_sensors, **pads})


def pads_file(folder, robot):
    """Write the YAML of such a robot; return its path as text."""
    path = folder / 'pads.yaml'
    path.write_text(yaml.safe_dump({'extends': robot, 'wrench_sensors': {
        name: {'frame': sensor.frame, 'measures': sensor.measures}
        for name, sensor in with_pads(robot).wrench_sensors.items()}}))
    return str(path)


def vertical(wrenches):
    """Return wrenches of which the vertical force alone is measured."""
    return np.where([0, 0, 1, 0, 0, 0], wrenches, np.nan)
