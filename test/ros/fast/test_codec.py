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
"""The codec against rclpy's own serialisation, on random messages of many types."""

import array
import importlib
import math

from biped_com_ros.ros.fast import codec
from biped_com_ros.ros.topics.stamp import ns_of_msg, pack_stamp, stamp_to_msg, unpack_stamp
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import (
    Point, PointStamped, Pose, PoseArray, PoseWithCovarianceStamped, WrenchStamped)
from hypothesis import given, HealthCheck, settings, strategies as st
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState, Joy
from std_msgs.msg import Bool, Empty, Float64MultiArray, Header, String, UInt8MultiArray
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker, MarkerArray

TYPES = [
    Bool, DiagnosticArray, Empty, Float64MultiArray, Imu, JointState, Joy, PointStamped, String,
    UInt8MultiArray, *(pytest.param(kind, marks=pytest.mark.thorough) for kind in (
        JointTrajectory, Marker, MarkerArray, Odometry, PoseArray, PoseWithCovarianceStamped,
        WrenchStamped))]

SETTINGS = settings(max_examples=40, deadline=None,
                    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

TEXT = st.text(st.characters(exclude_characters='\0', exclude_categories=('Cs',)), max_size=9)
FLOATS = st.floats(allow_nan=False)
INTEGERS = {f'{sign}int{bits}': st.integers(-(2 ** (bits - 1)) if not sign else 0,
                                            2 ** (bits - (not sign)) - 1)
            for sign in ('', 'u') for bits in (8, 16, 32, 64)}
BASIC = {**INTEGERS, 'double': FLOATS, 'boolean': st.booleans(), 'char': INTEGERS['uint8'],
         'float': st.floats(width=32, allow_nan=False),
         'octet': st.integers(0, 255).map(lambda value: bytes([value]))}


def values_of(field_type):
    """Strategy for the values of a field, by its type as rclpy writes it."""
    if field_type.startswith('sequence<'):
        return st.lists(values_of(field_type[len('sequence<'):-1]), max_size=3)
    if field_type.endswith(']'):
        element, size = field_type[:-1].split('[')
        return st.lists(values_of(element), min_size=int(size), max_size=int(size))
    if field_type in BASIC:
        return BASIC[field_type]
    return TEXT if field_type == 'string' else messages_of(class_of(field_type))


def class_of(name):
    """Return the class of a nested message, as of 'geometry_msgs/Point'."""
    package, name = name.split('/')
    return getattr(importlib.import_module(f'{package}.msg'), name)


def messages_of(message_type):
    """Strategy for whole messages."""
    return st.builds(message_type, **{
        name: values_of(field_type)
        for name, field_type in message_type.get_fields_and_field_types().items()})


def numbers(value):
    """Return a leaf's value as rclpy gives it, as a list of numbers."""
    values = value if isinstance(value, (list, tuple, array.array, np.ndarray)) else [value]
    if isinstance(value, bytes):
        values = [value]
    return [v[0] if isinstance(v, bytes) else v for v in values]


@pytest.mark.parametrize('message_type', TYPES)
@given(data=st.data())
@SETTINGS
def test_layout_finds_every_number_and_leaves_and_structure_do_not_overlap(message_type, data):
    message = data.draw(messages_of(message_type))
    raw = serialize_message(message)
    layout = codec.Layout(message)
    # rclpy may reserve some bytes more than it fills, where sequences are empty.
    assert layout.size <= len(raw)
    for leaf in layout.leaves:
        ours = np.frombuffer(raw, leaf.dtype, leaf.count, leaf.offset)
        theirs = np.array(numbers(codec.value_at(message, leaf.path)), leaf.dtype)
        np.testing.assert_array_equal(ours, theirs, str(leaf))
    spans = sorted(spans_of(layout))
    for (_, end), (start, _) in zip(spans, spans[1:]):
        assert 0 <= start - end < 8


def spans_of(layout):
    """Return (begin, end) of all bytes that mean something."""
    return [*layout.structure, *((leaf.offset, leaf.offset + leaf.count * leaf.dtype.itemsize)
                                 for leaf in layout.leaves)]


def joint_states():
    """Strategy: names in any number and length, velocities and efforts there or not."""
    return st.lists(TEXT, max_size=6).flatmap(lambda names: st.builds(
        JointState, name=st.just(names), header=messages_of(Header),
        **{field: st.one_of(st.just([]), st.lists(
            FLOATS, min_size=len(names), max_size=len(names)))
           for field in ('position', 'velocity', 'effort')}))


def reversed_positions_then_efforts(message):
    """Select what is there in an order unlike that of the bytes."""
    paths = [('position', i) for i in reversed(range(len(message.position)))]
    paths += [('effort', i) for i in range(len(message.effort))]
    return codec.Selection(paths, tuple(message.name))


@pytest.mark.parametrize('plain', [False, True])
@given(stream=st.lists(joint_states(), min_size=1, max_size=5), order=st.data())
@SETTINGS
def test_reader_follows_a_stream_whose_structure_changes(plain, stream, order):
    reader = codec.Decoder(JointState, reversed_positions_then_efforts, plain)
    for message in stream + order.draw(st.permutations(stream)):
        raw = serialize_message(message)
        plan = reader.plan_for(raw)
        for values in (plan.values_of(raw), plan.array_of(raw)):
            np.testing.assert_array_equal(values, [*message.position[::-1], *message.effort])
        assert plan.data == tuple(message.name)
    assert reader.plain is plain
    assert reader.plain_reason is None


def test_values_are_unpacked_in_the_order_of_their_paths_one_twice_too():
    paths = [('point', 'z'), ('point', 'x'), ('point', 'z')]
    reader = codec.Decoder(PointStamped, lambda message: codec.Selection(paths), plain=False)
    for x, z in ((1.5, -2.5), (math.inf, 7.0)):
        raw = serialize_message(PointStamped(
            header=Header(frame_id='odom'), point=Point(x=x, y=9.0, z=z)))
        plan = reader.plan_for(raw)
        assert plan.values_of(raw) == (z, x, z) and isinstance(plan, codec.Plan)


def padding_of(raw, layout):
    """Offsets of the bytes that mean nothing."""
    meant = {i for start, end in [(0, 4), *spans_of(layout)] for i in range(start, end)}
    return [i for i in range(len(raw)) if i not in meant]


@given(message=joint_states(), garbage=st.integers(1, 255))
@SETTINGS
def test_padding_may_hold_anything(message, garbage):
    converted = []
    reader = codec.Decoder(JointState, lambda m: (
        converted.append(m) or reversed_positions_then_efforts(m)), plain=False)
    raw = bytearray(serialize_message(message))
    reader.plan_for(bytes(raw))
    for i in padding_of(raw, codec.Layout(message)):
        raw[i] ^= garbage
    np.testing.assert_array_equal(reader.plan_for(bytes(raw)).values_of(bytes(raw)),
                                  [*message.position[::-1], *message.effort])
    assert len(converted) == 1


def test_velocities_moving_into_efforts_are_detected():
    """Same size, same names, same positions count: only the lengths inside differ."""
    def select(message):
        return codec.Selection([('velocity', 0)] if len(message.velocity) else [('effort', 0)])
    reader = codec.Decoder(JointState, select, plain=False)
    first = serialize_message(JointState(name=['a'], position=[1.0], velocity=[2.0]))
    second = serialize_message(JointState(name=['a'], position=[1.0], effort=[3.0]))
    assert len(first) == len(second)
    for raw, value in ((first, 2.0), (second, 3.0), (first, 2.0)):
        assert reader.plan_for(raw).values_of(raw) == (value,)


def test_number_of_cached_structures_is_bounded():
    reader = codec.Decoder(JointState, reversed_positions_then_efforts, plain=False)
    for i in range(200):
        raw = serialize_message(JointState(name=[f'joint{i}'], position=[float(i)]))
        assert reader.plan_for(raw).values_of(raw) == (i,)
    assert len(reader._plans) <= 32


def test_a_wrong_layout_is_detected_and_the_plain_path_taken(monkeypatch):
    monkeypatch.setattr(codec.Layout, '_align', lambda self, size: None)
    reader = codec.Decoder(JointState, reversed_positions_then_efforts, plain=False)
    raw = serialize_message(JointState(name=['ab'], position=[1.5]))
    assert reader.plan_for(raw).values_of(raw) == (1.5,)
    assert reader.plain and reader.plain_reason
    template = codec.Template(PointStamped(header=Header(frame_id='ab')), {'point': 'point'})
    template.fields['point'][...] = (1.0, 2.0, 3.0)
    assert template.plain and template.plain_reason
    assert template.message().point == Point(x=1.0, y=2.0, z=3.0)


def test_wide_strings_are_left_to_rclpy():
    class Wide:
        text = 'x'

        @classmethod
        def get_fields_and_field_types(cls):
            return {'text': 'wstring'}
    with pytest.raises(codec.LayoutError):
        codec.Layout(Wide())


# -- templates


STAMPS = st.integers(0, 2 ** 31 * 10 ** 9 - 1)


def without_padding(message, raw):
    """Return the bytes with zeros for padding."""
    raw = bytearray(raw)
    for i in padding_of(raw, codec.Layout(message)):
        raw[i] = 0
    return bytes(raw)


@pytest.mark.parametrize('plain', [False, True])
@given(frame=TEXT, stamp=STAMPS, point=st.lists(FLOATS, min_size=3, max_size=3))
@SETTINGS
def test_template_serializes_as_rclpy_does(plain, frame, stamp, point):
    template = codec.Template(
        PointStamped(header=Header(frame_id=frame)), {'point': 'point'}, plain)
    template.fields['point'][...] = point
    expected = PointStamped(header=Header(frame_id=frame, stamp=stamp_to_msg(stamp)),
                            point=Point(**dict(zip('xyz', point))))
    assert without_padding(expected, template.serialize(stamp)) == without_padding(
        expected, serialize_message(expected))
    assert template.plain is plain and template.plain_reason is None


@pytest.mark.parametrize('plain', [False, True])
@given(names=st.lists(TEXT, min_size=1, max_size=5), stamp=STAMPS, data=st.data())
@SETTINGS
def test_template_of_irregular_markers(plain, names, stamp, data):
    """Names of unlike lengths make the positions lie unevenly; each header gets the stamp."""
    n = len(names)
    prototype = MarkerArray(markers=[
        Marker(ns=name, id=i, points=[Point()] * 2, header=Header(frame_id='odom'))
        for i, name in enumerate(names)])
    template = codec.Template(prototype, {
        'position': 'markers[*].pose.position', 'points': 'markers[*].points',
        'alpha': 'markers[*].color.a', 'action': 'markers[*].action',
        'first': 'markers[0].scale'}, plain)
    shapes = {name: field.shape for name, field in template.fields.items()}
    assert shapes == {'position': (n, 3), 'points': (n, 2, 3), 'alpha': (n,), 'action': (n,),
                      'first': (3,)}
    numbers = np.arange(6.0 * n).reshape(n, 2, 3) + data.draw(st.floats(-1e6, 1e6))
    template.fields['position'][...] = numbers[:, 1]
    template.fields['points'][...] = numbers
    template.fields['alpha'][...] = np.arange(n) / 8
    template.fields['action'][n - 1] = 2
    template.fields['first'][...] = (7.0, 8.0, 9.0)
    message = deserialize_message(template.serialize(stamp), MarkerArray)
    for i, marker in enumerate(message.markers):
        assert (marker.ns, marker.id, marker.color.a) == (names[i], i, i / 8)
        assert ns_of_msg(marker.header.stamp) == stamp
        assert ns_of_msg(marker.texture.header.stamp) == 0  # a part's own business
        position = marker.pose.position
        assert [position.x, position.y, position.z] == numbers[i, 1].tolist()
        assert [[p.x, p.y, p.z] for p in marker.points] == numbers[i].tolist()
    assert message.markers[n - 1].action == 2
    assert message.markers[0].scale.y == 8.0
    assert template.plain is plain


@pytest.mark.parametrize(('prototype', 'pattern', 'shape', 'last'), [
    (PoseArray(poses=[Pose()]), 'poses[*].position', (1, 3), ('poses', 0, 'position', 'z')),
    (Float64MultiArray(data=[0.0]), 'data', (1,), ('data', 0)), (Bool(), 'data', (1,), ('data',)),
    (PoseWithCovarianceStamped(), 'pose.covariance', (36,), ('pose', 'covariance', 35)),
    (MarkerArray(markers=[Marker(points=[Point()] * k) for k in (1, 3)]), 'markers[*].points',
     (12,), ('markers', 1, 'points', 2, 'z'))])
def test_fields_have_the_axes_of_what_their_pattern_selects(
        plain, prototype, pattern, shape, last):
    """Of one element, too; unlike ones are flat."""
    template = codec.Template(prototype, {'field': pattern}, plain)
    assert template.fields['field'].shape == shape
    template.fields['field'][...] = np.arange(1.0, np.prod(shape) + 1.0).reshape(shape)
    assert codec.value_at(template.message(), last) == np.prod(shape)


def test_patterns_that_select_nothing_or_a_mixture_are_refused(plain):
    for pattern, complaint in (('pont', 'pont'), ('header', 'several types')):
        with pytest.raises(KeyError, match=complaint):
            codec.Template(PointStamped(), {'field': pattern}, plain)


@given(ns=STAMPS, prefix=st.binary(max_size=9))
@SETTINGS
def test_stamps_survive_every_way_of_writing_them(ns, prefix):
    assert unpack_stamp(prefix + pack_stamp(ns), len(prefix)) == ns
    assert ns_of_msg(stamp_to_msg(ns)) == ns
    assert bytes(serialize_message(stamp_to_msg(ns)))[4:] == pack_stamp(ns)
