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
Errors of the base, and of foot wrenches without foot sensors, on recorded walks with truth.

::

    python -m benchmarks.walks --walks DIR [--friction 2.0] [--quick]

``DIR`` holds recordings (see benchmarks/recorded_walk.py); the environment variable
``BIPED_COM_WALKS`` may name it instead. Sensors have the errors of good ones: IMU 0.005 rad/s and
0.05 m/s^2, encoders 0.1 mrad and 0.02 rad/s, torques 0.1 N m; ``--friction`` adds friction that
the model does not know.

Columns: vertical force, rms in percent of the weight; CoP under feet with 30 % of the weight, rms,
where the aggregator would publish one; how often 95 % intervals cover the truth, least and most of
the twelve axes, and for the internal force of two feet; how long contacts are right (truth: more
than 1 % of the weight); mean delays of touch-downs and lift-offs, and false changes of contact in
100 steps. The targets at the end are those of the worst walk: S by foot sensors, V and the letters
behind it by virtual ones, for each friction.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
import sys
from typing import NamedTuple

from benchmarks.common import console, machine, print_table, print_targets, Target
from benchmarks.recorded_walk import (
    directory, InjectedErrors, load_walk, names, RecordedWalk, USUAL, VARIABLE)
from benchmarks.walk_estimates import print_com, print_edges, print_gravity
from benchmarks.walk_states import contact_errors, ContactErrors, print_states, StateErrors
from biped_com_ros.core.constants import CERTAIN
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.wrench.contact import ContactProbabilities
from biped_com_ros.core.wrench.virtual_foot_wrenches import (
    VirtualFootWrenches, VirtualWrenchSettings)
from biped_com_ros.nodes.wrench_aggregator.parameters import LEAST_COP_SHARE
import numpy as np

#: Left out of all errors: filters and learnt deviations begin, s.
SETTLING = 0.5
#: Of which the virtual wrenches are late, by low-pass and differences of one step, s.
LOW_PASS_DELAY = 0.0025


@dataclass(frozen=True)
class VirtualWalk:
    """
    What virtual foot sensors give for a walk of T instants.

    Attributes
    ----------
    wrenches
        (T, F, 6), N and N m.
    covariances
        (T, 6 F, 6 F).
    probabilities, in_contact
        Of contact, (T, F).

    """

    wrenches: np.ndarray
    covariances: np.ndarray
    probabilities: np.ndarray
    in_contact: np.ndarray


def estimate_wrenches(walk: RecordedWalk, count: int | None = None,
                      settings: VirtualWrenchSettings | None = None) -> VirtualWalk:
    """Run the virtual foot sensors over a walk, with its true attitude."""
    model, feet = walk.model, len(walk.model.soles.names)
    sensors = VirtualFootWrenches(model, settings or VirtualWrenchSettings())
    contacts = ContactProbabilities(model, 9.81 * model.mass)
    count = min(count or len(walk.times), len(walk.times))
    wrenches, covariances = np.zeros((count, feet, 6)), np.zeros((count, 6 * feet, 6 * feet))
    probabilities, in_contact = np.zeros((count, feet)), np.zeros((count, feet), bool)
    stamps, rotations = (1e9 * walk.times).round().astype(int) + 10**9, walk.true_rotations
    step = float(walk.truth['timestep'])
    for i, stamp_ns in enumerate(stamps[:count].tolist()):
        state = model.state(walk.positions[i], walk.velocities[i])
        _, placed = state.along_world(model.stance_frames, rotations[i])
        if sensors.update(stamp_ns, state, walk.efforts[i], walk.angular_velocity[i],
                          walk.acceleration[i], rotations[i]):
            deviations = np.sqrt(sensors.covariance.diagonal()[2::6])
            in_contact[i] = contacts.update(step, sensors.wrenches[:, 2], deviations,
                                            placed[:feet])
        wrenches[i], covariances[i] = sensors.wrenches, sensors.covariance
        probabilities[i] = contacts.probabilities
    return VirtualWalk(wrenches, covariances, probabilities, in_contact)


class RecordedWrenchErrors(NamedTuple):
    """
    Errors of the virtual wrenches of a walk.

    Attributes
    ----------
    force
        Vertical, root mean square as a share of the weight.
    cop
        Under feet with 30 % of the weight, where there is one by the estimate: root mean squares
        along x and y, m.
    covered
        How often 95 % intervals cover the truth, least and most of the axes.
    internal
        The same for the internal force of two feet.
    contacts
        Of the decision by probabilities.

    """

    force: float
    cop: tuple[float, float]
    covered: tuple[float, float]
    internal: float
    contacts: ContactErrors

    def cells(self) -> tuple[str, ...]:
        """Return those as text."""
        least, most = (100.0 * share for share in self.covered)
        return (f'{100.0 * self.force:.1f}', *(f'{1e3 * axis:.1f}' for axis in self.cop),
                f'{least:.0f} ... {most:.0f}', f'{100.0 * self.internal:.0f}',
                *self.contacts.cells())


