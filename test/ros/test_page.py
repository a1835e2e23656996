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
"""The page's inputs and actions over real DDS, without a browser."""

import math
import subprocess
import sys
import time
from types import SimpleNamespace

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.viewer.actions import PageActions
from biped_com_ros.nodes.viewer.polled_node import latest
from biped_com_ros.ros.topics.services import switch_service, trigger_service
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import (
    Point32, PointStamped, PolygonStamped, PoseArray, TransformStamped, Vector3Stamped,
    WrenchStamped)
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from std_msgs.msg import Float64, String
from support.polled_page import joint_state, LATCHED, MODEL, Polling
from support.ros_rig import NodeRig
from tf2_msgs.msg import TFMessage


@pytest.fixture
def polling(closing):
    """Return page inputs and a robot."""
    return closing(Polling())


def test_only_the_last_message_is_taken_with_a_queue_of_one(polling):
    received = []
    polling.polled.subscribe(Float64, 'numbers', lambda m: received.append(m.data), latest())
    publisher = polling.publisher(Float64, 'numbers')
    for i in range(20):
        publisher.publish(Float64(data=float(i)))
    polling.polled.poll()
    assert received == [19.0]
    polling.polled.unsubscribe()
    publisher.publish(Float64())
    polling.polled.poll()
    assert received == [19.0]


def test_the_base_comes_from_tf_or_odometry_or_else_is_on_the_ground(polling):
    # Another order than the model's; the torso comes from another node.
    virtual = MODEL.config.torso.joints
    names = [name for name in MODEL.joint_names if name not in virtual][::-1]
    values = {name: 0.01 * i for i, name in enumerate(MODEL.joint_names)}
    polling.publish('joint_states', joint_state(
        names, [values[name] for name in names], range(len(names))),
        lambda: polling.view.positions is not None)
    expected = MODEL.positions({name: values[name] for name in names})
    np.testing.assert_allclose(polling.view.positions, expected)
    assert polling.view.efforts[MODEL.joint_names.index(names[3])] == 3.0
    state = MODEL.state(expected).in_world(polling.view.base)
    assert state.soles_in_world[:, 2].min() == pytest.approx(0.0, abs=1e-12)

    odometry = Odometry(child_frame_id=MODEL.config.base_link)
    odometry.pose.pose.position.x = 1.0
    polling.publish('odom', odometry, lambda: polling.view.base_from == 'odom')
    assert polling.view.base.position[0] == 1.0
    turned = TransformStamped(child_frame_id=MODEL.config.base_link)
    turned.header.frame_id = 'odom'
    turned.transform.translation.x, turned.transform.rotation.z = 2.0, 1.0
    turned.transform.rotation.w = 0.0
    other = TransformStamped(child_frame_id='com')
    other.header.frame_id = 'odom'
    polling.publish('/tf', TFMessage(transforms=[other, turned]),
                    lambda: polling.view.base_from == 'tf')
    assert polling.view.base.position[0] == 2.0
    np.testing.assert_allclose(polling.view.base.rotation, np.diag((-1.0, -1.0, 1.0)), atol=1e-12)


def test_estimates_are_compared_with_the_truth_of_their_instant_and_expire(polling):
    for i in range(5):
        truth = PointStamped()
        truth.point.x = float(i)
        polling.publish('simulator/truth/com', truth, lambda truth=truth: (
            polling.view.point('truth')[0] == truth.point.x), ns=(10 + i) * 10 ** 9)
    com = PointStamped()
    com.point.x = 2.25
    polling.publish('com_estimator/com', com, lambda: polling.view.point('com') is not None,
                    ns=12 * 10 ** 9)
    assert polling.view.error('com') == pytest.approx(0.25)
    polling.inputs.update(0.9)
    assert polling.view.point('com') is not None
    polling.inputs.update(1.1)
    assert polling.view.point('com') is None and math.isnan(polling.view.error('com'))
    polling.inputs.update(4.0)
    (x, _, _), age = polling.view.latest('com', 'point')
    assert (x, age) == (2.25, 4.0)
    polling.now = 4.1
    polling.publish('com_estimator/com', com, lambda: polling.view.point('com') is not None,
                    ns=13 * 10 ** 9)
    assert polling.view.latest('com', 'point')[1] == 0.0


