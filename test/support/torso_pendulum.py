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
"""A torso that swings, and its controller."""

import math

from biped_com_ros.core.torso.constant_curvature import Backbone
from biped_com_ros.core.torso.controller import Measurement, TendonController
from biped_com_ros.core.torso.options import ControllerOptions, TendonDrive
from biped_com_ros.core.torso.orientation import ImuPair, UPRIGHT
from biped_com_ros.core.torso.statics import Stiffness, TorsoStatics
import numpy as np
from scipy.spatial.transform import Rotation

DT = 0.002
ANGLES = np.radians((180.0, 270.0, 0.0, 90.0))
MAX_BEND = math.radians(15.0)
DRIVE = TendonDrive(stiffness=7000.0, pretension=12.0, lead=0.02)
OTHER = TendonDrive(stiffness=9000.0, pretension=18.0, lead=0.02)
OPTIONS = ControllerOptions(drive=DRIVE)
IMUS = ImuPair(np.eye(3), np.eye(3))
ARMS = (-0.034, 0.0), (0.0, -0.034), (0.034, 0.0), (0.0, 0.034)


def make_controller(options=OPTIONS, bending=2.6):
    stiffness = Stiffness(bending=bending, torsion=10.0, axial=5e4)
    statics = TorsoStatics(Backbone(0.129, 0.034, ANGLES), stiffness)
    return TendonController(statics, MAX_BEND, options)


def imus_at(rotation, up=(0j, 1.0)):
    """Return the measurement of IMUs along base and tip, with an upright base."""
    imus = np.array((*rotation.as_quat(), 0.0, 0.0, 0.0))
    return IMUS.read(UPRIGHT, imus)._replace(up=up, gyros=None)


class Pendulum:
    """
    A mass on a bending spring, pulled by four tendons; small angles, no torsion.

    In plain numbers, which is ten times as fast as in arrays.

    Parameters
    ----------
    stiffness, push
        N m/rad, and a moment (2,) that is unknown to the controller, N m.

    """

    def __init__(self, stiffness=2.6, push=(0.0, 0.0)):
        self.bend, self.rate = np.zeros(2), (0.0, 0.0)
        self.stiffness, self.push, self.torsion = stiffness, push, 0.0
        self.sum, self.tensions, self.cut = 48.0, np.full(4, 12.0), ()

    @property
    def lengths(self):
        return self._lengths(*self.bend.tolist())

    def _lengths(self, x, y):
        return [0.129 - self.sum / 5e4 - a * x - b * y for a, b in ARMS]

    @property
    def rotation(self):
        x, y = self.bend
        turn = Rotation.from_rotvec((-y, x, 0.0))
        return turn * Rotation.from_rotvec((0.0, 0.0, self.torsion)) if self.torsion else turn

    def measure(self, **changes):
        return Measurement(imus_at(self.rotation), self.lengths, self.tensions.tolist(),
                           inertia=0.03)._replace(**changes)

    def step(self, commands):
        commands, bend, tensions = commands.tolist(), self.bend.tolist(), ()
        for _ in range(4):
            dx, dy = self.rate
            tensions = [0.0 if i in self.cut else min(max(
                12.0 + 7000.0 * (length - command - 0.02 * (a * dx + b * dy)), 0.0), 120.0)
                for i, (length, command, (a, b)) in enumerate(zip(
                    self._lengths(*bend), commands, ARMS))]
            self.sum += 0.5 * (sum(tensions) - self.sum)
            moments = [sum(arm[k] * pull for arm, pull in zip(ARMS, tensions))
                       - self.stiffness * bend[k] + self.push[k] - 0.05 * self.rate[k]
                       for k in (0, 1)]
            self.rate = tuple(rate + DT / 4 * moment / 0.03
                              for rate, moment in zip(self.rate, moments))
            bend = [angle + DT / 4 * rate for angle, rate in zip(bend, self.rate)]
        self.bend = np.array(bend)
        self.tensions = np.array(tensions)


def run(controller, pendulum, seconds, **changes):
    out, lengths, tensions = None, [], []
    for _ in range(round(seconds / DT)):
        out = controller.update(DT, pendulum.measure(**changes))
        lengths.append(out.lengths)
        tensions.append(out.tensions)
        pendulum.step(out.lengths)
    low, high = controller.length_limits
    assert (np.array(lengths) >= low).all() and (np.array(lengths) <= high).all()
    limits = controller.options.tensions
    assert limits.lowest - 1e-9 <= np.min(tensions)
    assert np.max(tensions) <= limits.highest + 1e-9
    return out


def aimed(target, options=OPTIONS, bending=2.6, **plant):
    """Return a controller with a target, and the pendulum."""
    controller = make_controller(options, bending)
    controller.set_target(target)
    return controller, Pendulum(**plant)