def wrench_errors(walk: RecordedWalk, found: VirtualWalk) -> RecordedWrenchErrors:
    """Return the errors of a walk."""
    begin = round(SETTLING / float(walk.truth['timestep']))
    span = slice(begin, len(found.wrenches))
    weight, truth = 9.81 * walk.model.mass, walk.true_wrenches[span]
    wrenches, errors = found.wrenches[span], found.wrenches[span] - truth
    deviations = np.sqrt(np.diagonal(found.covariances[span], axis1=1, axis2=2))
    least = np.maximum(LEAST_COP_SHARE * weight,
                       CERTAIN * deviations[:, 2::6])
    loads = (truth[..., 2] > 0.3 * weight) & (wrenches[..., 2] > least)
    cop = [root_mean_square(wrenches[loads][:, k] / wrenches[loads][:, 2]
                            - truth[loads][:, k] / truth[loads][:, 2]) for k in (4, 3)]
    covered = (np.abs(errors.reshape(len(errors), -1)) < 1.96 * deviations).mean(0)
    return RecordedWrenchErrors(
        root_mean_square(errors[..., 2]) / weight, (cop[0], cop[1]),
        (float(covered.min()), float(covered.max())),
        internal_coverage(errors, found.covariances[span], truth[..., 2]),
        contact_errors(found.in_contact[span], walk.true_contacts[span]))


def root_mean_square(values: np.ndarray) -> float:
    """Return the root of the mean of squares."""
    return float(np.sqrt(np.mean(np.square(values))))


def internal_coverage(errors: np.ndarray, covariances: np.ndarray, loads: np.ndarray) -> float:
    """
    Return in how much of double support 1.96 deviations cover the internal force.

    That is half the difference of the lateral forces of the two feet.
    """
    both = (loads > 1.0).all(axis=1)
    direction = np.zeros(12)
    direction[1], direction[7] = 0.5, -0.5
    internal = errors.reshape(len(errors), -1).dot(direction)
    deviations = np.sqrt(np.einsum('i,tij,j->t', direction, covariances, direction))
    return float((np.abs(internal) < 1.96 * deviations)[both].mean())


def print_virtual(walks: list[RecordedWalk], friction: float, count: int | None,
                  ) -> tuple[list[RecordedWrenchErrors], list[StateErrors], list[StateErrors]]:
    """Print the errors of virtual foot wrenches, and of states by them, at once and aligned."""
    found = [estimate_wrenches(walk, count) for walk in walks]
    errors = [wrench_errors(walk, virtual) for walk, virtual in zip(walks, found)]
    more = f'{friction:g} N m of unknown friction more'
    print_table(f'Virtual foot sensors, {more}', (
        'walk', 'fz, %', 'CoP x, mm', 'CoP y', 'covered, %', 'internal, %', 'contacts, %',
        'down, ms', 'up, ms', 'false'),
        [(walk.name, *row.cells()) for walk, row in zip(walks, errors)])
    own = [{'wrenches': virtual.wrenches, 'probabilities': virtual.probabilities}
           for virtual in found]
    states = print_states(walks, f'Base by virtual foot sensors, {more}', 'filter', own)
    aligned = print_states(
        walks, 'The same, wrenches aligned by 2.5 ms', 'filter', own, delay=LOW_PASS_DELAY)
    return errors, states, aligned


def print_bases(walks: list[RecordedWalk]) -> tuple[list[StateErrors], list[StateErrors]]:
    """Print the errors of the base by foot sensors; return those as they are, and aligned."""
    plain = print_states(walks, 'Base by foot sensors that are 2 ms late: base_source filter')
    print_table('Contacts by the same', (
        'walk', 'right, %', 'touch-down, ms', 'lift-off, ms', 'false in 100 steps'),
        [(walk.name, *state.contacts.cells()) for walk, state in zip(walks, plain)])
    aligned = print_states(
        walks, 'The same, wrenches aligned by their known delay', delay=0.002)
    print_states(walks, 'The same, floor not known to be level', level_floor=False)
    print_states(walks, 'base_source imu, with the true orientation', 'imu')
    return plain, aligned


