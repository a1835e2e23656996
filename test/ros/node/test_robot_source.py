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
"""Where a node's robot comes from: a file, or the latched topic."""

from __future__ import annotations

from pathlib import Path
import re
from types import SimpleNamespace

from biped_com_ros.core.errors import BipedComError, UnknownNameError
from biped_com_ros.ros.node import robot_source as robot
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, WARN
from biped_com_ros.ros.node.robot_source import CALIBRATED_TOPIC, RobotSource, shared_models
from biped_com_ros.ros.topics.qos import LATCHED
import pytest
from std_msgs.msg import String
from support.ros_rig import NodeRig

DATA = Path(__file__).resolve().parents[2] / 'data'
YAML, URDF = str(DATA / 'sim_robot.yaml'), DATA / 'sim_robot.urdf'


@pytest.fixture
def rig():
    rig = NodeRig()
    rig.log = []
    rig.node.get_logger().error = rig.log.append
    rig.node.get_logger().warning = rig.log.append
    yield rig
    rig.close()


def params(robot=YAML, urdf=''):
    return SimpleNamespace(robot=robot, urdf=urdf)


def latched(rig, text):
    """Publish a latched robot description."""
    publisher = rig.peer.create_publisher(String, 'robot_description', LATCHED)
    publisher.publish(String(data=text))
    return publisher


def test_file_is_loaded_at_once(rig):
    ready = []
    diagnostics = Diagnostics(rig.node)
    source = RobotSource(rig.node, params(urdf=str(URDF)), ready.append, diagnostics)
    assert ready == [source.model] and source.model.mass == pytest.approx(16.34)
    assert diagnostics.hardware_id == 'sim_robot'
    level, message, _ = source.report()
    assert level == OK and '16.340 kg' in message


def test_unknown_robot_and_file_are_named(rig):
    with pytest.raises(UnknownNameError, match="'talso'.*did you mean 'talos'"):
        RobotSource(rig.node, params('talso'), None)
    with pytest.raises(BipedComError, match='/nowhere/robot.urdf'):
        RobotSource(rig.node, params(urdf='/nowhere/robot.urdf'), None)


def test_what_is_probably_wrong_is_logged_and_reported(rig):
    grams = URDF.read_text().replace('<mass value="', '<mass value="1000')
    latched(rig, grams)
    ready = []
    source = RobotSource(rig.node, params(urdf='topic'), ready.append)
    rig.until(lambda: ready)
    assert "robot 'sim_robot': the robot weighs" in rig.log[-1]
    level, message, _ = source.report()
    assert level == WARN and 'check the units of masses' in message


def test_topic_that_was_published_before(rig):
    latched(rig, URDF.read_text())
    ready = []
    source = RobotSource(rig.node, params(urdf='topic'), ready.append)
    assert source.model is None and not ready and source.config.name == 'sim_robot'
    rig.until(lambda: ready)
    assert ready == [source.model]


def test_after_unusable_descriptions_a_usable_one_is_accepted(rig):
    ready = []
    source = RobotSource(rig.node, params(urdf='topic'), ready.append)
    level, message, _ = source.report()
    assert level == ERROR and 'it has no publisher' in message and '/robot_description' in message
    publisher = latched(rig, '<robot name="broken">')
    rig.until(lambda: rig.log)
    assert 'robot_description cannot be used' in rig.log[-1]
    for _ in range(5):  # logged once
        publisher.publish(String(data='<robot name="broken">'))
        rig.spin(0.1)
    publisher.publish(String(data=URDF.read_text().replace('left_sole', 'left_sohle')))
    rig.until(lambda: len(rig.log) == 2)
    assert "'left_sole'" in rig.log[-1]
    assert "'left_sole'" in source.report()[1]
    assert not ready
    publisher.publish(String(data=URDF.read_text()))
    rig.until(lambda: ready)


def test_a_missing_description_is_logged_again_and_again(rig, monkeypatch):
    monkeypatch.setattr(robot, 'REMINDER_PERIOD', 0.1)
    RobotSource(rig.node, params(urdf='topic'), None)
    rig.until(lambda: len(rig.log) >= 3)
    assert "waiting for the URDF of 'sim_robot' on '/robot_description'" in rig.log[-1]


