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
"""Chapter "rail": how far the robot can lean with its hands on a rail."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
import math
from typing import Any

from biped_com_ros.core.constants import GRAVITY
from biped_com_ros.core.errors import BipedComError
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.legs.com_shift import ComShift
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.stability.hands import Hands, HandSettings
from biped_com_ros.demo.chapter import Chapter, ChapterRun, Comparison
from biped_com_ros.demo.stability_reports import StabilityReports
from biped_com_ros.demo.stage import Commands, Stage
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.outputs import TemplatePublisher, wrench_publisher
from geometry_msgs.msg import WrenchStamped

POSTURE = 'arms_forward'
OVERHANG = 0.12
"""How far the centre of mass goes beyond the toes, as a share of the sole's length."""

DURATION, HOLD = 4.0, 2.0
"""Time of leaning, and of staying there, s."""

_SAMPLES = 200


class Rail(Chapter):
    """The robot leans beyond its toes: it falls, or its hands on a rail hold it."""

    name = 'rail'
    title = 'Beyond the toes, with its hands on a rail'
    description = (
        'The robot leans forward until its centre of mass is beyond its toes. Without its hands '
        'it falls. With its hands on a rail zmp_monitor adds what they can hold to the region of '
        'support, the margin stays positive, and the robot stays up.')

    def missing_for(self, model: RobotModel) -> str:
        """Return whether nothing measures feet or hands, or the robot cannot lean so far."""
        config = model.config
        if not config.has_foot_wrenches:
            return 'nothing measures the feet'
        if config.force_z_restriction:
            return config.force_z_restriction
        if not (hands := tuple(Hands.measured(config))):
            return "hands have neither wrench_sensors nor 'source: virtual'"
        if POSTURE not in config.postures:
            return f'it has no posture {POSTURE}'
        try:
            lean(model, hands)
        except BipedComError as error:
            return str(error)
        return ''

    def run(self, stage: Stage) -> ChapterRun:
        """Lean twice from the same posture."""
        reports = StabilityReports()
        hands = tuple(Hands.measured(stage.model.config))
        forces = HandForces(stage, hands)
        yield from reports.subscribe(stage)
        share = HandSettings().largest_force
        rows = [(yield from self._lean(stage, reports, forces, ()))]
        yield from stage.return_to_stand()
        yield from stage.wait_until(
            lambda: not reports.has_fallen, 'report of zmp_monitor that it stands again', 10.0)
        frames = [stage.model.config.hands[hand].frame for hand in hands]
        grips = [wrench_publisher(stage.node, names.GRIP, frame) for frame in frames]
        try:
            rows.append((yield from self._lean(
                stage, reports, forces, hands, grips, share * stage.model.mass * GRAVITY)))
        finally:
            for grip in grips:
                grip.destroy()
        problem = 'the robot fell with its hands on the rail' if reports.has_fallen else ''
        return Comparison(('least ZMP margin', 'hands hold', 'then'), rows, problem=problem)

    def _lean(self, stage: Stage, reports: StabilityReports, forces: HandForces,
              hands: Sequence[str], grips: Sequence[TemplatePublisher] = (),
              force: float = 0.0) -> Commands:
        """Lean and come back, or fall; return a row of the table."""
        how = 'hands on the rail' if hands else 'without hands'
        path, overhang = lean(stage.model, hands)
        stage.set_activity('stretches its arms out')
        yield from stage.move_to(path[0], 2.0)
        yield from stage.wait(0.5)
        hold(grips, force, stage.stamp_ns)
        yield from stage.wait(0.5)
        reports.restart()
        forces.restart()
        for positions in until_fall(stage, reports, path):
            stage.set_activity(f'leans forward, {how}; {reports}')
            yield positions
        row = (f'CoM {1e3 * overhang:.0f} mm beyond the toes, {how}', reports.margin(),
               str(forces) if hands else '-', reports.course())
        if not reports.has_fallen:
            stage.set_activity('comes back')
            yield from stage.follow(path[::-1], DURATION)
        hold(grips, 0.0, stage.stamp_ns)
        return row


class HandForces:
    """
    Largest measured force of each hand since the last restart.

    Parameters
    ----------
    stage, hands
        The robot, and the names of its hands.

    """

    def __init__(self, stage: Stage, hands: Sequence[str]) -> None:
        self._largest = dict.fromkeys(hands, 0.0)
        for hand in hands:
            label = stage.model.config.hand_label(hand)
            stage.subscribe(WrenchStamped, names.wrench_of(label),
                            partial(self._add, hand))

    def _add(self, hand: str, message: Any) -> None:
        force = message.wrench.force
        size = math.hypot(force.x, force.y, force.z)
        self._largest[hand] = max(self._largest[hand], size)

    def restart(self) -> None:
        """Begin anew."""
        self._largest = dict.fromkeys(self._largest, 0.0)

    def __str__(self) -> str:
        """Return the forces as text."""
        return ', '.join(f'{force:.1f} N' for force in self._largest.values())


def lean(model: RobotModel, hands: Sequence[str]) -> tuple[Array, float]:
    """
    Return a path (N, n) of leaning beyond the toes with hands that stay, and how far, m.

    Raises
    ------
    InputError
        If a joint would leave its limits, with the joint.

    """
    forward = [x for x, _ in next(iter(model.config.feet.values())).polygon]
    overhang = OVERHANG * (max(forward) - min(forward))
    shift = ComShift(model, model.posture(POSTURE), holding=hands)
    return shift.path_beyond_toes(overhang, _SAMPLES), overhang


def hold(grips: Sequence[TemplatePublisher], force: float, stamp_ns: int) -> None:
    """Let hands take hold with a force, N, or let go."""
    for grip in grips:
        grip.fields['wrench'][0] = force
        grip.publish(stamp_ns)


def until_fall(stage: Stage, reports: StabilityReports, path: Array) -> Commands:
    """Yield the positions of a path, and the last one for a while, whose reports count."""
    end = stage.time + DURATION + HOLD
    for positions in stage.follow(path, DURATION):
        if reports.has_fallen:
            return
        yield positions
    # What counts is the margin there: hands are known to hold once they carry something.
    reports.restart()
    while stage.time < end and not reports.has_fallen:
        yield path[-1]
