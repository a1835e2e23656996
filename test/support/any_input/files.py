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

import os
from pathlib import Path
import re
import tempfile

from biped_com_ros.core import plain_xml
from biped_com_ros.core.identification.captures import recordings
from biped_com_ros.core.identification.output import urdf_inertials
from biped_com_ros.core.model import (
    config, corrections, description_check, low_state_config, urdf)
from biped_com_ros.core.wrench import tare
from hypothesis import strategies as st
import numpy as np
from support.any_input import robots as r, values as v
from support.small_robot import MAPPING

_DIRECTORY = tempfile.TemporaryDirectory(prefix='any_input_')
_HERE = Path(_DIRECTORY.name)
#: In place of a number or a name in a file.
_WRONG = st.sampled_from(('nan', 'inf', '-inf', '1e999', '-1', '0', '', 'x', '[]', '{}', '~', '"',
                          '<', '>', '&', '1 2 3', '\x00', 'é', '1e-320', '1e300'))


@st.composite
def changed(draw, text):
    """Draw a text with some of its words replaced, or a part of it lost or twice."""
    for _ in range(draw(st.integers(0, 2))):
        a, b = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        word = draw(_WRONG)
        text = draw(st.sampled_from((
            text[:a] + word + text[a + 3:], text[:a] + text[b:], text[:b] + text[a:])))
    return text


