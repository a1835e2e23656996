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
"""Parameters are set in running nodes as ``ros2 param set`` does: by their services, over DDS."""

from contextlib import nullcontext

from biped_com_ros.nodes.com_calibrator.node import ComCalibrator
from biped_com_ros.nodes.com_estimator.node import ComEstimator
from biped_com_ros.nodes.gait_player.node import GaitPlayer
from biped_com_ros.nodes.gravity_compensation.node import GravityCompensation
from biped_com_ros.nodes.payload_estimator.node import PayloadEstimation
from biped_com_ros.nodes.torso_controller.node import TorsoController
from biped_com_ros.nodes.zmp_monitor.node import ZmpMonitor
from biped_com_ros.ros.fast.subscription_pool import shared_subscriptions, SubscriptionPool
from biped_com_ros.ros.topics.input_base import inputs_of
import pytest
from sensor_msgs.msg import Imu
from support.driven_time import run_ready
from support.messages import imu, parameters as parameters_of, stamp_of
from support.monitored_robot import MonitoredRobot, record
from support.ros_rig import NodeRig


@pytest.fixture(scope='module')
def swaying():
    return record(1.2, lambda t: (0.0, 0.0, 0.0))[1]


@pytest.fixture
def monitored(closing):
    """Return a function that makes a monitored robot."""
    return lambda **values: closing(MonitoredRobot(**values))


def age_of_report(robot, samples):
    """Return how much older the newest report is than the newest joint states, s."""
    robot.play(samples)
    stamp = robot.got['zmp'][-1].header.stamp
    return 1e-9 * (samples[-1].ns - stamp.sec * 10 ** 9 - stamp.nanosec)


def test_wrenches_are_aligned_from_the_change_on(monitored, swaying):
    robot = monitored(wrench_delay=0.02)
    assert age_of_report(robot, swaying[:100]) < 0.003
    assert robot.node.monitor.settings.wrench_delay == 0.02
    assert not robot.set_parameters(align_wrenches=True)
    assert 0.018 <= age_of_report(robot, swaying[100:200]) < 0.023
    assert robot.node.monitor.settings.wrench_delay == 0.0  # it is undone already
    assert not robot.set_parameters(align_wrenches=False)
    assert age_of_report(robot, swaying[200:300]) < 0.003


class SuiteRig(NodeRig):
    """Nodes of one process, as in a suite, and clients of their parameter services."""

    def __init__(self, kinds, is_composed=True):
        super().__init__()
        pool = shared_subscriptions(SubscriptionPool(self.node)) if is_composed else nullcontext()
        with pool:
            self.nodes = [kind(namespace='/company', parameter_overrides=parameters_of(
                robot='biped')) for kind in kinds]
        for node in self.nodes:
            self.executor.add_node(node)

    def limit(self, node, seconds):
        """Set the largest age of stamps that a node accepts."""
        assert not self.set_parameters(node, max_stamp_age=seconds)
        assert {source.max_age for source in inputs_of(node)} == {seconds}

    def close(self):
        for node in self.nodes:
            self.executor.remove_node(node)
            node.destroy_node()
        super().close()


@pytest.mark.parametrize('is_composed', (True, False))
def test_each_node_refuses_stamps_by_its_own_limit(closing, is_composed):
    company = closing(SuiteRig((ZmpMonitor, ComEstimator), is_composed))
    monitor, estimator = company.nodes
    sources = monitor.inputs.inputs['IMU'], estimator.inputs.inputs['IMU']
    assert (sources[0].subscription is sources[1].subscription) is is_composed
    sender = company.publisher(Imu, sources[0].topic)
    company.until(lambda: sender.get_subscription_count() == (1 if is_composed else 2))
    frame, clock = monitor.model.config.imu.frame, company.node.get_clock()

    def send(age):
        """Send a message and return whether each node used it."""
        before = [source.count for source in sources]
        refused = [sum(source.refused.values()) for source in sources]
        sender.publish(imu(stamp_of(clock.now().nanoseconds - int(age * 1e9)), frame,
                           (0.0, 0.0, 0.0, 1.0)))
        run_ready(company.executor)
        assert [sum(source.refused.values()) - r + source.count - b
                for source, b, r in zip(sources, before, refused)] == [1, 1]
        return [source.count > b for source, b in zip(sources, before)]
    assert send(100.0) == [False, False]
    company.limit(estimator, 200.0)
    assert send(90.0) == [False, True]
    company.limit(monitor, 200.0)
    assert (sources[0].reader is sources[1].reader) is is_composed
    assert send(80.0) == [True, True]
    company.limit(estimator, 20.0)
    assert send(70.0) == [True, False]
    company.limit(monitor, 0.0)
    assert send(60.0) == [True, False]
    company.limit(estimator, 30.0)
    assert send(0.0) == [True, True]


@pytest.mark.parametrize('kind', (
    ComCalibrator, GaitPlayer, GravityCompensation, PayloadEstimation, TorsoController,
    ZmpMonitor))
def test_all_inputs_of_a_node_follow_its_limit_of_stamps(closing, kind):
    company = closing(SuiteRig((kind,)))
    node, = company.nodes
    company.until(lambda: len(inputs_of(node)) > 0, what='the inputs')
    company.limit(node, 7.0)


def test_another_delay_begins_the_fused_com_anew_and_unknown_links_are_refused(closing):
    rig = closing(NodeRig(node=ComEstimator(parameter_overrides=parameters_of(robot='biped'))))
    before = rig.node.fusion.estimate
    assert not rig.set_parameters(tf_rate=10.0)
    assert rig.node.fusion.estimate is before
    assert "'hand'" in rig.set_parameters(load_link='hand')
    assert not rig.set_parameters(load_link='r_hand', wrench_delay=0.002)
    rig.until(lambda: rig.node.fusion.estimate is not before, what='the new estimate')
    assert rig.node.fusion.estimate.settings.wrench_delay == 0.002


def test_a_calibration_uses_what_to_plan_from_the_next_plan_on(closing, tmp_path):
    rig = closing(NodeRig(node=ComCalibrator(parameter_overrides=parameters_of(
        robot='biped', autostart=False, directory=str(tmp_path), candidates=4000, poses=60))))
    session = rig.node.session
    assert not rig.set_parameters(still_duration=0.7, noise=['force_noise 1.5'], poses=55)
    assert session.estimator.noise.force == 1.5
    assert session.window.options.duration == 0.7
    assert session.options.design.count == 60
    session.start()
    assert session.options.design.count == 55
    assert 'busy (planning' in rig.set_parameters(noise=['force_noise 2.0'])
    assert rig.node.params.noise == ['force_noise 1.5']
    assert not rig.set_parameters(pose_timeout=30.0, spread=1.0)
    assert session.options.pose_timeout == 30.0
    assert session.options.design.count == 55
    session.stop()
