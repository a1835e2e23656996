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
"""What the drivers of a swaying robot publish, from the simulation."""

from biped_com_ros.sim.interface import PlantOptions, SensorOptions
import numpy as np
from support.messages import imu, joint_state, stamp_of, wrench_stamped
from support.zmp_pipeline import Pipeline

DT = 0.005
NOISE = SensorOptions(encoder_noise=0.0002, velocity_noise=0.01, force_noise=0.1,
                      torque_noise=0.005, gyro_noise=0.002)


def swaying_robot(count, foot_sensors=False):
    """
    Yield (ns, messages by topic) of `count` instants, `DT` apart, after it has settled.

    With `foot_sensors` also their raw readings, which `wrench_aggregator` needs.
    """
    pipeline = Pipeline('biped', PlantOptions(dt=DT, tendons=False, sensors=NOISE))
    for t, _, _ in pipeline.run(0.1 + count * DT, lambda t: (
            0.01 * np.sin(9.0 * t), 0.015 * np.sin(6.0 * t), 0.0)):
        if t >= 0.1:
            ns = 10**9 + round(1e9 * pipeline.observation.time)
            yield ns, _messages(pipeline, stamp_of(ns), foot_sensors)


def _messages(pipeline, stamp, foot_sensors):
    measured = pipeline.observation
    found = {
        'joint_states': joint_state(stamp, pipeline.model.joint_names, measured.joint_positions,
                                    measured.joint_velocities, measured.joint_efforts),
        'imu': imu(stamp, 'imu_link', measured.imu_quaternions[0], measured.angular_velocities[0],
                   measured.linear_accelerations[0])}
    for foot, frame, wrench in zip(('left', 'right'), ('l_sole', 'r_sole'), pipeline.wrenches):
        found[f'wrench_aggregator/{foot}/wrench'] = wrench_stamped(stamp, frame, wrench)
    sensors = pipeline.model.config.wrench_sensors.values() if foot_sensors else ()
    for sensor, wrench in zip(sensors, measured.wrenches):
        found[sensor.topic] = wrench_stamped(stamp, sensor.frame, wrench)
    return found
