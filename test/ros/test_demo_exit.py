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
"""What the demo leaves: exit code, chapters that failed, a picture."""

from dataclasses import replace
import re

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.demo.measurements import Measurements
from biped_com_ros.demo.terminal import Comparison
from biped_com_ros.nodes.demo import node as demo
import numpy as np
import pytest
from rclpy.parameter import Parameter
from support.demo_snapshot import snapshot
from support.messages import parameters
from support.ros_rig import NodeRig


@pytest.fixture
def main_with(monkeypatch, closing):
    """Return `main` of the node, whose chapters fail so, and whose executor returns this code."""
    def main(failures, code=0):
        def run(create, argv):
            rig = closing(NodeRig(node=create()))
            rig.until(lambda: rig.node.stage is not None, what='the robot')
            rig.node.story.failures.update(failures)
            return code

        monkeypatch.setattr(demo, 'run', run)
        return demo.main()

    return main


def test_a_chapter_that_failed_makes_the_demo_fail(main_with, capfd):
    assert main_with({'gravity': 'no efforts', 'steps': '1 of 6 steps'}) == 1
    assert capfd.readouterr().err.splitlines()[-1] == (
        '[ERROR] [demo]: chapters failed: gravity: no efforts; steps: 1 of 6 steps')


def test_without_failures_the_demo_ends_well(main_with, capfd):
    assert main_with({}) == 0
    assert 'chapters failed' not in capfd.readouterr().err


@pytest.mark.parametrize('count', [1, 2])
def test_the_result_of_a_single_chapter_is_not_repeated(count, monkeypatch, capfd, closing):
    monkeypatch.setattr(Measurements, 'whole_snapshot', lambda *_: snapshot(time=0.2))
    rig = closing(NodeRig(node=demo.Demo()))
    rig.until(lambda: rig.node.stage is not None, what='the robot')
    story = rig.node.story
    found = Comparison((), [], 'the URDF is right')
    story.outcomes = {chapter.name: found for chapter in story.chapters[:count]}
    rig.node.close()
    assert capfd.readouterr().out.count('the URDF is right') == (0 if count == 1 else count)


def test_the_picture_is_of_the_last_table_with_results(tmp_path, monkeypatch, closing):
    """After the last chapter measurements begin anew."""
    path, found = tmp_path / 'table.svg', snapshot()
    wholes = [found, found]
    later = replace(found, time=0.2, com_error=np.full(3, np.nan), activity='stands')
    monkeypatch.setattr(Measurements, 'period_snapshot', lambda *_: found)
    monkeypatch.setattr(
        Measurements, 'whole_snapshot', lambda *_: wholes.pop() if wholes else later)
    rig = closing(NodeRig(node=demo.Demo(parameter_overrides=[
        Parameter('picture', value=str(path))])))
    rig.until(lambda: not wholes, what='tables')
    rig.spin(2.0)
    rig.node.close()
    text = re.sub('<[^>]*>', '', path.read_text())
    assert 'error&#160;of&#160;the&#160;CoM' in text and '13.00&#160;mm' in text


def test_another_failure_keeps_its_exit_code(main_with):
    assert main_with({'gravity': 'no efforts'}, code=2) == 2


@pytest.mark.parametrize('robot', ['biped', str(package_share() / 'config/demo/rail.yaml')])
def test_the_title_has_the_robots_name_not_the_path_of_its_file(robot, capfd, closing):
    closing(NodeRig(node=demo.Demo(parameter_overrides=parameters(
        robot=robot, hidden='masses'))))
    assert 'biped_com_ros demo: biped, whose real masses differ' in capfd.readouterr().out
