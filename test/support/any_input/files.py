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
"""Files, texts, and what is made of them: robots' YAML and URDF, recordings, offsets."""

from __future__ import annotations

import os
from pathlib import Path
import tempfile

from biped_com_ros.core import bags, files, plain_xml, plain_yaml
from biped_com_ros.core.identification.captures import recordings
from biped_com_ros.core.identification.output import urdf_inertials
from biped_com_ros.core.model import (
    config, corrections, description_check, low_state_config, resources, strict_yaml, urdf)
from biped_com_ros.core.unitree import recording
from biped_com_ros.core.wrench import tare
from hypothesis import strategies as st
import numpy as np
from support.any_input import robots as r, values as v
from support.any_input.contract import Cases
from support.small_robot import MAPPING

CASES = Cases()
add, add_drawn = CASES.add, CASES.add_drawn

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
_yaml_of_robots = changed((Path(__file__).parents[2] / 'data/wrench_robot.yaml').read_text())
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

# -- files
_what = st.just('a file')
add(files.read_text, _paths, _what, st.integers(0, 50))
add(files.read_bytes, _paths, _what, st.integers(0, 50))
add(files.make_directory, _paths)
add(files.remove_old_temporaries, _texts.map('any_input_old_{}'.format), st.none() | v.anything)
add(files.make_temporary_directory, _texts.map(lambda text: f'{_HERE}/{text}'))
add(files.write_atomically, _paths, _texts)
add(files.remove_abandoned, _paths)
add(resources.package_share)
add(resources.find_package, _texts)
add(resources.resolve_uri, _texts | _texts.map('package://{}'.format)
    | _texts.map('file://{}'.format))

# -- YAML and XML
add(plain_xml.parse_xml, _texts | _urdfs, _what, calls=40)
add(plain_xml.check_no_document_type, _bytes, _what)
add(plain_yaml.load_yaml, _texts | _yaml_of_robots, _what, calls=40)
add(plain_yaml.check_bounds, _texts | _yaml_of_robots, _what)
add(strict_yaml.read_yaml, _paths, _what)
add(strict_yaml.parse_yaml, _texts | _yaml_of_robots, _what)
add(strict_yaml.convert, st.sampled_from((config.FootConfig, config.RobotConfig, float, int, str,
                                          tuple[float, float], dict[str, float])), _nested,
    _what, calls=40)

# -- robots
add(config.robot_names)
add(config.robot_file, _texts | st.just('talos'))
add(config.load_robot_config, _paths | _yaml_of_robots.map(written), calls=50)
add(config.robot_config_from_mapping, _mappings | _nested.map(lambda value: {'name': value}),
    _what, calls=30)
_of_joints = st.dictionaries(v.names, v.anything, max_size=2)
add(corrections.check_corrections, st.builds(
    corrections.InstrumentCorrections, joint_offsets=_of_joints, torque_gains=_of_joints,
    torque_offsets=_of_joints, wrench_sensors=st.dictionaries(v.names, st.builds(
        corrections.SensorCorrection, st.just(()) | v.plain(6, v.plain(6, v.anything)),
        v.plain(6, v.anything)), max_size=1),
    tilts=st.dictionaries(v.names, v.plain(3, v.anything), max_size=1)), calls=40)
add(low_state_config.check_low_state, v.names, st.none() | st.builds(
    low_state_config.LowStateConfig, v.names | st.sampled_from(('unitree_hg', 'unitree_go')),
    st.lists(v.names, max_size=3).map(tuple)))


def _description(model):
    stand = {name: model.subtree(sensor.link or sensor.frame)
             for name, sensor in model.config.wrench_sensors.items()}
    return description_check.RobotDescription(
        model, 'stand', model.state(np.zeros(len(model.joint_names))), stand)


add(description_check.check_sensors, r.light_robots.map(_description))
add(description_check.find_warnings, r.light_robots.map(_description))

# -- URDF
add_drawn(urdf.load_urdf, st.tuples(r.known.map(lambda model: model.config), _texts))
add(urdf.parse_urdf, _urdfs, calls=40)
add(urdf.for_kinematics, _urdf_trees)
add(urdf.numbers, st.none() | _elements, st.sampled_from(('xyz', 'value')), _what,
    st.integers(1, 3), st.sampled_from(('', '0', '0 0 0')), calls=40)
