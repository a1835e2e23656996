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
"""Tests of the timer that goes on in place of messages, on both executors."""

from __future__ import annotations

import time

from biped_com_ros.ros.node.executor import make_executor
from biped_com_ros.ros.node.timers import watchdog
import pytest
from rclpy.node import Node

PERIOD, SELDOM = 0.005, 0.03


@pytest.mark.parametrize('plain', ['0', '1'])
def test_looks_seldom_until_it_is_needed_and_again_after(monkeypatch, plain):
    monkeypatch.setenv('BIPED_COM_PLAIN', plain)
    node, executor = Node('watched'), make_executor()
    looks, silent = [], False

    def look():
        looks.append(time.monotonic())
        return silent

    def steps_until(count):
        looks.clear()
        end = time.monotonic() + 10.0
        while len(looks) < count and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
        return sorted(b - a for a, b in zip(looks, looks[1:]))

    watchdog(node, PERIOD, look)
    executor.add_node(node)
    try:
        # Medians: a busy machine delays some, and none comes early for long.
        assert steps_until(6)[2] == pytest.approx(SELDOM, rel=0.5)
        silent = True
        assert steps_until(32)[15] < 0.6 * SELDOM
        silent = False
        assert steps_until(7)[3] == pytest.approx(SELDOM, rel=0.5)
    finally:
        executor.shutdown()
        node.destroy_node()
