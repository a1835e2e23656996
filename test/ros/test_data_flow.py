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
Through which files two messages pass on their way, so that a reader's way stays short.

doc/architecture.rst draws both walks. A walk has stations: functions that transform the values of
the message. What counts are the files on the call stack at each station, from where the message
arrives to where the result is published. What runs beside it meanwhile, as the pose of the base or
the polygon, is bounded, too.
"""

from contextlib import closing, contextmanager
from pathlib import Path
import re
import sys

import biped_com_ros
from biped_com_ros.core.model.robot import RobotModel
import pytest
from support.gravity_rig import GravityRig
from support.monitored_robot import MonitoredRobot, record

PACKAGE = Path(biped_com_ros.__file__).parent
DOCUMENT = PACKAGE.parent / 'doc' / 'architecture.rst'

ZMP_STATIONS = ('codec/reading.py', 'fast/vector_reader.py', 'WrenchMover.move',
                'Synchronizer.add', 'FootContacts.update', 'sum_wrenches',
                'centre_of_pressure', 'Template.serialize')
EFFORT_STATIONS = ('codec/reading.py', 'EffortSupervisor.update', 'GravityCompensator.efforts',
                   'EffortLimiter.update', 'Template.serialize')


class DocumentedWalk:
    """
    Records which functions of the package a message passes.

    Attributes
    ----------
    visited
        The stations that were passed, in their order; what comes before its turn is another
        walk: a watchdog's, where the computer is busy.
    files
        The files on the way, in order.
    executed
        All files of the package of which a message, this or another one, has run something.

    """

    def __init__(self, topic, stations):
        self._topic, self._stations = topic, list(stations)
        self._frames, self._marked, self._publishes = [], set(), False
        self.visited, self.is_complete, self.executed = [], False, set()

    def __call__(self, frame, event, _):
        path = Path(frame.f_code.co_filename)
        if self.is_complete or event != 'call' or PACKAGE not in path.parents:
            return
        self._frames.append(frame)
        if is_of_message(frame):
            self.executed.add(path.relative_to(PACKAGE).as_posix())
        name, subject = qualified_name(frame), frame.f_locals.get('self')
        if name.endswith('.publish') and getattr(subject, 'topic', '') == self._topic:
            self._publishes = self.visited == self._stations[:-1]
        for station in self._stations:
            if station in (name, '/'.join(path.parts[-2:])) and (
                    station != 'Template.serialize' or self._publishes):
                self._visit(station, frame)

    def _visit(self, station, frame):
        if station not in self.visited:
            if station != self._stations[len(self.visited)]:
                return
            self.visited.append(station)
        self.is_complete = station == self._stations[-1]
        while frame is not None:
            self._marked.add(id(frame))
            frame = frame.f_back

    @property
    def files(self):
        return [Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()
                for frame in self._frames if id(frame) in self._marked]

    @property
    def crossings(self):
        """Count the changes between `core` and what imports ROS (`ros` and `nodes`)."""
        sides = [file.startswith('core/') for file in self.files]
        return sum(one != other for one, other in zip(sides, sides[1:]))


def is_of_message(frame):
    """Return whether a function runs since a message arrived, not by a timer or a response."""
    while frame is not None:
        if frame.f_code.co_filename.endswith('fast/message_reader.py'):
            return True
        frame = frame.f_back
    return False


def qualified_name(frame):
    """Return 'Class.method', or 'function': code objects of Python 3.10 do not know the class."""
    code = frame.f_code
    for owner in type(frame.f_locals.get('self')).__mro__:
        if getattr(vars(owner).get(code.co_name), '__code__', None) is code:
            return f'{owner.__name__}.{code.co_name}'
    return code.co_name


@contextmanager
def walking(topic, stations):
    walk = DocumentedWalk(topic, stations)
    sys.setprofile(walk)
    try:
        yield walk
    finally:
        sys.setprofile(None)
    assert walk.visited == list(stations), walk.files


@pytest.fixture(scope='module')
def wrench_walk():
    """Follow the last wrench of an instant to `zmp_monitor`."""
    _, samples = record(0.2)
    with closing(MonitoredRobot(marker_rate=0.0)) as rig:
        rig.play(samples[:-1])
        send = rig.senders(samples[-1])
        for source in ('joints', 'base', 'left'):
            send[source]()
            rig.spin(0.02)
        send['right']()
        with walking(f'{rig.space}/zmp_monitor/zmp', ZMP_STATIONS) as walk:
            rig.spin(0.02)
    return walk


@pytest.fixture(scope='module')
def joints_walk():
    """Joint states arrive at `gravity_compensation`."""
    with closing(GravityRig(RobotModel.load('talos'))) as rig:
        rig.play(0.5)
        rig.missing = {'imu', 'left', 'right'}
        with walking(rig.node.get_fully_qualified_name() + '/effort', EFFORT_STATIONS) as walk:
            rig.step()
    return walk


def test_a_foot_wrench_to_the_zmp(wrench_walk):
    assert len(set(wrench_walk.files)) <= 15, wrench_walk.files
    assert wrench_walk.crossings <= 4, wrench_walk.files
    # 34 by now; a busy computer adds what handles late messages.
    assert len(wrench_walk.executed) <= 36, sorted(wrench_walk.executed)


def test_joint_states_to_the_efforts(joints_walk):
    assert len(set(joints_walk.files)) <= 10, joints_walk.files
    assert joints_walk.crossings <= 4, joints_walk.files
    # Ages and limited steps are one mechanism for all capabilities, and a file each.
    assert len(joints_walk.executed) <= 24, sorted(joints_walk.executed)


def documented_walks():
    """Return the files of the walks in the documentation, one list each."""
    section = DOCUMENT.read_text().split('\nData flow\n')[1].split('\nThreads and executors\n')[0]
    return [re.findall(r'^   \* - ``(.*)``$', table, re.MULTILINE)
            for table in section.split('.. list-table::')[1:]]


@pytest.mark.parametrize('index, name', [(0, 'wrench_walk'), (1, 'joints_walk')])
def test_the_documentation_names_these_files_in_this_order(index, name, request):
    assert documented_walks()[index] == list(dict.fromkeys(request.getfixturevalue(name).files))
