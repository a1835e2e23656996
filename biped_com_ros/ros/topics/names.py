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
"""Topics and services of other nodes, relative to the namespace that the robot's nodes share."""

from __future__ import annotations

COM = 'com_estimator/com'
COM_FUSED = 'com_estimator/com_fused'
COM_BIAS = 'com_estimator/com_bias'
LINK_COMS = 'com_estimator/link_coms'

FEET_WRENCH = 'wrench_aggregator/wrench'
CONTACTS = 'wrench_aggregator/contacts'
CONTACT_PROBABILITIES = 'wrench_aggregator/contact_probabilities'
WRENCH_COVARIANCE = 'wrench_aggregator/wrench_covariance'
HAND_COVARIANCE = 'wrench_aggregator/hand_covariance'
RESTING_WRENCH = 'wrench_aggregator/resting_wrench'
OFFSETS = 'wrench_aggregator/offsets'

ZMP = 'zmp_monitor/zmp'
ZMP_MODEL = 'zmp_monitor/zmp_model'
DCM = 'zmp_monitor/dcm'
MARGIN = 'zmp_monitor/margin'
DCM_MARGIN = 'zmp_monitor/dcm_margin'
TIME_TO_EDGE = 'zmp_monitor/time_to_edge'
SUPPORT_POLYGON = 'zmp_monitor/support_polygon'
COM_REGION = 'zmp_monitor/com_region'
SUPPORT_PHASE = 'zmp_monitor/support_phase'
STABILITY_EVENT = 'zmp_monitor/event'

GAIT_STATE = 'gait_player/state'
STEPS_DONE = 'gait_player/steps_done'
ZMP_REFERENCE = 'gait_player/zmp_reference'
PLANNED_SHARES = 'gait_player/shares'

PAYLOAD = 'payload_estimator/payload'

CALIBRATION_PROGRESS = 'com_calibrator/progress'

FEEDFORWARD = 'gravity_compensation/effort'
ASSUMED_SHARES = 'gravity_compensation/shares'

TORSO_SHAPE = 'torso_controller/shape'
TORSO_TENSIONS = 'torso_controller/tensions'
TORSO_TARGET = 'torso_controller/target'
TORSO_FREEZE = 'torso_controller/freeze'

TRUE_COM = 'simulator/truth/com'
TRUE_CONTACTS = 'simulator/truth/contacts'
PUSH = 'simulator/push'
GRIP = 'simulator/grip'
SIMULATOR_RESET = 'simulator/reset'

POSITION_COMMANDS = 'position_controller/commands'
EFFORT_COMMANDS = 'effort_controller/commands'
TENDON_COMMANDS = 'tendon_controller/commands'
JOINT_TRAJECTORY = 'joint_trajectory_controller/joint_trajectory'
PAGE_URL = 'viewer/url'

RATE, FULL_RATE = 'rate [Hz]', 'rate without slowing down [Hz]'
"""Keys of the simulator's diagnostics: present rate of the readings, and that at the start."""

DEMO_STORY = 'demo/story'
DEMO_RESULTS = 'demo/results'


def wrench_of(contact: str) -> str:
    """Return the topic of the wrench at the sole of a foot, or on a hand (its label)."""
    return f'wrench_aggregator/{contact}/wrench'


def contact_of(foot: str) -> str:
    """Return the topic of the contact of a foot."""
    return f'wrench_aggregator/{foot}/contact'


def centre_of_pressure_of(foot: str) -> str:
    """Return the topic of the centre of pressure of a foot."""
    return f'wrench_aggregator/{foot}/cop'
