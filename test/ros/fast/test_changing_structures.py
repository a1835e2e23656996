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
"""Messages whose structure changes from one to the next cost neither memory nor much time."""

import random
import tracemalloc

from biped_com_ros.ros.fast.codec import reading
from biped_com_ros.ros.topics.inputs import (
    ArrayInput, ImuInput, JointStateInput, OdometryInput, PointInput, StampedArrayInput,
    TemperatureInput, Vector3Input, WrenchInput)
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState, Temperature
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout
from support.messages import stamp_of

JOINTS = [f'joint_{i}' for i in range(12)]
MS = 1_000_000


def permuted(k):
    return random.Random(k).sample(JOINTS, len(JOINTS))


def growing(k):
    return JOINTS + [f'finger_{k}_{i}' for i in range(k % 300)]


def renamed(k):
    return [*JOINTS, f'object_{k}']


def joint_states(names_of):
    """Return a maker of JointState messages; each joint is where its number says."""
    def make(k):
        names = names_of(k)
        positions = [float(JOINTS.index(name)) if name in JOINTS else 99.0 for name in names]
        return JointState(name=names, position=positions, velocity=[0.5] * len(names))
    return make


def framed(kind, **values):
    """Return makers of messages of a type, whose frames have other names or longer ones."""
    def make(frame_of):
        def make_one(k):
            message = kind(**values)
            message.header.frame_id = frame_of(k)
            if hasattr(message, 'child_frame_id'):
                message.child_frame_id = frame_of(k)
            for path in ('orientation', 'pose.pose.orientation'):
                owner = message
                for part in path.split('.'):
                    owner = getattr(owner, part, None)
                if owner is not None:
                    owner.w = 1.0
            return message
        return make_one
    return make(lambda k: f'frame_{k}'), make(lambda k: (k % 300) * 'f' + f'frame_{k}')


def array(k):
    return Float64MultiArray(data=[float(i) for i in range(k % 300)])


def stamped_array(k):
    labels = [MultiArrayDimension(label=f'{k}_{i}') for i in range(k % 20)]
    return Float64MultiArray(layout=MultiArrayLayout(data_offset=2, dim=labels), data=[
        *map(float, divmod((k + 1) * MS, 10 ** 9)), 1.0, 2.0])


KINDS = [
    *((JointStateInput, (JOINTS,), joint_states(names)) for names in (permuted, growing, renamed)),
    *((kind, arguments, make) for kind, arguments, makers in (
        (WrenchInput, ('wrench', ''), framed(WrenchStamped)),
        (ImuInput, ('imu', ''), framed(Imu)), (OdometryInput, ('odom',), framed(Odometry)),
        (PointInput, ('point', ''), framed(PointStamped)),
        (Vector3Input, ('vector', ''), framed(Vector3Stamped)),
        (TemperatureInput, ('warm',), framed(Temperature, temperature=20.0))) for make in makers),
    (ArrayInput, ('array', None), array), (StampedArrayInput, ('stamped', 2), stamped_array)]


@pytest.mark.parametrize(('kind', 'arguments', 'make'), KINDS, ids=[
    f'{kind.__name__}-{i}' for i, (kind, _, _) in enumerate(KINDS)])
def test_they_are_read_without_growing_memory_and_without_new_plans(
        rig, kind, arguments, make, monkeypatch):
    received, plans = [], []
    layout = reading.Layout
    monkeypatch.setattr(reading, 'Layout', lambda message: plans.append(1) or layout(message))
    source = kind(rig.node, *arguments, callback=lambda *values: received.append(values[1].copy()),
                  max_age=0.0)

    def receive(numbers):
        for k in numbers:
            message = make(k)
            if hasattr(message, 'header'):
                message.header.stamp = stamp_of((k + 1) * MS)
            source.reader.receive(bytes(serialize_message(message)))
        del received[:-1]
    tracemalloc.start()
    receive(range(600))
    before = tracemalloc.get_traced_memory()[0]
    receive(range(600, 1200))
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert source.count == 1200 and not source.refused
    assert len(plans) < 120 and grown < 500_000
    if kind is JointStateInput:
        assert received[0].tolist() == list(map(float, range(12)))
        assert source.velocities.tolist() == [0.5] * 12
    # As soon as the structure stays the same, it is read quickly again.
    count = len(plans)
    last = make(1201)
    for k in range(1200, 1300):
        if hasattr(last, 'header'):
            last.header.stamp = stamp_of((k + 1) * MS)
        elif kind is StampedArrayInput:
            last.data = [*map(float, divmod((k + 1) * MS, 10 ** 9)), 1.0, 2.0]
        source.reader.receive(bytes(serialize_message(last)))
    assert source.count == 1300 and len(plans) == count + 1
    assert source.reader.plain_reason is None
    assert np.isfinite(received[-1]).all()
