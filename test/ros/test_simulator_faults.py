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
"""Faults and errors of instruments of the simulated robot, as users switch them on."""


from biped_com_ros.core.model.resources import package_share
from biped_com_ros.nodes.simulator.parameters import SimulatorParameters
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
from support.settings import lines
from support.simulator_rig import SimulatorRig
import yaml


class FaultyRig(SimulatorRig):
    """A simulator with noisy wrench sensors, and a peer that sets its parameters."""

    def __init__(self, **parameters):
        super().__init__(**{'errors': ['force_noise 0.1'], **parameters})
        self.wrenches = {foot: self.collect(WrenchStamped, f'{foot}_foot/wrench')
                         for foot in ('left', 'right')}

    def set_faults(self, *faults):
        """Set the faults by the parameter service; return the reason of a refusal."""
        reason = self.set_parameters(wrench_faults=list(faults))
        for messages in self.wrenches.values():
            messages.clear()
        return reason

    def forces(self, foot, count=30):
        """Return the next vertical forces that arrive."""
        self.until(lambda: len(self.wrenches[foot]) >= count, what=f'wrenches of {foot}')
        return np.array([message.wrench.force.z for message in self.wrenches[foot][-20:]])


@pytest.fixture
def faulty(closing):
    return closing(FaultyRig())


def test_a_fault_shows_on_the_topic_while_it_is_switched_on(faulty):
    assert np.ptp(faulty.forces('left')) > 0.0 and abs(faulty.forces('left').mean()) > 10.0
    assert not faulty.set_faults('left_foot dead', 'right_foot frozen')
    assert not faulty.forces('left').any()
    right = faulty.forces('right')
    assert np.ptp(right) == 0.0 and abs(right.mean()) > 10.0
    assert not faulty.set_faults()
    assert abs(faulty.forces('left').mean()) > 10.0 and np.ptp(faulty.forces('right')) > 0.0


def test_a_fault_that_cannot_be_is_refused_by_name(faulty):
    assert "did you mean 'left_foot'" in faulty.set_faults('lft_foot dead')
    assert "'<sensor> late <value>'" in faulty.set_faults('left_foot late')
    assert abs(faulty.forces('left').mean()) > 10.0


def test_uneven_soles_carry_the_robot_from_the_first_reading_on(closing):
    """Also after a reset: at the first contact alone, one foot would hang in the air."""
    # Stepped by `step`.
    rig = closing(FaultyRig(
        errors=lines(force_noise=0.1, sole_position=0.002), seed=3, real_time_factor=1e-9))
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


def test_real_instruments_are_within_the_ranges_and_scaled_by_the_mass():
    """All of config/hidden/real.yaml is known; forces and torques grow with the robot."""
    values = yaml.safe_load((package_share() / 'config/hidden/real.yaml').read_text())
    given = values['/**/simulator']['ros__parameters']
    params = SimulatorParameters(**given)
    small, large = params.plant_options(3.6).sensors, params.plant_options(36.0).sensors
    assert f'force_bias {small.force_bias}' in given['errors']
    for name, factor in {'force_noise': 10.0, 'torque_bias': 10.0, 'force_drift': 10.0,
                         'effort_noise': 10.0, 'force_range': 10.0, 'wrench_gain': 1.0,
                         'encoder_noise': 1.0, 'wrench_position': 1.0}.items():
        assert getattr(large, name) == pytest.approx(factor * getattr(small, name)), name
