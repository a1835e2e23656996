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
Measures two hosts: the robot with gravity compensation on one, the estimators on the other.

A network that loses 5 % of all packets and delays the others by 20 to 40 ms; and a cable that is
cut for 5 s. It prints one line of JSON per fault.
"""

from contextlib import contextmanager
import dataclasses
import json
import os
import subprocess
import sys

import rclpy
from support.reliability.bench import Fault, FaultBench, FaultResult, INTERRUPTED, KEPT, ZERO
from support.reliability.network import on_host, two_hosts, unavailable, Wire
from support.reliability.robot import FaultyStandingRobot
from support.reliability.system import System

#: As DDS works between hosts unless told otherwise: multicast for discovery.
_ENVIRONMENT = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET', 'ROS_DOMAIN_ID': '1'}
_ROBOT = 'biped'


def network_faults(wire):
    """Return the faults of the network."""
    def impaired(**settings):
        @contextmanager
        def inject():
            wire.impair(**settings)
            yield
            wire.impair()
        return inject
    return [Fault('network: 5 % loss, 20 to 40 ms delay',
                  impaired(loss=0.05, delay=0.02, jitter=0.02), 5.0, (KEPT, ZERO, INTERRUPTED),
                  revives='com_estimator', limit=3.0),
            Fault('network: cable cut for 5 s', impaired(loss=1.0), 5.0, (ZERO,),
                  revives='com_estimator', limit=3.0)]


def on_the_robot(other, wire):
    """Run on the robot's host; the estimators run on the `other` one."""
    rclpy.init()
    namespace = 'two_hosts'
    robot = FaultyStandingRobot(namespace, _ROBOT)
    systems = [
        System(namespace, _ROBOT, composed=True, more=('gravity:=none', 'torso:=false'),
               prefix=on_host(other, [])),
        System(namespace, _ROBOT, file='gravity_compensation.launch.py', more=())]
    try:
        bench = FaultBench(robot)
        bench.until_running()
        for fault in network_faults(wire):
            print(json.dumps(dataclasses.asdict(bench.measure(fault))), flush=True)
    finally:
        for system in systems:
            system.close()
        robot.close()
        rclpy.try_shutdown()


def measure():
    """Make two hosts and measure."""
    path = os.pathsep.join(os.path.abspath(part) for part in sys.path if part)
    environment = {**os.environ, **_ENVIRONMENT, 'PYTHONPATH': path}
    with two_hosts() as ((robot, other), wire):
        command = on_host(robot, [sys.executable, '-m', 'support.reliability.two_hosts', other,
                                  str(wire.descriptor)])
        done = subprocess.run(command, env=environment, text=True, timeout=180,
                              stdout=subprocess.PIPE, pass_fds=(wire.descriptor,), check=True)
    return [FaultResult(**json.loads(line)) for line in done.stdout.splitlines()
            if line.startswith('{')]


def main(arguments):
    """Measure, or be the part on the robot's host."""
    if arguments:
        on_the_robot(arguments[0], Wire(int(arguments[1])))
    elif reason := unavailable():
        print(f'two hosts are not measured: {reason}')
    else:
        for result in measure():
            print(result)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
