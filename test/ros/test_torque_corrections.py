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
"""Torque constants and offsets: from wrong efforts over a calibration to what a node reads."""

from dataclasses import replace
from types import SimpleNamespace

from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.estimation.estimator import Estimator
from biped_com_ros.core.identification.output.results import calibrated_urdf
from biped_com_ros.core.identification.output.robot_yaml import errors_of, write_calibrated_robot
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.wrench_aggregator.node import WrenchAggregator
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from support.messages import joint_state, parameters
from support.ros_rig import NodeRig
from support.statics_data import NOISE, PERFECT, TrueRobot

KNOWN_APART = SensorNoise(**{**PERFECT, 'torque_gain': 0.06, 'torque_bias': 1.0})


@pytest.fixture(scope='module')
def calibrated(tmp_path_factory):
    """Return a robot with wrong torque constants, its YAML after a calibration, and the truth."""
    true, directory = TrueRobot('sabian', seed=2), tmp_path_factory.mktemp('calibrated')
    n, rng = len(true.model.joint_names), np.random.default_rng(2)
    gains, offsets = 0.06 * rng.normal(size=n), rng.normal(size=n)
    captures = true.captures(30, NOISE)
    reported = [c.torques * (1.0 + gains) + offsets for c in captures]
    wrong = [replace(c, torques=torques) for c, torques in zip(captures, reported)]
    found = Estimator(true.model, KNOWN_APART).solve(wrong)
    (directory / 'calibrated.urdf').write_text(calibrated_urdf(true.model, found))
    path = write_calibrated_robot(
        directory, 'sabian', true.model, errors_of(found, true.model))
    return SimpleNamespace(model=RobotModel.load(str(path)), path=path, captures=captures,
                           reported=reported, before=true.model)


def off(calibrated, torques):
    """Return how far torques are off in the joints that carry something, rms, N m."""
    true = np.array([c.torques for c in calibrated.captures])
    carries = np.nanstd(true, axis=0) > 3.0
    assert carries.sum() > 8
    return float(np.sqrt(np.nanmean((np.array(torques) - true)[:, carries] ** 2)))


def test_torques_are_nearer_the_truth(calibrated):
    corrected = [calibrated.model.corrected_torques(t) for t in calibrated.reported]
    assert off(calibrated, corrected) < 0.6 * off(calibrated, calibrated.reported)


@pytest.mark.thorough
def test_a_second_calibration_finds_nothing_more(calibrated, tmp_path):
    """Its readings are corrected already; what it writes is applied instead, not once more."""
    model = calibrated.model
    again = [replace(c, torques=model.corrected_torques(t))
             for c, t in zip(calibrated.captures, calibrated.reported)]
    errors = errors_of(Estimator(model, KNOWN_APART).solve(again), model)
    (tmp_path / 'calibrated.urdf').write_text(model.urdf)
    twice = RobotModel.load(str(write_calibrated_robot(
        tmp_path, str(calibrated.path), model, errors)))
    for what in ('torque_gains', 'torque_offsets'):
        first, second = getattr(model, what), getattr(twice, what)
        assert np.linalg.norm(second - first) < 0.5 * np.linalg.norm(first)


def test_a_node_reads_corrected_efforts(calibrated, closing):
    model, reported = calibrated.model, np.nan_to_num(calibrated.reported[0])
    rig = closing(NodeRig(node=WrenchAggregator(parameter_overrides=parameters(
        robot=str(calibrated.path), bias_tracking=False))))
    publisher = rig.peer.create_publisher(JointState, 'joint_states', 10)

    def received():
        publisher.publish(joint_state(
            rig.peer.get_clock().now().to_msg(), model.joint_names,
            calibrated.captures[0].positions, np.zeros(len(reported)), reported))
        return rig.node.joints.count > 2
    rig.until(received, what='joint states')
    expected = (reported - model.torque_offsets) / (1.0 + model.torque_gains)
    assert rig.node.joints.efforts == pytest.approx(expected, rel=1e-9)
    assert np.abs(expected - reported).max() > 1.0
