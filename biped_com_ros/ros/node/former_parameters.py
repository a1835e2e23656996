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
"""Parameters of former versions, which files of users may still set."""

from __future__ import annotations

_CONSTANTS = frozenset((
    'anticipation', 'approach_angle', 'approach_speed', 'arrival_tolerance', 'bias_force_drift',
    'bias_force_temperature', 'bias_lift', 'bias_torque', 'bias_torque_drift',
    'bias_torque_temperature', 'broken_time', 'contact_engage_dwell', 'contact_period',
    'contact_release_dwell', 'contact_tolerance', 'cop_tolerance', 'dcm_margin_unstable',
    'edge_height', 'evidence', 'fallback_rate', 'filter_accelerometer_noise',
    'filter_gyro_noise', 'filter_leg_deviation', 'filter_odometry_heading', 'filter_slip',
    'follow_time', 'force_scale', 'fusion_delay_deviation', 'fusion_kinematics',
    'fusion_load_mass', 'fusion_load_moment', 'fusion_sensor_bias', 'fusion_sensor_crosstalk',
    'fusion_sensor_frame', 'fusion_sensor_gain', 'fusion_sensor_rotation', 'halt_margin',
    'hand_deviation', 'hand_force', 'imu_disagreement', 'joy_dead_zone', 'knot_period', 'lead',
    'lean_time', 'level_dwell', 'low_pass_order', 'margin_hysteresis', 'marker_density',
    'marker_scale', 'max_browsers', 'max_correction', 'max_ground_tilt', 'max_turn_rate',
    'min_force_share', 'model_cutoff', 'model_deviation', 'moment_deviation', 'observer_time',
    'posture_tolerance', 'recovery_time', 'settle', 'settle_time', 'share_full', 'share_rate',
    'slack_tension', 'slack_time', 'sole_margin', 'step_height', 'still_joint_range',
    'tare_max_offset_share', 'tare_max_torque_deviation', 'temperature_timeout',
    'tilt_hysteresis', 'torque_lever', 'torsional_friction', 'trail',
    'virtual_hand_effort_deviation', 'virtual_hand_link_com', 'virtual_hand_link_mass',
    'walking_timeout', 'weight_excess', 'yaw_drift_time'))
_ELEMENTS = frozenset((
    'accelerometer_noise', 'command_delay', 'cross_talk', 'drive_noise', 'drive_speed',
    'effort_gain', 'effort_noise', 'encoder_noise', 'encoder_offset', 'floor_tilt', 'force_bias',
    'force_drift', 'force_noise', 'force_range', 'force_temperature', 'friction_scatter',
    'gyro_noise', 'imu_delay', 'imu_rotation', 'joint_delay', 'joint_friction', 'joint_stiction',
    'moment_bias', 'moment_drift', 'moment_noise', 'recording_gain', 'rotor_inertia',
    'sensor_shift', 'sensor_turn', 'sole_contact', 'sole_height', 'sole_position', 'sole_turn',
    'stribeck_velocity', 'tendon_delay', 'tendon_noise', 'tendon_speed', 'tilt_bias',
    'tilt_noise', 'torque_bias', 'torque_drift', 'torque_gain', 'torque_noise', 'torque_range',
    'torque_temperature', 'velocity_noise', 'viscous_friction', 'warming', 'warming_time',
    'wrench_gain', 'wrench_position', 'wrench_rotation'))
_REMOVED = {
    'model_method': "the model's ZMP is always that of the whole angular momentum; remove it"}
_RENAMED = {'fusion_wrench_delay': 'wrench_delay'}


def remedy(name: str) -> str:
    """Return what became of a former parameter, and what to do; '' if there was none."""
    if name in _CONSTANTS:
        return 'it is a constant since version 0.2.0; remove it from your parameter file'
    if name in _ELEMENTS:
        return (f"since version 0.2.0 it is an element '{name} <value>' of the list errors "
                '(simulator) or noise (com_calibrator)')
    if name in _REMOVED:
        return _REMOVED[name]
    if name in _RENAMED:
        return f"since version 0.2.0 its name is '{_RENAMED[name]}'"
    return ''