@st.composite
def changed_numbers(draw, text):
    """Draw a text with some of the words between its quotes replaced."""
    parts = text.split('"')
    for _ in range(draw(st.integers(0, 3))):
        i = 2 * draw(st.integers(0, (len(parts) - 2) // 2)) + 1
        parts[i] = draw(_WRONG).replace('"', '').replace('<', '').replace('&', '')
    return '"'.join(parts)


def written(content):
    """Return the path of a file with this content."""
    descriptor, path = tempfile.mkstemp(dir=_HERE, suffix='.yaml')
    with os.fdopen(descriptor, 'wb') as file:
        file.write(content if isinstance(content, bytes) else content.encode(errors='replace'))
    return Path(path)


def _named(suffix):
    def make(content):
        path = written(content)
        return path.rename(path.with_suffix(suffix))
    return make


_texts = st.text(max_size=40)
_bytes = st.binary(max_size=40)
_paths = st.sampled_from((_HERE, _HERE / 'none', Path('/proc/none/x'), Path('x\x00'))) | (
    _bytes | _texts).map(written)
_yaml_of_robots = changed(r.WRENCH_ROBOT.read_text())
_urdfs = r.light_robots.flatmap(lambda model: changed(model.urdf) | changed_numbers(model.urdf))
_urdf_trees = r.light_robots.map(
    lambda model: model.urdf[model.urdf.index('<robot'):]).flatmap(changed_numbers).map(
        lambda text: plain_xml.ElementTree.fromstring(text.replace('\x00', '')))
_elements = st.builds(
    lambda tag, values: plain_xml.ElementTree.Element(tag, values),
    st.sampled_from(('origin', 'mass', 'box')), st.dictionaries(
        st.sampled_from(('xyz', 'rpy', 'value', 'size')), _WRONG | _texts))
_nested = st.recursive(
    st.none() | v.flags | st.integers() | v.anything | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(v.names, inner, max_size=3),
    max_leaves=8)


def _put(mapping, path, value):
    """Return the mapping with another value at a path."""
    key, *more = path
    changed_part = value if not more else _put(mapping[key], more, value)
    return {**mapping, key: changed_part}


_keys = st.sampled_from([(key,) for key in MAPPING] + [
    ('feet', 'left'), ('feet', 'left', 'polygon'), ('feet', 'right', 'sole_rpy'),
    ('imus', 'base'), ('postures', 'stand'), ('locked_joints', 'hatch'), ('extra',)])
_mappings = st.builds(_put, st.just(MAPPING), _keys, _nested)
_of_joints = st.dictionaries(v.names, v.anything, max_size=2)


def _description(model):
    stand = {name: model.subtree(sensor.link or sensor.frame)
             for name, sensor in model.config.wrench_sensors.items()}
    at_zero = model.state(np.zeros(len(model.joint_names)))
    return description_check.RobotDescription(model, 'stand', at_zero, at_zero, stand)


def _visual(shape, values):
    visual = plain_xml.ElementTree.Element('visual')
    geometry = plain_xml.ElementTree.SubElement(visual, 'geometry')
    plain_xml.ElementTree.SubElement(geometry, shape, values)
    return visual


def _header(model):
    return ','.join(('time', *(f'position/{name}' for name in model.joint_names), *(
        f'{sensor}/{axis}' for sensor in model.config.wrench_sensors
        for axis in recordings.AXES), *(f'imu/{key}' for key in ('qx', 'qy', 'qz', 'qw'))))


_with_imu = r.light_robots.filter(lambda model: model.config.imus)


@st.composite
def _rows(draw):
    model = draw(_with_imu)
    header = _header(model)
    width = header.count(',') + 1
    cells = st.sampled_from(('0', '1', 'nan', 'inf', '', 'x', '1e400', '-3.5'))
    lines = draw(st.lists(st.lists(cells, min_size=width - 1, max_size=width + 1), max_size=3))
    text = '\n'.join((header, *map(','.join, lines)))
    return _named('.csv')(text), recordings.CaptureFinder(model)


@st.composite
def _averages(draw):
    model = draw(r.light_robots)
    header = ','.join((
        'name', 'time', 'up/x', 'up/y', 'up/z',
        *(f'position/{name}' for name in model.joint_names),
        *(f'{sensor}/{axis}' for sensor in model.config.wrench_sensors
          for axis in ('fx', 'fy', 'fz', 'tx', 'ty', 'tz'))))
    cells = st.sampled_from(('0', '1', 'nan', 'inf', '', 'x', '1e400', '-3.5'))
    width = header.count(',') + 1
    lines = draw(st.lists(st.lists(cells, min_size=width - 1, max_size=width + 1), max_size=3))
    return _named('.csv')('\n'.join((header, *map(','.join, lines)))), model


def _topics_of(bag):
    with bag as reader:
        return sorted(reader.topics)


_recordings = _paths | st.sampled_from(('.csv', '.db3', '.mcap')).flatmap(
    lambda suffix: (_bytes | _texts).map(_named(suffix)))
_offsets = ('robot: wrench_robot\nsensors:\n  left_toe: {frame: l_toe, scale: [1, 1, 1, 1, 1, 1], '
            'offset: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], '
            'standard_deviation: [0.0, 0.1, 0.2, 0.3, 0.4, 0.5], samples: 10, stamp: x}\n')

TABLES = {
    'files': {
        'path': _paths, 'text': _texts, 'limit': st.integers(0, 50), 'now': st.none() | v.anything,
        'prefix': _texts.map('any_input_old_{}'.format)},
    'files.remove_old_directories': {'parent': _paths, 'name': re.compile('any_input_old')},
    'files.make_temporary_directory': {'prefix': _texts.map(lambda text: f'{_HERE}/{text}')},
    'model.resources': {
        'directory': _paths,
        'package': _texts,
        'uri': _texts | _texts.map('package://{}'.format) | _texts.map('file://{}'.format)},
    # -- YAML and XML
    'plain_xml': {'calls': 40, 'text': _texts | _urdfs, 'robot': _urdf_trees,
                  'element': _elements},
    'plain_xml.check_no_document_type': {'text': _bytes},
    'plain_yaml': {'calls': 300, 'text': _texts | _yaml_of_robots | st.text(
        'ab:-?[]{}&*!|>\'"%@, \n\t#0', max_size=60)},
    'model.strict_yaml': {
        'path': _paths, 'text': _texts | _yaml_of_robots, 'value': _nested,
        'kind': st.sampled_from((config.FootConfig, config.RobotConfig, float, int, str,
                                 tuple[float, float], dict[str, float]))},
    'model.strict_yaml.convert': {'calls': 40},
    # -- robots
    'model.config': {
        'calls': 50, 'name_or_path': _paths | _yaml_of_robots.map(written),
        'values': _mappings | _nested.map(lambda value: {'name': value})},
    'model.config.robot_names': {'calls': 1},
    'model.config.robot_file': {'calls': 15, 'name_or_path': _texts | st.just('talos')},
    'model.corrections': {'calls': 40, 'corrections': st.builds(
        corrections.InstrumentCorrections, joint_offsets=_of_joints, torque_gains=_of_joints,
        torque_offsets=_of_joints, wrench_sensors=st.dictionaries(v.names, st.builds(
            corrections.SensorCorrection, st.just(()) | v.plain(6, v.plain(6, v.anything)),
            v.plain(6, v.anything)), max_size=1),
        tilts=st.dictionaries(v.names, v.plain(3, v.anything), max_size=1))},
    'model.low_state_config': {'config': st.none() | st.builds(
        low_state_config.LowStateConfig, v.names | st.sampled_from(('unitree_hg', 'unitree_go')),
        st.lists(v.names, max_size=3).map(tuple))},
    'model.description_check': {'description': r.light_robots.map(_description)},
    # -- URDF
    'model.urdf': {
        'calls': 40, 'uri': _texts, 'urdf': _urdfs, 'robot': _urdf_trees,
        'element': _urdf_trees.map(lambda tree: next(iter(tree.iter('inertial')), tree)),
        'parent': st.builds(
            _visual, st.sampled_from(('box', 'cylinder', 'sphere', 'capsule', 'mesh', 'x')),
            st.dictionaries(st.sampled_from(('size', 'radius', 'length', 'filename', 'scale')),
                            _WRONG | _texts)),
        'read_mesh': st.just(lambda path, scale: urdf.box(scale))},
    'model.urdf.load_urdf': {'calls': 15},
    'model.urdf.numbers': {
        'element': st.none() | _elements, 'key': st.sampled_from(('xyz', 'value')),
        'count': st.integers(1, 3), 'default': st.sampled_from(('', '0', '0 0 0'))},
    'identification.output.urdf_inertials.with_inertials': {
        'calls': 30, 'urdf': lambda model: changed(model.urdf),
        'inertials': lambda model: st.dictionaries(
            st.sampled_from((*model.link_names, 'none')), st.builds(
                urdf_inertials.NewInertial, v.anything, v.vectors(3, v.anything)), max_size=2)},
    'identification.output.urdf_inertials.tag_at': {
        'text': st.sampled_from((b'<a b=">">x', b"<link name='x'/>")), 'start': 0},
    'identification.output.urdf_inertials.edited': {
        'text': b'abc', 'edits': st.sampled_from(([], [(1, 2, 'x')], [(0, 1, ''), (3, 3, 'y')]))},
    'model.inertias': {
        'robot': _urdf_trees,
        'inertial': _urdf_trees.map(lambda tree: next(iter(tree.iter('inertial')), tree))},
    'model.inertias.consistent_inertia': {
        'calls': 50, 'inertia': v.vectors((3, 3), st.floats(-10.0, 10.0)).map(
            lambda half: half + half.T)},
    # -- recordings and offsets
    'bags.opened_bag': {'path': _recordings, 'use': _topics_of},
    'unitree.stream.read_low_states': {'path': _recordings},
    'identification.captures.recordings': {
        'path': _recordings, 'namespace': v.names, 'finder': _with_imu.map(
            recordings.CaptureFinder)},
    'identification.captures.averages': {
        'calls': 20, 'arguments': _averages()},
    'identification.captures.averages.is_averages': {
        'arguments': _averages().map(lambda drawn: drawn[:1])},
    'identification.captures.recordings.read_recording': {'calls': 50},
    'identification.captures.recordings.read_csv': {
        'calls': 40, 'arguments': _rows(), 'nan_means': 'not measured'},
    'wrench.tare': {
        'path': _paths | changed(_offsets).map(written),
        'config': st.builds(lambda: r.known_robot('wrench_robot').config),
        'offsets': st.dictionaries(v.names, st.builds(
            tare.SensorOffset, frame=v.names, scale=st.sampled_from(((-1.0,) * 6, (1.0,) * 6)),
            offset=v.plain(6, v.anything), standard_deviation=v.plain(6, v.anything),
            samples=st.integers(), stamp=v.names), max_size=2)},
    'wrench.tare.load_offsets': {'calls': 40},
}
