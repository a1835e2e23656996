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
"""The published CoM contains the payload that is received, and continuously so."""

from __future__ import annotations

from biped_com_ros.core.payload.carried import CarriedPayload, CarriedSettings
from geometry_msgs.msg import InertiaStamped
import numpy as np
from support.messages import vector

LINK, MASS, COM = 'left_foot', 1.5, (0.05, -0.02, 0.1)


def test_the_com_contains_the_payload_and_has_no_step(own_rig):
    rig = own_rig(payload_rate=20.0)
    rig.warm_up()
    publisher = rig.publisher(InertiaStamped, 'payload_estimator/payload')
    steps = []

    def carry(mass):
        message = InertiaStamped()
        message.header.stamp, message.header.frame_id = rig.peer.get_clock().now().to_msg(), LINK
        message.inertia.m = mass
        message.inertia.com.x, message.inertia.com.y, message.inertia.com.z = COM
        publisher.publish(message)
        before = rig.node.payload.carried.mass
        rig.step()
        steps.append(abs(rig.node.payload.carried.mass - before))
        return rig.node.payload.carried.mass == mass
    rig.until(lambda: carry(MASS), what='the payload')
    stamp = rig.step()
    assert rig.got['com'][-1].header.stamp == stamp
    model, state = rig.node.model, rig.node.last.located.state
    carried = CarriedPayload(model, CarriedSettings(rate=1000.0))
    carried.receive(LINK, MASS, COM, 10 ** 9)
    carried.update(10 ** 9)
    carried.update(10 ** 9 + 10_000_000)
    com = carried.motion(state).com_with(model.mass, state.com_in_base)
    expected = state.base.place(*com.tolist())
    np.testing.assert_allclose(vector(rig.got['com'][-1].point), expected, atol=1e-12)
    assert np.linalg.norm(np.subtract(expected, state.com_in_world)) > 0.01
    rig.until(lambda: carry(0.0), what='no payload')
    assert max(steps) <= 20.0 * 0.05 + 1e-9
