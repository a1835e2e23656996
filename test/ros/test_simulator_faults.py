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
"""Faults and imperfections of the simulated sensors, over DDS."""

from __future__ import annotations

import dataclasses

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.nodes.simulator.node import Simulator
from biped_com_ros.nodes.simulator.parameters import SimulatorParameters
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from support.ros_rig import NodeRig
from support.sim_robot import DATA
import yaml


def overrides(**parameters):
    values = {'robot': str(DATA / 'sim_robot.yaml'), 'urdf': str(DATA / 'sim_robot.urdf'),
              'tendons': False, **parameters}
    return {'parameter_overrides': [Parameter(n, value=v) for n, v in values.items()]}


class FaultyRig(NodeRig):
    """A simulator with noisy wrench sensors, and a peer that sets its parameters."""

    def __init__(self, **parameters):
        super().__init__(node=Simulator(**overrides(force_noise=0.1, **parameters)))
        self.wrenches = {foot: self.collect(WrenchStamped, f'{foot}_foot/wrench')
                         for foot in ('left', 'right')}
        self._client = self.peer.create_client(SetParameters, '/simulator/set_parameters')

    def set_faults(self, *faults):
        """Set the faults by the parameter service; return its result."""
        change = Parameter('wrench_faults', Parameter.Type.STRING_ARRAY, list(faults))
        response = self.call(
            self._client, SetParameters.Request(parameters=[change.to_parameter_msg()]))
        for messages in self.wrenches.values():
            messages.clear()
        return response.results[0]

    def forces(self, foot, count=30):
        """Return the next vertical forces that arrive."""
        self.until(lambda: len(self.wrenches[foot]) >= count, what=f'wrenches of {foot}')
        return np.array([message.wrench.force.z for message in self.wrenches[foot][-20:]])


@pytest.fixture
def rig():
    rig = FaultyRig()
    yield rig
    rig.close()


def test_a_fault_shows_on_the_topic_while_it_is_switched_on(rig):
    assert np.ptp(rig.forces('left')) > 0.0 and abs(rig.forces('left').mean()) > 10.0
    assert rig.set_faults('left_foot dead', 'right_foot frozen').successful
    assert not rig.forces('left').any()
    right = rig.forces('right')
    assert np.ptp(right) == 0.0 and abs(right.mean()) > 10.0
    assert rig.set_faults().successful
    assert abs(rig.forces('left').mean()) > 10.0 and np.ptp(rig.forces('right')) > 0.0


def test_a_fault_that_cannot_be_is_refused_by_name(rig):
    result = rig.set_faults('lft_foot dead')
    assert not result.successful and "did you mean 'left_foot'" in result.reason
    result = rig.set_faults('left_foot late')
    assert not result.successful and "'<sensor> late <value>'" in result.reason
    assert abs(rig.forces('left').mean()) > 10.0


def test_uneven_soles_carry_the_robot_from_the_first_reading_on():
    """Also after a reset: at the first contact alone, one foot would hang in the air."""
    rig = FaultyRig(sole_position=0.002, seed=3, real_time_factor=1e-9)  # stepped by `step`
    try:
        for _ in range(2):
            rig.until(lambda: all(rig.peer.count_subscribers(f'{foot}_foot/wrench')
                                  for foot in rig.wrenches), what='subscribers')
            for messages in rig.wrenches.values():
                messages.clear()
            for _ in range(3):
                rig.node.step()
            assert min(abs(rig.forces(foot, 1)[0]) for foot in rig.wrenches) > 10.0
            before = rig.node.now()
            assert rig.trigger('simulator/reset').success
            assert rig.node.now() > before
    finally:
        rig.close()


@pytest.mark.parametrize('parameters, text_part', [
    ({'instrument_errors': ['left_foot gain 1']}, "'<name> gain <value> <value>"),
    ({'instrument_errors': ['left_knee frction 1']}, "did you mean 'friction'"),
    ({'instrument_errors': ['left_kne friction 1']}, "did you mean 'left_knee'"),
    ({'wrench_faults': ['left_foot ded']}, "did you mean 'dead'"),
    ({'floor_roll': 1.0}, "'floor_roll': 1.0 is out of range; valid: -0.3 to 0.3 rad"),
])
def test_nonsense_is_refused_at_start(parameters, text_part):
    with pytest.raises(ConfigurationError, match=text_part):
        Simulator(**overrides(**parameters))


def test_real_instruments_are_within_the_ranges_and_scaled_by_the_mass():
    """All of config/hidden/real.yaml is known; forces and torques grow with the robot."""
    values = yaml.safe_load((package_share() / 'config/hidden/real.yaml').read_text())
    given = values['/**/simulator']['ros__parameters']
    for field in dataclasses.fields(SimulatorParameters):
        info = field.metadata['biped_com_ros']
        if field.name in given and info.minimum is not None:
            assert info.minimum <= given[field.name] <= info.maximum, field.name
    params = SimulatorParameters(**given)
    small, large = params.plant_options(3.6).sensors, params.plant_options(36.0).sensors
    assert small.force_bias == given['force_bias']
    for name, factor in {'force_noise': 10.0, 'torque_bias': 10.0, 'force_drift': 10.0,
                         'effort_noise': 10.0, 'force_range': 10.0, 'wrench_gain': 1.0,
                         'encoder_noise': 1.0, 'wrench_position': 1.0}.items():
        assert getattr(large, name) == pytest.approx(factor * getattr(small, name)), name