def test_joints_keep_their_place_and_all_else_is_unknown_when_stale(polling):
    stand = MODEL.posture()
    polling.publish('joint_states', joint_state(MODEL.joint_names, stand, stand + 1.0),
                    lambda: polling.view.positions is not None)
    wrench = WrenchStamped()
    wrench.wrench.force.z = 17.0
    polling.publish('wrench_aggregator/left/wrench', wrench,
                    lambda: np.isfinite(polling.view.feet['left'].wrench).all())
    polling.inputs.update(3.0)
    view = polling.view
    np.testing.assert_allclose(view.positions, stand)
    assert view.efforts is None and np.isnan(view.feet['left'].wrench).all()
    assert view.latest('positions')[1] == 3.0 and view.latest('wrench', 'left')[1] == 3.0
    assert view.latest('wrench', 'left')[0][2] == 17.0
    np.testing.assert_allclose(view.latest('efforts')[0], stand + 1.0)


def test_feet_polygon_margin_and_links_are_shown(polling):
    wrench = WrenchStamped()
    wrench.wrench.force.z = 17.0
    polling.publish('wrench_aggregator/left/wrench', wrench,
                    lambda: np.isfinite(polling.view.feet['left'].wrench).all())
    assert polling.view.feet['left'].wrench[2] == 17.0
    assert np.isnan(polling.view.feet['right'].wrench).all()
    polygon = PolygonStamped()
    polygon.polygon.points = [Point32(x=float(i), y=float(i * i)) for i in range(4)]
    polling.publish('zmp_monitor/support_polygon', polygon, lambda: len(polling.view.polygon))
    np.testing.assert_allclose(polling.view.polygon[3], (3.0, 9.0, 0.0))
    polygon.polygon.points = [Point32(x=float(i), y=-float(i)) for i in range(5)]
    polling.publish('zmp_monitor/com_region', polygon, lambda: len(polling.view.com_region))
    np.testing.assert_allclose(polling.view.com_region[4], (4.0, -4.0, 0.0))
    assert len(polling.view.polygon) == 4
    polling.publish('zmp_monitor/margin', Float64(data=0.03),
                    lambda: polling.view.margin == 0.03)
    links = PoseArray()
    from geometry_msgs.msg import Pose as PoseMessage
    links.poses = [PoseMessage() for _ in MODEL.link_names]
    links.poses[2].position.y = 5.0
    polling.publish('com_estimator/link_coms', links,
                    lambda: polling.view.link_coms is not None)
    assert polling.view.link_coms.shape == (len(MODEL.link_names), 3)
    assert polling.view.link_coms[2, 1] == 5.0


def test_forces_on_hands_are_shown_beside_those_on_feet_of_the_same_name(closing):
    both = closing(Polling(RobotModel.load('talos')))
    wrench = WrenchStamped()
    wrench.wrench.force.y = -9.0
    both.publish('wrench_aggregator/left_hand/wrench', wrench,
                 lambda: np.isfinite(both.view.hands['left'].wrench).all())
    assert both.view.hands['left'].wrench.tolist() == [0.0, -9.0, 0.0, 0.0, 0.0, 0.0]
    assert np.isnan(both.view.feet['left'].wrench).all()
    assert np.isnan(both.view.hands['right'].wrench).all()
    both.inputs.update(3.0)
    assert np.isnan(both.view.hands['left'].wrench).all()
    assert both.view.latest('wrench', 'hand:left')[0][1] == -9.0


def test_health_torso_and_tendons_are_shown(polling):
    status = DiagnosticStatus(level=DiagnosticStatus.WARN, name='a: b', message='slow')
    polling.publish('/diagnostics', DiagnosticArray(status=[status]),
                    lambda: polling.view.health)
    assert polling.view.health[0].level == 1 and polling.view.health[0].message == 'slow'
    polling.publish('tendon_states', joint_state(
        ('tendon_1', 'tendon_0'), (0.2, 0.1), (7.0, 5.0)), lambda: len(polling.view.tensions))
    assert polling.view.tensions.tolist() == [5.0, 7.0]
    assert polling.view.tendon_lengths.tolist() == [0.1, 0.2]
    shape = Vector3Stamped()
    shape.vector.x = 0.2
    polling.publish('torso_controller/shape', shape, lambda: polling.view.torso[0] == 0.2)