def state_targets(plain: list[StateErrors], aligned: list[StateErrors]) -> list[Target]:
    """Return what is demanded of states by foot sensors."""
    def worst(of: Callable[[StateErrors], float], states: list[StateErrors] = plain) -> float:
        return max(abs(of(state)) for state in states)
    return [
        Target('S1', 'drift of the base', 100.0 * worst(lambda s: s.drift), 1.0, unit='%'),
        Target('S2', 'drift of its height', 1e3 * worst(lambda s: s.height), 10.0, unit='mm/m'),
        Target('S3', 'its velocity, rms', 1e3 * worst(lambda s: s.velocity), 10.0, unit='mm/s'),
        Target('S4', 'DCM, rms', 1e3 * worst(lambda s: s.dcm), 3.0, unit='mm'),
        Target('S5', 'ZMP, wrenches aligned, rms', 1e3 * worst(lambda s: s.zmp, aligned), 4.0,
               unit='mm'),
        Target('S6', 'ZMP of the model minus measured, aligned, rms',
               1e3 * worst(lambda s: s.zmp_difference, aligned), 15.0, unit='mm'),
        Target('S7', 'UNSTABLE', 100.0 * worst(lambda s: s.unstable), 1.0, unit='%'),
        *contact_targets('S', 8, [state.contacts for state in plain], 2.0)]


def contact_targets(letter: str, first: int, errors: list[ContactErrors],
                    false: float) -> list[Target]:
    """Return what is demanded of contacts."""
    return [
        Target(f'{letter}{first}', 'delay of touch-downs, mean',
               1e3 * max(abs(e.touch_down) for e in errors), 10.0, unit='ms'),
        Target(f'{letter}{first + 1}', 'delay of lift-offs, mean',
               1e3 * max(abs(e.lift_off) for e in errors), 10.0, unit='ms'),
        Target(f'{letter}{first + 2}', 'false changes of contact in 100 steps',
               max(e.false for e in errors), false, unit='')]


def virtual_targets(letter: str, wrenches: list[RecordedWrenchErrors], states: list[StateErrors],
                    aligned: list[StateErrors], by_sensors: list[StateErrors]) -> list[Target]:
    """Return what is demanded of virtual foot sensors, and of states by them."""
    def times(name: str) -> float:
        return max(getattr(ours, name) / getattr(theirs, name)
                   for ours, theirs in zip(states, by_sensors))
    return [
        Target(f'{letter}1', 'vertical force, rms, of the weight',
               100.0 * max(e.force for e in wrenches), 8.0, unit='%'),
        Target(f'{letter}2', 'CoP, rms', 1e3 * max(max(e.cop) for e in wrenches), 15.0,
               unit='mm'),
        Target(f'{letter}3', '95 % intervals cover, at least',
               100.0 * min(e.covered[0] for e in wrenches), 90.0, at_least=True, unit='%'),
        Target(f'{letter}4', 'contacts right, at least',
               100.0 * min(e.contacts.right for e in wrenches), 97.0, at_least=True, unit='%'),
        *contact_targets(letter, 5, [e.contacts for e in wrenches], 5.0),
        Target(f'{letter}8', 'drift of the base', 100.0 * max(s.drift for s in states), 1.0,
               unit='%'),
        Target(f'{letter}9', 'DCM to that by sensors', times('dcm'), 2.0),
        Target(f'{letter}10', 'ZMP to that by sensors', times('zmp'), 2.0),
        Target(f'{letter}11', 'ZMP, wrenches aligned, rms', 1e3 * max(s.zmp for s in aligned),
               4.0, unit='mm')]


def with_rotor_inertia(walk: RecordedWalk) -> RecordedWalk:
    """Return the walk of a robot whose model has the rotor inertia of the recording."""
    model = walk.model
    drives = replace(model.config.drives, rotor_inertia=dict(
        zip(model.joint_names, walk.armature.tolist())))
    return replace(walk, model=RobotModel(replace(model.config, drives=drives), model.urdf))


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0].strip())
    parser.add_argument('--walks', default='', help='directory of the recordings')
    parser.add_argument('--friction', type=float, nargs='*', default=[0.0, 2.0],
                        help='friction besides that of the recordings, N m')
    parser.add_argument('--seed', type=int, default=0, help='of the random errors')
    parser.add_argument('--quick', action='store_true', help='6 s of each')
    options = parser.parse_args()
    path = directory(options.walks)
    if path is None:
        console.print(f'skipped: no recorded walks; name their directory by --walks or {VARIABLE}')
        return 0
    console.print(machine())
    measured = [load_walk(path, name, USUAL, options.seed) for name in names(path)]
    plain, aligned = print_bases(measured)
    print_edges(measured, options.seed)
    print_com(measured, options.seed)
    print_gravity(measured)
    targets = state_targets(plain, aligned)
    for number, friction in enumerate(options.friction):
        errors: InjectedErrors = replace(USUAL, friction=friction)
        walks = [with_rotor_inertia(load_walk(path, name, errors, options.seed))
                 for name in names(path)]
        found = print_virtual(walks, friction, 3000 if options.quick else None)
        targets += virtual_targets('VWXYZ'[number % 5], *found, plain)
    print_targets(targets)
    return 0


if __name__ == '__main__':
    sys.exit(main())
