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
Nodes that the launch files for Gazebo start, with what these make for them.

Among them the one that publishes the true centre of mass, of robots in the twin of Gazebo.
"""

from dataclasses import replace

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.gravity_compensation.parameters import GravityCompensationParameters
from biped_com_ros.ros.node.parameters import declare_parameters
from geometry_msgs.msg import InertiaStamped, PointStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from rclpy.node import Node
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from support.gazebo_files import read_gazebo_files
from support.messages import joint_state, odometry, vector
from support.planned import planned
from support.ros_rig import NodeRig


THOROUGH = pytest.mark.thorough


@pytest.fixture(params=['biped', pytest.param('talos', marks=THOROUGH)])
def truth(request, ros, tmp_path):
    """Return the files that a launch file made, and the node that it starts for the truth."""
    programs = planned('gazebo_gravity', robot=request.param, hidden='masses', seed='4')
    program = programs['com_estimator']
    # Without a clock: here nobody publishes one.
    untimed = replace(program, parameters={
        **program.parameters, 'use_sim_time': False, 'max_stamp_age': 0.0})
    node = ComEstimator(namespace='/gazebo', cli_args=untimed.command_line(tmp_path))
    rig = NodeRig(node=node, namespace='/gazebo')
    yield rig, request.param, read_gazebo_files(programs['gravity_compensation'].files[0].parent)
    rig.close()


@pytest.mark.parametrize('robot', [
    'biped', *(pytest.param(name, marks=THOROUGH) for name in ('talos', 'g1'))])
def test_gravity_compensation_takes_what_is_made_for_it(ros, tmp_path, robot):
    program = planned('gazebo_gravity', robot=robot)['gravity_compensation']
    node = Node('gravity_compensation', cli_args=program.command_line(tmp_path),
                use_global_arguments=False, start_parameter_services=False)
    try:
        params = declare_parameters(node, GravityCompensationParameters)
    finally:
        node.destroy_node()
    assert params.controller == 'joint_trajectory_controller' and params.autostart
    assert params.command_joints == list(RobotModel.load(robot).joint_names)
    assert params.trajectory_rate == 100.0


def test_it_is_that_of_the_masses_in_gazebo(truth):
    from support.gazebo_twin import GazeboTwin  # skips without dartpy
    rig, robot, files = truth
    twin, config = GazeboTwin(files), load_robot_config(robot)
    twin.put_down(twin.stand)
    turn, place = Rotation.from_rotvec((0.1, -0.2, 0.16)), (0.3, -0.2, 1.1)
    twin.put_base(turn.as_rotvec(), place)
    odom = rig.publisher(Odometry, 'odom')
    joints = rig.publisher(JointState, 'joint_states')
    found = rig.collect(PointStamped, 'simulator/truth/com')
    # What others would use is not used.
    for kind, topic in ((String, 'calibrated_description'),
                        (InertiaStamped, 'payload_estimator/payload')):
        assert not rig.peer.count_subscribers(rig.peer.resolve_topic_name(topic)), kind
    rig.spin(0.2)  # publishers look for subscribers ten times a second
    for _ in range(6):
        stamp = rig.peer.get_clock().now().to_msg()
        odom.publish(odometry(stamp, 'odom', config.base_link, place, turn.as_quat()))
        rig.spin(0.001)
        joints.publish(joint_state(stamp, twin.joints, twin.stand, 0.0 * twin.stand))
        rig.spin(0.02)
    assert len(found) == 6 and found[-1].header.frame_id == 'odom'
    np.testing.assert_allclose(vector(found[-1].point), twin.skeleton.getCOM(), atol=1e-5)
    # That of the URDF, which estimators have, is another one.
    model = RobotModel.load(robot)
    base = Pose(turn.as_matrix(), np.array(place))
    nominal = model.state(model.posture()).in_world(base).com_in_world
    assert np.linalg.norm(vector(found[-1].point) - nominal) > 1e-3