def test_once_nodes_use_a_calibrated_urdf_the_page_shows_where_the_com_was_before(polling):
    heavier = MODEL.urdf.replace('<mass value="', '<mass value="1', 1)
    calibrated = RobotModel(MODEL.config, heavier)
    polling.publish('calibrated_description', String(data=heavier),
                    lambda: polling.inputs.calibrated is not None, qos=LATCHED)
    stand = MODEL.posture()
    polling.publish('joint_states', joint_state(MODEL.joint_names, stand, stand),
                    lambda: polling.view.positions is not None)
    base = Pose.from_rpy((0.1, 0.2, 0.3), np.array((1.0, 2.0, 3.0)))
    polling.view.base, polling.view.base_from = base, 'tf'
    com = PointStamped()
    published = calibrated.state(stand).in_world(base).com_in_world
    com.point.x, com.point.y, com.point.z = published
    polling.publish('com_estimator/com', com, lambda: 'uncalibrated' in polling.view.points)
    np.testing.assert_allclose(polling.view.points['com'], published, atol=1e-12)
    np.testing.assert_allclose(polling.view.points['uncalibrated'], MODEL.state(
        stand).in_world(base).com_in_world, atol=1e-9)
    assert np.linalg.norm(
        polling.view.points['uncalibrated'] - polling.view.points['com']) > 1e-3


class Acting:
    """Page actions, and the nodes they use."""

    def __init__(self):
        self.rig = NodeRig('viewer')
        self.notes = []
        self.actions = PageActions(self.rig.node, MODEL, lambda *note: self.notes.append(note))

    def until_ready(self, command):
        """Wait until a command can be executed."""
        self.rig.until(lambda: command not in self.actions.unavailable(), what=command)


@pytest.fixture
def acting():
    """Yield page actions with a rig."""
    one = Acting()
    yield one
    one.rig.close()


def test_commands_without_their_node_name_it(acting):
    missing = acting.actions.unavailable()
    assert missing['tare'] == 'wrench_aggregator is not running'
    assert missing['calibration/start'] == 'com_calibrator is not running'
    assert missing['step'] == 'gait_player is not running'
    acting.actions.execute('tare', None)
    assert acting.notes == [('sensors', 'wrench_aggregator is not running', False)]


def test_while_a_chapter_of_the_demo_runs_nothing_may_disturb_it(acting):
    for command in ('push', 'tare'):
        node = {'push': 'simulator/reset', 'tare': 'wrench_aggregator/tare'}[command]
        trigger_service(acting.rig.peer, node, lambda: None)
        acting.until_ready(command)
    story = acting.rig.peer.create_publisher(String, 'demo/story', LATCHED)
    story.publish(String(data='2/5 A chapter: sways'))
    acting.rig.until(lambda: 'push' in acting.actions.unavailable(), what='a chapter')
    missing = acting.actions.unavailable()
    assert missing['push'] == 'wait until chapter 2/5 of the demo is over'
    assert missing['step'] == 'gait_player is not running' and 'tare' not in missing
    story.publish(String(data='stands'))
    acting.until_ready('push')
    story.publish(String(data='2/5 A chapter: sways'))
    acting.rig.until(lambda: 'push' in acting.actions.unavailable(), what='a chapter')
    acting.rig.peer.destroy_publisher(story)  # killed in the middle of it
    acting.until_ready('push')


def test_the_story_and_the_table_of_the_demo_are_shown(polling):
    story = polling.publisher(String, 'demo/story', LATCHED)
    results = polling.publisher(String, 'demo/results', LATCHED)
    story.publish(String(data='2/5 A chapter: sways'))
    results.publish(String(data='title\n\tbefore\nmass\t3 kg'))
    polling.inputs.update(0.0)
    assert (polling.view.chapter, polling.view.results.count('\n')) == ('2/5', 2)
    polling.inputs.update(500.0)  # it is published when it changes
    assert polling.view.chapter == '2/5'
    polling.robot.destroy_publisher(story)
    end = time.monotonic() + 20.0
    while polling.view.story:
        assert time.monotonic() < end
        polling.inputs.update(501.0)


def test_responses_of_services_are_shown(acting):
    from biped_com_ros.core.errors import InputError

    def refuse():
        raise InputError('the left foot carries 17 N')
    trigger_service(acting.rig.peer, 'wrench_aggregator/tare', refuse)
    switched = []
    switch_service(acting.rig.peer, 'torso_controller/freeze', switched.append)
    for command in ('tare', 'freeze'):
        acting.until_ready(command)
    acting.actions.execute('tare', None)
    acting.rig.until(lambda: ('sensors', 'the left foot carries 17 N', False) in acting.notes,
                     what='a refusal')
    acting.actions.execute('freeze', True)
    acting.rig.until(lambda: switched == [True], what='a freeze')
    acting.rig.until(lambda: ('torso', 'done', True) in acting.notes, what='an answer')


