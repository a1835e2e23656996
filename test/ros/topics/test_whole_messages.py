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
"""Whole messages of bounded size, over DDS: what is too long, or no message, is not used."""

from biped_com_ros.ros.fast.codec import LONGEST_MESSAGE
from biped_com_ros.ros.node.callback_errors import callback_errors
from biped_com_ros.ros.topics.qos import COMMAND_INPUT
from biped_com_ros.ros.topics.whole_messages import subscribe
import pytest
from rclpy.serialization import serialize_message
from std_msgs.msg import String


@pytest.fixture
def texts(rig):
    """Yield a function that sends bytes or a text, then 'good', and returns what was received."""
    received = []

    def on_text(message):
        received.append(message.data)
        if message.data == 'bad':
            raise ValueError('this text is bad')
    subscribe(rig.node, String, 'text', on_text, COMMAND_INPUT)
    publisher = rig.publisher(String, 'text', COMMAND_INPUT)

    def send(what):
        received.clear()
        publisher.publish(what if isinstance(what, bytes) else String(data=what))
        publisher.publish(String(data='good'))
        rig.until(lambda: 'good' in received, what='the good text')
        return received
    return send


def test_the_longest_message_is_used_and_a_longer_one_is_not(texts, capfd):
    overhead = len(serialize_message(String(data='')))
    longest = 'x' * (LONGEST_MESSAGE - overhead)
    assert texts(longest) == [longest, 'good']
    assert capfd.readouterr().err == ''
    assert texts(longest + 'x') == ['good']
    assert f'it has {LONGEST_MESSAGE + 1} bytes; limit {LONGEST_MESSAGE}' in capfd.readouterr().err


def test_a_flood_is_logged_once(texts, capfd):
    for _ in range(3):
        assert texts('x' * 1_000_000) == ['good']
    assert capfd.readouterr().err.count('cannot be read') == 1


def test_what_is_no_message_is_not_used(texts, capfd):
    raw = bytes(serialize_message(String(data='a text of some length')))
    assert texts(raw[:12]) == ['good']
    assert "'/text': cannot be read: its 12 bytes are no String" in capfd.readouterr().err


def test_the_node_goes_on_after_an_exception(texts, rig, capfd):
    assert texts('bad') == ['bad', 'good']
    assert callback_errors(rig.node).last == 'ValueError: this text is bad'
    assert 'this text is bad' in capfd.readouterr().err


def test_another_limit_can_be_given(rig):
    received = []
    subscribe(rig.node, String, 'short', lambda message: received.append(message.data),
              COMMAND_INPUT, longest=100)
    publisher = rig.publisher(String, 'short', COMMAND_INPUT)
    for length in (200, 50):
        publisher.publish(String(data='x' * length))
    rig.until(lambda: received, what='the text')
    assert received == ['x' * 50]
