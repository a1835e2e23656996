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
"""Running systems whose faults are measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, ExitStack
import os
from pathlib import Path
import tempfile

from support.reliability.bench import Fault, FaultBench, KEPT
from support.reliability.faults import (
    faults_of_bystander, node_faults, process_faults, sensor_faults, simulator_faults,
    suite_faults)
from support.reliability.robot import FaultyStandingRobot, NodeObserver
from support.reliability.system import OTHERS, SimulatorProcess, System

ROBOT = 'biped'
#: The same with sensors in its hands, which hold nothing.
HANDS = """
extends: biped
hands:
  left: {frame: l_gripper, wrench_sensors: [left_hand]}
  right: {frame: r_gripper, wrench_sensors: [right_hand]}
wrench_sensors:
  left_hand: {frame: l_gripper, topic: left_hand/wrench}
  right_hand: {frame: r_gripper, topic: right_hand/wrench}
"""


@contextmanager
def running(robot: str = ROBOT) -> Iterator[tuple[FaultBench, list[Fault]]]:
    """Run a system with a standing robot; yields its bench and its faults."""
    namespace = f'reliability_{os.getpid()}'
    standing = FaultyStandingRobot(namespace, robot)
    system = System(namespace, robot)
    try:
        bench = FaultBench(standing)
        bench.until_running()
        yield bench, sensor_faults(standing) + process_faults(standing, system)
    finally:
        system.close()
        standing.close()


@contextmanager
def running_composed(robot: str = ROBOT) -> Iterator[tuple[FaultBench, list[Fault]]]:
    """Run the estimators in one process, as launch files do, with the base by odometry."""
    namespace = f'reliability_composed_{os.getpid()}'
    standing = FaultyStandingRobot(namespace, robot)
    system = System(namespace, robot, composed=True,
                    more=('gravity:=active', 'torso:=false', 'base_source:=odometry'))
    try:
        bench = FaultBench(standing)
        bench.until_running()
        yield bench, [*faults_of_bystander(standing, 'odom', 'com_estimator'),
                      *suite_faults(system)]
    finally:
        system.close()
        standing.close()


@contextmanager
def running_with_hands() -> Iterator[tuple[FaultBench, list[Fault]]]:
    """Run a system whose robot measures the wrenches on its hands."""
    namespace = f'reliability_hands_{os.getpid()}'
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix='reliability_'))
        robot = Path(directory) / 'with_hands.yaml'
        robot.write_text(HANDS)
        standing = FaultyStandingRobot(namespace, str(robot))
        stack.callback(standing.close)
        stack.callback(System(namespace, str(robot)).close)
        bench = FaultBench(standing)
        bench.until_running()
        yield bench, faults_of_bystander(standing, 'left_hand', 'zmp_monitor')


@contextmanager
def running_with_others(robot: str = ROBOT) -> Iterator[tuple[FaultBench, list[Fault]]]:
    """Run a system and all nodes that it does without; yields the bench and faults of those."""
    namespace = f'reliability_others_{os.getpid()}'
    with ExitStack() as stack:
        standing = FaultyStandingRobot(namespace, robot)
        stack.callback(standing.close)
        stack.callback(System(namespace, robot).close)
        faults = faults_of_bystander(standing, 'tendon_states', 'torso_controller')
        for node, (file, arguments) in OTHERS.items():
            system = System(namespace, robot, file=file, more=arguments)
            stack.callback(system.close)
            faults += node_faults(node, system, KEPT)
        bench = FaultBench(standing)
        bench.until_running(others=OTHERS)
        yield bench, faults


@contextmanager
def running_simulated(robot: str = ROBOT) -> Iterator[tuple[FaultBench, list[Fault]]]:
    """Run a system with a simulated robot, on simulated time."""
    namespace = f'reliability_sim_{os.getpid()}'
    observer, simulator = NodeObserver(namespace, robot), SimulatorProcess(namespace, robot)
    system = System(namespace, robot, simulated=True)
    try:
        bench = FaultBench(observer)
        bench.until_running()
        yield bench, simulator_faults(simulator)
    finally:
        system.close()
        simulator.close()
        observer.close()