def test_pushes_are_shares_of_the_weight_where_the_robot_is(acting):
    pushes = acting.rig.collect(WrenchStamped, 'simulator/push')
    acting.rig.collect(Vector3Stamped, 'torso_controller/target')
    on_the_moon = PageActions(
        acting.rig.node, MODEL, lambda *note: acting.notes.append(note), gravity=1.62)
    acting.rig.until(lambda: on_the_moon.is_discovered, what='subscribers')
    on_the_moon.execute('push', ('forward', 0.2), 0.0)
    acting.rig.until(lambda: pushes, what='a push')
    assert pushes[0].wrench.force.x == pytest.approx(0.2 * 1.62 * MODEL.mass)


def test_pushes_and_targets_go_where_the_robot_faces(acting):
    pushes = acting.rig.collect(WrenchStamped, 'simulator/push')
    targets = acting.rig.collect(Vector3Stamped, 'torso_controller/target')
    acting.rig.until(lambda: acting.actions.is_discovered, what='subscribers')
    yaw = math.radians(90.0)
    acting.actions.execute('push', ('left', 0.2), yaw)
    acting.rig.until(lambda: pushes, what='a push')
    force = pushes[0].wrench.force
    # Left of a robot that faces along y is -x.
    assert (force.x, force.y) == pytest.approx((-0.2 * MODEL.mass * 9.81, 0.0), abs=1e-9)
    heaviest = MODEL.link_names[int(np.argmax(MODEL.link_masses))]
    assert pushes[0].header.frame_id == heaviest
    acting.actions.execute('torso', (-3.0, 4.0))
    acting.rig.until(lambda: targets, what='a target')
    assert targets[0].vector.x == pytest.approx(math.radians(5.0))
    assert targets[0].vector.y == pytest.approx(math.atan2(4.0, -3.0))


def test_what_parameter_controls_does_not_permit_is_not_executed():
    """Buttons are disabled in the browser only; whoever connects can press them all the same."""
    rig, notes = NodeRig('viewer'), []
    try:
        actions = PageActions(rig.node, MODEL, lambda *note: notes.append(note), 'walk,torso')
        assert actions.unavailable()['push'] == 'turned off by parameter controls'
        assert actions.unavailable()['calibration/start'] == 'turned off by parameter controls'
        assert 'not running' in actions.unavailable()['walk']
        tares = []
        trigger_service(rig.peer, 'wrench_aggregator/tare', lambda: tares.append(1))
        pushes = rig.collect(WrenchStamped, 'simulator/push')
        targets = rig.collect(Vector3Stamped, 'torso_controller/target')
        rig.until(lambda: actions.is_discovered, what='subscribers')
        actions.execute('tare', None)
        actions.execute('push', ('left', 0.2))
        actions.execute('feedforward', True)
        actions.execute('torso', (1e300, 0.0))  # no slider goes there
        actions.execute('torso', (3.0, 4.0))
        rig.until(lambda: targets, what='the permitted target')
        assert targets[0].vector.x == pytest.approx(math.radians(5.0))
        assert len(targets) == 1 and not pushes and not tares and not notes[1:]
    finally:
        rig.close()


def test_feedforward_goes_through_the_lifecycle(acting):
    from lifecycle_msgs.srv import ChangeState, GetState
    transitions, state = [], SimpleNamespace(id=1)
    after = {1: 2, 3: 3, 4: 2}  # configure: inactive; activate: active; deactivate: inactive

    def change(request, response):
        transitions.append(request.transition.id)
        state.id, response.success = after[request.transition.id], True
        return response

    def get(_, response):
        response.current_state.id = state.id
        return response
    acting.rig.peer.create_service(ChangeState, 'gravity_compensation/change_state', change)
    acting.rig.peer.create_service(GetState, 'gravity_compensation/get_state', get)
    acting.until_ready('feedforward')
    acting.actions.update_feedforward()
    acting.rig.until(lambda: acting.actions.feedforward_is_on is False, what='a state')
    acting.actions.execute('feedforward', True)
    acting.rig.until(lambda: acting.actions.feedforward_is_on, what='feedforward')
    acting.actions.execute('feedforward', False)
    acting.rig.until(lambda: acting.actions.feedforward_is_on is False, what='none')
    assert transitions == [1, 3, 4]


@pytest.mark.parametrize(('optional', 'code'), [(True, 0), (False, 1)])
def test_without_viser_it_ends_and_names_the_package(optional, code):
    program = ("import sys; sys.modules['viser'] = None; from biped_com_ros.nodes.viewer.node "
               "import main; sys.exit(main(['--ros-args', '-p', "
               f"'optional:={str(optional).lower()}']))")
    ended = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True,
                           timeout=100.0, check=False)
    assert ended.returncode == code, ended.stderr
    assert 'pip install viser' in ended.stderr and 'Traceback' not in ended.stderr
