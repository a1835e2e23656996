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
The vertebrae and tendons against the constant-curvature formulas of Russo et al. (2021).

The backbone of the simulator is a chain of six pieces, so that it meets the formulas of a
continuous rod only within a tolerance: 0.05 mm of 129 mm at 15 deg.
"""

from __future__ import annotations

from dataclasses import replace
import math

from biped_com_ros.core.errors import RobotDescriptionError
from biped_com_ros.core.model.config import load_robot_config
from biped_com_ros.core.model.urdf import load_urdf
from biped_com_ros.sim import torso
from biped_com_ros.sim.frames import rotation_from_rpy
from biped_com_ros.sim.hidden import LinkError
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.mjcf import WorldOptions
from biped_com_ros.sim.plant import Plant
import mujoco
import numpy as np
import pytest
from support.sim_robot import CONFIG, make_plant, run, URDF

TOLERANCE = 5e-5  # m, see above
ANGLES = np.radians(CONFIG.torso.attachment_angles_deg)
LENGTH, RADIUS = CONFIG.torso.backbone_length, CONFIG.torso.radius


@pytest.fixture(scope='module')
def plant():
    return make_plant(tendons=True, world=WorldOptions(gravity=0.0, floor=False))


def constant_curvature(bend, direction, length):
    """Tip position, tip rotation and tendon lengths: FORMULAS section 4 written out."""
    half = 0.5 * bend
    sinc = math.sin(half) / half if bend else 1.0
    tip = length * sinc * np.array((math.cos(direction) * math.sin(half),
                                    math.sin(direction) * math.sin(half), math.cos(half)))
    turn = rotation_from_rpy((0.0, 0.0, direction))
    rotation = turn @ rotation_from_rpy((0.0, bend, 0.0)) @ turn.T
    return tip, rotation, length - bend * RADIUS * np.cos(ANGLES - direction)


def shape(plant, bend, direction, length):
    """Put the chain of vertebrae into an evenly bent shape, hinge by hinge."""
    part, n = bend / torso.SEGMENTS, torso.SEGMENTS
    for k in range(1, n + 1):
        for name, value in (('z', (length - LENGTH) / n), ('roll', -part * math.sin(direction)),
                            ('pitch', part * math.cos(direction)), ('yaw', 0.0)):
            plant.data.joint(f'vertebra/{k}/{name}').qpos[0] = value
    mujoco.mj_forward(plant.model, plant.data)


@pytest.mark.parametrize('bend_deg, direction_deg, length', [
    (0.0, 0.0, LENGTH), (0.0, 0.0, 0.127), (10.0, 0.0, LENGTH), (15.0, 90.0, LENGTH),
    (15.0, 37.0, LENGTH), (15.0, -145.0, 0.127), (5.0, 200.0, 0.13)])
def test_shape_and_tendons_are_those_of_a_constant_curvature(
        plant, bend_deg, direction_deg, length):
    bend, direction = math.radians(bend_deg), math.radians(direction_deg)
    shape(plant, bend, direction, length)
    tip, rotation, lengths = constant_curvature(bend, direction, length)
    np.testing.assert_allclose(plant.data.ten_length, lengths, atol=TOLERANCE)
    x, y, z, *rpy = plant.tendon_torso.virtual_positions()
    np.testing.assert_allclose((x, y, z + LENGTH), tip, atol=TOLERANCE)
    roll, pitch, yaw = rpy  # The URDF's order: about x, then y, then z.
    np.testing.assert_allclose(
        rotation_from_rpy((roll, 0, 0)) @ rotation_from_rpy((0, pitch, 0))
        @ rotation_from_rpy((0, 0, yaw)), rotation, atol=1e-3)


def test_the_range_of_table_2(plant):
    """At 15 deg towards a tendon the lengths are those of the paper's Table 2, 120 and 138 mm."""
    shape(plant, math.radians(15.0), 0.0, LENGTH)
    np.testing.assert_allclose((plant.data.ten_length.min(), plant.data.ten_length.max()),
                               (0.120099, 0.137901), atol=TOLERANCE)


