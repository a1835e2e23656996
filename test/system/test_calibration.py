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
Calibrations as users run them: simulator, com_calibrator and other nodes are processes, over DDS.

One is killed in the middle and started again; the simulator records, and the recording gives the
same masses. In the other one gravity compensation is on and moves the robot.
"""

import json

from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.model.resources import package_share
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.nodes.simulator.parameters import SimulatorParameters
from biped_com_ros.offline.calibrate import main as calibrate
from biped_com_ros.sim.hidden import LinkError
from biped_com_ros.sim.plant import Plant
from diagnostic_msgs.msg import DiagnosticArray
from examples.static_robot import StaticRobot
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from support.launched import changed_parameters, LIMIT, Processes, wait_for
import yaml

POSES, CONFIG = 6, package_share() / 'config'
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(4 * LIMIT)]
SENSORS = {'force_noise': 0.05, 'torque_noise': 0.002, 'effort_noise': 0.01,
           'encoder_noise': 0.0002}
#: Of the small robot, as in demo/calibration.yaml.
NOISE = ('--force-noise=0.05', '--moment-noise=0.003', '--torque-noise=0.01',
         '--encoder-noise=0.0005', '--tilt-noise=0.0003', '--com-sigma=0.006',
         '--force-bias=0.05', '--moment-bias=0.003', '--encoder-offset=0.0005',
         '--tilt-bias=0.001', *(f'--{name}=0' for name in (
             'force-drift', 'moment-drift', 'wrench-gain', 'cross-talk', 'sensor-shift',
             'sensor-turn', 'torque-bias', 'torque-gain', 'friction')))


class CalibrationRun:
    """A simulated robot that differs from its URDF, and its calibration."""

    def __init__(self, processes):
        self.model, self.directory = RobotModel.load('biped'), processes.directory
        rng = np.random.default_rng(4)
        self.errors = {
            link: LinkError(0.3 if link == 'torso' else 0.0, tuple(0.005 * rng.normal(size=3)))
            for link in self.model.link_names}
        self.truth = StaticRobot(
            self.model.config, self.model.urdf, self.errors, self.model.joint_names)
        lines = [f'{link} {e.mass} {" ".join(f"{x:.17g}" for x in e.com)}'
                 for link, e in self.errors.items()]
        self.processes = processes
        self.start('simulator', CONFIG / 'simulator.yaml', {
            'hidden_errors': lines, 'rate': 100.0, 'real_time_factor': 3.0,
            'record': str(self.directory / 'bag'), 'seed': 1, **SENSORS})
        self.start_calibrator()

    def start(self, node, source, parameters):
        """Start a node as a process, with other parameters than in its file."""
        file = changed_parameters(source, self.directory, **parameters)
        self.processes.start(node, '--params-file', str(file))

    def start_calibrator(self):
        """Start com_calibrator with the demo's parameters and two thirds of a second of rest."""
        self.start('com_calibrator', CONFIG / 'demo' / 'calibration.yaml', {
            'directory': str(self.directory), 'poses': POSES, 'candidates': 24, 'move': True,
            'use_sim_time': True, 'max_stamp_age': 10.0, 'sensor_timeout': 5.0})

    @property
    def captures(self):
        return read_captures(self.directory)

    @property
    def log(self):
        """Return what the calibrators have printed."""
        return ''.join(path.read_text() for path in self.directory.glob('com_calibrator-*.log'))


def read_captures(directory):
    """Return the captures that are on disk."""
    file = directory / 'biped' / 'captures.json'
    return json.loads(file.read_text())['captures'] if file.exists() else []


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """Calibrate, with a crash in the middle; everything has ended when this returns."""
    processes = Processes(tmp_path_factory.mktemp('calibration'))
    try:
        found = CalibrationRun(processes)
        wait_for(lambda: len(found.captures) >= 2, lambda: found.log)
        processes.kill_last()
        found.before_crash = len(found.captures)
        found.start_calibrator()
        wait_for((found.directory / 'biped' / 'report.html').exists, lambda: found.log)
    finally:
        processes.end()
    return found


def horizontal_coms(run, model):
    """Return a model's centres of mass along the ground from the left sole in random poses, m."""
    coms = []
    for q in random_poses(run):
        state = model.state(q)
        coms.append((state.com_in_base - state.pose_in_base('l_sole').position)[:2])
    return np.array(coms)


def random_poses(run):
    """Return the same postures each time, with other arms than 'stand', (10, n)."""
    rng, poses = np.random.default_rng(5), np.tile(run.model.posture('stand'), (10, 1))
    arms = run.model.joint_index([*run.model.config.groups['left_arm'],
                                  *run.model.config.groups['right_arm']])
    poses[:, arms] += rng.uniform(-0.5, 0.5, (10, len(arms)))
    return poses


def com_errors(run, model):
    """Return how far a model's centre of mass is off along the ground in random poses, m."""
    true = [run.truth.read(q, ('left',)).com[:2] for q in random_poses(run)]
    return np.linalg.norm(horizontal_coms(run, model) - true, axis=1)


