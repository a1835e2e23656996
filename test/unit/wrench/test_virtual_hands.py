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
"""Forces on hands from joint torques, against what the motors of a known robot have to do."""

from dataclasses import replace

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.model.robot import position_limits, RobotModel
from biped_com_ros.core.payload.carried import CarriedPayload
from biped_com_ros.core.stability.hands import Hands, HandSettings
from biped_com_ros.core.wrench.aggregation import AggregationSettings, WrenchAggregation
from biped_com_ros.core.wrench.virtual_foot_wrenches import (
    VirtualFootWrenches, VirtualWrenchSettings)
from biped_com_ros.core.wrench.virtual_hand_forces import VirtualHandForces, VirtualHandSettings
import numpy as np
from numpy.testing import assert_allclose
import pytest
from support.gripping_robot import with_virtual_hands
from support.moving_robot import moving

MS = 1_000_000
#: The low-pass has settled after one instant.
AT_ONCE = {'cutoff': 1e4}


@pytest.fixture(scope='module')
def model():
    return with_virtual_hands(RobotModel.load('biped'))


@pytest.fixture(scope='module')
def bare():
    """Return the robot without any sensor of forces."""
    return with_virtual_hands(RobotModel.load('biped'), feet='virtual')


@pytest.fixture(scope='module')
def weight(model):
    return GRAVITY * model.mass


def bent(model, **others):
    """Return a posture whose arms are bent, with all joints but others away from their stops."""
    posture = model.posture()
    angles = {f'{side}_{name}': angle for side in 'lr'
              for name, angle in (('shoulder_pitch', -0.6), ('elbow', -1.2))}
    for name, angle in {**angles, **others}.items():
        posture[model.joint_names.index(name)] = angle
    return posture


def on_feet(weight):
    return weight * np.array([[0.06, 0.03, 0.6, 0.008, -0.012, 0.004],
                              [-0.05, 0.04, 0.4, -0.006, 0.010, -0.003]])


def on_hands(weight):
    return weight * np.array([[0.1, -0.06, 0.08], [-0.05, 0.12, -0.04]])


def estimate(model, instant, others, sign=1.0, efforts=0.0, hands=None, stamp_ns=10 ** 9):
    """Return the estimator after the two instants; `efforts` are added."""
    hands = hands or VirtualHandForces(model, VirtualHandSettings(**AT_ONCE))
    measured = sign * instant.efforts + efforts
    assert not hands.update(stamp_ns, instant.state_before, measured, instant.gyro_before,
                            instant.acceleration, others)
    assert hands.update(stamp_ns + 2 * MS, instant.state, measured, instant.gyro,
                        instant.acceleration, others)
    return hands


def distance(hands, forces):
    """Return how far the estimates are from the truth, in standard deviations."""
    error = (hands.estimates - forces).reshape(-1)
    return float(np.sqrt(error @ np.linalg.solve(hands.covariance, error)))


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('feet', ['sensors', 'stale', 'none'])
def test_a_force_is_known_by_what_the_motors_have_to_do(model, bare, weight, feet, seed):
    """While the robot moves, in any posture; with the opposite sign it is far off."""
    used, forces = (bare if feet == 'none' else model), on_hands(weight)
    instant = moving(used, on_feet(weight), seed=seed, speed=1.0, spread=0.15,
                     posture=bent(model), hands=forces)
    others = on_feet(weight) if feet == 'sensors' else None
    hands = estimate(used, instant, others)
    assert_allclose(hands.estimates, forces, atol=0.012 * weight)
    assert distance(hands, forces) < 1.0 and all(hands.touching)
    wrong = estimate(used, instant, others, sign=-1.0)
    assert np.abs(wrong.estimates - forces).max() > 0.1 * weight


def test_a_hand_that_does_not_touch_has_exactly_no_force(model, weight):
    instant = moving(model, on_feet(weight), seed=5, speed=1.0, posture=bent(model))
    hands = estimate(model, instant, on_feet(weight))
    assert hands.touching == [False, False] and not hands.forces.any()
    assert not any(np.any(values) for values in hands.on_root())
    assert 0.0 < np.abs(hands.estimates).max() < 0.01 * weight


def along_the_arm(model, state):
    """Return the direction from the shoulder to the left hand, in the frame of the hand."""
    hand, shoulder = state.placements_in_base(model.frames(('l_gripper', 'l_upper_arm')))
    direction = hand[:3] @ (hand[3] - shoulder[3])
    return direction / np.linalg.norm(direction)


