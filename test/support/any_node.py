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
"""Any node of the package with all its inputs, and the numbers of its state."""

from collections import deque
from collections.abc import Mapping
from importlib import import_module

from biped_com_ros.core.model.config import RobotConfig
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import setting_fields
from biped_com_ros.nodes import NODES
from biped_com_ros.ros.fast.message_reader import MessageReader
from biped_com_ros.ros.node.callback_errors import Throttle
from biped_com_ros.ros.node.common_parameters import RobotChoice
from biped_com_ros.ros.node.diagnostics import Diagnostics
from biped_com_ros.ros.topics.input_base import inputs_of
import numpy as np
from rclpy.serialization import serialize_message
from support.messages import parameters
from support.ros_rig import NodeRig
from support.standing_robot import StandingRobot

#: What has no settings of a node in it: the robot itself, messages, parameters as they are given.
_OTHERS = (RobotConfig, RobotModel, Diagnostics, MessageReader, RobotChoice, Throttle)
#: Objects within objects that are looked at.
_DEEPEST = 12
#: Attributes that depend on the time at which they are looked at, or that only a start uses.
_TIMES = {'_clock', '_rate_since', '_started_ns', '_started', '_reported_at', '_since',
          '_missing_since', '_next_warning', '_last_reason', '_refused_at', '_called_at',
          '_since_ns', '_checked_at', '_count_offset', '_options'}


class AnyNode(NodeRig):
    """
    A node of the package with the inputs of a robot that stands.

    Parameters
    ----------
    name
        One of `NODES`.
    values
        Its parameters.

    """

    def __init__(self, name, **values):
        module, kind = NODES[name].split(':')
        super().__init__(node=getattr(import_module(module), kind)(
            parameter_overrides=parameters(**{'robot': 'biped', **values})))
        self.until(lambda: self.node.is_built, what='the node')
        self.robot = StandingRobot(self.node.model.config.name)

    @property
    def fields(self):
        """Return the parameters, see `setting_fields`."""
        return setting_fields(type(self.node.params))

    def stand(self, seconds=0.2, period=0.005):
        """Let all inputs receive what a robot that stands measures."""
        self.robot.noise = np.random.default_rng(0)
        clock = self.node.get_clock()
        for _ in range(round(seconds / period)):
            self.time.advance(period)
            now = clock.now().nanoseconds
            for source in sorted(inputs_of(self.node), key=lambda source: source.topic):
                source.reader.receive(bytes(serialize_message(self.robot.message(
                    source.topic.removeprefix('/'), source.subscription.msg_type, now))))

    def state(self):
        """Return all numbers and texts of the state, by where they are."""
        found = {}
        for name, value in vars(self.node).items():
            if name != 'params':
                _collect(value, name, found, ())
        return found


def _collect(value, path, found, owners):
    """Add the numbers and texts in a value to `found`; `owners` are the objects that it is in."""
    if isinstance(value, (bool, int, float, str)) or value is None:
        found[path] = repr(value)
    elif isinstance(value, np.ndarray):
        found[path] = value.tobytes() if value.dtype.kind in 'biufS' else ''
    elif len(owners) > _DEEPEST or any(value is owner for owner in owners):
        return
    else:
        for step, item in _items(value):
            _collect(item, path + step, found, (*owners, value))


def _items(value):
    """Yield what is in an object that may have settings or state."""
    if isinstance(value, Mapping):
        yield from ((f'[{key!r}]', item) for key, item in value.items())
    elif isinstance(value, (list, tuple, deque)):
        yield from ((f'[{index}]', item) for index, item in enumerate(value))
    elif type(value).__module__.startswith('biped_com_ros') and not isinstance(value, _OTHERS):
        names = dict.fromkeys(getattr(value, '__dict__', ()))
        for kind in type(value).__mro__:
            names.update(dict.fromkeys(getattr(kind, '__slots__', ())))
        yield from ((f'.{name}', getattr(value, name, None)) for name in names
                    if name not in _TIMES and 'node' not in name)