def calibrated_model(directory):
    """Return the robot of the calibrated URDF in a directory."""
    return RobotModel(RobotModel.load('biped').config, (directory / 'calibrated.urdf').read_text())


def test_the_centre_of_mass_gets_right(run):
    calibrated = calibrated_model(run.directory / 'biped')
    before, after = com_errors(run, run.model), com_errors(run, calibrated)
    assert before.mean() > 2e-3
    assert after.mean() < 0.1 * before.mean() and after.mean() < 5e-4
    assert abs(calibrated.mass - run.truth.mass) < 0.01


def test_what_was_captured_before_a_crash_is_used(run):
    assert 2 <= run.before_crash < POSES
    assert f'{run.before_crash} captures found in' in run.log
    assert sorted(c['name'] for c in run.captures) == [f'pose {i + 1}' for i in range(POSES)]
    hoisted = [c for c in run.captures if not any(c['in_contact'])]
    assert len(hoisted) == 1


def test_the_recording_gives_the_same(run, tmp_path, capsys):
    arguments = [str(run.directory / 'bag'), '--robot=biped', f'--out={tmp_path}', '--still=0.4',
                 *NOISE]
    assert calibrate(arguments) == 0
    assert 'kg' in capsys.readouterr().out
    live, recorded = (json.loads((directory / 'calibration.json').read_text())
                      for directory in (run.directory / 'biped', tmp_path))
    assert recorded['mass'] == pytest.approx(live['mass'], abs=5e-3)
    offline, online = map(calibrated_model, (tmp_path, run.directory / 'biped'))
    assert com_errors(run, offline).mean() < 5e-4
    apart = np.linalg.norm(horizontal_coms(run, offline) - horizontal_coms(run, online), axis=1)
    assert apart.max() < 4e-4  # 0.2 mm as measured: not of the same instants


# ------------------------------------------------------------------------ with feedforward

#: What is reported of motions that are refused, or go past the node.
INTERFERING = ('reference', 'other publisher', 'a goal of')


def standing_com_error(model):
    """
    Return how far a model's CoM is from the simulator's, level, in m.

    Two upright poses say little about its height.
    """
    hidden = yaml.safe_load((CONFIG / 'hidden' / 'masses.yaml').read_text())
    options = SimulatorParameters(
        robot='biped', seed=1, **hidden['/**/simulator']['ros__parameters'])
    urdf = RobotModel.load('biped')
    plant = Plant(urdf.config, urdf.urdf, options.plant_options(urdf.mass), urdf.joint_names,
                  urdf.link_names)
    plant.reset('stand')
    truth = plant.truth()
    base = Pose.from_quaternion(truth.base_quaternion, truth.base_position)
    com_in_base = base.inverse().apply(truth.com)
    return np.linalg.norm(model.state(model.posture('stand')).com_in_base[:2] - com_in_base[:2])


def test_a_robot_is_calibrated_while_gravity_compensation_is_on(
        launch, observer, steady, tmp_path):
    # On its feet: the torso's tendons are not driven by trajectories of joints with efforts.
    params = changed_parameters(
        CONFIG / 'demo' / 'calibration.yaml', tmp_path, poses=6, candidates=24,
        max_stamp_age=10.0, sensor_timeout=5.0, hoisted=0, hoist_service='', torso_bend=0.0)
    efforts = observer.keep(JointState, 'gravity_compensation/effort')
    diagnostics = observer.keep(DiagnosticArray, '/diagnostics')
    launch('gravity_simulation.launch.py', 'trajectory_rate:=100.0', 'hidden:=masses',
           'respawn:=none', *steady)
    observer.until(lambda: efforts and any(efforts[-1].effort), 'efforts')
    launch('calibration.launch.py', 'robot:=biped', 'move:=true', 'use_sim_time:=true',
           f'directory:={tmp_path}', f'com_calibrator_params:={params}',
           'trajectory_topic:=gravity_compensation/reference_trajectory')
    observer.until(lambda: read_captures(tmp_path), 'a capture')
    efforts.clear()
    observer.until(lambda: len(read_captures(tmp_path)) >= 2, 'another')
    observer.call(Trigger, 'com_calibrator/solve', Trigger.Request())
    observer.until((tmp_path / 'biped' / 'calibrated.urdf').exists, 'the calibrated URDF')
    largest = [np.abs(message.effort).max() for message in efforts]
    assert len(largest) > 100 and min(largest) > 0.2  # N m: on
    reports = [status.message for array in diagnostics for status in array.status
               if status.name == 'gravity_compensation: effort']
    # Joint states that are late on a busy machine are none of them.
    assert reports and not [text for text in reports for problem in INTERFERING if problem in text]
    postures = np.array([capture['positions'] for capture in read_captures(tmp_path)])
    model = RobotModel.load('biped')
    assert postures.shape[1] == len(model.joint_names)
    assert np.ptp(postures, axis=0).max() > 0.1  # it did move
    assert standing_com_error(calibrated_model(tmp_path / 'biped')) < (
        0.5 * standing_com_error(model))
