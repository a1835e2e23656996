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
"""The demo's push test: harder each time, until it is told that the robot has fallen."""

from biped_com_ros.core.robot import RobotModel
from biped_com_ros.nodes.demo import _Pusher
from biped_com_ros.ros.conversions import Stamp
from biped_com_ros.ros.qos import LATCHED
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import pytest
import rclpy
from ros_rig import Rig
from std_msgs.msg import Float64


@pytest.fixture(scope='module', autouse=True)
def ros():
    rclpy.init()
    yield
    rclpy.shutdown()


def test_pushes_grow_until_the_fall():
    model, rig = RobotModel.load('biped'), Rig('demo_push')
    try:
        pusher = _Pusher(rig.node, model)
        pushes = rig.listen(WrenchStamped, 'simulator/push')
        margin = rig.publisher(Float64, 'zmp_monitor/margin')
        event = rig.publisher(DiagnosticArray, 'zmp_monitor/event', LATCHED)
        stamp = Stamp.from_ns(5 * 10**9)
        assert pusher.update(3.9, stamp) == 'stands, will be pushed'
        for elapsed, count in ((4.0, 1), (7.9, 1), (8.1, 2)):
            said = pusher.update(elapsed, stamp)
            rig.until(lambda: len(pushes) == count, what='a push')  # noqa: B023
        first, second = (message.wrench.force.x for message in pushes)
        assert second == pytest.approx(2.0 * first) and f'{second:.1f} N' in said
        assert first == pytest.approx(0.08 * model.mass * 9.81)
        assert pushes[0].header.frame_id in model.link_names
        margin.publish(Float64(data=0.012))
        event.publish(DiagnosticArray(status=[DiagnosticStatus(message='fallen: it leans')]))
        rig.until(lambda: 'fallen' in pusher.update(8.2, stamp), what='the event')
        rig.until(lambda: 'margin down to 12 mm' in pusher.update(8.2, stamp), what='the margin')
        pusher.update(40.0, stamp)
        rig.spin(0.2)
        assert len(pushes) == 2, 'nobody kicks who lies on the floor'
    finally:
        rig.close()
