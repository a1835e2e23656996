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
Gravity compensation of a simulated robot, in numbers and pictures.

First the droop: the robot stretches its arms out and stands, held by its position controllers
alone, then with feedforward; then a robot whose masses differ from its URDF
(8 %, 5 mm), with feedforward by that URDF and by what the identification finds from 60 poses.

Then the weight: the centre of mass goes over the left foot, the right foot is lifted, put down
again, and the weight comes back; printed is the largest step of a torque between updates, with
feedforward all the time and no rate limit.

    python examples/gravity_droop.py talos
    python examples/gravity_droop.py talos --pictures doc/pictures

"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from biped_com_ros import RobotModel
from biped_com_ros.core.constants import nanoseconds
from biped_com_ros.core.errors import InputError
from biped_com_ros.core.gravity import CompensationSettings, GravityCompensator, SafetySettings
from biped_com_ros.core.identification import (
    Capture, DesignOptions, Estimator, PoseDesigner, SensorNoise, with_inertials)
from biped_com_ros.core.identification.output.urdf_inertials import NewInertial
from biped_com_ros.core.legs import ComShift
from biped_com_ros.core.legs.keyframes import minimum_jerk
from biped_com_ros.sim import hidden
from biped_com_ros.sim.description import parse
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from examples.static_robot import StaticRobot
import numpy as np
import pinocchio as pin

RATE = 500.0
TALOS_MASS = 93.3  # kg
SETTINGS = CompensationSettings(safety=SafetySettings(clamp=1.0, start_time=0.5))
#: Nothing smooths efforts but the schedule of the shares.
UNLIMITED = replace(SETTINGS, safety=replace(SETTINGS.safety, max_rate=1000.0))
HIDDEN = PlantOptions(com_sigma=0.005, mass_sigma=0.08, seed=1)


class Robot:
    """
    A simulated robot with position controllers and, if it has a model, feedforward.

    Parameters
    ----------
    robot
        Its name.
    model_in_use
        Model behind the feedforward; None: no feedforward.
    posture
        It starts in.
    options
        Of the plant: hidden errors.
    settings
        Of the feedforward.

    """

    def __init__(self, robot: str, model_in_use: RobotModel | None, posture: str = 'stand',
                 options: PlantOptions | None = None,
                 settings: CompensationSettings = SETTINGS) -> None:
        self.model = model = RobotModel.load(robot)
        self.plant = Plant(model.config, model.urdf, options or PlantOptions(),
                           model.joint_names, model.link_names)
        self.plant.reset(posture)
        self.command = self.plant.hold()
        self.actuated = model.joint_index(self.plant.actuated_joint_names)
        imus = model.config.imus
        self._imu = list(imus.values()).index(model.config.imu)
        self.feedforward = (
            None if model_in_use is None else GravityCompensator(model_in_use, settings))
        if self.feedforward is not None:
            self.feedforward.limiter.start()
        self.observation = self.plant.step(self.command)
        self._every = max(round(1.0 / (RATE * self.plant.dt)), 1)
        self._count = 0

    def step(self) -> None:
        """Take one step of the plant; feedforward at 500 Hz or the plant's rate."""
        if self.feedforward is not None and self._count % self._every == 0:
            self._feed_forward(self.feedforward)
        self._count += 1
        self.observation = self.plant.step(self.command)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(round(seconds / self.plant.dt)):
            self.step()

    def errors_deg(self, group: str) -> np.ndarray:
        """Return the position errors of the actuated joints of a group, deg."""
        index = self.model.group_index(group)
        errors = self.observation.joint_positions[self.actuated] - self.command.position
        return np.degrees(errors[np.isin(self.actuated, index)])

    def hand(self) -> np.ndarray:
        """Return the position of the left hand in the base, (3,), m."""
        return self._hand_at(self.observation.joint_positions)

    def hand_error_mm(self) -> float:
        """Return the position error of the left hand in the base, mm."""
        commanded = self.observation.joint_positions.copy()
        commanded[self.actuated] = self.command.position
        return 1e3 * float(np.linalg.norm(self.hand() - self._hand_at(commanded)))

    def _hand_at(self, positions: np.ndarray) -> np.ndarray:
        hand = self.model.config.hands['left'].frame
        return self.model.state(positions).pose_in_base(hand).position

    def _feed_forward(self, feedforward: GravityCompensator) -> None:
        measured, target = self.observation, None
        stamp_ns = nanoseconds(measured.time)
        feedforward.imu.update(measured.imu_quaternions[self._imu])
        for contact, wrench in enumerate(self.plant.truth().sole_wrenches.tolist()):
            feedforward.update_wrench(contact, wrench, stamp_ns)
        try:
            target = feedforward.efforts_at(measured.joint_positions, stamp_ns)
        except InputError:
            pass  # the limiter holds the last efforts, then ramps to zero
        efforts = feedforward.limiter.update(target, self._every * self.plant.dt)
        self.command.effort[:] = efforts[self.actuated]


