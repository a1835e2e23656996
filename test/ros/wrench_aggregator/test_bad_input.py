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
"""What the node does with bad readings, bad parameters and signals."""

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from support.wrench_aggregator_rig import make_node
from support.wrench_oracle import TiltedRobot, YAML
import yaml


def test_a_dead_sensor_stops_the_total_and_is_named(rig):
    rig.silent = {'left_heel'}
    rig.play(3)
    rig.clear()
    level, message = rig.health('total wrench')
    assert level == DiagnosticStatus.ERROR
    assert "no readings of 'left_heel' (" in message and '/left_heel/wrench)' in message
    assert not rig.got['wrench'] and not rig.got['left/wrench'] and not rig.got['line/point']
    assert rig.got['right/wrench']
    rig.silent = set()
    rig.play(5)
    rig.assert_forces()


@pytest.mark.parametrize('spoil, reason', [
    ({'values': [1.0, 2.0, np.nan, 0.0, 0.0, 0.0]}, 'wrench.force.z = nan'),
    ({'values': [1.0, 2.0, 3.0, 0.0, np.inf, 0.0]}, 'wrench.torque.y = inf'),
    ({'values': [1.0, 2.0, 3.0, 1e150, 0.0, 0.0]}, 'wrench.torque.x = 1e+150 is implausible'),
    ({'values': [1.0, 2.0, 1e6, 0.0, 0.0, 0.0]}, 'wrench.force.z = 1e+06 is implausible'),
    ({'frame': 'l_sole'}, "its frame_id is 'l_sole'; valid: 'r_ft'"),
])
def test_a_bad_reading_is_refused(rig, spoil, reason):
    rig.silent = {'right_foot'}
    rig.play(2)
    rig.clear()
    refused = sum(rig.node.sensors[2].refused.values())
    for _ in range(5):
        rig.publish_wrench('right_foot', rig.play(1), **spoil)
    assert sum(rig.node.sensors[2].refused.values()) == refused + 5
    assert not rig.got['right/wrench'] and not rig.got['wrench'] and rig.got['left/wrench']
    assert reason in rig.node.sensors[2].last_error
    rig.silent = set()
    rig.play(5)
    rig.assert_forces()


def test_missing_joints_stop_everything_and_are_named(own_rig):
    robot = TiltedRobot.somewhere(0)
    rig = own_rig(robot)
    robot.joint_names = ['x' if name == 'l_hip' else name for name in robot.joint_names]
    rig.contacts = robot.standing(0)
    rig.play(40, period=0.02)
    rig.clear()
    rig.play(40, period=0.02)
    assert not any(rig.got[topic] for topic in ('left/wrench', 'right/wrench', 'wrench'))
    assert 'l_hip' in rig.node.joints.last_error
    assert 'joint_states' in rig.health('total wrench')[1]
    response = rig.tare('tare')
    assert not response.success and 'not tared' in response.message


def test_readings_at_different_instants_make_no_total(own_rig):
    """The right foot's clock is 3 s late: no half a period holds all readings."""
    rig = own_rig(state_timeout=5.0, sensor_timeout=5.0, max_stamp_age=5.0)
    rig.contacts, rig.late = rig.robot.standing(0), {'right_foot': 3.0}
    rig.play(3)
    rig.clear()
    level, message = rig.health('total wrench')
    assert level == DiagnosticStatus.ERROR and 'never of the same instant' in message
    assert not rig.got['wrench'] and rig.got['left/wrench'] and rig.got['right/wrench']
    rig.late = {}
    rig.play(5)
    rig.clear()
    rig.play(10)
    assert len(rig.got['wrench']) == 10


def test_a_robot_without_sensors_runs_and_reports_what_it_lacks(tmp_path):
    config = yaml.safe_load(YAML.read_text())
    for key in ('wrench_sensors', 'hands'):
        del config[key]
    for foot in config['feet'].values():
        del foot['wrench_sensors']
    (tmp_path / 'bare.yaml').write_text(yaml.safe_dump(config, sort_keys=False))
    node = make_node(robot=str(tmp_path / 'bare.yaml'))
    status = node.diagnostics.status('total wrench')
    node.destroy_node()
    assert status.level == DiagnosticStatus.WARN and 'source: virtual' in status.message


def test_a_sensor_that_repeats_one_reading_while_the_robot_moves_is_withheld(rig):
    rig.noise, rig.joint_speed = 0.1, 0.5
    rig.play(5)
    frozen = rig.robot.reading('right_foot', rig.contacts, 0.0)
    rig.silent = {'right_foot'}

    def play(instants):
        for _ in range(instants):
            rig.publish_wrench('right_foot', rig.play(1), values=frozen)

    play(100)
    assert rig.node.faults.found
    rig.clear()
    play(5)
    assert not rig.got['right/wrench'] and not rig.got['wrench'] and rig.got['left/wrench']
    level, message, _ = rig.node.faults.report()
    assert level == DiagnosticStatus.ERROR
    assert "'right_foot' (" in message and 'repeats one reading' in message
    rig.silent, rig.noise, rig.joint_speed = set(), 0.0, 0.0
    rig.contacts = rig.robot.standing(0)
    rig.play(1)
    rig.noise = 0.001
    rig.play(5)
    rig.noise = 0.0
    rig.play(2)
    rig.assert_forces()