@pytest.mark.parametrize('feet', ['sensors', 'none'])
def test_the_force_along_a_stretched_arm_is_as_uncertain_as_stated(model, bare, weight, feet):
    """The arm's motors do not have to do anything for it; the feet show it, if measured."""
    used, others = (model, on_feet(weight)) if feet == 'sensors' else (bare, None)
    forces, deviations = np.zeros((2, 3)), []
    for posture in (bent(model), bent(model, l_elbow=-0.02)):
        direction = along_the_arm(used, used.state(posture))
        forces[0] = 0.2 * weight * direction
        hands = estimate(used, moving(
            used, on_feet(weight), seed=1, spread=0.0, posture=posture, hands=forces), others)
        assert distance(hands, forces) < 2.0
        deviations.append(np.sqrt(direction @ hands.covariance[:3, :3] @ direction) / weight)
    assert deviations[0] < 0.05
    if feet == 'none':
        assert 0.2 < deviations[1] < 0.35  # that of the prior
        assert abs(direction @ hands.estimates[0]) < 0.1 * weight and not hands.touching[0]
    else:
        assert deviations[1] < 0.1 and hands.touching[0]


def test_what_pushes_the_robot_elsewhere_is_not_a_force_of_the_hands(model, weight):
    """The feet measure a push on the pelvis, too; the arms contradict it."""
    feet = on_feet(weight)
    pushed = feet.copy()
    pushed[:, :3] += 0.15 * weight * np.array((0.7, 0.7, 0.0))
    for angle in (-1.2, -0.02):
        instant = moving(model, pushed, seed=3, posture=bent(model, l_elbow=angle))
        hands = estimate(model, instant, feet)
        assert hands.touching == [False, False]
        assert distance(hands, np.zeros((2, 3))) < 3.0


def test_a_joint_at_its_stop_does_not_pretend_a_force(model, weight):
    """The stop holds the elbow against its motor, whose torque then is not that of a force."""
    elbow = model.joint_names.index('l_elbow')
    posture = bent(model, l_elbow=position_limits(model)[1][elbow])
    pressing = 0.02 * weight * (np.arange(len(posture)) == elbow)
    instant = moving(model, on_feet(weight), seed=4, speed=0.1, spread=0.0, posture=posture)
    hands = estimate(model, instant, on_feet(weight), efforts=pressing)
    assert not hands.touching[0] and distance(hands, np.zeros((2, 3))) < 2.0


def test_missing_efforts_and_gaps_begin_anew(model, weight):
    forces = on_hands(weight)
    instant = moving(model, on_feet(weight), posture=bent(model), hands=forces)
    hands = estimate(model, instant, on_feet(weight))

    def update(ns, efforts):
        return hands.update(ns, instant.state, efforts, instant.gyro, instant.acceleration,
                            on_feet(weight))
    lacking = instant.efforts.copy()
    lacking[3] = np.nan
    now = 10 ** 9 + 4 * MS
    assert not update(now, lacking)
    assert not any(hands.touching) and not hands.forces.any()
    assert not update(now + 2 * MS, instant.efforts) and update(now + 4 * MS, instant.efforts)
    assert not update(now + 10 ** 9, instant.efforts)  # a gap
    assert update(now + 10 ** 9 + 2 * MS, instant.efforts)
    assert not update(now, instant.efforts)  # back in time
    assert not update(now, instant.efforts)
    assert np.isfinite(hands.covariance).all()


def test_a_motion_beyond_what_numbers_hold_gives_nothing(model):
    hands = VirtualHandForces(model, VirtualHandSettings(**AT_ONCE))
    still, state = np.zeros(3), model.state(model.posture())
    efforts = np.zeros(len(model.joint_names))
    for step in range(4):
        assert not hands.update(10 ** 9 + 2 * MS * step, state, efforts, still, still + 1e200)
    assert not hands.update(2 * 10 ** 9, state, efforts, still, still)
    assert hands.update(2 * 10 ** 9 + 2 * MS, state, efforts, still, still)


def test_the_first_instants_wait_for_the_low_pass(model, weight):
    hands = VirtualHandForces(model, VirtualHandSettings(cutoff=20.0))
    instant = moving(model, on_feet(weight), speed=0.0, posture=bent(model))
    found = [hands.update(10 ** 9 + 2 * MS * step, instant.state, instant.efforts, instant.gyro,
                          instant.acceleration) for step in range(20)]
    assert found == [False] * 12 + [True] * 8  # three time constants of 8 ms


