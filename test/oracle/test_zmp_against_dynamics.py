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
Wang's equation (8), corrected, against centroidal dynamics and inverse dynamics; and live.

On random motions all three are the same number to 1e-9 m; as printed, or with links as point
masses, they are not.
"""

from pathlib import Path
import runpy

from biped_com_ros.core.geometry.plane import Plane
from biped_com_ros.core.geometry.pose import Pose
from biped_com_ros.core.geometry.wrench import centre_of_pressure
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.papers.wang_2013 import link_motion, zmp_by_links
import numpy as np
import pinocchio as pin
import pytest
from support.small_robot import random_rotation, small_robot

G = 9.81
TOLERANCE = 1e-9  # m


@pytest.fixture(scope='module', params=['small', 'biped', 'talos', 'icub'])
def model(request):
    return small_robot() if request.param == 'small' else RobotModel.load(request.param)


def random_motion(pin_model, rng):
    """Return q, v, a of a robot anywhere, turned anyhow, that the ground pushes upwards."""
    q = pin.randomConfiguration(
        pin_model, np.full(pin_model.nq, -1.0), np.full(pin_model.nq, 1.0))
    base = Pose(random_rotation(rng), rng.uniform(-2.0, 2.0, 3))
    q[:3], q[3:7] = base.position, base.quaternion
    v, a = rng.normal(0.0, 1.0, pin_model.nv), rng.normal(0.0, 2.0, pin_model.nv)
    # Whatever the joints do, the whole is pushed upwards.
    upward = wrench_by_rnea(pin_model, q, v, a)[2] / pin.computeTotalMass(pin_model)
    a[:3] += base.rotation.T @ (0.0, 0.0, max(3.0 - upward, 0.0))
    return q, v, a


def wrench_by_rnea(pin_model, q, v, a):
    """Inverse dynamics: what the ground has to give, about the world's origin."""
    data = pin_model.createData()
    pin_model.gravity.linear = np.array((0.0, 0.0, -G))
    at_base = pin.Force(pin.rnea(pin_model, data, q, v, a)[:6])
    pin.forwardKinematics(pin_model, data, q)
    return (data.oMi[1] * at_base).vector


def wrench_by_centroidal_dynamics(pin_model, q, v, a):
    data = pin_model.createData()
    pin.computeCentroidalMomentumTimeVariation(pin_model, data, q, v, a)
    mass, com = pin.computeTotalMass(pin_model), data.com[0]
    force = data.dhg.linear + (0.0, 0.0, mass * G)
    return np.concatenate((force, data.dhg.angular + np.cross(com, force)))


def level_zmp(wrench, height):
    fx, fy, fz, mx, my, _ = wrench
    return np.array(((-my + height * fx) / fz, (mx + height * fy) / fz, height))


@pytest.mark.parametrize('seed', range(10))
def test_equation_8(model, seed):
    rng = np.random.default_rng(seed)
    pin.seed(seed)
    pin_model = model.pin_model.copy()
    q, v, a = random_motion(pin_model, rng)
    motion, height = link_motion(pin_model, q, v, a), rng.uniform(-1.0, 1.0)
    wrenches = wrench_by_rnea(pin_model, q, v, a), wrench_by_centroidal_dynamics(
        pin_model, q, v, a)
    ours = zmp_by_links(*motion, height=height, gravity=G)
    for wrench in wrenches:
        np.testing.assert_allclose(ours, level_zmp(wrench, height), atol=TOLERANCE)
        np.testing.assert_allclose(
            centre_of_pressure(wrench, height=height), ours, atol=TOLERANCE)
    for wrong in (zmp_by_links(*motion, height=height, gravity=G, as_printed=True),
                  zmp_by_links(*motion[:3], height=height, gravity=G)):
        assert np.linalg.norm(wrong - ours) > 1e-5
    at_rest = zmp_by_links(*motion[:2], height=height, gravity=G)
    np.testing.assert_allclose(at_rest[:2], pin.centerOfMass(
        pin_model, pin_model.createData(), q)[:2], atol=TOLERANCE)


@pytest.mark.parametrize('seed', range(10))
def test_on_any_plane_the_moment_there_is_along_the_normal(model, seed):
    rng = np.random.default_rng(seed)
    pin_model = model.pin_model.copy()
    q, v, a = random_motion(pin_model, rng)
    at_origin = wrench_by_rnea(pin_model, q, v, a)
    force = at_origin[:3]
    # Tilted any way, but not so far that the ground would have to pull.
    normal = np.array((*(rng.normal(0.0, 0.3, 2) + force[:2] / np.linalg.norm(force)), 1.0))
    plane = Plane.with_normal(normal, rng.uniform(-2.0, 2.0, 3))
    point = np.array(centre_of_pressure(at_origin, plane.normal, plane.height))
    assert abs(plane.to_plane(point)[2]) < TOLERANCE
    moment = at_origin[3:] - np.cross(point, force)
    np.testing.assert_allclose(np.cross(plane.normal, moment), 0.0, atol=1e-7)


@pytest.mark.thorough
def test_the_table_of_simplifications(capsys, monkeypatch):
    """The example's own exact ZMP is another derivation; (8) as corrected has no error."""
    path = Path(__file__).resolve().parents[2] / 'examples' / 'zmp_methods.py'
    example = runpy.run_path(str(path))
    monkeypatch.setattr('sys.argv', ['zmp_methods.py', 'talos'])
    example['main']()
    assert '(8) corrected' in capsys.readouterr().out
    corrected, links, point, at_rest, printed = 1e3 * example['errors'](
        RobotModel.load('talos'), 1.2)
    assert corrected < 1e-9
    assert 0.8 < links < 13.0 and 16.0 < point < 256.0 and at_rest > 10.0
    assert printed > links, 'on the wrong axis it is worse than leaving it out'
