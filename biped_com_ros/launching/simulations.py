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
"""Simulated robots and their nodes: one function per launch file."""

from __future__ import annotations

from dataclasses import replace

from biped_com_ros.core.model.resources import package_share
from biped_com_ros.demo import chapter_names
from biped_com_ros.launching.arguments import LaunchArguments
from biped_com_ros.launching.nodes import (
    bringup, calibrator, gait, gravity_compensation, torso, viewer)
from biped_com_ros.launching.programs import node, parameter_file, Programs
from biped_com_ros.launching.views import view

#: Time that the simulator has to complete a recording, s.
_RECORDING = 20.0
_OTHER_JOINT_STATES = 'torso_controller/joint_states'


def simulation(a: LaunchArguments) -> Programs:
    """Start a simulated robot and its nodes (bringup)."""
    # In a process of its own: the physics and the other nodes must not block each other.
    files = [parameter_file(a.simulator_params, 'simulator.yaml')]
    if a.hidden:
        files.append(parameter_file('', f'hidden/{a.hidden}.yaml'))
    simulator = node(
        replace(a, use_sim_time=None), 'simulator', *files, ends_launch=True,
        sigkill_timeout=_RECORDING, hidden_errors=a.load, seed=a.seed, rate=a.rate,
        virtual_joints=a.virtual_joints)
    return [simulator, *bringup(replace(
        a, use_sim_time=True, torso_joint_states=(
            'joint_states' if a.virtual_joints is False else _OTHER_JOINT_STATES)))]


def _alone(a: LaunchArguments) -> Programs:
    """Return a simulated robot whose motors are commanded by what else is started."""
    return simulation(replace(a, gravity='none', torso=False))


def calibration(a: LaunchArguments) -> Programs:
    """Estimate the masses and centres of mass of the links, and write a corrected URDF."""
    if not a.simulation:
        return [calibrator(a, 'com_calibrator.yaml')]
    return [*_alone(_seeded(a, hidden='masses')),
            calibrator(a, 'demo/simulated_calibration.yaml')]


def two_pose(a: LaunchArguments) -> Programs:
    """Measure the total centre of mass of a simulated robot in postures that differ by a lean."""
    return [*_alone(_seeded(a)),
            calibrator(replace(a, move=True, use_sim_time=True), 'demo/two_pose.yaml')]


def gravity_simulation(a: LaunchArguments) -> Programs:
    """Start a simulated robot with gravity compensation."""
    return [*_alone(_seeded(a)), *gravity_compensation(replace(
        a, params=a.gravity_compensation_params, autostart=a.active, use_sim_time=True))]


def gait_simulation(a: LaunchArguments) -> Programs:
    """Start a simulated robot with gravity compensation and the gait player."""
    through = 'gravity_compensation/reference_trajectory' if a.trajectory_rate else ''
    return [*gravity_simulation(a), *gait(replace(
        a, params=a.gait_player_params, trajectory_topic=through, use_sim_time=True))]


def torso_demo(a: LaunchArguments) -> Programs:
    """
    Bend the tendon-driven torso of a simulated robot; the CoM of the whole body follows.

    With ``tour:=false``, control the torso by ``ros2 run biped_com_ros torso_teleop`` in another
    terminal, or by a joystick on the topic joy.
    """
    timed = replace(a, use_sim_time=True)
    # The torso's virtual joints come from torso_controller only: no encoder measures a backbone.
    # It is not started by bringup: here a robot without a torso is an error.
    programs = [*_alone(replace(a, virtual_joints=False)), *torso(timed)]
    teleop = {'tour': node(timed, 'torso_teleop', motion='tour', ends_launch=True),
              'keys': node(a, 'torso_teleop', ends_launch=True)}
    programs += [program for name, program in teleop.items() if getattr(a, name)]
    return programs + _shown(a)


def demo(a: LaunchArguments) -> Programs:
    """
    Show a simulated robot in chapters: it is measured, calibrated, pushed, ...

    Nodes of single chapters are idle until their chapter begins. torso_controller is activated
    after the last chapter: until then the chapters bend the torso.
    """
    # In chapter rail the hands of the biped have virtual sensors.
    chapters = set(chapter_names(a.chapters))
    own = str(package_share() / 'config/demo/rail.yaml') if 'rail' in chapters else 'biped'
    a = replace(a, robot=a.robot or own)
    seeded = _seeded(a, hidden='masses')
    timed = replace(a, use_sim_time=True, autostart=False)
    programs = [*_alone(seeded), *torso(replace(
        timed, joint_states=_OTHER_JOINT_STATES, optional=True))]
    if chapters & {'gravity', 'steps', 'slope'}:
        programs += gravity_compensation(replace(timed, params=a.gravity_compensation_params))
    if chapters & {'steps', 'slope'}:
        programs += gait(replace(timed, params=a.gait_player_params))
    if 'calibration' in chapters:
        real = 'real_' if seeded.hidden == 'real' else ''
        programs.append(calibrator(replace(
            timed, move=True, poses=8, hoist_service='simulator/hang', torso_bend=0.2,
            log_level='error'), f'demo/{real}calibration.yaml'))
    programs.append(node(
        replace(a, use_sim_time=True), 'demo', ends_launch=True, chapters=a.chapters, once=a.once,
        hidden=seeded.hidden, duration=a.duration, picture=a.picture))
    return programs + _shown(a)


def _seeded(a: LaunchArguments, hidden: str = '') -> LaunchArguments:
    """Return arguments with errors and seed, unless the user's file has these."""
    if a.simulator_params:
        return a
    return replace(a, hidden=a.hidden or hidden, seed=1 if a.seed is None else a.seed)


def _shown(a: LaunchArguments) -> Programs:
    """Return page and RViz."""
    programs = viewer(replace(a, optional=True)) if a.viewer else []
    return programs + (view(replace(a, use_sim_time=True)) if a.view else [])
