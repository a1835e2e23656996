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

from contextlib import contextmanager, ExitStack
import os
from pathlib import Path
import tempfile

from support.reliability.bench import FaultBench, KEPT
from support.reliability.faults import (
    faults_of_bystander, node_faults, process_faults, sensor_faults, simulator_faults,
    suite_faults)
from support.reliability.robot import FaultyStandingRobot, NodeObserver
from support.reliability.system import OTHERS, SimulatorProcess, System

ROBOT = 'biped'
KINDS = ('standing', 'composed', 'hands', 'others', 'simulated')
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
def running(kind='standing', robot=ROBOT):
    """
    Run a system; yields its bench and its faults.

    Parameters
    ----------
    kind
        standing; others: with all nodes that it does without, whose faults they are; composed: the
        estimators in one process, as launch files start them, and the base by odometry; hands: the
        wrenches on the robot's hands are measured; simulated: on simulated time.
    robot
        Its name.

    """
    with ExitStack() as stack:
        namespace = f'reliability_{kind}_{os.getpid()}'
        if kind == 'hands':
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix='reliability_'))
            file = Path(directory) / 'with_hands.yaml'
            file.write_text(HANDS)
            robot = str(file)

        def start(**options):
            return closing(System(namespace, robot, **options))

        def closing(started):
            stack.callback(started.close)
            return started

        others = ()
        observer = closing((NodeObserver if kind == 'simulated' else FaultyStandingRobot)(
            namespace, robot))
        if kind == 'standing':
            faults = sensor_faults(observer) + process_faults(observer, start())
        elif kind == 'composed':
            system = start(composed=True,
                           more=('gravity:=active', 'torso:=false', 'base_source:=odometry'))
            faults = [*faults_of_bystander(observer, 'odom', 'com_estimator'),
                      *suite_faults(system)]
        elif kind == 'hands':
            start()
            faults = faults_of_bystander(observer, 'left_hand', 'zmp_monitor')
        elif kind == 'simulated':
            faults = simulator_faults(closing(SimulatorProcess(namespace, robot)))
            start(simulated=True)
        else:
            start()
            faults, others = faults_of_bystander(
                observer, 'tendon_states', 'torso_controller'), OTHERS
            for node, (launch_file, arguments) in OTHERS.items():
                faults += node_faults(node, start(file=launch_file, more=arguments), KEPT)
        bench = FaultBench(observer)
        bench.until_running(others=others)
        yield bench, faults
