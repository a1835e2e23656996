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

from dataclasses import replace

from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.equations.instruments import (
    InstrumentErrors, InstrumentKind)
from biped_com_ros.core.identification.equations.soles import SoleContacts
from biped_com_ros.core.identification.estimation.estimator import Estimator, planned_instruments
from examples.static_robot import MisplacedSoles
import numpy as np
import pytest
from support.statics_data import NOISE, rodrigues, TrueRobot

K = InstrumentKind
BOTH = ('left', 'right')


class Standing(TrueRobot):
    """A robot whose soles are turned and raised in its feet, on a tilted floor."""

    def __init__(self, name, seed, floor=(0.0, 0.0), soles=((0.0,) * 3,) * 2):
        super().__init__(name, seed=seed, com_sigma=0.008)
        self.floor, self.soles = np.array(floor), np.array(soles)
        self._placed = MisplacedSoles(self.model, self.soles, self.floor)

    def stand(self, standing, noise=None, name=''):
        q = self._placed.flat(self.positions(standing, 0.4), standing)
        return self.capture(standing, noise, q, self._placed.tilt(q, standing), name)


def estimates(found, *kinds):
    return {(e.kind, e.name, e.axis): e for e in found.instruments.estimates if e.kind in kinds}


@pytest.mark.parametrize('name', ('sabian', 'talos'))
@pytest.mark.parametrize('standing', (('left',), ('right',), BOTH))
def test_the_equations_hold_for_the_true_errors_only(name, standing):
    robot = Standing(name, 1, (0.012, -0.02), ((0.004, -0.006, 0.002), (-0.007, 0.003, -0.003)))
    capture, n = robot.stand(standing), len(robot.model.joint_names)
    tilt = np.array((0.003, -0.004, 0.002))
    measured = replace(capture, up=rodrigues(tilt) @ capture.up)
    contacts = SoleContacts(robot.model, [measured], NOISE)
    assert contacts.warnings == ()
    regressor = StaticsRegressor(robot.model)
    sensors = len(robot.model.config.wrench_sensors)
    true = replace(InstrumentErrors.none(n, sensors), floor=robot.floor, soles=robot.soles,
                   tilts={capture.up_frame: tilt})
    corrected = true.corrected(measured)
    e = regressor.linearised(corrected, robot.theta, NOISE)
    extended = contacts.extended(0, corrected, e, true, np.zeros(6))
    b, more = extended.b[len(e.b):], len(extended.b) - len(e.b)
    assert more == (5 if standing == BOTH else 2)
    np.testing.assert_allclose(b, 0.0, atol=1e-4)  # second order in the errors
    nothing = replace(true, floor=np.zeros(2), soles=np.zeros((2, 3)))
    wrong = contacts.extended(0, corrected, e, nothing, np.zeros(6)).b[len(e.b):]
    assert np.abs(wrong).max() > 5e-3
    # The derivatives explain the difference.
    ground = np.concatenate((robot.floor, robot.soles.ravel()))
    np.testing.assert_allclose(wrong + extended.J_ground[len(e.b):] @ ground, b, atol=2e-4)
    moved = 1e-3 * robot.rng.normal(size=n)
    turned = 1e-3 * robot.rng.normal(size=3)
    other = replace(corrected, positions=corrected.positions + moved,
                    up=rodrigues(turned) @ corrected.up)
    changed = contacts.extended(0, other, e, true, np.zeros(6)).b[len(e.b):]
    np.testing.assert_allclose(changed - b, extended.J_position[len(e.b):] @ moved
                               + extended.J_up[len(e.b):] @ turned, atol=2e-5)
    assert np.abs(changed - b).max() > 1e-4