def test_a_changed_description_is_not_used(rig):
    ready = []
    publisher = latched(rig, URDF.read_text())
    RobotSource(rig.node, params(urdf='topic'), ready.append)
    rig.until(lambda: ready)
    publisher.publish(String(data=URDF.read_text() + '\n'))
    rig.until(lambda: rig.log)
    assert 'restart the node' in rig.log[-1] and len(ready) == 1


def heavier(urdf, factor=1.5):
    """Return a URDF with other masses."""
    return re.sub(r'(<mass value=")([^"]+)', lambda found: (
        f'{found.group(1)}{factor * float(found.group(2))}'), urdf)


def test_calibrated_inertials_are_taken_over_by_all_that_share_a_model(rig):
    calls, ready = [], []
    with shared_models():
        for name in 'ab':
            RobotSource(rig.node, params(), ready.append, None, lambda name=name: calls.append(
                (name, ready[0].mass)))
    model = ready[0]
    publisher = rig.peer.create_publisher(String, CALIBRATED_TOPIC, LATCHED)
    publisher.publish(String(data=heavier(URDF.read_text())))
    rig.until(lambda: len(calls) == 2)
    assert sorted(name for name, _ in calls) == ['a', 'b']
    assert [mass for _, mass in calls] == pytest.approx([1.5 * 16.34] * 2)
    assert ready[1] is model
    publisher.publish(String(data=heavier(URDF.read_text())))  # nothing new
    publisher.publish(String(data=URDF.read_text()))
    rig.until(lambda: len(calls) == 4)
    assert model.mass == pytest.approx(16.34)
    publisher.publish(String(data=URDF.read_text().replace('xyz="0 0 -0.', 'xyz="0 0 -0.1')))
    rig.until(lambda: len(rig.log) >= 2)
    assert 'is at another place; restart with that URDF' in rig.log[-1] and len(calls) == 4
    publisher.publish(String(data=heavier(URDF.read_text(), 1000.0)))
    rig.until(lambda: len(rig.log) >= 4)
    assert 'are not credible: 16340.000 kg instead of 16.340 kg' in rig.log[-1]
    assert len(calls) == 4


def test_a_description_that_comes_again_does_not_replace_a_calibrated_one(rig):
    calls, ready = [], []
    description = latched(rig, URDF.read_text())
    RobotSource(rig.node, params(urdf='topic'), ready.append, None, lambda: calls.append(1))
    rig.until(lambda: ready)
    calibrated = rig.peer.create_publisher(String, CALIBRATED_TOPIC, LATCHED)
    calibrated.publish(String(data=heavier(URDF.read_text())))
    rig.until(lambda: calls)
    rig.log.clear()
    description.publish(String(data=URDF.read_text()))  # robot_state_publisher was started anew
    rig.until(lambda: rig.log)
    assert 'keeping the inertials' in rig.log[-1]
    assert ready[0].mass == pytest.approx(1.5 * 16.34) and len(calls) == 1


def test_calibrated_inertials_that_come_before_the_robot(rig):
    calibrated = rig.peer.create_publisher(String, CALIBRATED_TOPIC, LATCHED)
    calibrated.publish(String(data=heavier(URDF.read_text())))
    calls, ready = [], []
    source = RobotSource(rig.node, params(urdf='topic'), ready.append, None,
                         lambda: calls.append(ready[0].mass))
    rig.until(lambda: source.waiting_inertials)
    publisher = latched(rig, URDF.read_text())
    rig.until(lambda: calls)
    assert calls == [pytest.approx(1.5 * 16.34)]
    publisher.publish(String(data=heavier(URDF.read_text(), 1.8)))
    rig.until(lambda: len(calls) == 2)
    assert calls[1] == pytest.approx(1.8 * 16.34)


def test_nodes_that_share_get_one_model_of_equal_robots(rig):
    alone, shared, other = [], [], []
    with shared_models():
        for _ in range(2):
            RobotSource(rig.node, params(), shared.append)
        RobotSource(rig.node, params(robot='biped'), other.append)
        RobotSource(rig.node, params(urdf='topic'), shared.append)
    RobotSource(rig.node, params(), alone.append)
    assert shared[0] is shared[1]
    assert other[0] is not shared[0] and other[0].config.name == 'biped'
    assert alone[0] is not shared[0] and alone[0].config == shared[0].config
    publisher = latched(rig, shared[0].urdf)
    rig.until(lambda: len(shared) == 3)
    assert shared[2] is shared[0], 'also a description that comes later'
    publisher.destroy()
