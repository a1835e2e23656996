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
Unitree's LowState as independent software writes it.

rosbags serializes it from the vendor's message definitions; the checksum is computed bit by bit
over a struct that is packed with its padding written out.
"""

import struct

import numpy as np
import pytest

HG = {
    'MotorState': 'uint8 mode|float32 q|float32 dq|float32 ddq|float32 tau_est|'
                  'int16[2] temperature|float32 vol|uint32[2] sensor|uint32 motorstate|'
                  'uint32[4] reserve',
    'IMUState': 'float32[4] quaternion|float32[3] gyroscope|float32[3] accelerometer|'
                'float32[3] rpy|int16 temperature',
    'LowState': 'uint32[2] version|uint8 mode_pr|uint8 mode_machine|uint32 tick|'
                'IMUState imu_state|MotorState[35] motor_state|uint8[40] wireless_remote|'
                'uint32[4] reserve|uint32 crc'}
GO = {
    'MotorState': 'uint8 mode|float32 q|float32 dq|float32 ddq|float32 tau_est|float32 q_raw|'
                  'float32 dq_raw|float32 ddq_raw|int8 temperature|uint32 lost|'
                  'uint32[2] reserve',
    'BmsState': 'uint8 version_high|uint8 version_low|uint8 status|uint8 soc|int32 current|'
                'uint16 cycle|int8[2] bq_ntc|int8[2] mcu_ntc|uint16[15] cell_vol',
    'IMUState': 'float32[4] quaternion|float32[3] gyroscope|float32[3] accelerometer|'
                'float32[3] rpy|int8 temperature',
    'LowState': 'uint8[2] head|uint8 level_flag|uint8 frame_reserve|uint32[2] sn|'
                'uint32[2] version|uint16 bandwidth|IMUState imu_state|'
                'MotorState[20] motor_state|BmsState bms_state|int16[4] foot_force|'
                'int16[4] foot_force_est|uint32 tick|uint8[40] wireless_remote|uint8 bit_flag|'
                'float32 adc_reel|int8 temperature_ntc1|int8 temperature_ntc2|float32 power_v|'
                'float32 power_a|uint16[4] fan_frequency|uint32 reserve|uint32 crc'}
DEFINITIONS = {package: {name: text.replace('|', '\n') for name, text in messages.items()}
               for package, messages in (('unitree_hg', HG), ('unitree_go', GO))}
# The structs of C++ with their padding (x), and without the checksum at the end.
STRUCTS = {
    'unitree_hg': '<2I 2B 2x I' + '13f h 2x' + 35 * 'B 3x 4f 2h f 7I' + '40B 4I',
    'unitree_go': '<4B 4I H 2x' + '13f b 3x' + 20 * 'B 3x 7f b 3x 3I' + '4B i H 4b 15H'
                  + '8h I 41B 3x f 2b 2x 2f 4H I'}
NUMBERS = {'uint8': 'u1', 'uint16': 'u2', 'uint32': 'u4', 'int8': 'i1', 'int16': 'i2',
           'int32': 'i4', 'float32': 'f4'}


class LowStates:
    """
    Makes messages of one package.

    Parameters
    ----------
    package
        unitree_hg or unitree_go.

    """

    def __init__(self, package):
        typesys = pytest.importorskip('rosbags.typesys')
        self.package, self.kind = package, f'{package}/msg/LowState'
        self.store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
        types = {}
        for name, text in DEFINITIONS[package].items():
            types |= typesys.get_types_from_msg(text, f'{package}/msg/{name}')
        self.store.register(types)

    def message(self, rng=None, kind='LowState'):
        """Return a message with random numbers, or with zeros."""
        values = []
        for line in DEFINITIONS[self.package][kind].split('\n'):
            number, name = line.split()
            number, _, count = number.partition('[')
            count = int(count.rstrip(']')) if count else 0
            values.append(self._value(rng, number, count))
        return self.store.types[f'{self.package}/msg/{kind}'](*values)

    def _value(self, rng, number, count):
        if number not in NUMBERS:
            many = [self.message(rng, number) for _ in range(max(count, 1))]
            return many if count else many[0]
        kind = np.dtype(NUMBERS[number])
        if rng is None:
            many = np.zeros(max(count, 1), kind)
        elif kind.kind == 'f':
            many = rng.normal(size=max(count, 1)).astype(kind)
        else:
            limits = np.iinfo(kind)
            many = rng.integers(limits.min, limits.max, max(count, 1), kind, endpoint=True)
        return many if count else many[0].item()

    def serialize(self, message, sign=True):
        """Return the bytes of a message, with its checksum unless `sign` is False."""
        if sign:
            message.crc = checksum(self.package, message)
        return bytes(self.store.serialize_cdr(message, self.kind))

    def write_bag(self, path, topic, messages, storage='MCAP'):
        """Write (ns, message) to a bag."""
        rosbag2 = pytest.importorskip('rosbags.rosbag2')
        with rosbag2.Writer(
                path, version=9, storage_plugin=rosbag2.StoragePlugin[storage]) as writer:
            connection = writer.add_connection(topic, self.kind, typestore=self.store)
            for ns, message in messages:
                writer.write(connection, ns, self.serialize(message))
        return path


def checksum(package, message):
    """Return the checksum that the vendor's examples compute, here by table: word by word."""
    words = np.frombuffer(struct.pack(STRUCTS[package], *flat(message)[:-1]), '<u4')
    crc = 0xffffffff
    for byte in words.astype('>u4').tobytes():
        crc = (crc << 8 & 0xffffffff) ^ REMAINDERS[crc >> 24 ^ byte]
    return crc


def remainder(byte):
    """Return the remainder of a byte, bit by bit from the highest."""
    crc = byte << 24
    for _ in range(8):
        crc = (crc << 1 & 0xffffffff) ^ 0x04c11db7 * (crc >> 31)
    return crc


REMAINDERS = [remainder(byte) for byte in range(256)]


def flat(value):
    """Return all numbers of a message in their order."""
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in flat(item)]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, '__dataclass_fields__'):
        return [number for name in value.__dataclass_fields__ if name != '__msgtype__'
                for number in flat(getattr(value, name))]
    return [value]