def test_hands_with_sensors_beside_virtual_ones(weight):
    """What the other hand's sensors measure is taken out of waist and root."""
    real = RobotModel.load('talos')
    hands = dict(real.config.hands)
    hands['left'] = replace(hands['left'], source='virtual', wrench_sensors=())
    talos = RobotModel(replace(real.config, hands=hands), real.urdf)
    heavy = GRAVITY * talos.mass
    forces = heavy * np.array([[0.05, -0.03, 0.04], [-0.08, 0.06, 0.1]])
    instant = moving(talos, on_feet(heavy), seed=1, hands=forces)
    found = VirtualHandForces(talos, VirtualHandSettings(**AT_ONCE))
    assert found.names == ('left',) and found.others == ('left', 'right', 'right')
    others = [*on_feet(heavy), [*forces[1], 0.0, 0.0, 0.0]]
    estimate(talos, instant, others, hands=found)
    assert_allclose(found.estimates[0], forces[0], atol=0.01 * heavy)
    others[2] = np.zeros(6)
    estimate(talos, instant, others, hands=found, stamp_ns=10 ** 10)
    assert_allclose(found.estimates[0], forces[0], atol=0.03 * heavy)


def test_virtual_feet_do_not_carry_what_hands_do(bare, weight):
    feet, forces = on_feet(weight), weight * np.array([[0.1, 0.0, -0.05], [0.12, 0.0, -0.08]])
    instant = moving(bare, feet, seed=6, posture=bent(bare), hands=forces)
    hands = estimate(bare, instant, None)
    on_root, variances = hands.on_root()
    totals = []
    for known in (np.zeros(6), on_root):
        soles = VirtualFootWrenches(bare, VirtualWrenchSettings())
        soles.set_others(known, variances)
        for ns, state, gyro in ((10 ** 9, instant.state_before, instant.gyro_before),
                                (10 ** 9 + 2 * MS, instant.state, instant.gyro)):
            soles.update(ns, state, instant.efforts, gyro, instant.acceleration,
                         instant.R_world_imu)
        totals.append(soles.wrenches[:, :3].sum(0))
    assert np.abs(totals[0] - feet[:, :3].sum(0)).max() > 0.04 * weight
    assert_allclose(totals[1], feet[:, :3].sum(0), atol=0.02 * weight)
    assert variances.min() > 0.0


def test_the_weight_of_a_payload_leaves_an_idle_virtual_hand_at_zero(model, weight):
    payload = CarriedPayload(model)
    payload.receive('l_gripper', 0.5, (0.0, 0.0, -0.1), 10 ** 9)
    payload.update(10 ** 9)
    hands = Hands(model, HandSettings(), weight)
    state = model.state(model.posture())
    held = [0.0, 0.0, -0.5 * GRAVITY, 0.0, 0.0, 0.0]
    left, right = hands.without_payload(state, [held, held], payload, GRAVITY)
    assert np.linalg.norm(left[:3]) < np.linalg.norm(held[:3]) and left[3:] == [0.0, 0.0, 0.0]
    assert right == held
    idle, _ = hands.without_payload(state, [[0.0] * 6, [0.0] * 6], payload, GRAVITY)
    assert idle == [0.0] * 6


def test_feet_that_are_late_or_left_out_make_forces_less_certain(model, weight):
    aggregation = WrenchAggregation(model, AggregationSettings(low_pass_cutoff=0.0))
    bodies = [(body.name, body.index) for body in aggregation.virtual_hands]
    assert bodies == [('left', 2), ('right', 3)]
    hands = VirtualHandForces(model, VirtualHandSettings(**AT_ONCE))
    instant = moving(model, on_feet(weight), posture=bent(model))
    aggregation.set_state(instant.state, instant.R_world_imu)
    second = 10 ** 9

    def add(ns, feet_ns):
        if feet_ns:
            for sensor in range(2):
                aggregation.update(sensor, on_feet(weight)[sensor], feet_ns)
        others = aggregation.measured_at(ns, hands.uses_feet)
        return others is not None, hands.update(ns, instant.state, instant.efforts, instant.gyro,
                                                instant.acceleration, others)
    assert add(second, second) == (True, False)
    assert add(second + 2 * MS, second + 2 * MS) == (True, True)
    assert hands.deviations.shape == (2, 3)
    assert add(second + 40 * MS, 0) == (False, True)
    without = hands.deviations.max()
    assert add(second + 42 * MS, second + 42 * MS) == (True, True)
    assert hands.deviations.max() < without
    assert aggregation.measured_at(second + 42 * MS, with_feet=False) is None


def test_robots_without_what_it_takes_are_refused(model):
    config = model.config
    arm = [name for name in model.joint_names if name.startswith(('l_shoulder', 'l_elbow'))]
    passive = replace(config, passive_joints=(*config.passive_joints, *arm))
    for robot, problem in (
            (RobotModel(replace(config, imus={}), model.urdf), 'IMU'),
            (RobotModel.load('biped'), 'source: virtual'),
            (RobotModel(passive, model.urdf), "above hand 'left' of 'biped' has a motor")):
        with pytest.raises(ConfigurationError, match=problem):
            VirtualHandForces(robot, VirtualHandSettings())
