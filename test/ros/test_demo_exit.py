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
"""With which exit code the demo ends, and what it writes about chapters that failed."""

from __future__ import annotations

from biped_com_ros.nodes.demo import node as demo
import pytest
from rclpy.parameter import Parameter
from support.ros_rig import NodeRig


@pytest.fixture
def main_with(monkeypatch):
    """Return `main` of the node, whose chapters fail so, and whose executor returns this code."""
    rigs = []

    def main(failures, code=0):
        def run(create, argv):
            rigs.append(NodeRig(node=create(parameter_overrides=[
                Parameter('display', value='plain')])))
            node = rigs[-1].node
            rigs[-1].until(lambda: node.stage is not None, what='the robot')
            node.story.failures.update(failures)
            return code

        monkeypatch.setattr(demo, 'run', run)
        return demo.main()

    yield main
    for rig in rigs:
        rig.close()


def test_a_chapter_that_failed_makes_the_demo_fail(main_with, capfd):
    assert main_with({'gravity': 'no efforts', 'steps': '1 of 6 steps'}) == 1
    assert capfd.readouterr().err.splitlines()[-1] == (
        '[ERROR] [demo]: chapters failed: gravity: no efforts; steps: 1 of 6 steps')


def test_without_failures_the_demo_ends_well(main_with, capfd):
    assert main_with({}) == 0
    assert 'chapters failed' not in capfd.readouterr().err


def test_another_failure_keeps_its_exit_code(main_with):
    assert main_with({'gravity': 'no efforts'}, code=2) == 2
