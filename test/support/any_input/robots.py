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
"""Random robots, with postures, states and captures of them."""

from functools import cache
from pathlib import Path

from biped_com_ros.core.identification.captures.capture import Capture
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, StaticsRegressor)
from biped_com_ros.core.model.config import robot_config_from_mapping
from biped_com_ros.core.model.robot import RobotModel
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
import numpy as np
from support.any_input import values as v
from support.small_robot import small_robot

WRENCH_ROBOT = Path(__file__).resolve().parents[2] / 'data/wrench_robot.yaml'
_RANDOM = 8
_MOST_JOINTS = 4


def _link(rng, name, has_mass=True):
    if not has_mass:
        return f'<link name="{name}"/>'
    mass, size = 10.0 ** rng.uniform(-2.0, 2.0), rng.uniform(0.01, 0.5, 3)
    xx, yy, zz = (mass / 12.0 * (sum(size ** 2) - size ** 2)).tolist()
    return (f'<link name="{name}"><inertial><origin xyz="{_xyz(rng)}" rpy="{_xyz(rng, 3.0)}"/>'
            f'<mass value="{mass}"/><inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" '
            f'iyz="0"/></inertial></link>')


def _xyz(rng, size=0.4):
    return ' '.join(map(str, rng.uniform(-size, size, 3)))


def _joint(rng, kind, parent, child):
    axis = ' '.join(map(str, rng.normal(size=3)))
    limits = ('' if kind in ('fixed', 'continuous') else
              f'<limit lower="{-rng.uniform(0.1, 4.0)}" upper="{rng.uniform(0.1, 4.0)}" '
              f'effort="{10.0 ** rng.uniform(-1.0, 3.0)}" velocity="{rng.uniform(0.1, 20.0)}"/>')
    return (f'<joint name="{parent}_{child}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="{child}"/><origin xyz="{_xyz(rng)}" rpy="{_xyz(rng, 3.0)}"/>'
            f'<axis xyz="{axis}"/>{limits}</joint>')


def _chain(rng, side):
    """Return a leg of links, massless ones among them, and the name of its last one."""
    parts, parent = [], 'base_link'
    for i in range(rng.integers(1, _MOST_JOINTS + 1)):
        child = f'{side}{i}'
        kind = str(rng.choice(('revolute', 'revolute', 'prismatic', 'continuous', 'fixed')))
        parts += [_link(rng, child, rng.random() < 0.8), _joint(rng, kind, parent, child)]
        parent = child
    parts += [_link(rng, f'{side}_foot'), _joint(rng, 'revolute', parent, f'{side}_foot')]
    return ''.join(parts), f'{side}_foot'


@cache
def random_robot(seed):
    """Return a robot with two random legs, and an IMU and sensors anywhere on them."""
    rng = np.random.default_rng(seed)
    legs = {side: _chain(rng, side) for side in ('left', 'right')}
    urdf = (f'<robot name="random">{_link(rng, "base_link")}'
            + ''.join(text for text, _ in legs.values()) + '</robot>')
    a, b = rng.uniform(0.01, 0.2, 2).tolist()
    return RobotModel(robot_config_from_mapping({
        'name': f'random_{seed}', 'base_link': 'base_link',
        'feet': {side: {'sole': foot, 'polygon': [[a, b], [-a, b], [-a, -b], [a, -b]],
                        'wrench_sensors': [side]} for side, (_, foot) in legs.items()},
        'wrench_sensors': {side: {'frame': foot, 'topic': f'{side}/wrench'}
                           for side, (_, foot) in legs.items()},
        'hands': {'hand': {'frame': 'base_link'}},
        'imus': {'base': {'frame': str(rng.choice(['base_link', 'left_foot'])), 'topic': 'imu'}},
        'postures': {'stand': {}}}), urdf)


@cache
def known_robot(name):
    """Return a robot of the package or of the tests, made once."""
    return small_robot() if name == 'small' else RobotModel.load(
        str(WRENCH_ROBOT) if name == 'wrench_robot' else name)


#: Those that the package has, and random ones; made when they are drawn, since that takes time.
known = st.sampled_from(('small', 'three_link', 'wrench_robot', 'biped')).map(known_robot)
robots = known | st.integers(0, _RANDOM - 1).map(random_robot)
#: Small enough for what takes long.
light_robots = (st.sampled_from(('three_link', 'wrench_robot')).map(known_robot)
                | st.integers(0, _RANDOM - 1).map(random_robot))


@cache
def regressor_of(model):
    """Return the regressor of a robot, made once."""
    return StaticsRegressor(model)


def positions(model):
    """Return strategies of joint positions of a robot."""
    return v.vectors(len(model.joint_names), v.angles)


@st.composite
def captures_of(draw, model, elements=v.credible):
    """Draw a capture that was measured with whatever sensors."""
    n, config = len(model.joint_names), model.config
    return Capture(
        positions=draw(positions(model)),
        wrenches=draw(arrays(float, (len(config.wrench_sensors), 6), elements=elements)),
        in_contact=draw(arrays(bool, len(config.feet))), up=draw(v.rotations)[2],
        up_frame=draw(st.sampled_from(('', config.imu.frame if config.imus else ''))),
        torques=draw(v.vectors(n, elements | st.just(np.nan))), name=draw(v.names),
        approach=draw(st.none() | v.vectors(n, st.sampled_from((-1.0, 0.0, 1.0)))))


@st.composite
def plausible_captures(draw, model):
    """Draw a capture that fits the weight of the robot, about."""
    capture = draw(captures_of(model, st.floats(-5.0, 5.0)))
    sensors = list(model.config.wrench_sensors)
    state = model.state(capture.positions)
    weight = 9.81 * model.mass / max(1, capture.in_contact.sum())
    up = capture.up if not capture.up_frame else state.pose_in_base(
        capture.up_frame).rotation @ capture.up
    for stands, foot in zip(capture.in_contact, model.config.feet.values()):
        for sensor in foot.wrench_sensors if stands else ():
            frame = state.pose_in_base(model.config.wrench_sensors[sensor].frame)
            capture.wrenches[sensors.index(sensor), :3] += frame.rotation.T @ up * (
                weight / len(foot.wrench_sensors))
    return capture


def wild_captures(model):
    """Return captures with any numbers."""
    return captures_of(model, v.anything)


def parameters(model):
    """Return masses and first moments near those of the URDF."""
    theta = parameters_of(model)
    return arrays(float, theta.shape, elements=st.floats(0.5, 2.0)).map(
        lambda factors: theta * factors)