def test_a_tilted_floor_and_a_turned_sole_are_found():
    """Each where the other is known; the signs are those of the remedy."""
    feet = [('left', 'right'), ('right', 'left'), ('left',)]
    robot = Standing('sabian', 2, floor=(0.0175, -0.012))
    captures = [robot.stand(feet[i % 2], NOISE, str(i)) for i in range(10)]
    level = SensorNoise(tilt_bias=0.0, sole_turn=0.0, sole_height=0.0)
    floor = estimates(Estimator(robot.model, level).solve(captures, 2), K.FLOOR_TILT)
    for axis, value in zip('xy', robot.floor):
        e = floor[K.FLOOR_TILT, 'floor', axis]
        assert abs(e.estimate - value) < min(3.0 * e.sd, 0.003) and e.is_significant
        sign = '+' if value > 0.0 else '-'
        assert e.remedy.startswith(f'level the floor: it is turned by {sign}')

    soles = ((0.0, 0.0, 0.0), (0.010, -0.009, 0.004))
    robot = Standing('sabian', 3, soles=soles)
    captures = [robot.stand(feet[i % 3], NOISE, str(i)) for i in range(12)]
    exact = SensorNoise(tilt_bias=0.0, floor_tilt=0.0, encoder_offset=0.001)
    found = estimates(Estimator(robot.model, exact).solve(captures, 2), K.SOLE_TURN, K.SOLE_HEIGHT)
    for axis, value in zip('xy', soles[1]):
        right, left = found[K.SOLE_TURN, 'right', axis], found[K.SOLE_TURN, 'left', axis]
        assert abs(right.estimate - value) < min(3.0 * right.sd, 0.003) and right.is_significant
        assert abs(left.estimate) < 3.0 * left.sd and not left.is_significant
    # Relative to the first foot's.
    assert found[K.SOLE_HEIGHT, 'right', 'z'].estimate == pytest.approx(0.004, abs=0.001)
    assert (K.SOLE_HEIGHT, 'left', 'z') not in found


@pytest.mark.thorough
def test_intervals_of_floor_soles_and_joint_offsets_hold():
    z = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        sigma = np.array((NOISE.sole_turn, NOISE.sole_turn, NOISE.sole_height))
        robot = Standing('sabian', seed, NOISE.floor_tilt * rng.normal(size=2),
                         sigma * rng.normal(size=(2, 3)))
        offsets = NOISE.encoder_offset * rng.uniform(-1.7, 1.7, len(robot.model.joint_names)) * (
            ~StaticsRegressor(robot.model).is_prismatic)
        captures = [replace(c, positions=c.positions + offsets) for c in (
            robot.stand(BOTH if i % 3 else ('left',), NOISE, str(i)) for i in range(14))]
        found = Estimator(robot.model).solve(captures, 2)
        truth = {(K.FLOOR_TILT, 'floor', axis): value for axis, value in zip('xy', robot.floor)}
        for foot, (x, y, height) in zip(BOTH, robot.soles):
            truth |= {(K.SOLE_TURN, foot, 'x'): x, (K.SOLE_TURN, foot, 'y'): y,
                      (K.SOLE_HEIGHT, foot, 'z'): height - robot.soles[0, 2]}
        truth |= {(K.JOINT_OFFSET, joint, ''): value
                  for joint, value in zip(robot.model.joint_names, offsets)}
        known = estimates(found, K.FLOOR_TILT, K.SOLE_TURN, K.SOLE_HEIGHT, K.JOINT_OFFSET)
        z += [(e.estimate - truth[key]) / e.sd for key, e in known.items()]
    assert np.mean(np.abs(z) < 1.96) > 0.88 and 0.5 < np.mean(np.square(z)) < 1.6


def test_soles_on_an_edge_or_a_step_are_not_used_and_named():
    robot = Standing('sabian', 4)
    captures = [robot.stand(BOTH, name=f'pose {i}') for i in range(6)]
    sole = robot.model.config.feet['left'].sole
    R = robot.model.state(captures[2].positions).pose_in_base(sole).rotation
    imu = robot.model.state(captures[2].positions).pose_in_base(captures[2].up_frame).rotation
    leaning = imu.T @ R @ rodrigues(np.array((0.2, 0.0, 0.0))) @ np.array((0.0, 0.0, 1.0))
    captures[2] = replace(captures[2], up=leaning)
    contacts = SoleContacts(robot.model, captures, NOISE)
    assert len(contacts.warnings) == 1 and 'pose 2' in contacts.warnings[0]
    assert 'pose 1' not in contacts.warnings[0]
    e = StaticsRegressor(robot.model).linearised(captures[2], robot.theta, NOISE)
    none = InstrumentErrors.none(len(robot.model.joint_names), 2)
    assert contacts.extended(2, captures[2], e, none, np.zeros(6)) is e
    unused, regressor = replace(NOISE, sole_contact=0.0), StaticsRegressor(robot.model)
    assert SoleContacts(robot.model, captures, unused).warnings == ()
    fewer, all_of_them = (
        len(planned_instruments(regressor, noise).sigma) for noise in (unused, NOISE))
    assert all_of_them - fewer == 2 + 2 * len(BOTH) + 1