@dataclass
class Droop:
    """Largest errors at rest: arm and leg joints, deg; the left hand, mm."""

    arm_deg: float
    hand_mm: float
    leg_deg: float


def droop(robot: str, model_in_use: RobotModel | None, options: PlantOptions | None = None,
          seconds: float = 4.0) -> Droop:
    """Let a robot stretch its arms out and measure how far it sags."""
    posture = 'arms_out'
    held = Robot(robot, model_in_use, posture, options)
    held.run(seconds)
    legs = np.concatenate([held.errors_deg(g) for g in ('left_leg', 'right_leg')])
    return Droop(float(np.abs(held.errors_deg('left_arm')).max()), held.hand_error_mm(),
                 float(np.abs(legs).max()))


def calibrated_model(robot: str, options: PlantOptions, poses: int = 60) -> RobotModel:
    """Return what the identification finds from noisy static poses of the simulated robot."""
    model, rng = RobotModel.load(robot), np.random.default_rng(options.seed)
    noise = noise_of(model)
    errors = hidden.draw(parse(model.urdf), options.seed, options.com_sigma, options.mass_sigma)
    truth = StaticRobot(model.config, model.urdf, errors, model.joint_names)
    designer = PoseDesigner(model, DesignOptions(
        count=1, candidates=poses, seed=3, approach='shortest'), noise)
    captures = []
    for candidate in designer.candidates():
        standing = candidate.placement.standing
        reading = truth.read(candidate.positions, standing).noisy(
            rng, noise.force, noise.moment, noise.torque, noise.tilt)
        captures.append(Capture(
            positions=candidate.positions, wrenches=reading.wrenches,
            in_contact=np.array([foot in standing for foot in model.config.feet]), up=reading.up,
            up_frame=model.config.imu.frame, torques=reading.torques))
    found = Estimator(model, noise).solve(captures)
    return RobotModel(model.config, with_inertials(
        model.urdf, {link.name: NewInertial(link.mass, link.com) for link in found.links}))


def noise_of(model: RobotModel) -> SensorNoise:
    """Return the noise of force and torque sensors that fit the robot, as Talos' fit Talos."""
    size, talos = model.mass / TALOS_MASS, SensorNoise()
    return replace(talos, force=size * talos.force, moment=size * talos.moment,
                   torque=size * talos.torque)


@dataclass
class Shift:
    """
    A weight shift with a step on the spot.

    Attributes
    ----------
    time, shares, efforts
        Shapes (T,), (T, 2) and (T, n): s, of the feet, N m.
    largest_step
        Of a commanded effort between updates, as a share of the joint's limit.
    fell
        Whether the robot did.

    """

    time: np.ndarray
    shares: np.ndarray
    efforts: np.ndarray
    largest_step: float
    fell: bool


def shift_weight(robot: str, lift: float = 0.02,
                 settings: CompensationSettings = UNLIMITED) -> Shift:
    """Shift the weight to the left foot, lift the right one, and go back."""
    held = Robot(robot, RobotModel.load(robot), settings=settings)
    held.run(1.0)
    path = plan(held.model, lift, held.plant.dt)
    limits = held.feedforward.gravity_model.effort_limits
    rows, before, largest = [], None, 0.0
    for positions in path:
        held.command.position[:] = positions[held.actuated]
        held.step()
        efforts = held.feedforward.limiter.efforts.copy()
        if before is not None:
            largest = max(largest, float(np.max(np.abs(efforts - before) / limits)))
        before = efforts
        if held.feedforward.support is not None:
            rows.append((held.observation.time, held.feedforward.support.shares.copy(),
                         efforts))
    time, shares, efforts = (np.array(column) for column in zip(*rows))
    return Shift(time, shares, efforts, largest, held.plant.has_fallen)


def plan(model: RobotModel, lift: float, dt: float) -> np.ndarray:
    """Return positions (T, n): over the left foot, right foot up and down, and back."""
    shift = ComShift(model, model.posture())
    there = shift.path('left', round(2.0 / dt))
    up = raise_right_foot(model, there[-1], lift, round(1.0 / dt))
    wait = np.repeat(there[-1:], round(0.5 / dt), axis=0)
    top = np.repeat(up[-1:], round(0.5 / dt), axis=0)
    end = np.repeat(there[:1], len(wait), axis=0)
    return np.concatenate((there, wait, up, top, up[::-1], wait, there[::-1], end))


