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
"""LowState decoded from bytes that rosbags made, offsets counted by hand, and the checksum."""

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.model.low_state_config import MESSAGES
from biped_com_ros.core.unitree.low_state import FIELDS, LowStateDecoder
import numpy as np
import pytest
from support.low_states import LowStates

# Counted by hand from the message definitions: each number is aligned to its own size.
COUNTED = {
    'unitree_hg': {
        'version': 0, 'mode_pr': 8, 'mode_machine': 9, 'tick': 12, 'imu_state.quaternion': 16,
        'imu_state.gyroscope': 32, 'imu_state.accelerometer': 44, 'imu_state.rpy': 56,
        'imu_state.temperature': 68, 'motor_state.0.mode': 70, 'motor_state.0.q': 72,
        'motor_state.0.dq': 76, 'motor_state.0.ddq': 80, 'motor_state.0.tau_est': 84,
        'motor_state.0.temperature': 88, 'motor_state.0.vol': 92, 'motor_state.0.sensor': 96,
        'motor_state.0.motorstate': 104, 'motor_state.0.reserve': 108, 'motor_state.1.mode': 124,
        'motor_state.1.q': 128, 'motor_state.34.q': 72 + 34 * 56, 'wireless_remote': 2028,
        'reserve': 2068, 'crc': 2084},
    'unitree_go': {
        'head': 0, 'level_flag': 2, 'frame_reserve': 3, 'sn': 4, 'version': 12, 'bandwidth': 20,
        'imu_state.quaternion': 24, 'imu_state.gyroscope': 40, 'imu_state.accelerometer': 52,
        'imu_state.rpy': 64, 'imu_state.temperature': 76, 'motor_state.0.mode': 77,
        'motor_state.0.q': 80, 'motor_state.0.dq': 84, 'motor_state.0.ddq': 88,
        'motor_state.0.tau_est': 92, 'motor_state.0.q_raw': 96, 'motor_state.0.dq_raw': 100,
        'motor_state.0.ddq_raw': 104, 'motor_state.0.temperature': 108,
        'motor_state.0.lost': 112, 'motor_state.0.reserve': 116, 'motor_state.1.mode': 124,
        'motor_state.19.q': 80 + 19 * 48, 'bms_state.version_high': 1036,
        'bms_state.current': 1040, 'bms_state.cell_vol': 1050, 'foot_force': 1080,
        'foot_force_est': 1088, 'tick': 1096, 'wireless_remote': 1100, 'bit_flag': 1140,
        'adc_reel': 1144, 'temperature_ntc1': 1148, 'power_v': 1152, 'power_a': 1156,
        'fan_frequency': 1160, 'reserve': 1168, 'crc': 1172}}
# Bytes of the CDR, and of the struct as the vendor's Python gives it (unitree_sdk2py, crc.py).
SIZES = {'unitree_hg': (2088, 2092), 'unitree_go': (1176, 1180)}


def random_message(package, seed=0):
    states = LowStates(package)
    message = states.message(np.random.default_rng(seed))
    if hasattr(message, 'mode_pr'):
        message.mode_pr = 0
    return message, states.serialize(message)


@pytest.mark.parametrize('package', COUNTED)
def test_offsets_are_those_counted_by_hand(package):
    assert set(FIELDS) == set(MESSAGES) == set(COUNTED)
    layout = LowStateDecoder(package).layout
    assert {path: layout.numbers[path].cdr for path in COUNTED[package]} == COUNTED[package]
    assert (layout.size, layout.native_size) == SIZES[package]


@pytest.mark.parametrize('package', COUNTED)
@pytest.mark.parametrize('seed', range(3))
def test_decoding_gives_what_rosbags_wrote(package, seed):
    message, raw = random_message(package, seed)
    found = LowStateDecoder(package).decode(raw)
    assert LowStateDecoder(package).checksum(raw) == message.crc, "by the vendor's algorithm"
    assert (found.tick, found.crc) == (message.tick, message.crc)
    w, x, y, z = message.imu_state.quaternion
    np.testing.assert_array_equal(found.quaternion, (x, y, z, w))
    np.testing.assert_array_equal(found.angular_velocity, message.imu_state.gyroscope)
    np.testing.assert_array_equal(found.acceleration, message.imu_state.accelerometer)
    motors = message.motor_state
    for values, name in ((found.positions, 'q'), (found.velocities, 'dq'),
                         (found.efforts, 'tau_est')):
        np.testing.assert_array_equal(values, [np.float32(getattr(m, name)) for m in motors])
    errors = 'lost' if package == 'unitree_go' else 'motorstate'
    np.testing.assert_array_equal(found.errors, [getattr(m, errors) for m in motors])
    np.testing.assert_array_equal(
        found.temperatures, [np.max(m.temperature) for m in motors])


def test_the_mode_of_parallel_joints_is_read():
    states = LowStates('unitree_hg')
    for mode in (0, 1):
        message = states.message()
        message.mode_pr = mode
        decoded = LowStateDecoder('unitree_hg').decode(states.serialize(message))
        assert decoded.parallel_mode == bool(mode)


@pytest.mark.parametrize('package', COUNTED)
def test_the_checksum_depends_on_all_bytes_but_padding_and_itself(package):
    decoder = LowStateDecoder(package)
    _, raw = random_message(package)
    of_numbers = np.zeros(decoder.layout.size, bool)
    for number in decoder.layout.numbers.values():
        of_numbers[number.cdr:][:number.count * np.dtype(number.kind).itemsize] = True
    of_numbers[decoder.layout.numbers['crc'].cdr:] = False
    expected = decoder.checksum(raw)
    for i, matters in enumerate(of_numbers):
        changed = bytearray(raw)
        changed[4 + i] ^= 0x10
        assert (decoder.checksum(bytes(changed)) != expected) == matters, i


@pytest.mark.parametrize('package, other', [MESSAGES, MESSAGES[::-1]])
def test_other_messages_are_refused_with_their_size(package, other):
    _, raw = random_message(other)
    with pytest.raises(InputError, match=f'{len(raw)} bytes.*{SIZES[package][0] + 4}.*message'):
        LowStateDecoder(package).decode(raw)
    _, raw = random_message(package)
    with pytest.raises(InputError, match='00 00 00 00.*little-endian'):
        LowStateDecoder(package).decode(bytes(4) + raw[4:])
    with pytest.raises(InputError):
        LowStateDecoder(package).decode(b'')
