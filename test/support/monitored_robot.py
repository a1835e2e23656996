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
"""The node `zmp_monitor` with the sensors of a simulated robot, and the results of the core."""

import dataclasses
from functools import cache
import itertools

from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.topics.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped, PolygonStamped, Vector3Stamped
from nav_msgs.msg import Odometry
import numpy as np
from std_msgs.msg import Float64, String
from support.driven_time import run_ready
from support.messages import odometry, parameters as parameters_of, stamp_of
from support.recorded_robot import record, RecordedRobot
from visualization_msgs.msg import MarkerArray

OUTPUTS = {'zmp': PointStamped, 'zmp_model': PointStamped, 'zmp_difference': Vector3Stamped,
           'dcm': PointStamped, 'support_polygon': PolygonStamped, 'margin': Float64,
           'com_region': PolygonStamped, 'com_margin': Float64, 'dcm_margin': Float64,
           'time_to_edge': Float64, 'markers': MarkerArray}
LATCHED_OUTPUTS = {'support_phase': String, 'event': DiagnosticArray}
FEET_ONLY = ('joints', 'base', 'left', 'right')
COUNTER = itertools.count()


@cache
def swaying():
    """Return samples of 0.3 s in which the hips move; they are recorded once."""
    return record(0.3, lambda t: (0.01 * np.sin(9.0 * t), 0.015 * np.sin(6.0 * t), 0.0))[1]


class MonitoredRobot(RecordedRobot):
    """The node `zmp_monitor`, drivers of a robot around it, and subscribers of its outputs."""

    def __init__(self, **parameters):
        # Its wrenches have passed no low-pass.
        values = {'robot': 'biped', 'max_stamp_age': 0.0, 'marker_rate': 1e4, 'wrench_delay': 0.0,
                  **parameters}
        super().__init__(ZmpMonitor(
            namespace=f'/zmp_{next(COUNTER)}',
            cli_args=['--ros-args', '-r', '/diagnostics:=diagnostics'],
            parameter_overrides=parameters_of(**values)))
        self.odom = self.peer.create_publisher(Odometry, 'odom', 10)
        self.got = {topic: self.collect(kind, f'zmp_monitor/{topic}',
                                        LATCHED if topic == 'markers' else 10)
                    for topic, kind in OUTPUTS.items()}
        self.latched = {topic: self.collect(kind, f'zmp_monitor/{topic}', LATCHED)
                        for topic, kind in LATCHED_OUTPUTS.items()}
        self.spin(0.2)  # publishers look for subscribers ten times a second

    def senders(self, sample, frames=('l_sole', 'r_sole', 'l_gripper'), shift=(0.0, 0.0, 0.0)):
        """Return functions that send one message each."""
        stamp = stamp_of(sample.ns)

        def base():
            if self.node.params.base.source == 'odometry':
                self.odom.publish(odometry(stamp, 'odom', 'base_link', sample.base.position
                                           + shift, sample.base.quaternion))
            else:
                self.send_imu(stamp, sample)
        feet = {name: lambda i=i: self.send_wrench(stamp, sample, i, frames)
                for i, name in enumerate(('left', 'right', 'hand')[:len(sample.wrenches)])}
        return {'joints': lambda: self.send_joints(stamp, sample), 'base': base, **feet}

    def play(self, samples, order=None, before=lambda sample: None, **options):
        """Send samples, each in this order (or a random one), and let the node answer."""
        rng = np.random.default_rng(3)
        for sample in samples:
            self.time.advance(0.002)
            before(sample)
            send = self.senders(sample, **options)
            for name in rng.permutation(FEET_ONLY) if order == 'random' else order or send:
                send[name]()
                run_ready(self.executor)

    def clear(self):
        """Forget the messages received, but for latched ones."""
        for messages in self.got.values():
            messages.clear()

    def markers(self):
        """Return the newest markers by namespace and number."""
        return {(m.ns, m.id): m for m in self.got['markers'][-1].markers}

    def corners(self, topic='support_polygon'):
        """Return the corners of the newest polygon, (n, 3)."""
        return np.array([(p.x, p.y, p.z) for p in self.got[topic][-1].polygon.points])

    def diagnosis(self, line, level, samples, words='', **options):
        """Play by the present time, over and over, until a line says so; return its message."""
        for i, sample in zip(range(1000), itertools.cycle(samples)):
            now = dataclasses.replace(sample, ns=self.peer.get_clock().now().nanoseconds)
            self.play([now], **options)
            if i % 20 == 19:
                status = self.node.diagnostics.status(line)
                if status.level == level and words in status.message:
                    return status.message
        raise AssertionError(f'{line}: {status}')


def vectors(messages, field):
    """Return x, y, z of a field of messages, (n, 3)."""
    return np.array([[getattr(getattr(m, field), axis) for axis in 'xyz'] for m in messages])


def shifted(samples, seconds):
    """Return the samples again, later."""
    return [dataclasses.replace(s, ns=s.ns + round(1e9 * seconds)) for s in samples]
