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

"""What feet measure: floor and soles, virtual sensors, and turned ones."""

from dataclasses import replace

from biped_com_ros.core.errors import InputError
from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.identification.captures.stillness import CaptureWindow
from biped_com_ros.core.identification.captures.virtual_contacts import (
    frame_of_readings, reading_to_sensor, with_virtual_sensors)
from biped_com_ros.core.identification.equations.first_moments import (
    parameters_of, StaticsRegressor)
from biped_com_ros.core.identification.equations.instruments import InstrumentKind
from biped_com_ros.core.identification.equations.soles import SoleContacts
from biped_com_ros.core.identification.estimation.estimator import Estimator, planned_instruments
from biped_com_ros.core.identification.estimation.turned_sensors import find_turned_sensor
from biped_com_ros.core.model.robot import RobotModel
from examples.static_robot import MisplacedSoles
import numpy as np
import pinocchio as pin
import pytest
from support.statics_data import (
    NOISE, perfect_instruments, rodrigues, total_com, TrueRobot, without_torques)

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
    true = replace(perfect_instruments(robot.model), floor=robot.floor, soles=robot.soles,
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
    np.testing.assert_allclose(changed - b, extended.J[len(e.b):, e.inputs.positions] @ moved
                               + extended.J[len(e.b):, e.inputs.up] @ turned, atol=2e-5)
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
    assert contacts.extended(
        2, captures[2], e, perfect_instruments(robot.model), np.zeros(6)) is e
    unused, regressor = replace(NOISE, sole_contact=0.0), StaticsRegressor(robot.model)
    assert SoleContacts(robot.model, captures, unused).warnings == ()
    fewer, all_of_them = (
        len(planned_instruments(regressor, noise).sigma) for noise in (unused, NOISE))
    assert all_of_them - fewer == 2 + 2 * len(BOTH) + 1


@pytest.fixture(scope='module')
def model():
    return with_virtual_sensors(RobotModel.load('g1_as_sold'))


@pytest.fixture(scope='module')
def solved(model):
    """Return a robot, captures without foot sensors, and the estimate."""
    true = TrueRobot('g1', seed=0)
    weight = 9.81 * model.mass  # as the model's, which is 5 kg too light
    captures = [replace(capture, wrenches=np.outer(
        capture.in_contact, (0.0, 0.0, weight / capture.in_contact.sum(), 0.0, 0.0, 0.0)))
        for capture in true.captures(30)]
    estimator = Estimator(model)
    return true, captures, estimator, estimator.solve(captures)


def com_errors(true, regressor, theta):
    coms = [[total_com(regressor, t, q) for t in (theta, true.theta)]
            for q in (true.positions(('left',)) for _ in range(12))]
    return np.sqrt((np.diff(coms, axis=1) ** 2).mean(axis=(0, 1)))


def test_centre_of_mass_and_weight_are_found_by_joint_torques(solved, model):
    true, _, estimator, found = solved
    before = com_errors(true, estimator.regressor, parameters_of(model))
    after = com_errors(true, estimator.regressor, found.parameters)
    assert before.max() > 4e-3 and after.max() < 2e-3
    true_mass = true.theta[:, 0].sum()
    assert abs(true_mass - model.mass) > 4.0
    assert found.parameters[:, 0].sum() == pytest.approx(true_mass, abs=0.3)


def test_residuals_and_instruments_are_those_of_joint_torques(solved):
    _, _, _, found = solved
    assert found.before.torque_rms > 3.0 * found.after.torque_rms
    assert found.after.torque_rms < 0.5  # the noise is 0.3 N m
    assert np.isnan(found.after.com_rms)  # nothing measures it
    names = {e.name for e in found.instruments.estimates}
    names |= {n.name for n in found.noise}
    assert 'left_knee_joint' in names and not any('virtual' in name for name in names)


@pytest.mark.thorough
def test_the_value_of_the_virtual_wrench_does_not_matter(solved, model):
    """It depends on the masses that are sought."""
    true, captures, estimator, found = solved
    other = estimator.solve([replace(c, wrenches=1.2 * c.wrenches) for c in captures])
    mass = found.parameters[:, 0].sum()
    assert other.parameters[:, 0].sum() == pytest.approx(mass, abs=0.02 * abs(mass - model.mass))


def test_without_torques_poses_are_refused(solved):
    _, captures, estimator, _ = solved
    with pytest.raises(InputError, match='no joint torques.*motor_constants'):
        estimator.solve(without_torques(captures[:6]))


def test_readings_arrive_at_the_sole_and_count_at_its_link(model):
    assert frame_of_readings(model, 'left_virtual') == 'left_sole_frame'
    wrench = reading_to_sensor(model, 'left_virtual') @ np.array((5.0, 0.0, 100.0, 0.0, 0.0, 0.0))
    # The sole is 35 mm below its link.
    np.testing.assert_allclose(wrench, (5.0, 0.0, 100.0, 0.0, -0.175, 0.0), atol=1e-12)


@pytest.mark.parametrize(('load', 'stands'), [(0.5, False), (160.0, True)])
def test_a_hoisted_virtual_foot_is_in_the_air_and_a_loaded_one_stands(model, load, stands):
    window = CaptureWindow(model, model.config.imu.frame)
    for k in range(300):
        wrenches = np.zeros((2, 6))
        wrenches[:, 2] = load + 20.0 * (-1) ** k  # noise of velocities, not hands
        window.add(0.005 * k, model.posture(), np.zeros(len(model.joint_names)), wrenches,
                   np.array((0.0, 0.0, 1.0)))
    assert not window.problem
    assert window.capture().in_contact.tolist() == [stands, stands]


def test_a_robot_with_sensors_stays_as_it_is():
    talos = RobotModel.load('talos')
    assert with_virtual_sensors(talos) is talos
    np.testing.assert_array_equal(reading_to_sensor(talos, 'left_foot'), np.eye(6))
    assert frame_of_readings(talos, 'left_foot') == talos.config.wrench_sensors['left_foot'].frame


def axis_turn(axis, degrees):
    """Return the rotation about an axis."""
    return pin.exp3(np.radians(degrees) * np.eye(3)['xyz'.index(axis)])


class ModelledCaptures:
    """A robot with other masses than its URDF, and what it measures."""

    def __init__(self, name, seed):
        self.true = TrueRobot(name, seed=seed)
        self.regressor, config = StaticsRegressor(self.true.model), self.true.model.config
        self.noise = NOISE.scaled(self.true.model.mass / 64.0)
        names = list(config.wrench_sensors)
        self.sensors = {foot: names.index(config.feet[foot].wrench_sensors[0]) for foot in BOTH}

    def capture(self, standing=BOTH):
        """Return what it measures in posture stand."""
        return self.true.capture(standing, self.noise, self.true.model.posture('stand'))

    def find(self, capture, foot='left', change=lambda wrench: wrench):
        """Return what is found if the sensor of a foot measures something else."""
        wrenches = capture.wrenches.copy()
        wrenches[self.sensors[foot]] = change(wrenches[self.sensors[foot]])
        return find_turned_sensor(self.regressor, replace(capture, wrenches=wrenches))


@pytest.fixture(scope='module', params=[('sabian', 0), ('g1', 1), ('talos', 2)],
                ids=lambda param: param[0])
def robot(request):
    return ModelledCaptures(*request.param)


def turned(R):
    """Return how a sensor that is turned by R measures a wrench."""
    return lambda wrench: np.concatenate((R.T @ wrench[:3], R.T @ wrench[3:]))


@pytest.mark.parametrize('foot', BOTH)
@pytest.mark.parametrize(('axis', 'degrees'), [
    ('x', 90), ('x', -90), ('x', 180), ('y', 90), ('y', 180), ('y', 45)])
def test_a_turn_that_moves_the_load_is_named_while_both_feet_stand(robot, foot, axis, degrees):
    R = axis_turn(axis, degrees)
    capture = robot.capture()
    found = robot.find(capture, foot, turned(R))
    assert found is not None and found.sign == 1
    assert found.sensor == robot.true.model.config.feet[foot].wrench_sensors[0]
    force = capture.wrenches[robot.sensors[foot], :3]
    back = found.rotation @ R.T @ force
    assert np.degrees(np.arccos(back @ force / (force @ force))) < 12.0  # it is undone
    text = found.describe()
    assert f"'{found.sensor}' is mounted turned by" in text and 'frame of the sensor' in text


def test_an_opposite_sign_is_distinguished_from_a_turn(robot):
    capture = robot.capture()
    found = robot.find(capture, 'right', lambda wrench: -wrench)
    assert found.sensor == robot.true.model.config.feet['right'].wrench_sensors[0]
    # Two half turns about horizontal axes differ from a sign by the moments only.
    force = capture.wrenches[robot.sensors['right'], :3]
    assert found.sign * (found.rotation @ -force) @ force > 0.95 * force @ force


@pytest.mark.parametrize('degrees', (90, -90, 180))
def test_a_turn_about_the_vertical_is_named_on_one_foot(robot, degrees):
    R = axis_turn('z', degrees)
    found = robot.find(robot.capture(('left',)), 'left', turned(R))
    assert found.sensor == robot.true.model.config.feet['left'].wrench_sensors[0]
    assert np.degrees(np.linalg.norm(pin.log3(R.T @ found.rotation))) < 15.0
    assert found.sign == 1


@pytest.mark.parametrize('factors', [
    (1, -1, 1, -1, 1, -1), (-1, 1, 1, -1, 1, 1), (1, 1, 1, -1, -1, -1)],
    ids=['left-handed', 'left-handed, moments about its axes', 'moments of the opposite sign'])
def test_left_handed_axes_are_named_beside_the_turn_that_explains_as_much(robot, factors):
    found = robot.find(robot.capture(('left',)), 'left', lambda wrench: wrench * factors)
    assert found.sensor == robot.true.model.config.feet['left'].wrench_sensors[0]
    np.testing.assert_array_equal(found.scale[2:5], factors[2:5])  # on one foot the others are 0
    text = found.describe()
    assert 'or its axes are left-handed' in text and ', '.join(
        f'{factor:g}' for factor in found.scale) in text
    turn = robot.find(robot.capture(), 'left', turned(axis_turn('x', 90)))
    assert turn.scale is None and 'left-handed' not in turn.describe()


@pytest.mark.parametrize('name', (
    'biped', 'bioloid_legs', 'three_link', 'icub', 'romeo', 'sabian', 'g1', 'talos'))
def test_right_sensors_of_every_robot_are_no_fault_in_any_posture(name):
    model = RobotModel.load(name)
    robot = TrueRobot(name, extra=0.05 * model.mass, lumps=1, com_sigma=0.005)
    regressor, noise = StaticsRegressor(model), NOISE.scaled(model.mass / 64.0)
    for standing in (BOTH, ('left',), ('right',)):
        for positions in (model.posture('stand'), robot.positions(('left',))):
            capture = robot.capture(standing, noise, positions)
            assert find_turned_sensor(regressor, capture) is None


@pytest.mark.parametrize('standing', (BOTH, ('left',), ('right',)))
def test_right_sensors_and_lifted_feet_are_no_fault(robot, standing):
    for _ in range(5):
        assert robot.find(robot.capture(standing)) is None


@pytest.mark.parametrize('standing', (BOTH, ('left',), ('right',)))
def test_a_bias_that_was_not_tared_is_not_a_turn(robot, standing):
    rng, weight = np.random.default_rng(0), 9.81 * robot.true.model.mass
    for _ in range(12):
        capture = robot.capture(standing)
        biases = weight * rng.normal(0.0, [0.04] * 3 + [0.002] * 3, capture.wrenches.shape)
        assert find_turned_sensor(
            robot.regressor, replace(capture, wrenches=capture.wrenches + biases)) is None


@pytest.mark.parametrize('standing', (BOTH, ('left',)))
def test_a_dead_sensor_is_not_turned(robot, standing):
    assert robot.find(robot.capture(standing), 'left', np.zeros_like) is None


def test_weight_on_something_without_sensors_is_not_a_turn(robot):
    capture = robot.capture()
    assert robot.find(capture, 'left', lambda wrench: 0.3 * wrench) is None
    assert robot.find(capture, 'left', lambda wrench: 1.6 * wrench) is None


def test_calibrated_masses_are_used():
    robot = ModelledCaptures('g1', 3)
    heavy = robot.true.theta * 2.5
    capture = robot.capture()
    wrenches = capture.wrenches.copy()
    wrenches[0] = -wrenches[0]
    capture = replace(capture, wrenches=wrenches)
    assert find_turned_sensor(robot.regressor, capture, robot.true.theta) is not None
    assert find_turned_sensor(robot.regressor, capture, heavy) is None
