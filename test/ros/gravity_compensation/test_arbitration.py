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
"""Who may command: what inhibits efforts, what refuses messages, and when each ends."""

import itertools
from types import SimpleNamespace

from biped_com_ros.core.gravity.effort_limiter import ACTIVE, STARTING
from biped_com_ros.nodes.gravity_compensation.arbitration import (
    CommandArbiter, PENDING, RESTARTING)
import pytest

OTHER, GOAL = "another node of this computer commands 'c'", "a goal of 'c' is running"
WRONG, UNKNOWN = "controller 'c' expects 'knee' at index 0", "controller 'c' is not known yet"
AWAITED = 'waiting for the state of the controller'


class ArbitrationScene:
    """An arbiter, and all that it depends on: efforts act on a controller that is known."""

    def __init__(self, is_at_zero=True):
        self.efforts = SimpleNamespace(state=STARTING, active=True, is_at_zero=is_at_zero)
        self.controller = SimpleNamespace(
            must_restart=False, problem='', unknown='', applies_commands=True, begun=0,
            begin=self._begin)
        self.other, self.goal, self.awaited = '', '', ''
        self.takeover = SimpleNamespace(is_pending=False, conflict=lambda: self.other)
        commands = SimpleNamespace(awaited=lambda: self.awaited, conflict=lambda: self.goal)
        self.arbiter = CommandArbiter(self.efforts, self.controller, self.takeover, commands)

    def _begin(self):
        self.controller.must_restart = False
        self.controller.begun += 1

    def step(self):
        """Return (inhibition, refusal) of the next step, as the node requests them."""
        self.arbiter.update_conflict()
        return self.arbiter.inhibition(), self.arbiter.refusal()


@pytest.mark.parametrize('is_at_zero', [True, False])
def test_a_controller_with_other_joints_and_a_killed_node_refuse_everything(is_at_zero):
    scene = ArbitrationScene(is_at_zero)
    scene.controller.problem = WRONG
    assert scene.step() == (WRONG, WRONG)
    assert scene.arbiter.is_blocked
    scene.controller.applies_commands = False
    assert not scene.arbiter.is_blocked
    scene.controller.problem, scene.takeover.is_pending = '', True
    assert scene.step() == (PENDING, PENDING)  # its efforts are continued first
    scene.takeover.is_pending, scene.controller.applies_commands = False, True
    assert scene.step() == ('', '')
    assert scene.arbiter.is_applied and not scene.arbiter.is_blocked


def test_what_is_not_known_yet_delays_the_begin_and_interrupts_nothing():
    scene = ArbitrationScene()
    scene.controller.unknown, scene.awaited = UNKNOWN, AWAITED
    assert scene.step() == (UNKNOWN, UNKNOWN)
    scene.controller.unknown = ''
    assert scene.step() == (AWAITED, AWAITED)
    scene.efforts.is_at_zero = False
    scene.controller.unknown = UNKNOWN
    assert scene.step() == ('', '')
    # The last ramp ends at zero, and its last message must arrive.
    scene.efforts.is_at_zero, scene.efforts.active, scene.awaited = True, False, ''
    assert scene.step() == ('', '')


@pytest.mark.parametrize('name', ['other', 'goal'])
def test_another_commander_keeps_efforts_at_zero(name):
    scene, text = ArbitrationScene(), {'other': OTHER, 'goal': GOAL}[name]
    setattr(scene, name, text)
    scene.arbiter.start()
    assert scene.step() == (text, text) and not scene.arbiter.is_applied
    setattr(scene, name, '')
    assert scene.step() == ('', '')


def test_another_commander_during_the_soft_start_ends_it_by_a_ramp():
    scene = ArbitrationScene(is_at_zero=False)
    scene.arbiter.start()
    scene.other = OTHER
    # Inhibited, so that the efforts ramp down, and the messages of that ramp are sent.
    assert scene.step() == (OTHER, '')
    assert not scene.arbiter.is_applied  # they are not held, since two nodes alternate
    scene.efforts.is_at_zero = True
    assert scene.step() == (OTHER, OTHER)


def test_once_efforts_are_full_another_commander_does_not_stop_them():
    scene = ArbitrationScene(is_at_zero=False)
    scene.arbiter.start()
    scene.efforts.state = ACTIVE
    assert scene.step() == ('', '')
    scene.other, scene.efforts.state = OTHER, STARTING
    assert scene.step() == ('', '') and scene.arbiter.is_applied
    assert scene.arbiter.find_conflict() == OTHER  # diagnostics still report it
    # After the next activation it counts again.
    scene.efforts.is_at_zero = True
    scene.arbiter.start()
    assert scene.step() == (OTHER, OTHER)


def test_the_step_at_which_efforts_become_full_looks_once_more():
    scene = ArbitrationScene(is_at_zero=False)
    scene.arbiter.start()
    scene.efforts.state, scene.other = ACTIVE, OTHER
    assert scene.step() == (OTHER, '')
    assert scene.step() == ('', '')


def test_a_controller_that_applies_nothing_begins_at_zero():
    scene = ArbitrationScene(is_at_zero=False)
    scene.controller.must_restart = True
    assert scene.step() == (RESTARTING, RESTARTING) and scene.controller.begun == 0
    scene.efforts.is_at_zero = True
    assert scene.step() == ('', '') and scene.controller.begun == 1
    assert scene.arbiter.inhibition() == ''
    scene.controller.must_restart = True  # it comes after the inhibition was computed
    assert scene.arbiter.refusal() == RESTARTING


def test_whatever_refuses_a_message_also_inhibits_the_next_efforts():
    flags = (False, True)
    for at_zero, active, restart, pending, wrong, unknown, other, awaited, full in (
            itertools.product(flags, repeat=9)):
        scene = ArbitrationScene(at_zero)
        scene.efforts.active = active
        scene.controller.must_restart, scene.takeover.is_pending = restart, pending
        scene.controller.problem, scene.controller.unknown = WRONG * wrong, UNKNOWN * unknown
        scene.other, scene.awaited = OTHER * other, AWAITED * awaited
        scene.efforts.state = ACTIVE if full else STARTING
        scene.arbiter.start()
        inhibition, refusal = scene.step()
        assert inhibition or not refusal
        assert not (wrong or pending) or refusal
        # A ramp is interrupted by nothing but the controller itself.
        if not at_zero and not (wrong or restart or pending):
            assert not refusal
