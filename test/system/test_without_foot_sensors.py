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
"""Robots whose feet have no sensors run all nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import re
from typing import Any

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
import pytest
from support.launch_process import Launched
import yaml

SHARE = package_share()


def test_a_robot_without_foot_sensors_stands_with_all_nodes(
        launch: Callable[..., Launched], listener: Any) -> None:
    from geometry_msgs.msg import PointStamped, PoseWithCovarianceStamped, WrenchStamped
    from nav_msgs.msg import Odometry
    from sensor_msgs.msg import JointState
    launched = launch(
        'simulation.launch.xml', 'robot:=g1_as_sold', 'namespace:=r4', 'gravity:=active')
    listener.state('/r4/gravity_compensation', 'active', launched)
    weight = 9.81 * RobotModel.load('g1_as_sold').mass
    total = listener(WrenchStamped, '/r4/wrench_aggregator/wrench', launched)
    assert total.wrench.force.z == pytest.approx(weight, rel=0.1)
    # What is true of one instant is compared with another one: the robot has to rest by then.
    zmp = listener(PoseWithCovarianceStamped, '/r4/zmp_monitor/zmp_with_covariance', launched,
                   accepts=lambda message: message.header.stamp.sec >= 1)
    truth = listener(PointStamped, '/r4/simulator/truth/zmp', launched)
    assert abs(zmp.pose.pose.position.x - truth.point.x) < 0.02
    assert 1e-8 < zmp.pose.covariance[0] < 0.05 ** 2
    fused = listener(Odometry, '/r4/com_estimator/com_fused', launched)
    assert fused.pose.pose.position.z == pytest.approx(
        listener(PointStamped, '/r4/simulator/truth/com', launched).point.z, abs=0.02)
    listener(JointState, '/r4/gravity_compensation/effort', launched,
             accepts=lambda message: any(message.effort))  # they ramp up from zero
    code, _ = launched.interrupt()
    assert code == 0, launched.output
    assert not re.search('Traceback|has died', launched.output), launched.output


def test_feet_that_nothing_measures_are_reported_and_end_nothing(
        launch: Callable[..., Launched], listener: Any, tmp_path: Path) -> None:
    from geometry_msgs.msg import PointStamped
    config = yaml.safe_load((SHARE / 'config' / 'robots' / 'g1_as_sold.yaml').read_text())
    for foot in config['feet'].values():
        del foot['source']
    robot = tmp_path / 'blind.yaml'
    robot.write_text(yaml.safe_dump(config))
    launched = launch('simulation.launch.xml', f'robot:={robot}', 'namespace:=r5')
    com = listener(PointStamped, '/r5/com_estimator/com', launched, timeout=60.0)
    assert com.point.z > 0.5
    assert listener(PointStamped, '/r5/zmp_monitor/dcm', launched).header.frame_id == 'odom'
    line, = (line for line in launched.output.splitlines() if 'nothing measures the feet' in line)
    assert "'source: virtual'" in line
    code, _ = launched.interrupt()
    assert code == 0, launched.output
    assert not re.search('Traceback|has died', launched.output), launched.output