def test_placing_is_the_inverse_of_reading(plant):
    positions = np.array((0.0, 0.0, -0.001, 0.1, -0.15, 0.05))
    plant.tendon_torso.place(positions)
    mujoco.mj_forward(plant.model, plant.data)
    found = plant.tendon_torso.virtual_positions()
    # Torsion spread over bent pieces turns the bend a little: 3 mrad.
    np.testing.assert_allclose(found[3:], positions[3:], atol=3e-3)
    bend = math.acos(math.cos(0.1) * math.cos(0.15))
    arc = LENGTH - 0.001 - plant.tendon_torso.compression
    assert found[2] + LENGTH == pytest.approx(arc * math.sin(bend) / bend, abs=TOLERANCE)
    # What is asked of the tendons for that shape is how long they are in it.
    np.testing.assert_allclose(plant.tendon_lengths_for(positions), plant.data.ten_length,
                               atol=TOLERANCE)


def test_the_springs_of_all_segments_make_those_of_the_backbone():
    """A moment at the far end of a limp-tendoned backbone bends it by M / k_b."""
    plant = make_plant(tendons=True, world=WorldOptions(gravity=0.0, floor=False))
    plant.model.actuator_biasprm[:, 1:] = 0.0  # No servo does anything.
    plant.model.actuator_forcerange[:] = 0.0
    tip = plant.model.body(f'vertebra/{torso.SEGMENTS}').id
    plant.tendon_torso.place(np.zeros(6))
    moment = 0.8
    for _ in range(8000):  # A pure moment on the far end, its opposite on the near end.
        plant.data.xfrc_applied[tip, 4] = moment
        plant.data.xfrc_applied[plant.model.body('link/pelvis').id, 4] = -moment
        mujoco.mj_step(plant.model, plant.data)
    # Everything above turns in the air, slowly coming to rest by the backbone's own damping.
    bend = plant.tendon_torso.virtual_positions()[4]
    assert bend == pytest.approx(moment / CONFIG.torso.bending_stiffness, rel=0.05)


def test_the_drives_were_made_for_the_robot_of_the_urdf():
    """What it carries besides bends and compresses it; its drives are none the stronger."""
    plain = make_plant(tendons=True)
    loaded = make_plant(tendons=True, errors={'chest': LinkError(0.5, (0.0, 0.0, 0.05))})
    np.testing.assert_allclose(
        loaded.tendon_torso.pretension, plain.tendon_torso.pretension, rtol=1e-12)
    drives = [plain.model.actuator(f'tendon/{i}').id for i in range(plain.tendon_count)]
    np.testing.assert_allclose(
        loaded.model.actuator_biasprm[drives], plain.model.actuator_biasprm[drives], rtol=1e-12)
    assert loaded.tendon_torso.compression - plain.tendon_torso.compression == pytest.approx(
        0.5 * 9.81 / CONFIG.torso.axial_stiffness, rel=1e-9)


def test_tendons_only_pull():
    plant = make_plant(tendons=True)
    assert plant.mass == pytest.approx(make_plant().mass, abs=1e-7)
    command = plant.hold()
    command.tendon_lengths += (0.01, 0.0, -0.01, 0.0)  # Let go behind, pull in front.
    slack = False
    for _ in range(1000):
        observation = plant.step(command)
        assert (observation.tendon_tensions >= 0.0).all()
        slack |= bool(observation.tendon_tensions[0] == 0.0)
    assert slack
    pitch = observation.joint_positions[plant.joint_names.index('torso_pitch')]
    assert pitch > math.radians(8.0)


def test_the_torso_goes_to_its_target():
    plant = make_plant(tendons=True)
    target = np.array((0.0, 0.0, 0.0, 0.0, 0.15, 0.0))
    command = plant.hold()
    command.tendon_lengths[:] = plant.tendon_lengths_for(target)
    observation = run(plant, 3.0, command)
    pitch = observation.joint_positions[plant.joint_names.index('torso_pitch')]
    assert pitch == pytest.approx(0.15, abs=0.03)  # Springs and weight pull it off a little.
    velocity = observation.joint_velocities[plant.joint_names.index('torso_pitch')]
    assert abs(velocity) < 0.01


def test_a_torso_without_tendons_is_held_stiffly():
    config = load_robot_config('biped')
    plant = Plant(config, load_urdf(config), PlantOptions(tendons=False))
    run(plant, 2.0)
    joints = [plant.joint_names.index(n) for n in config.torso.joints]
    np.testing.assert_allclose(plant.observation.joint_positions[joints], 0.0, atol=1e-3)


def test_other_orders_of_virtual_joints_are_refused():
    swapped = replace(CONFIG.torso, joints=(
        'torso_y', 'torso_x', *CONFIG.torso.joints[2:]))
    with pytest.raises(RobotDescriptionError, match='a tendon torso needs torso_y, torso_x'):
        Plant(replace(CONFIG, torso=swapped), URDF)
