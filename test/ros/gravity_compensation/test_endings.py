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
"""How commands end, and begin beside others: interrupts, publishers, a clock that stands still."""

from __future__ import annotations

import signal
import time

from lifecycle_msgs.msg import Transition
import numpy as np
import pytest
from std_msgs.msg import Float64MultiArray
from support.gravity_rig import MAX_STEP, RATE
from support.node_process import start_node

PARTICIPANT_PER_TEST = True  # see conftest.py


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_process_ramps_to_zero_first(make, number):
    rig, commands = make(autostart=False), []
    rig.peer.create_subscription(Float64MultiArray, 'second/commands', commands.append, 1000)
    process = start_node(
        'gravity_compensation', '-r', f'__ns:=/{rig.namespace}', '-r', '__node:=second',
        '-p', 'robot:=talos', '-p', f'effort_rate:={RATE}', '-p', 'start_time:=0.3',
        '-p', 'stop_time:=0.6', '-p', 'effort_clamp:=0.8', '-p', 'input_timeout:=0.5')
    try:
        rig.until(lambda: commands and np.allclose(
            commands[-1].data, rig.expected().efforts, atol=0.5), 'efforts', timeout=30.0)
        process.send_signal(number)
        begin = time.monotonic()
        rig.until(lambda: process.poll() is not None, 'its end', timeout=20.0)
        duration = time.monotonic() - begin
        assert process.returncode == 0
    finally:
        process.kill()
        output, _ = process.communicate()
    assert 'Traceback' not in output, output
    assert 0.5 < duration < 5.0
    rig.play(0.3)  # what has arrived may still wait for this test's executor
    sent = np.array([message.data for message in commands])
    assert not sent[-1].any()
    limits = rig.gravity_model.effort_limits
    assert (np.abs(np.diff(sent, axis=0)) <= RATE * MAX_STEP * limits + 1e-9).all()


def test_no_command_is_sent_beside_another_node_that_commands_already(make):
    rig = make(autostart=False)
    other = rig.peer.create_publisher(Float64MultiArray, 'gravity_compensation/commands', 10)
    assert rig.change(Transition.TRANSITION_CONFIGURE)
    assert rig.change(Transition.TRANSITION_ACTIVATE)
    rig.until(lambda: rig.has_error('1 other publisher'), 'diagnostics')
    rig.commands.clear()
    rig.play(0.5)
    assert rig.efforts and rig.is_zero()
    assert not rig.commands, 'zeros would alternate with the efforts of the other one'
    rig.peer.destroy_publisher(other)
    rig.until(rig.is_balanced, 'efforts')


def test_efforts_end_although_simulated_time_stands_still(make):
    rig = make(use_sim_time=True)
    rig.sim_time = 100.0
    rig.until(rig.is_balanced, 'efforts')
    begin = time.monotonic()
    while not rig.is_zero():  # neither /clock nor anything else arrives
        assert time.monotonic() < begin + 10.0
        rig.spin(0.05)
    assert time.monotonic() > begin + 0.3
    rig.check()
    rig.until(rig.is_balanced, 'efforts when it goes on')
