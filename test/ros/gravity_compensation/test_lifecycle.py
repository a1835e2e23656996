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
"""Lifecycle and parameters."""

import os

from biped_com_ros.nodes.gravity_compensation.node import GravityCompensation
from lifecycle_msgs.msg import Transition
import numpy as np
import pytest
from std_msgs.msg import Float64MultiArray
from support.gravity_rig import FEET
from support.messages import parameters as overrides

CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
DEACTIVATE, CLEANUP = Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP


def test_deactivation_while_loaded_and_restart(rig):
    assert rig.change(DEACTIVATE)
    assert not rig.change(CLEANUP)  # still ramping down
    rig.until(rig.is_zero, 'zero')
    count = len(rig.efforts)
    rig.play(0.2)
    assert len(rig.efforts) <= count + 1  # nothing more once it is zero
    assert rig.state() == 'inactive'
    assert rig.change(ACTIVATE)
    rig.until(rig.is_balanced, 'efforts again')
    assert rig.change(DEACTIVATE)
    rig.until(rig.is_zero, 'zero')
    assert rig.change(CLEANUP)
    rig.play(0.1)
    assert rig.change(CONFIGURE, ACTIVATE)
    rig.until(rig.is_balanced, 'efforts again')


def test_whatever_is_set_stops_or_restarts_no_effort_steps(make):
    """Eighty changes in random order; the rig checks each message: clamp, step and NaN."""
    rig, random = make(), np.random.default_rng(int(os.environ.get('BIPED_COM_FUZZ_SEED', 5)))
    rig.until(rig.is_balanced, 'efforts')
    inputs = ('joints', 'imu', *FEET)
    changes = (
        lambda: rig.stand(missing=set(random.choice(inputs, 2))),
        lambda: rig.stand(random.uniform(-0.3, 0.3), shares=(random.uniform(), random.uniform())),
        lambda: rig.stand(positions={int(random.integers(20)): random.uniform(-0.5, 0.5)}),
        lambda: rig.stand(frame='nowhere', gyro=random.choice((0.0, np.nan, 1e9))),
        lambda: rig.stand(skew=random.choice((-0.3, 0.02, 0.5)), length=random.choice((0.0, 1.0))),
        rig.stand,
        lambda: rig.change(DEACTIVATE, ACTIVATE),
        lambda: rig.set_parameters(
            support=str(random.choice(('auto', 'left', 'fixed', 'all'))),
            groups=[str(random.choice(('left_arm', 'right_leg')))],
            start_time=random.uniform(0.1, 1.0), stop_time=random.uniform(0.1, 1.0)))
    first = len(rig.efforts)
    for _ in range(80):
        changes[random.integers(len(changes))]()
        rig.play(0.06)
    assert np.ptp([message.effort for message in rig.efforts[first:]], axis=0).max() > 1.0
    rig.stand()
    rig.set_parameters(support='auto', groups=[])
    rig.until(lambda: rig.change(ACTIVATE) or rig.is_balanced(), 'that it goes on')


def test_without_autostart_it_waits_for_possible_transitions(make):
    rig = make(autostart=False)
    rig.play(0.3)
    assert rig.state() == 'unconfigured' and not rig.efforts
    assert not rig.change(ACTIVATE)
    assert not rig.change(99)
    assert rig.change(CONFIGURE)
    assert not rig.change(CONFIGURE)
    rig.play(0.2)
    assert not rig.efforts
    assert rig.change(ACTIVATE)
    rig.until(rig.is_balanced, 'efforts')


def test_no_command_is_sent_beside_another_node_that_commands_already(make):
    rig = make(autostart=False)
    other = rig.peer.create_publisher(Float64MultiArray, 'gravity_compensation/commands', 10)
    assert rig.change(CONFIGURE, ACTIVATE)
    rig.reports('1 other publisher')
    rig.commands.clear()
    rig.play(0.5)
    assert rig.efforts and rig.is_zero()
    assert not rig.commands, 'zeros would alternate with the efforts of the other one'
    rig.peer.destroy_publisher(other)
    rig.until(rig.is_balanced, 'efforts')


def test_a_problem_of_timing_does_not_hide_another_publisher_of_commands(rig):
    other = rig.peer.create_publisher(Float64MultiArray, 'gravity_compensation/commands', 10)
    rig.stand(missing={'joints'})
    rig.reports('1 other publisher', '/gravity_compensation/commands', 'joint_states')
    rig.peer.destroy_publisher(other)
    rig.until(lambda: 'other publisher' not in rig.status()[1], 'its end')


@pytest.mark.parametrize(('values', 'text'), (
    ({'support': 'tail'}, 'tail'), ({'groups': ['wings']}, 'wings'),
    ({'gains': [1.0]}, 'gain_joints'), ({'unload_threshold': 0.3}, 'unload_threshold'),
    ({'contacts': ['left', 'nose']}, 'nose')))
def test_invalid_parameters_end_the_node_at_once(values, text):
    with pytest.raises(Exception, match=text):
        GravityCompensation(parameter_overrides=overrides(robot='talos', **values))
