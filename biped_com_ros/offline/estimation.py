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
"""From the options of ``calibrate`` and a recording to the written results."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.identification.captures.averages import is_averages, read_averages
from biped_com_ros.core.identification.captures.capture import (
    Capture, MotorConstants, noise_scale, SensorNoise)
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.identification.captures.recordings import (
    CaptureFinder, read_recording, STILL)
from biped_com_ros.core.identification.captures.stillness import StillnessOptions
from biped_com_ros.core.identification.captures.virtual_contacts import with_virtual_sensors
from biped_com_ros.core.identification.equations.com_measurements import (
    ComMeasurement, read_com_measurements)
from biped_com_ros.core.identification.estimation.estimates import Identification
from biped_com_ros.core.identification.fleet import read_prior
from biped_com_ros.core.identification.output.exports import write_exports
from biped_com_ros.core.identification.output.results import solve_and_write
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.urdf import load_urdf
import numpy as np
from rich.console import Console
from rich.progress import Progress

INSTRUMENTS = (
    ('force_bias', 'NEWTON', 'the bias of forces'),
    ('moment_bias', 'NEWTON_METRE', 'the bias of moments'),
    ('force_drift', 'NEWTON', 'the change of the bias of forces over the recording'),
    ('moment_drift', 'NEWTON_METRE', 'the change of the bias of moments'),
    ('recording_gain', 'SHARE', 'the gain of all wrenches and torques of one recording'),
    ('wrench_gain', 'SHARE', 'the gains of wrench sensors'),
    ('cross_talk', 'SHARE', 'the cross-talk of wrench sensors'),
    ('sensor_shift', 'METRE', "the places of wrench sensors' frames"),
    ('sensor_turn', 'RAD', "the axes of wrench sensors' frames"),
    ('torque_bias', 'NEWTON_METRE', 'the bias of joint torques'),
    ('torque_gain', 'SHARE', 'the torque constants'),
    ('friction', 'SHARE', "the joints' friction over their effort limit"),
    ('encoder_offset', 'RAD', 'the offsets of joint positions'),
    ('tilt_bias', 'RAD', 'the bias of the direction of gravity'),
    ('floor_tilt', 'RAD', 'the tilt of the floor'),
    ('sole_turn', 'RAD', "the directions of the soles' frames"),
    ('sole_height', 'METRE', "the heights of the soles' frames"))
"""Errors of `SensorNoise` that stay the same over a recording: name, unit, description."""


class Calibrated(NamedTuple):
    """Results of a calibration: the robot, what was measured and assumed, and the estimate."""

    model: RobotModel
    captures: Sequence[Capture]
    noise: SensorNoise
    known: Sequence[ComMeasurement]
    found: Identification
    paths: dict[str, Path]


def estimate(options: argparse.Namespace, console: Console) -> Calibrated:
    """Read the recording, estimate, and write the results."""
    config = load_robot_config(options.robot)
    model = with_virtual_sensors(RobotModel(config, load_urdf(config, options.urdf)))
    for warning in model.warnings:
        console.print(f'warning: {warning}', style='yellow', highlight=False, markup=False)
    captures = find_captures(options, model, console)
    write_captures(options, model, captures)
    noise = SensorNoise(
        force=options.force_noise, moment=options.moment_noise, torque=options.torque_noise,
        encoder=options.encoder_noise, tilt=options.tilt_noise,
        sole_contact=options.sole_contact,
        **{name: getattr(options, name) for name, _, _ in INSTRUMENTS}).scaled(
            noise_scale(model.mass, options.noise_at_mass))
    known = (read_com_measurements(options.known_com, model, captures) if options.known_com
             else [])
    fleet = read_prior(options.prior, model) if options.prior else None
    with console.status(f'solving {len(captures)} poses'):
        found, paths = solve_and_write(
            options.out, model, captures, noise, options.com_sigma, known, fleet)
        paths |= write_exports(options.out, model, found, robot=options.robot, mjcf=options.mjcf)
    return Calibrated(model, captures, noise, known, found, paths)


def write_captures(options: argparse.Namespace, model: RobotModel,
                   captures: Sequence[Capture]) -> None:
    """Write the captures beside the results, unless they were read from there."""
    path = options.out / 'captures.json'
    if options.recording.resolve() == path.resolve():
        return
    log = CaptureLog(path, model)
    log.clear()
    for capture in captures:
        log.append(capture)


def find_captures(options: argparse.Namespace, model: RobotModel,
                  console: Console) -> list[Capture]:
    """Return the captures of the recording; show the progress of reading."""
    if options.recording.suffix == '.json':
        if not options.recording.exists():
            raise ConfigurationError(f"file of captures '{options.recording}' does not exist")
        captures = CaptureLog(options.recording, model).captures
        nothing = np.zeros(len(model.config.feet), dtype=bool)
        return [replace(capture, in_contact=nothing) for capture in captures
                ] if options.hanging else captures
    motors = MotorConstants(dict(map(_constant, options.current)))
    if is_averages(options.recording):
        return read_averages(options.recording, model, motors, options.hanging)
    finder = CaptureFinder(
        model, StillnessOptions(
            joint_range=options.still_range,
            force_deviation=options.still_force * noise_scale(
                model.mass, options.noise_at_mass)), motors, options.hanging,
        STILL if options.still is None else (options.still,))
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task('reading', total=1.0)
        for share in read_recording(options.recording, finder, options.namespace):
            progress.update(task, completed=share,
                            description=f'reading, {len(finder.captures)} poses')
    captures = finder.require_captures()
    console.print(f'{len(captures)} captures of {finder.duration:g} s each (--still)',
                  style='dim', highlight=False)
    for problem, count in finder.rejected.items():
        console.print(f'not used of the recording ({count} x): {problem}', style='yellow',
                      markup=False)
    return captures


def _constant(text: str) -> tuple[str, float]:
    name, _, value = text.partition('=')
    try:
        return name, float(value)
    except ValueError:
        raise ConfigurationError(f"--current '{text}' must be JOINT=K with K in N m/A") from None
