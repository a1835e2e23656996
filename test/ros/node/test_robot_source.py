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

from pathlib import Path
import re
from types import SimpleNamespace

from biped_com_ros.core.errors import BipedComError, UnknownNameError
from biped_com_ros.ros.node.diagnostics import Diagnostics, ERROR, OK, WARN
from biped_com_ros.ros.node.robot_source import CALIBRATED_TOPIC, RobotSource, shared_models
from biped_com_ros.ros.topics.qos import LATCHED
import pytest
from std_msgs.msg import String
from support.ros_rig import NodeRig

DATA = Path(__file__).resolve().parents[2] / 'data'
YAML, URDF_FILE = str(DATA / 'sim_robot.yaml'), DATA / 'sim_robot.urdf'
URDF, MASS = URDF_FILE.read_text(), 16.34


@pytest.fixture
def rig(closing):
    rig = closing(NodeRig())
    rig.log = []
    rig.node.get_logger().error = rig.log.append
    rig.node.get_logger().warning = rig.log.append
    return rig


@pytest.fixture
def latched(rig):
    """Return a function that publishes a latched text, and lets it arrive if somebody listens."""
    def publish(text, topic='robot_description'):
        if topic not in publishers:
            publishers[topic] = rig.peer.create_publisher(String, topic, LATCHED)
        publishers[topic].publish(String(data=text))
        rig.spin(0.01)
    publishers = {}
    return publish


@pytest.fixture
def start(rig):
    """Return a function that starts a source; `ready` and `calls` are what it calls back."""
    def start(robot=YAML, urdf='', diagnostics=None, name='', takes_inertials=True):
        return RobotSource(
            rig.node, SimpleNamespace(robot=robot, urdf=urdf), start.ready.append, diagnostics,
            (lambda: start.calls.append((name, start.ready[0].mass))) if takes_inertials else None)
    start.ready, start.calls = [], []
    return start


def heavier(factor=1.5):
    """Return the URDF with other masses."""
    return re.sub(r'(<mass value=")([^"]+)', lambda found: (
        f'{found.group(1)}{factor * float(found.group(2))}'), URDF)


def test_file_is_loaded_at_once(rig, start):
    diagnostics = Diagnostics(rig.node)
    source = start(urdf=str(URDF_FILE), diagnostics=diagnostics)
    assert start.ready == [source.model] and source.model.mass == pytest.approx(MASS)
    assert diagnostics.hardware_id == 'sim_robot'
    level, message, _ = source.report()
    assert level == OK and '16.340 kg' in message


def test_unknown_robot_and_file_are_named(start):
    with pytest.raises(UnknownNameError, match="'talso'.*did you mean 'talos'"):
        start('talso')
    with pytest.raises(BipedComError, match='/nowhere/robot.urdf'):
        start(urdf='/nowhere/robot.urdf')


def test_what_is_probably_wrong_is_logged_and_reported(rig, start, latched):
    latched(heavier(1000.0))
    source = start(urdf='topic')
    assert source.model is None and not start.ready and source.config.name == 'sim_robot'
    rig.until(lambda: start.ready, what='what was published before')
    assert start.ready == [source.model]
    assert "robot 'sim_robot': the robot weighs" in rig.log[-1]
    level, message, _ = source.report()
    assert level == WARN and 'check the units of masses' in message


def test_after_unusable_descriptions_a_usable_one_is_accepted_and_another_is_not(
        rig, start, latched):
    source = start(urdf='topic', takes_inertials=False)
    level, message, _ = source.report()
    assert level == ERROR and 'it has no publisher' in message and '/robot_description' in message
    rig.spin(15.1)
    assert len(rig.log) == 3
    assert "waiting for the URDF of 'sim_robot' on '/robot_description'" in rig.log[-1]
    rig.log.clear()
    latched('<robot name="broken">')
    rig.until(lambda: rig.log)
    assert 'robot_description cannot be used' in rig.log[-1]
    for _ in range(5):
        latched('<robot name="broken">')
    assert len(rig.log) == 1
    latched(URDF.replace('left_sole', 'left_sohle'))
    assert len(rig.log) == 2
    assert "'left_sole'" in rig.log[-1]
    assert "'left_sole'" in source.report()[1]
    assert not start.ready
    latched(URDF)
    assert len(start.ready) == 1
    latched(URDF + '\n')
    assert 'restart the node' in rig.log[-1] and len(start.ready) == 1


def test_calibrated_inertials_are_taken_over_by_all_that_share_a_model(rig, start, latched):
    with shared_models():
        for name in 'ab':
            start(name=name)
    model, = {*start.ready}
    latched(heavier(), CALIBRATED_TOPIC)
    rig.until(lambda: start.calls)
    assert sorted(start.calls) == [(name, pytest.approx(1.5 * MASS)) for name in 'ab']
    latched(heavier(), CALIBRATED_TOPIC)  # nothing new
    latched(URDF, CALIBRATED_TOPIC)
    assert len(start.calls) == 4 and model.mass == pytest.approx(MASS)
    for urdf, complaint in (
            (URDF.replace('xyz="0 0 -0.', 'xyz="0 0 -0.1'),
             'is at another place; restart with that URDF'),
            (heavier(1000.0), 'are not credible: 16340.000 kg instead of 16.340 kg')):
        rig.log.clear()
        latched(urdf, CALIBRATED_TOPIC)
        assert len(rig.log) == 2 and complaint in rig.log[-1] and len(start.calls) == 4


def test_a_description_that_comes_again_does_not_replace_a_calibrated_one(rig, start, latched):
    latched(URDF)
    start(urdf='topic')
    rig.until(lambda: start.ready)
    latched(heavier(), CALIBRATED_TOPIC)
    rig.until(lambda: start.calls)
    rig.log.clear()
    latched(URDF)  # robot_state_publisher was started anew
    assert 'keeping the inertials' in rig.log[-1]
    assert start.ready[0].mass == pytest.approx(1.5 * MASS) and len(start.calls) == 1


def test_calibrated_inertials_that_come_before_the_robot(rig, start, latched):
    latched(heavier(), CALIBRATED_TOPIC)
    source = start(urdf='topic')
    rig.until(lambda: source.waiting_inertials)
    latched(URDF)
    rig.until(lambda: start.calls)
    latched(heavier(1.8))
    assert start.calls == [('', pytest.approx(factor * MASS)) for factor in (1.5, 1.8)]


def test_nodes_that_share_get_one_model_of_equal_robots(rig, start, latched):
    with shared_models():
        start()
        start()
        start(robot='biped')
        start(urdf='topic')
    start()
    shared, again, other, alone = start.ready
    assert shared is again
    assert other is not shared and other.config.name == 'biped'
    assert alone is not shared and alone.config == shared.config
    latched(shared.urdf)
    rig.until(lambda: len(start.ready) == 5)
    assert start.ready[4] is shared, 'also a description that comes later'
