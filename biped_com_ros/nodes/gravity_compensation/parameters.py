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
"""Parameters of `gravity_compensation`, and the settings of the core that they describe."""

from __future__ import annotations

from dataclasses import dataclass
import math

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.gravity.compensation import (
    AUTO, BOUNDED, CLOSED_FORM, CompensationSettings, GravityCompensator, MEASURED)
from biped_com_ros.core.gravity.effort_guard import SafetySettings
from biped_com_ros.core.gravity.load_sharing import SharingSettings
from biped_com_ros.core.gravity.support_qp import SupportLimits
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.sensor_faults import WeightBalanceSettings
from biped_com_ros.ros.node.common_parameters import (
    gravity_parameter, ManagedNodeParameters, PayloadParameters)
from biped_com_ros.ros.node.parameters import parameter, read_only, settings_from
import numpy as np


@dataclass(frozen=True)
class GravityCompensationParameters(ManagedNodeParameters, PayloadParameters):
    """Parameters of `gravity_compensation`."""

    support: str = parameter(
        AUTO, "Contacts that support the robot: 'auto' (by the measured forces), 'fixed' "
        "(something holds the base), 'all' (every contact alike), or by name, separated by "
        'commas')
    contacts: list[str] = read_only([], 'Feet and hands that may be loaded; empty: the feet')
    distribution: str = parameter(
        CLOSED_FORM, 'How contact wrenches are chosen: the least ones in closed form, the least '
        'ones within friction, soles and efforts (bounded; needs proxsuite), or the measured '
        'ones, for dynamic walking', options=(CLOSED_FORM, BOUNDED, MEASURED))
    wrench_cutoff: float = parameter(
        20.0, "Bandwidth of the wrenches of the contacts, with distribution 'measured'", 'Hz', 1.0,
        1000.0)
    groups: list[str] = parameter(
        [], "Groups of joints of the robot's YAML that take part; empty: all actuated joints")
    gain_joints: list[str] = parameter([], 'Joints with a gain of their own')
    gains: list[float] = parameter(
        [], 'Share of the computed effort that each of gain_joints gets', '', 0.0, 1.5)
    command_joints: list[str] = read_only(
        [], "Order of ~/commands: the parameter 'joints' of the effort controller; with "
        'trajectory_rate, the joints of the trajectory controller in any order; empty: all '
        'actuated joints in the order of the URDF')
    controller: str = read_only(
        '', 'Effort controller that has to run before anything is sent; empty: none. The '
        "parameter 'joints' of every controller that gets ~/commands is compared with "
        'command_joints')
    trajectory_rate: float = read_only(
        0.0, 'Rate of ~/joint_trajectory, which has positions and efforts and replaces '
        '~/commands; 0: off', 'Hz', 0.0, 1000.0)
    path_tolerance: float = parameter(
        0.0, 'Largest distance of a joint from the trajectory of a goal, where the goal gives '
        'none; 0: any', 'rad or m', 0.0, 10.0)
    goal_tolerance: float = parameter(
        0.1, 'Largest distance of a joint from the end of a goal, where the goal gives none; 0: '
        'any', 'rad or m', 0.0, 10.0)
    goal_time: float = parameter(
        1.0, 'Time after the end of a trajectory in which its goal has to be reached, where the '
        'goal gives none; 0: any', 's', 0.0, 60.0)
    wrench_topics: list[str] = read_only(
        [], 'Topics (WrenchStamped in the contact frame) of the contacts; empty: '
        'wrench_aggregator/<contact>/wrench')
    effort_clamp: float = parameter(
        0.5, "Largest effort, as a share of the joint's limit in the URDF", '', 0.001, 1.0)
    effort_rate: float = parameter(
        2.0, "Fastest change of an effort, as a share of the joint's limit per second", '1/s',
        0.001, 1000.0)
    unlimited_joints: float = parameter(
        0.0, 'Effort limit of joints that have none in the URDF; 0: they get no effort',
        'N m or N', 0.0, 1e5)
    start_time: float = parameter(2.0, 'Duration of the soft start', 's', 0.01, 60.0)
    stop_time: float = parameter(1.0, 'Duration of the soft stop', 's', 0.01, 60.0)
    input_timeout: float = parameter(
        0.1, 'Age above which an input is too old to be used', 's', 0.001, 10.0)
    hold_time: float = parameter(
        0.2, 'How long the last efforts are held before they ramp to zero when an input is '
        'too old', 's', 0.0, 10.0)
    max_tilt: float = parameter(
        60.0, 'Largest tilt of the base by the IMU that is plausible', 'deg', 1.0, 180.0)
    settle_time: float = parameter(
        0.5, 'How long the IMU has to be steady after a jump', 's', 0.0, 10.0)
    share_lift: float = parameter(
        0.06, 'Vertical force, as a share of body weight, below which a contact has no share',
        '', 0.0, 0.19)
    weight_missing: float = parameter(
        0.25, 'Share of the body weight that may be missing while a contact measures less than '
        'share_lift; if more is, its sensor counts as dead, and efforts are held; 1: never', '',
        0.01, 1.0)
    friction: float = parameter(
        0.5, "Friction coefficient, with distribution 'bounded'", '', 0.01, 10.0)
    torsional_friction: float = parameter(
        0.02, "Largest torque about the normal per normal force, with distribution 'bounded'",
        'm', 0.0001, 1.0)
    sole_margin: float = parameter(
        0.005, "Distance of the centre of pressure from the sole's edge, with distribution "
        "'bounded'", 'm', 0.0, 0.1)
    gravity: float = gravity_parameter()
    marker_rate: float = read_only(15.0, 'Rate of the markers; 0: off', 'Hz', 0.0, 1000.0)


def make_compensator(model: RobotModel, params: GravityCompensationParameters
                     ) -> GravityCompensator:
    """
    Build the compensator that the parameters describe.

    Raises
    ------
    BipedComError
        If they make no sense for this robot.

    """
    compensator = GravityCompensator(model, _settings(params))
    compensator.enable(params.groups)
    if len(params.gains) != len(params.gain_joints):
        raise ConfigurationError(
            f"parameter 'gains': {params.gains} must be {len(params.gain_joints)} values, one per "
            f'joint of gain_joints ({", ".join(params.gain_joints) or "none"})')
    if params.gain_joints:
        compensator.gains = np.ones(len(model.joint_names))
        compensator.gains[model.joint_index(params.gain_joints)] = params.gains
    return compensator


def _settings(params: GravityCompensationParameters) -> CompensationSettings:
    return settings_from(
        params, CompensationSettings,
        contacts=tuple(params.contacts),
        limits=settings_from(params, SupportLimits, names={'effort_fraction': 'effort_clamp'}),
        sharing=settings_from(params, SharingSettings, 'share_'),
        balance=settings_from(
            params, WeightBalanceSettings, 'weight_', {'unloaded': 'share_lift'}),
        safety=settings_from(params, SafetySettings, names={
            'clamp': 'effort_clamp', 'max_rate': 'effort_rate',
            'default_limit': 'unlimited_joints'}),
        max_tilt=math.radians(params.max_tilt))
