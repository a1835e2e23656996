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
A tf2_ros for machines without it, that interpolates and refuses as the real one.

As read in geometry2 (tf2/src/cache.cpp: ``findClosest``, ``interpolate``, ``insertData``,
``clearList``; tf2/src/static_cache.cpp; tf2_ros_py/tf2_ros/buffer.py and transform_listener.py of
Jazzy, which does not clear its buffer when the clock is set back):

- between two stamps positions are interpolated linearly, rotations by slerp;
- after the latest and before the earliest stamp, and beside a single one, a lookup raises;
- a transform that is 10 s older than the latest one is not taken;
- ``clear`` empties everything but static transforms.
"""

from importlib.util import find_spec
import sys
import types

from biped_com_ros.ros.topics.stamp import ns_of_msg
from geometry_msgs.msg import TransformStamped
import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile
from scipy.spatial.transform import Rotation, Slerp
from support.messages import set_fields, vector
from tf2_msgs.msg import TFMessage

CACHE_TIME = 10_000_000_000
"""Nanoseconds."""


class TransformException(Exception):
    """As tf2.TransformException."""


class ExtrapolationException(TransformException):
    """As tf2.ExtrapolationException."""


class LookupException(TransformException):
    """As tf2.LookupException."""


class Buffer:
    """Transforms by child: parent, and (stamp in ns, position, rotation), oldest first."""

    def __init__(self, cache_time=None, node=None):
        self._parents, self._samples, self._static = {}, {}, {}

    def clear(self):
        self._samples = {child: [] for child in self._samples}

    def set_transform(self, message, _):
        child, time = message.child_frame_id, ns_of_msg(message.header.stamp)
        samples = self._samples.setdefault(child, [])
        if samples and time < samples[-1][0] - CACHE_TIME:
            return
        self._parents[child] = message.header.frame_id
        samples.append((time, *_pose(message)))
        samples.sort(key=lambda sample: sample[0])
        self._samples[child] = [s for s in samples if s[0] >= samples[-1][0] - CACHE_TIME]

    def set_transform_static(self, message, _):
        self._parents[message.child_frame_id] = message.header.frame_id
        self._static[message.child_frame_id] = _pose(message)

    def lookup_transform(self, target, source, time):
        position, rotation, frame = np.zeros(3), Rotation.identity(), source
        while frame != target:
            if frame not in self._parents:
                raise LookupException(f'"{frame}" passed to lookupTransform argument '
                                      'source_frame does not exist. ')
            p, r = self._at(frame, time.nanoseconds)
            position, rotation = p + r.apply(position), r * rotation
            frame = self._parents[frame]
        found = TransformStamped()
        set_fields(found.transform.translation, 'xyz', position)
        set_fields(found.transform.rotation, 'xyzw', rotation.as_quat())
        found.header.stamp = time.to_msg()
        return found

    def _at(self, frame, time):
        if frame in self._static:
            return self._static[frame]
        samples = self._samples[frame]
        times = [sample[0] for sample in samples]
        if len(samples) < 2:
            if times == [time]:
                return samples[0][1:]
            raise ExtrapolationException(
                f'Lookup would require extrapolation at time {time}, but only time '
                f'{times[0] if times else 0} is in the buffer')
        if time > times[-1]:
            raise ExtrapolationException(
                'Lookup would require extrapolation into the future.  Requested time '
                f'{time} but the latest data is at time {times[-1]}')
        if time < times[0]:
            raise ExtrapolationException(
                'Lookup would require extrapolation into the past.  Requested time '
                f'{time} but the earliest data is at time {times[0]}')
        after = min(max(int(np.searchsorted(times, time)), 1), len(times) - 1)
        (t0, p0, r0), (t1, p1, r1) = samples[after - 1:after + 1]
        share = (time - t0) / (t1 - t0) if t1 > t0 else 1.0
        rotations = Rotation.concatenate([r0, r1])
        return p0 + share * (p1 - p0), Slerp([0.0, 1.0], rotations)(share)


class TransformListener:
    """As tf2_ros.TransformListener."""

    def __init__(self, buffer, node, *, spin_thread=False):
        latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        for topic, qos, use in (('/tf', QoSProfile(depth=100), buffer.set_transform),
                                ('/tf_static', latched, buffer.set_transform_static)):
            node.create_subscription(
                TFMessage, topic, lambda message, use=use: [
                    use(transform, '') for transform in message.transforms], qos)


def provide_tf2(monkeypatch):
    """Let tf2_ros be importable: the real one where it is installed, else this one."""
    if find_spec('tf2_ros') is None:
        module = types.ModuleType('tf2_ros')
        module.Buffer, module.TransformListener = Buffer, TransformListener
        module.TransformException = TransformException
        monkeypatch.setitem(sys.modules, 'tf2_ros', module)


def transform_stamped(stamp, parent, child, pose):
    """Return the message of a pose of the core."""
    message = TransformStamped(child_frame_id=child)
    message.header.stamp, message.header.frame_id = stamp, parent
    set_fields(message.transform.translation, 'xyz', pose.position)
    set_fields(message.transform.rotation, 'xyzw', pose.quaternion)
    return message


def _pose(message):
    q = message.transform.rotation
    return vector(message.transform.translation), Rotation.from_quat([q.x, q.y, q.z, q.w])
