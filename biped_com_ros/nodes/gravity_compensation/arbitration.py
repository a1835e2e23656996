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
"""
Decides whether efforts may be commanded, and whether a command may be sent to the controller now.

Two questions at each step, since efforts that are applied already have to end softly:

* :meth:`CommandArbiter.inhibition`: why no effort may be commanded. The supervisor then holds the
  efforts or ramps them to zero.
* :meth:`CommandArbiter.refusal`: why no message may be sent at all, not even one of a ramp.

======================================  ==========  =================================
situation                               inhibits    refuses messages
======================================  ==========  =================================
controller with other joints            always      always
not known whether it is one             at zero     at zero
another node commands                   until full  at zero
controller that applies nothing yet     until zero  until zero, and then begins there
efforts of a killed node to continue    always      always
state of the controller not received    at zero     at zero
======================================  ==========  =================================

*At zero*: before efforts begin; later it must not interrupt them. *Until full*: until the efforts
have been those that balance gravity once; then it is the other node that has to give way.
"""

from __future__ import annotations

from biped_com_ros.core.gravity.effort_limiter import ACTIVE, EffortLimiter
from biped_com_ros.nodes.gravity_compensation.command_takeover import CommandTakeover
from biped_com_ros.nodes.gravity_compensation.controller_watch import ControllerWatch
from biped_com_ros.nodes.gravity_compensation.outputs import ControllerOutput

RESTARTING = 'the controller was restarted: starting again from zero'
PENDING = ('the previous instance of this node was killed: waiting for the controller that still '
           'applies its last efforts')


class CommandArbiter:
    """
    Answers both questions; see the module.

    Parameters
    ----------
    limiter, controller, takeover, commands
        What the decision depends on; read at each call.

    Attributes
    ----------
    conflict
        Which other node or motion commands the controller; '' if none does, and once the efforts
        have been full.

    """

    def __init__(self, limiter: EffortLimiter, controller: ControllerWatch,
                 takeover: CommandTakeover, commands: ControllerOutput) -> None:
        self._limiter, self._controller = limiter, controller
        self._takeover, self._commands = takeover, commands
        self._were_full, self.conflict = False, ''

    def start(self) -> None:
        """Begin to command: look for others from now on until the efforts are full."""
        self._were_full, self.conflict = False, self.find_conflict()

    def find_conflict(self) -> str:
        """Return which other node or motion commands the controller now; '' if none."""
        return self._takeover.conflict() or self._commands.conflict()

    def update_conflict(self) -> None:
        """Look for others again, unless the efforts are full, or have been."""
        if not self._were_full:
            self._were_full = self._limiter.state == ACTIVE
            self.conflict = self.find_conflict()
        elif self.conflict:
            self.conflict = ''

    def inhibition(self) -> str:
        """Return why no effort may be commanded; '' if it may. Zero lets a controller begin."""
        controller = self._controller
        if controller.must_restart and self._limiter.is_at_zero:
            controller.begin()
        return self._controller_problem() or self.conflict or self._waiting()

    def refusal(self) -> str:
        """Return why no message may be sent; '' if it may."""
        return (self._controller_problem()
                or (self.conflict if self._limiter.is_at_zero else '') or self._waiting())

    @property
    def is_applied(self) -> bool:
        """Whether the controller applies the last efforts of this node, which may be held."""
        # Efforts that alternate with those of another node are not continued.
        return self._controller.applies_commands and not self.conflict

    @property
    def is_blocked(self) -> bool:
        """Whether the controller applies the last efforts, but must not get others."""
        return bool(self._controller.problem) and self._controller.applies_commands

    def _controller_problem(self) -> str:
        """Return why the controller must not get commands, or not begin to; '' if it may."""
        limiter, controller = self._limiter, self._controller
        begins = limiter.active and limiter.is_at_zero
        return controller.problem or (controller.unknown if begins else '')

    def _waiting(self) -> str:
        """Return what has to happen first; '' if nothing."""
        if self._controller.must_restart:
            return RESTARTING
        if self._takeover.is_pending:
            return PENDING
        return self._commands.awaited() if self._limiter.is_at_zero else ''
