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
The demo robot leans beyond its toes, without its hands and with both on a rail, in MuJoCo.

Printed is how far the centre of mass gets beyond the toes, and how far it then is inside of the
region in which it may be at rest. With a directory, draws both (``rail.svg``)::

    python -m examples.rail [DIRECTORY]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
import sys
from typing import NamedTuple

from biped_com_ros import RobotModel
from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.geometry import Pose
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs import ComShift
from biped_com_ros.core.stability import com_region, grip_contact, surface_contact
from biped_com_ros.sim.interface import PlantOptions
from biped_com_ros.sim.plant import Plant
from examples.figures import chart, COLOURS, GREY, save
import numpy as np

OVERHANG, HOLD_SHARE = 0.018, 0.3
"""Of the centre of mass beyond the toes, m; largest force of a hand over the weight."""

LEANING, STAYING, STEP = 4.0, 2.0, 0.05
"""Times of leaning, of staying there, and between two of what is drawn, s."""

SAMPLES = 400
"""Of the commanded path."""


class Lean(NamedTuple):
    """Times (N,), s; the CoM beyond the toes and inside of its region (N,), m; whether it fell."""

    times: Array
    beyond: Array
    margin: Array
    has_fallen: bool


def lean(model: RobotModel, hands: Sequence[str]) -> Lean:
    """Lean with hands that hold on, until it falls or for some time."""
    plant = Plant(model.config, model.urdf, PlantOptions(), model.joint_names, model.link_names)
    plant.reset('arms_forward')
    command = plant.hold()
    largest = HOLD_SHARE * GRAVITY * plant.mass
    for hand in hands:
        plant.grip(model.config.hands[hand].frame, largest)
    shift = ComShift(model, model.posture('arms_forward'), holding=hands)
    path = shift.path_beyond_toes(OVERHANG, SAMPLES)
    toes = max(x for x, _ in next(iter(model.config.feet.values())).polygon)
    moved = model.joint_index(plant.actuated_joint_names)
    rows: list[tuple[float, float, float]] = []
    while (time := plant.data.time) < LEANING + STAYING and not plant.has_fallen:
        command.position[:] = path[min(int(SAMPLES * time / LEANING), SAMPLES - 1)][moved]
        if time >= len(rows) * STEP:
            rows.append((time, *_measure(plant, model, hands, toes, largest)))
        plant.step(command)
    times, beyond, margin = np.array(rows).T
    return Lean(times, beyond, margin, plant.has_fallen)


def _measure(plant: Plant, model: RobotModel, hands: Sequence[str], toes: float,
             largest: float) -> tuple[float, float]:
    """Return how far the centre of mass is beyond the toes, and inside of its region, m."""
    soles = [plant.data.site(f'sole/{name}') for name in model.soles.names]
    contacts = [surface_contact(Pose(sole.xmat.reshape(3, 3).copy(), sole.xpos.copy()),
                                foot.polygon, 1.0)
                for sole, foot in zip(soles, model.config.feet.values())]
    for hand in hands:
        link = plant.data.body(f'link/{model.config.hands[hand].frame}')
        contacts.append(grip_contact(Pose(np.eye(3), link.xpos.copy()), largest))
    com = plant.truth().com
    region = com_region(contacts, GRAVITY * plant.mass)
    margin = np.nan if region is None else region.distance((com[0], com[1], 0.0))
    return float(com[0] - soles[0].xpos[0] - toes), margin


def draw(leans: dict[str, Lean], directory: Path) -> Path:
    """Draw how far the centre of mass is inside of its region; return the file."""
    axes = chart('Leaning beyond the toes', 'time [s]', 'CoM inside of its region [mm]')
    axes.axhline(0.0, color=GREY, linewidth=1.0)
    for (name, run), colour in zip(leans.items(), (COLOURS[1], COLOURS[0])):
        axes.plot(run.times, 1e3 * run.margin, color=colour, linewidth=1.4,
                  label=name + (', falls' if run.has_fallen else ''))
    axes.plot(run.times, -1e3 * run.beyond, color=GREY, linewidth=1.0, linestyle='--',
              label='behind the toes, with hands')
    axes.set(xlim=(0.0, LEANING + STAYING), ylim=(-100.0, 450.0))
    return save(axes, directory / 'rail.svg')


def main(directory: str = '') -> None:
    """Lean, print, and draw."""
    from benchmarks.common import console, print_table
    model = RobotModel.load('biped')
    leans = {'without hands': lean(model, ()),
             'hands on a rail': lean(model, tuple(model.config.hands))}
    print_table('Leaning beyond the toes, mm', ('', 'beyond at last', 'least inside', ''), [
        (name, f'{1e3 * run.beyond[-1]:.0f}', f'{1e3 * np.nanmin(run.margin):.0f}',
         'fell' if run.has_fallen else 'stays') for name, run in leans.items()])
    if directory:
        console.print(f'wrote {draw(leans, Path(directory))}')


if __name__ == '__main__':
    main(*sys.argv[1:])
