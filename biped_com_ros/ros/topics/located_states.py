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
Located states for the nodes of a process: who needs the same, shares what locates them.

Synchronized states depend on samples and settings alone. So nodes of one process that ask for the
same inputs with the same settings get those of one `StateEstimator`, as they share subscriptions
and kinematics. All of them feed it, and a sample that it has got already is ignored; so it does
not matter which of them receives first, or ends. One whose settings change gets what locates by
these, or a copy that continues from the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.state.base import BaseSettings, LocatedState, Lookup
from biped_com_ros.core.state.estimator import StateEstimator, SynchronizedSettings
from biped_com_ros.ros.node.callback_errors import log_exception
from rclpy.node import Node

#: Called with each located state.
Callback = Callable[[LocatedState], None]


class StateNeeds(NamedTuple):
    """What has to be equal for states to be shared: `readers` of the messages, and settings."""

    readers: Sequence[Any]
    model: RobotModel
    base: BaseSettings
    lookup: Lookup | None
    max_age: float
    synchronized: SynchronizedSettings

    def make(self) -> StateEstimator:
        """Return a new estimator."""
        return StateEstimator(self.model, self.base, lookup=self.lookup, max_age=self.max_age,
                              synchronized=self.synchronized)


class LocatedStates:
    """
    The located states that one callback gets.

    Parameters
    ----------
    node, callback
        Who gets them.
    estimator
        What locates.

    Attributes
    ----------
    node, callback, estimator
        The same.
    receivers
        All who get the states of this estimator.

    """

    def __init__(self, node: Node, callback: Callback, estimator: StateEstimator) -> None:
        self.node, self.callback, self.estimator = node, callback, estimator
        self.receivers: Sequence[LocatedStates] = (self,)


class SharedStates(LocatedStates):
    """
    Synchronized states, which others of `group` get, too, if they need the same.

    Parameters
    ----------
    node, callback
        Who gets them.
    needs
        By which inputs and settings.
    group
        All such states of the process, in the order in which they get theirs.

    """

    def __init__(self, node: Node, callback: Callback, needs: StateNeeds,
                 group: list[SharedStates]) -> None:
        self.needs, self._group = needs, group
        same = self._same(needs)
        super().__init__(node, callback, needs.make() if same is None else same.estimator)
        group.append(self)
        self._share()

    def change(self, needs: StateNeeds) -> None:
        """Use other settings from the next sample on."""
        if needs == self.needs:
            return
        same = self._same(needs)
        if same is not None:
            self.estimator = same.estimator
        else:
            if any(other.estimator is self.estimator for other in self._group
                   if other is not self):
                self.estimator = self.estimator.copy()
            self.estimator.configure(needs.base, needs.max_age, needs.synchronized)
        self.needs = needs
        self._share()

    def _share(self) -> None:
        for states in self._group:
            states.receivers = [
                other for other in self._group if other.estimator is states.estimator]

    def _same(self, needs: StateNeeds) -> SharedStates | None:
        return next((other for other in self._group if other is not self
                     and other.needs == needs), None)


def deliver(all_states: Sequence[LocatedStates], add: Callable[..., Sequence[LocatedState]],
            *sample: Any) -> None:
    """
    Add a sample to each estimator, and call all back that get the states that follow.

    Parameters
    ----------
    all_states
        Whose estimators.
    add
        Method of `StateEstimator` that takes the sample.
    sample
        Its arguments.

    """
    for states in all_states:
        for located in add(states.estimator, *sample):
            for receiver in states.receivers:
                try:
                    receiver.callback(located)
                except Exception as error:  # noqa: B902 - others get the same state
                    log_exception(receiver.node, error)
