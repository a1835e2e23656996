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
"""The faults of the table."""

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, ExitStack
import signal
import time

from support.reliability.bench import Fault, HELD, INTERRUPTED, KEPT, ZERO
from support.reliability.robot import SensorFault
from support.reliability.system import busy_cores, NODES

_Context = Callable[[], AbstractContextManager[object]]
#: So long an input fails, s: longer than holding and ramping to zero.
_FAILS = 2.0
#: So long one that diagnostics have to name: they come once a second, on a busy computer later, s.
_NAMED_FAILS = 4.0
#: For so long there is no controller when one is restarted, s.
_LOADING = 0.5
#: A respawned process runs again after this time, on a busy computer, s.
_RESPAWN = 20.0


def sensor_faults(robot):
    """Faults of sensors and clocks."""
    wrench = next(iter(robot.model.config.wrench_sensors))

    def fault(words, sensor, kind, value, *expected):
        return Fault(f'{words} {kind}' + (f' by {value:g} s' if kind == 'late' else ''),
                     _failing(robot, sensor, kind, value), _FAILS, expected)

    def clock(seconds):
        @contextmanager
        def inject():
            robot.clock_error = seconds
            yield
            robot.clock_error = 0.0
        return Fault(f"robot's clock steps by {seconds:+g} s", inject, _FAILS, (ZERO,))

    return [
        fault('joint states', 'joint_states', 'lost', 0.0, ZERO),
        fault('joint states', 'joint_states', 'frozen', 0.0, KEPT),
        fault('joint states', 'joint_states', 'late', 0.3, ZERO),
        fault('joint states, every 20th', 'joint_states', 'dropping', 0.05, KEPT),
        fault('IMU', 'imu', 'lost', 0.0, ZERO),
        fault('IMU', 'imu', 'frozen', 0.0, KEPT),
        fault('IMU', 'imu', 'late', 0.3, ZERO),
        fault('a foot sensor', wrench, 'lost', 0.0, ZERO),
        fault('a foot sensor', wrench, 'frozen', 0.0, KEPT, ZERO),
        fault('a foot sensor', wrench, 'late', 0.3, ZERO),
        fault('a foot sensor', wrench, 'dead', 0.0, ZERO),
        clock(3600.0), clock(-3600.0), clock(0.05)]


def _failing(robot, sensor, kind, value):
    @contextmanager
    def inject():
        robot.faults[sensor] = SensorFault(kind, value)
        yield
        del robot.faults[sensor]
    return inject


#: Sensors that efforts do not depend on, in words.
_WORDS = {'tendon_states': 'tendon states', 'odom': 'odometry'}


def faults_of_bystander(robot, sensor, revives=''):
    """Return faults of a sensor that efforts do not depend on; its loss has to be named."""
    topic = robot.model.config.wrench_sensors.get(sensor)
    named = f'/{topic.topic if topic else sensor}: no valid message'

    def fault(kind, value=0.0):
        words = f'{_WORDS.get(sensor, "a hand sensor")} {kind}'
        return Fault(words + (f' by {value:g} s' if value else ''),
                     _failing(robot, sensor, kind, value),
                     _NAMED_FAILS if kind == 'lost' else _FAILS, (KEPT,), revives=revives,
                     named=named if kind == 'lost' else '')

    return [fault('lost'), fault('frozen'), fault('late', 0.3)]


def suite_faults(system):
    """Faults of the process that all estimators share."""
    return [_ended('suite: kill -9', system, 'suite', signal.SIGKILL, ZERO, 'zmp_monitor')]


def node_faults(node, system, outcome):
    """Faults of a node of a system; `outcome` is that of efforts while it does nothing."""
    faults = []
    for words, number in (('kill -9', signal.SIGKILL), ('restart (SIGINT)', signal.SIGINT)):
        # What commands ramps down before it ends.
        end = ZERO if outcome == HELD and number == signal.SIGINT else outcome
        faults.append(_ended(f'{node}: {words}', system, node, number, end, node))
    return [*faults, Fault(f'{node}: SIGSTOP for 3 s', _stopped(system, node), 3.0, (outcome,),
                           revives=node)]


def process_faults(robot, system):
    """Faults of processes and of the computer."""
    faults = []
    for node in NODES:
        # Its wrenches are an input of gravity_compensation.
        faults += node_faults(node, system, HELD if node == 'gravity_compensation' else
                              ZERO if node == 'wrench_aggregator' else KEPT)
    return [
        *faults,
        Fault('effort controller: restart in 0.5 s', _restarted(robot), 3.0,
              (KEPT, HELD, ZERO, INTERRUPTED)),
        Fault('a second gravity_compensation', _second(system, 'gravity_compensation'), 5.0,
              (KEPT,)),
        Fault('a second com_estimator', _second(system, 'com_estimator'), 5.0, (KEPT,)),
        Fault('2 busy loops per core', busy_cores, 5.0, (KEPT, ZERO, INTERRUPTED))]


def simulator_faults(simulator):
    """Faults of the simulator, with simulated time."""
    @contextmanager
    def killed():
        simulator.kill()
        yield
        simulator.start()

    @contextmanager
    def stopped():
        with ExitStack() as stack:
            simulator.send(signal.SIGSTOP)
            stack.callback(simulator.send, signal.SIGCONT)
            yield
    return [Fault('simulator: kill -9', killed, 3.0, (ZERO,), limit=_RESPAWN),
            Fault('simulator: SIGSTOP for 3 s', stopped, 3.0, (ZERO,))]


def _ended(name, system, process, number, outcome, revives):
    """Return the end of a process, which is started again."""
    ended = 0

    @contextmanager
    def inject():
        nonlocal ended
        ended = system.pid(process)
        system.send(process, number)
        yield
    return Fault(name, inject, 1.9, (outcome,), revives=revives, limit=_RESPAWN,
                 is_back=lambda: system.pid(process) != ended)


def _stopped(system, node):
    @contextmanager
    def inject():
        with ExitStack() as stack:
            system.send(node, signal.SIGSTOP)
            stack.callback(system.send, node, signal.SIGCONT)
            yield
    return inject


def _restarted(robot):
    @contextmanager
    def inject():
        robot.controller.close()
        end = time.monotonic() + _LOADING
        while time.monotonic() < end:
            robot.step()
        robot.controller.start()
        yield
    return inject


def _second(system, node):
    return lambda: system.beside(node)
