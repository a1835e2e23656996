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
"""Compares the weight on the feet with the model, and suggests a remedy where they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biped_com_ros.core.check_result import CheckResult
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.model.config import LONGEST_SOLE
from biped_com_ros.core.model.robot import RobotModel
import numpy as np

WEIGHING_RATE = 100.0
"""Rate of the instants to average, Hz; for the mean of a second more would not help."""

FORCE_UNITS = {'kgf': 9.80665, 'lbf': 4.4482216}
"""In N. Others would be far below or above the noise of a sensor, and a hanging robot."""

NEAR = 0.1
"""How near the weight has to be to that in another unit, relatively."""

_LOADED = 0.25
"""Share of the total above which the moments of a foot are not those of errors alone."""

WINDOW_NS = 900_000_000
"""
Time of which a result is the mean, ns: a moving robot weighs more or less for an instant. A little
less than the second after which results are reported.
"""

UPRIGHT = 0.7
"""Least vertical part of the z axes of base and soles of a robot that has not fallen."""


def weight_below_sensors(model: RobotModel, gravity: float = GRAVITY) -> float:
    """
    Return the weight that the foot sensors do not carry while the robot stands, N.

    The wrenches at the soles contain it as the model has it: comparing them with the weight of
    the model shows only what is wrong above the sensors.
    """
    sensors = [model.config.wrench_sensors[name] for foot in model.config.feet.values()
               for name in foot.wrench_sensors]
    below = {int(link) for sensor in sensors
             for link in model.subtree_links(sensor.link or sensor.frame)}
    return gravity * float(model.link_masses[sorted(below)].sum())


class WeightCheck:
    """
    Averages the wrenches of the feet, and compares them with the weight and the size of a sole.

    Parameters
    ----------
    body_weight
        N, of the model.
    sensors_of
        Names of the sensors of each foot, by foot.
    tolerance
        Relative difference from the model that is still plausible.
    robot_file
        Name of the robot's configuration file, for messages.
    window_ns
        Least time of which a result is the mean, ns; 0 where means are added.

    """

    def __init__(self, body_weight: float, sensors_of: Mapping[str, Sequence[str]],
                 tolerance: float, robot_file: str, window_ns: int = WINDOW_NS) -> None:
        self.tolerance = tolerance
        self._sensors_of, self._file, self._window_ns = sensors_of, robot_file, window_ns
        self._foot_sums = np.zeros((len(sensors_of), 6))
        self.body_weight, self._is_calibrated = body_weight, False
        self._last: CheckResult | None = None
        self._start()

    def use_weight(self, body_weight: float, *, is_calibrated: bool) -> None:
        """
        Compare with another weight, N, from now on.

        Where it is that of a calibrated URDF, no calibration is the remedy.
        """
        if is_calibrated and not self._is_calibrated:  # what was compared before does not count
            self._last = None
            self._start()
        self.body_weight, self._is_calibrated = body_weight, is_calibrated

    def add(self, stamp_ns: int, vertical_force: float,
            foot_wrenches: Array | Sequence[Sequence[float]], in_contact: bool,
            uprightness: float = 1.0) -> None:
        """
        Add one instant.

        Parameters
        ----------
        stamp_ns
            Its time, ns.
        vertical_force
            Of the total wrench, N.
        foot_wrenches
            At the soles in the order of `sensors_of`, N and N m, shape (F, 6).
        in_contact
            Whether any foot is in contact.
        uprightness
            Least vertical part of the z axes of base and soles.

        """
        if not self._count or stamp_ns < self._began_ns:
            self._start(stamp_ns)
        self._elapsed_ns, self._is_new = stamp_ns - self._began_ns, True
        self._count += 1
        self._fallen += uprightness < UPRIGHT
        self._sum += vertical_force
        self._contacts += in_contact
        if len(foot_wrenches):
            self._foot_sums += foot_wrenches

    def result(self) -> CheckResult | None:
        """Return the result for the last mean; None if nothing was added since the last call."""
        if not self._is_new:
            self._start()
            self._last = None
            return None
        self._is_new = False
        if self._elapsed_ns >= self._window_ns:
            self._last = self._compared()
            self._start()
        return self._last or CheckResult(
            True, f'not compared yet: {1e-9 * self._elapsed_ns:.1f} s are too short', {})

    def _compared(self) -> CheckResult:
        mean = self._sum / self._count
        wrenches = (self._foot_sums / self._count).tolist()
        touching, fallen = (2 * n > self._count for n in (self._contacts, self._fallen))
        ratio = mean / self.body_weight
        if fallen:  # sensors may be loaded in any direction
            return CheckResult(False, (
                'not compared: base or soles are tilted by more than 45 deg; the robot has '
                'fallen, or the orientation of the IMU is wrong'), {'ratio': ratio})
        problem = self._wrong_sign(ratio, [wrench[2] for wrench in wrenches]) or (
            self._wrong_units(mean, wrenches)) or (
            self._wrong_weight(mean, ratio) if touching else '')
        where = '' if touching else ', no foot on the ground'
        return CheckResult(not problem, problem or (
            f'{mean:.1f} N, model {self.body_weight:.1f} N (ratio {ratio:.4f}){where}'),
            {'ratio': ratio})

    def _start(self, stamp_ns: int = 0) -> None:
        self._count, self._sum, self._contacts, self._fallen = 0, 0.0, 0, 0
        self._began_ns = stamp_ns
        self._elapsed_ns, self._is_new = 0, False
        self._foot_sums[:] = 0.0

    def _wrong_sign(self, ratio: float, feet: Sequence[float]) -> str:
        """Describe pulled feet, which in an upright robot only a wrong sign can show."""
        pulled = {name: force for (name, force) in zip(self._sensors_of, feet)
                  if force < -0.1 * self.body_weight}
        if not pulled:
            return ''
        sensors = [sensor for name in pulled for sensor in self._sensors_of[name]]
        parameters = _parameters(sensors)
        forces = ', '.join(f'{name} {force:.1f} N' for name, force in pulled.items())
        return (f'negative normal force of a foot ({forces}; total {ratio:.3f} of the weight): '
                f'negate {parameters} in {self._file}, then tare again')

    def _wrong_units(self, total: float, wrenches: Sequence[Sequence[float]]) -> str:
        """Describe forces that are a known share of the weight, or a CoP that is metres away."""
        for unit, newtons in FORCE_UNITS.items() if self._sensors_of else ():
            if abs(total * newtons / self.body_weight - 1.0) < NEAR:
                every = [sensor for names in self._sensors_of.values() for sensor in names]
                return (f'the feet carry {total:.1f} N, the model weighs {self.body_weight:.1f} '
                        f'N: if the robot stands freely, the sensors measure in {unit}; set '
                        f'{_parameters(every)} to {newtons:g}')
        for (foot, sensors), (_, _, fz, mx, my, _) in zip(self._sensors_of.items(), wrenches):
            moment = float(np.hypot(mx, my))
            if fz > _LOADED * max(total, 0.2 * self.body_weight) and moment > LONGEST_SOLE * fz:
                return (f'the centre of pressure of foot {foot} is {moment / fz:.1f} m from its '
                        'sole frame: its moments are probably in N mm; set '
                        f'{_parameters(sensors)} to [1, 1, 1, 0.001, 0.001, 0.001]')
        return ''

    def _wrong_weight(self, mean: float, ratio: float) -> str:
        if abs(ratio - 1.0) <= self.tolerance:
            return ''
        # Feet without any sensors have nothing to tare; without names it is unknown.
        can_tare = not self._sensors_of or any(self._sensors_of.values())
        tare = 'tare with the feet in the air; if it stays, ' if can_tare else ''
        masses = ('or that was not there in the calibration' if self._is_calibrated else
                  'and for masses missing in the URDF: calibrate (calibration.launch.py)')
        return (f'the feet carry {mean:.1f} N, the model weighs {self.body_weight:.1f} N (ratio '
                f'{ratio:.3f}, weight_tolerance {self.tolerance:g}): {tare}look for a support or '
                f'load that has no sensor, {masses}')


def _parameters(sensors: Sequence[str]) -> str:
    """Return the names of the parameters of sensors in the robot's YAML."""
    return ', '.join(f'wrench_sensors.{sensor}.scale' for sensor in sensors)