add(urdf.rpy_and_xyz_of, _urdf_trees.map(lambda tree: next(iter(tree.iter('inertial')), tree)),
    _what, calls=40)


def _visual(shape, values):
    visual = plain_xml.ElementTree.Element('visual')
    geometry = plain_xml.ElementTree.SubElement(visual, 'geometry')
    plain_xml.ElementTree.SubElement(geometry, shape, values)
    return visual


add(urdf.shape_in_link, st.builds(
    _visual, st.sampled_from(('box', 'cylinder', 'sphere', 'capsule', 'mesh', 'x')),
    st.dictionaries(st.sampled_from(('size', 'radius', 'length', 'filename', 'scale')),
                    _WRONG | _texts)), v.names, st.just(
        lambda path, scale: urdf.box(scale)), calls=40)
add(urdf.continuous_joints, _urdf_trees)
add(urdf.mimic_joints, _urdf_trees)
add(urdf.children_of_links, r.light_robots.map(
    lambda model: plain_xml.ElementTree.fromstring(model.urdf)))
add(urdf.link_inertials, _urdf_trees, calls=40)
add_drawn(urdf_inertials.with_inertials, r.light_robots.flatmap(lambda model: st.tuples(
    changed(model.urdf), st.dictionaries(
        st.sampled_from((*model.link_names, 'none')),
        st.builds(urdf_inertials.NewInertial, v.anything, v.vectors(3, v.anything)), max_size=2))),
    calls=30)
add(urdf_inertials.tag_at, st.sampled_from((b'<a b=">">x', b"<link name='x'/>")), st.just(0))

# -- recordings and offsets
_recordings = _paths | st.sampled_from(('.csv', '.db3', '.mcap')).flatmap(
    lambda suffix: (_bytes | _texts).map(_named(suffix)))


def _header(model):
    return ','.join(('time', *(f'position/{name}' for name in model.joint_names), *(
        f'{sensor}/{axis}' for sensor in model.config.wrench_sensors
        for axis in recordings.AXES), *(f'imu/{key}' for key in ('qx', 'qy', 'qz', 'qw'))))


@st.composite
def _tables(draw):
    model = draw(r.light_robots)
    header = _header(model)
    width = header.count(',') + 1
    cells = st.sampled_from(('0', '1', 'nan', 'inf', '', 'x', '1e400', '-3.5'))
    lines = draw(st.lists(st.lists(cells, min_size=width - 1, max_size=width + 1), max_size=3))
    text = '\n'.join((header, *map(','.join, lines)))
    return _named('.csv')(text), model


def _opened(path):
    with bags.opened_bag(path) as reader:
        return sorted(reader.topics)


def _named_as(function, name):
    function.__module__, function.__qualname__ = name.__module__, name.__qualname__
    return function


add(_named_as(_opened, bags.opened_bag), _recordings)
add(recording.read_low_states, _recordings, v.names)
add(recording.is_topic, v.names, v.names)
add(recordings.read_recording, _recordings, r.light_robots, v.names, calls=50)
add_drawn(recordings.read_csv, _tables(), calls=40, nan_means='not measured')
add(recordings.read_bag, _recordings, r.light_robots)
add(tare.save_offsets, _paths, v.names, st.dictionaries(v.names, st.builds(
    tare.SensorOffset, frame=v.names, sign=st.sampled_from((-1.0, 1.0)),
    offset=v.plain(6, v.anything), standard_deviation=v.plain(6, v.anything),
    samples=st.integers(), stamp=v.names), max_size=2))
_offsets = ('robot: wrench_robot\nsensors:\n  left_toe: {frame: l_toe, sign: 1.0, offset: [0.0, '
            '1.0, 2.0, 3.0, 4.0, 5.0], standard_deviation: [0.0, 0.1, 0.2, 0.3, 0.4, 0.5], '
            'samples: 10, stamp: x}\n')
add(tare.load_offsets, _paths | changed(_offsets).map(written),
    st.builds(lambda: r._known('wrench_robot').config), calls=40)
