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
"""Every uncertainty that the core states is compared with errors that somebody made."""

import importlib
import inspect
from pathlib import Path
import pkgutil
import re

from biped_com_ros import core
import pytest

UNIT = Path(__file__).parent
STATES = re.compile(r'(?<!prior_)(deviations?|covariance|variances?|_std|\bsd)$')
#: Of these they are inputs: the user, the URDF, or the caller knows them.
GIVEN = re.compile(
    r'(Settings|Options|Limits|Config|Capture|ComMeasurement|FleetPrior|PriorTerms|LocatedState'
    r'|InstrumentCorrections|StaticsRegressor|UnknownFriction|GravityCompensator)\.')
#: The test of each, with errors that it draws, or that physics or a motion makes.
COMPARED = {
    'com.fused.FusedComEstimator': 'com/test_fused: hidden_load_is_found, contain_those_of_a_',
    'geometry.wrench': 'geometry/test_wrench: covariance_of_a_sum, covariance_of_the_centre',
    'identification.captures.virtual_contacts.force_deviations':
        'wrench/test_virtual: stay_within',
    'identification.equations': 'identification/test_equations: noise_covariance_is_that_of_sam',
    'identification.equations.instruments': 'identification/test_real_instruments: intervals_hold',
    'identification.estimation.estimates': 'identification/test_real_instruments: intervals_hold',
    'identification.estimation.estimator.CaptureInformation':
        'identification/test_pose_design: what_the_estimate_gains',
    'identification.estimation.estimator.Estimator':
        'identification/test_pose_design: what_the_estimate_gains',
    'identification.estimation.moments_from_com':
        'identification/test_equations: noise_of_the_poses',
    'identification.estimation.noise_scales': 'identification/test_real_instruments: ten_times',
    'identification.estimation.posterior':
        'identification/test_estimator: draws_from_the_posterior',
    'identification.estimation.problem': 'identification/test_estimator: errors_of_the_com_are_as',
    'identification.estimation.two_poses': 'identification/test_two_poses: those_of_drawn_errors',
    'identification.fleet': 'identification/test_fleet: mean_and_scatter_of_units',
    'identification.population': 'identification/test_fleet: new_unit_is_covered',
    'identification.poses.pose_design':
        'identification/test_pose_design: what_the_estimate_gains',
    'payload.estimator.Payload': 'payload/test_estimator: errors_are_as_large_as_stated',
    'stability.hands': 'stability/test_monitor: zmp',
    'stability.monitor': 'stability/test_monitor: zmp',
    'state.base_filter': 'state/test_base_filter: distances_are_known, angular_velocity_is_as_',
    'state.invariant_filter': 'state/test_invariant_filter: place_are_those_of_draws',
    'state.feet': 'state/test_feet: density_of_white_noise_is_learnt',
    'torso.controller': 'torso/test_slack: slack_tendons_rule_out',
    'wrench.bias': 'wrench/test_bias: follows_a_drift_within_its_covariance',
    'wrench.drive_errors.DriveErrors': 'wrench/test_drive_errors: as_uncertain_as_drives',
    'wrench.drive_errors': 'wrench/test_virtual: stay_within',
    'wrench.tare': 'wrench/test_tare: offset_is_what_is_read',
    'wrench.virtual_feet': 'wrench/test_virtual: stay_within',
    'wrench.virtual_hand_forces': 'wrench/test_virtual_hands: as_uncertain_as_stated',
}


def stated():
    """Return functions and attributes of the core whose name says that they are uncertainties."""
    for module in pkgutil.walk_packages(core.__path__, f'{core.__name__}.'):
        place = module.name[len(core.__name__) + 1:]
        for name, item in vars(importlib.import_module(module.name)).items():
            if getattr(item, '__module__', None) != module.name or name.startswith('_'):
                continue
            if inspect.isfunction(item):
                names = [name]
            elif inspect.isclass(item):
                fields = {**vars(item), **vars(item).get('__annotations__', {})}
                names = [f'{name}.{field}' for field in fields if not field.startswith('_')]
            else:
                continue
            yield from (f'{place}.{each}' for each in names if STATES.search(each))


def test_every_uncertainty_has_a_test():
    names = {name for name in stated() if not GIVEN.search(name)}
    assert len(names) > 35
    without = {name for name in names if not any(
        name == known or name.startswith(f'{known}.') for known in COMPARED)}
    assert not without, 'name the test that draws errors of them'
    assert {known for known in COMPARED if not any(
        name == known or name.startswith(f'{known}.') for name in names)} == set()


@pytest.mark.parametrize('where', sorted(set(COMPARED.values())))
def test_that_test_exists(where):
    path, _, words = where.partition(': ')
    text = (UNIT / f'{path}.py').read_text()
    for word in words.split(', '):
        assert re.search(rf'\ndef test_\w*{word}', text), word