def raise_right_foot(model: RobotModel, start: np.ndarray, lift: float, count: int) -> np.ndarray:
    """Return positions (count, n) that raise the second foot straight up."""
    joint = int(model.soles.joints[1])
    pose = model.soles.poses_in_joint()[1]
    sole_in_joint, data = pin.SE3(pose.rotation, pose.position), model.pin_model.createData()
    legs = model.group_index('right_leg')
    columns = [model.pin_model.joints[model.pin_model.getJointId(model.joint_names[i])].idx_v
               for i in legs]
    positions, rows, home = start.copy(), np.empty((count, len(start))), None
    for i in range(count):
        for _ in range(5):
            pin.computeJointJacobians(model.pin_model, data, model.configuration(positions))
            sole = data.oMi[joint] * sole_in_joint
            home = sole if home is None else home
            up = lift * minimum_jerk(i / (count - 1)) * home.rotation[:, 2]
            target = pin.SE3(home.rotation, home.translation + up)
            in_joint = pin.getJointJacobian(
                model.pin_model, data, joint, pin.ReferenceFrame.LOCAL)
            jacobian = sole_in_joint.toActionMatrixInverse() @ in_joint[:, columns]
            positions[legs] += np.linalg.lstsq(
                jacobian, pin.log6(sole.actInv(target)).vector, rcond=1e-6)[0]
        rows[i] = positions
    return rows


def plot(path: Path, title: str, time: np.ndarray, curves: dict[str, np.ndarray], unit: str
         ) -> None:
    """Write curves over time as an SVG."""
    from examples.figures import chart, save  # only where pictures are drawn
    axes = chart(title, 'time [s]', unit)
    step = max(len(time) // 400, 1)
    for name, curve in curves.items():
        axes.plot(time[::step] - time[0], curve[::step], label=name)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.25 * (high - low))  # room for the legend
    save(axes, path)


def droop_over_time(robot: str, seconds: float = 5.0) -> tuple[np.ndarray, np.ndarray]:
    """Return time (T,) and the left hand's height over the commanded one, mm."""
    held = Robot(robot, RobotModel.load(robot), 'arms_out')
    held.feedforward.limiter.stop()
    commanded = held._hand_at(held.model.posture('arms_out'))[2]
    time, drop = [], []
    for i in range(round(seconds / held.plant.dt)):
        if i == round(0.5 * seconds / held.plant.dt):
            held.feedforward.limiter.start()
        held.step()
        time.append(held.observation.time)
        drop.append(1e3 * (held.hand()[2] - commanded))
    return np.array(time), np.array(drop)


def draw(robot: str, shift: Shift, directory: Path) -> None:
    """Write the pictures of the documentation."""
    time, drop = droop_over_time(robot)
    plot(directory / 'gravity_droop.svg',
         f'{robot}: hand of a stretched arm, feedforward from 2.5 s on', time, {'left hand': drop},
         'height over commanded [mm]')
    plot(directory / 'gravity_shares.svg', f'{robot}: share of the weight', shift.time,
         {'left foot': shift.shares[:, 0], 'right foot': shift.shares[:, 1]}, 'share')
    model = RobotModel.load(robot)
    legs = np.concatenate([model.group_index(g) for g in ('left_leg', 'right_leg')])
    busiest = legs[np.argsort(-np.ptp(shift.efforts[:, legs], axis=0))[:6]]
    plot(directory / 'gravity_torques.svg', f'{robot}: feedforward torques', shift.time,
         {model.joint_names[i].removesuffix('_joint'): shift.efforts[:, i] for i in busiest},
         'torque [N m]')


def show(robot: str) -> Shift:
    """Print the figures of one robot."""
    model = RobotModel.load(robot)
    print(f'{robot}: arms out, standing; largest error at rest')
    print(f'{"":34}{"arm [deg]":>12}{"hand [mm]":>12}{"leg [deg]":>12}')
    for name, model_in_use, options in (
            ('position controllers alone', None, None),
            ('feedforward, true model', model, None),
            ('hidden masses, feedforward by URDF', model, HIDDEN),
            ('hidden masses, calibrated', calibrated_model(robot, HIDDEN), HIDDEN)):
        d = droop(robot, model_in_use, options)
        print(f'{name:34}{d.arm_deg:12.6f}{d.hand_mm:12.5f}{d.leg_deg:12.6f}')
    shift = shift_weight(robot)
    print(f'weight over the left foot, right foot up and down, back: '
          f'{"FELL" if shift.fell else "stood"}; right share down to {shift.shares[:, 1].min():g},'
          f' largest step of a torque {100.0 * shift.largest_step:.3f} % of its limit')
    return shift


def main() -> None:
    """Print and, if asked, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('robots', nargs='*', default=['talos'])
    parser.add_argument('--pictures', type=Path)
    arguments = parser.parse_args()
    for robot in arguments.robots:
        shift = show(robot)
        if arguments.pictures:
            draw(robot, shift, arguments.pictures)


if __name__ == '__main__':
    main()
