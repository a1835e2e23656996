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
Centre of mass, its velocity and the regressor of rest against iDynTree, on random poses.

iDynTree reads the same URDF text with a parser and kinematics of its own. It knows no mimicking
joints, so it gets the position and velocity of every joint that moves.
"""

from biped_com_ros.core.com.estimate import com_velocity_in_world
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.state.stance import Twist
import numpy as np
import pytest
from support.small_robot import random_rotation, small_robot

idyntree = pytest.importorskip('idyntree.bindings')

ROBOTS = ('small', 'biped', 'talos', 'g1', 'icub')
TOLERANCE = 1e-8  # m, m/s
GRAVITY = np.array([0.0, 0.0, -9.81])


class IDynTreeModel:
    """IDynTree's model of a robot, fed with what `RobotModel` is fed with."""

    def __init__(self, model):
        loader = idyntree.ModelLoader()
        assert loader.loadModelFromString(model.urdf, 'urdf')
        self.kinematics = idyntree.KinDynComputations()
        assert self.kinematics.loadRobotModel(loader.model())
        tree = loader.model()
        dofs = [tree.getJoint(i) for i in range(tree.getNrOfJoints())]
        names = {joint.getDOFsOffset(): tree.getJointName(i)
                 for i, joint in enumerate(dofs) if joint.getNrOfDOFs()}
        moving = list(model.pin_model.names)[2:]
        self.order = [moving.index(names[i]) for i in range(len(names))]
        self.model = model

    def com_and_velocity(self, positions, velocities, base, twist):
        """Set the robot's state from that of its base, which is fixed to the root link."""
        model, state = self.model, self.model.state(positions, velocities)
        root = base @ state.pose_in_base(model.frame_names[0])
        angular = base.rotation @ twist.angular
        at_root = base.rotation @ twist.linear + np.cross(angular, root.position - base.position)
        placement = np.eye(4)
        placement[:3, :3], placement[:3, 3] = root.rotation, root.position
        assert self.kinematics.setRobotState(
            placement, state.q[7:][self.order], np.concatenate((at_root, angular)),
            state.v[6:][self.order], GRAVITY)
        return (self.kinematics.getCenterOfMassPosition().toNumPy(),
                self.kinematics.getCenterOfMassVelocity().toNumPy())


@pytest.fixture(scope='module', params=ROBOTS)
def robot(request):
    """Return a model and its oracle; 'small' has one of everything that URDFs hold."""
    model = (small_robot(base_rpy=[0.1, -0.2, 3.0]) if request.param == 'small'
             else RobotModel.load(request.param))
    return model, IDynTreeModel(model)


@pytest.mark.parametrize('seed', range(20))
def test_com_and_its_velocity(robot, seed):
    model, oracle = robot
    rng = np.random.default_rng(seed)
    positions, velocities = rng.uniform(-1.5, 1.5, (2, len(model.joint_names)))
    base = Pose(random_rotation(rng), rng.uniform(-2.0, 2.0, 3))
    twist = Twist(*rng.uniform(-2.0, 2.0, (2, 3)))
    com, velocity = oracle.com_and_velocity(positions, velocities, base, twist)
    state = model.state(positions, velocities).in_world(base)
    np.testing.assert_allclose(state.com_in_world, com, atol=TOLERANCE)
    np.testing.assert_allclose(com_velocity_in_world(state, twist), velocity, atol=TOLERANCE)
    assert np.linalg.norm(velocity) > 0.1


def test_mass(robot):
    model, oracle = robot
    assert oracle.kinematics.model().getTotalMass() == pytest.approx(model.mass, abs=1e-9)


@pytest.mark.parametrize('name', ('biped', 'talos', 'g1'))
def test_regressor_of_rest(name):
    """
    Torques that hold the links, as a matrix of masses and first moments.

    So least squares with iDynTree's regressor is least squares with ours.
    """
    model, rng = RobotModel.load(name), np.random.default_rng(3)
    oracle = IDynTreeModel(model)
    positions = rng.uniform(-1.0, 1.0, len(model.joint_names))
    R = random_rotation(rng)
    # At the origin with its base turned: gravity is down in the world.
    oracle.com_and_velocity(positions, np.zeros(len(positions)), Pose(R, np.zeros(3)),
                            Twist(np.zeros(3), np.zeros(3)))
    tree, n = oracle.kinematics.model(), len(oracle.order)
    matrix = idyntree.MatrixDynSize(6 + n, 10 * tree.getNrOfLinks())
    assert oracle.kinematics.inverseDynamicsInertialParametersRegressor(
        idyntree.Vector6.FromPython([0.0] * 6), idyntree.VectorDynSize.FromPython([0.0] * n),
        matrix)
    # The torque at a leader is its own and its followers'.
    gearing = np.array([model.velocity(e)[6:] for e in np.eye(len(positions))])[:, oracle.order]
    columns = [10 * tree.getLinkIndex(link) + i for link in model.link_names for i in range(4)]
    theirs = gearing @ matrix.toNumPy()[6:, columns]
    ours = StaticsRegressor(model).torque_matrix(positions, R.T[:, 2])
    assert np.abs(theirs).max() > 5.0
    np.testing.assert_allclose(ours, theirs, atol=1e-8)
