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
What a robot's file and URDF give, and what is to be done before the robot can be used.

Each check returns entries: a name, what was found and, where something is wrong, what to do about
it. What cannot be right at all is an error when the robot is loaded, and is not checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
import math
import re

from biped_com_ros.core.errors import BipedComError, some_of
from biped_com_ros.core.geometry.polygon import area, distances_inside, half_planes, Point
from biped_com_ros.core.geometry.pose import Array, Pose
from biped_com_ros.core.gravity.effort_limiter import SafetySettings
from biped_com_ros.core.gravity.model import GravityModel
from biped_com_ros.core.identification.captures.virtual_contacts import with_virtual_sensors
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.estimation.prior import missing_inertials, unreadable_shapes
from biped_com_ros.core.legs.footsteps import StepTiming, time_scale
from biped_com_ros.core.legs.gait import GaitOptions, single_step
from biped_com_ros.core.legs.ik import PostureIk
from biped_com_ros.core.legs.stance_ik import StanceIk
from biped_com_ros.core.model.config import FootConfig, sole_frame_name
from biped_com_ros.core.model.efforts import (
    effort_limits, needed_efforts, placeholders, urdf_effort_limits)
from biped_com_ros.core.model.frames import sole_in_link
from biped_com_ros.core.model.inertias import unphysical_inertias
from biped_com_ros.core.model.robot import FASTEST, RobotModel, velocity_limits
from biped_com_ros.core.model.sole_geometry import sole_height, sole_polygon
from biped_com_ros.core.model.urdf import parse_urdf
from biped_com_ros.core.payload.estimator import PayloadEstimator
from biped_com_ros.core.stability.support import Soles
from biped_com_ros.core.wrench.virtual_hand_forces import VirtualHandForces, VirtualHandSettings
import numpy as np

STAND = 'stand'

UNEVEN, TILT = 0.003, math.radians(1.0)
"""Soles that differ more in height, m, or are more inclined, rad, do not stand on one floor."""

OVERHANG = 0.005
"""Corners further outside the collision geometry promise support that is not there, m."""

WASTE = 0.01
"""Collision geometry further outside the polygon is support that is not used, m."""

BELOW = 0.003
"""Largest distance of the sole frame from the lowest point of the foot, m."""

_SIDES = {'left': {'left', 'l'}, 'right': {'right', 'r'}}
_CENTRE = 0.01
"""What is nearer to the middle is on neither side, m."""
NOTHING = 0.001
"""What is not more is a frame, not a link, kg."""
_STEP, _INTERVAL = 0.1, 0.05
"""Length of a step over the height of the CoM, and time between its samples, s."""
_SMALL_TURN = 0.0005
"""Of a joint, rad: less is rounding."""
_ON_AN_EDGE = 1e-3
"""Share of the area that a corner on an edge has."""
CORNERS, AREA_LOST = 6, 0.02
"""Number of corners of a suggested polygon, and share of the area that it may lose before it gets
more of them."""


@dataclass(frozen=True)
class Entry:
    """
    A result.

    Attributes
    ----------
    name, text
        What was looked at, and what was found.
    remedy
        What to do; '' where nothing is wrong.
    is_hint
        Whether the robot can be used without that.
    is_compared
        Whether there was anything to compare with.

    """

    name: str
    text: str
    remedy: str = ''
    is_hint: bool = False
    is_compared: bool = True


def check_robot(model: RobotModel) -> list[Entry]:
    """Return all results for a robot."""
    posture = standing_posture(model)
    return [entry for name, check in _CHECKS for entry in _entries(name, check, model, posture)]


def _entries(name: str, check: Check, model: RobotModel, posture: Array) -> list[Entry]:
    """Return the results of one check; what it fails with is a result as well."""
    found: list[Entry] = []
    problem = failure(lambda: found.extend(check(model, posture)))
    return [*found, Entry(name, 'not checked', problem)] if problem else found


def standing_posture(model: RobotModel) -> Array:
    """Return posture ``stand``, or all joints at zero if there is none, (n,), rad or m."""
    return model.posture(STAND) if STAND in model.config.postures else model.positions({})


def verdict(entries: Sequence[Entry]) -> str:
    """Return the last line of the report: the first thing to do, or ``ready`` and its limits."""
    if remedy := first_remedy(entries):
        return f'first: {remedy}'
    left_out = [entry.name for entry in entries if not entry.is_compared]
    return f'ready; {len(left_out)} not compared: {", ".join(left_out)}' if left_out else 'ready'


def first_remedy(entries: Sequence[Entry]) -> str:
    """Return the first thing that must be done; '' if the robot is ready."""
    return next((f'{entry.name}: {entry.remedy}' for entry in entries
                 if entry.remedy and not entry.is_hint), '')


def _robot(model: RobotModel, posture: Array) -> Iterator[Entry]:
    state, links = model.state(posture), model.frames(model.link_names)
    soles = state.placements_in_base(model.soles)[:, 3, 2]
    height = float(state.placements_in_base(links)[:, 3, 2].max() - soles.min())
    driven = len(model.actuated_joint_names)
    yield Entry('robot', f'{model.config.name}, {model.mass:.2f} kg, {height:.2f} m from the '
                f'soles to the highest joint, {len(model.joint_names)} joints ({driven} driven), '
                f'{len(model.link_names)} links with mass')
    for warning in model.warnings:
        yield Entry('description', 'suspicious', warning)
    if missing := missing_inertials(model):
        yield Entry('masses', 'some are missing', missing, is_hint=True)
    if unphysical := unphysical_inertias(parse_urdf(model.urdf)):
        listed = some_of([f'{link}: {problem}' for link, problem in unphysical.items()])
        yield Entry('inertias', f'{len(unphysical)} are not physical: {listed}', 'correct '
                    '<inertia> in the URDF: statics do not depend on it, but simulation, virtual '
                    'sensors, payloads and the fused CoM of moving robots do', is_hint=True)
    if unreadable := unreadable_shapes(model):
        yield Entry('shapes', f'{len(unreadable)} links have one that is not compared: a '
                    'calibration does not keep their centres of mass within it. '
                    f'{some_of([*unreadable])}: {next(iter(unreadable.values()))}',
                    is_compared=False)


def _posture(model: RobotModel, posture: Array) -> Iterator[Entry]:
    if STAND not in model.config.postures:
        yield Entry('posture', f"no posture '{STAND}': all joints are at zero", 'add postures.'
                    f'{STAND} with bent knees and level soles (hip + knee + ankle = 0): the '
                    'simulator and com_calibrator begin with it', is_hint=True)
    placed = model.state(posture).placements_in_base(model.soles)
    tilts = np.arccos(np.clip(placed[:, 2, 2], -1.0, 1.0))
    heights = placed[:, 3, 2] - placed[:, 3, 2].min()
    text = (f'differ by {1e3 * heights.max():.1f} mm in height, inclined by at most '
            f'{math.degrees(tilts.max()):.2f} deg')
    names = list(model.config.feet)
    remedy = ''
    if tilts.max() > TILT:
        inclined = [name for name, tilt in zip(names, tilts) if tilt > TILT]
        soles = ', '.join(f'feet.{name}.sole_rpy' for name in inclined)
        feet, ankles = (('foot', 'is'), 'its ankle') if len(inclined) == 1 else (
            ('feet', 'are'), 'their ankles')
        remedy = (f'{feet[0]} {" and ".join(inclined)} {feet[1]} inclined: {_correct(model)} '
                  f'{ankles} (hip + knee + ankle = 0 where the axes are parallel), or {soles}')
    elif heights.max() > UNEVEN:
        remedy = (f'foot {names[int(np.argmax(heights))]} is higher: {_correct(model)} what is '
                  'not symmetrical, or sole_origin')
    if remedy:
        remedy += _standing(model, posture)
    yield Entry('soles', text, remedy)


def _correct(model: RobotModel) -> str:
    """Return how to change the posture that was looked at, as the beginning of a sentence."""
    return (f'correct in postures.{STAND}' if STAND in model.config.postures else
            f'add postures.{STAND}, and correct in it')


def _balance(model: RobotModel, posture: Array) -> Iterator[Entry]:
    state = model.state(posture)
    placed = state.placements_in_base(model.soles)
    support = Soles.of(model).support(placed, [True] * len(model.config.feet))
    if support is None:
        yield Entry('balance', 'the soles span no polygon', 'correct feet.*.polygon')
        return
    margin = support.margin(state.com_in_base).distance
    text = f'the centre of mass is {1e3 * abs(margin):.0f} mm {{}} the edge of the support'
    if margin > 0.0:
        yield Entry('balance', text.format('inside'))
        return
    remedy = ('move the hips over the feet in postures.' + STAND if len(model.config.feet) > 1
              else "one foot is configured: name the other one under 'feet', too")
    if len(placed) > 1 and placed[:, 2, 2].min() > math.cos(TILT):  # else that entry has it
        remedy += _standing(model, posture)
    yield Entry('balance', text.format('outside'), f'it would fall: {remedy}')


def _standing(model: RobotModel, posture: Array) -> str:
    """
    Return positions of joints that make the soles level and balance the robot, to end a remedy.

    The base and the feet keep their directions; '' if the legs do not reach.
    """
    try:
        ik = PostureIk(model, posture, margin=0.0)
        height = min(float(sole.position[2]) for sole in ik.ends)
        soles = [Pose.from_rpy((0.0, 0.0, math.atan2(*sole.rotation[1::-1, 0])), np.array(
            (*sole.position[:2], height))) for sole in ik.ends]
        middles = [sole.apply(np.array((*_middle(foot.polygon), 0.0)))
                   for sole, foot in zip(soles, model.config.feet.values())]
        found, _ = ik.over(np.mean(middles, axis=0)[:2], Pose.identity(), soles)
    except BipedComError:
        return ''
    changed = [f'{name}: {value:.3f}' for name, value, before in zip(
        model.joint_names, found.tolist(), posture.tolist()) if abs(value - before) > _SMALL_TURN]
    return f'; level and balanced: {{{", ".join(changed)}}}'


def _feet(model: RobotModel, posture: Array) -> Iterator[Entry]:
    heights = _mass_heights(model, posture)
    for foot, height in zip(model.config.feet, heights.tolist()):
        problem = failure(partial(sole_polygon, model, foot))
        yield from (_not_compared(model, foot, problem, height) if problem else
                    _compared(model, foot, sole_polygon(model, foot)))


def _not_compared(model: RobotModel, foot: str, problem: str, height: float) -> Iterator[Entry]:
    """Yield what can be said of a foot without collision geometry, by the height of its mass."""
    config, name = model.config.feet[foot], f'foot {foot}'
    yield Entry(name, f'polygon of {_size(config.polygon)}, not compared: {problem}',
                problem if problem.endswith(_REPORT) else '', is_compared=False)
    if height <= 0.0:
        yield Entry(name, f'the mass of the foot is {-1e3 * height:.0f} mm below its sole',
                    f'correct feet.{foot}.sole_origin, along the axes of {config.sole}: '
                    'its z, or the sign of that; or sole_rpy')


def _compared(model: RobotModel, foot: str, outline: Sequence[Point]) -> Iterator[Entry]:
    """Yield what of a foot differs from its collision geometry."""
    config, name, height = model.config.feet[foot], f'foot {foot}', sole_height(model, foot)
    yield _compare(name, config, outline)
    if abs(height) > BELOW:
        origin = moved_origin(config, np.array((0.0, 0.0, height)))
        yield Entry(name, f'the lowest point of its collision geometry is '
                    f'{1e3 * abs(height):.1f} mm {"above" if height > 0.0 else "below"} the '
                    'sole frame', f'set feet.{foot}.sole_origin to {origin}')


def moved_origin(config: FootConfig, shift_in_sole: Array) -> str:
    """Return `sole_origin` of a sole frame that is moved along its own axes, m, as YAML."""
    values = sole_in_link(config).apply(shift_in_sole).round(4) + 0.0
    return f'[{", ".join(f"{value:g}" for value in values.tolist())}]'


def _mass_heights(model: RobotModel, posture: Array) -> Array:
    """Return how high over each sole the centre of mass of the links fixed to it is, (F,), m."""
    state = model.state(posture)
    joints, coms = model.frames(model.link_names).joints, state.link_coms_in_base
    masses, heights = np.asarray(model.link_masses), []
    for row, joint in zip(state.placements_in_base(model.soles), model.soles.joints):
        on_it = (joints == joint) & (masses > 0.0)
        com = masses[on_it] @ coms[on_it] / max(masses[on_it].sum(), 1e-9)
        heights.append(row[2].dot(com - row[3]) if on_it.any() else np.inf)
    return np.array(heights)


def _compare(name: str, config: FootConfig, outline: Sequence[Point]) -> Entry:
    """Compare a polygon with the outline of the collision geometry."""
    polygon = config.polygon
    over, unused = _outside(polygon, outline), _outside(outline, polygon)
    text = (f'polygon of {_size(polygon)}, the collision geometry touches with '
            f'{_size(outline)}')
    suggestion = ', '.join(f'[{x:.3f}, {y:.3f}]' for x, y in simplified(outline))
    if over > OVERHANG:
        beyond = f'the polygon is {1e3 * over:.0f} mm outside the collision geometry: '
        shift = np.append(_middle(outline) - _middle(polygon), 0.0)
        moved = [(x + float(shift[0]), y + float(shift[1])) for x, y in polygon]
        if max(_outside(moved, outline), _outside(outline, moved)) < OVERHANG:
            return Entry(name, text, f'{beyond}it is in the wrong place; set sole_origin to '
                         f'{moved_origin(config, shift)}, or polygon: [{suggestion}]')
        return Entry(name, text, f'{beyond}margins would be too large; polygon: [{suggestion}]')
    if unused > WASTE:
        return Entry(name, text, f'{1e3 * unused:.0f} mm of the collision geometry are not used; '
                     f'polygon: [{suggestion}]', is_hint=True)
    return Entry(name, text)


def _middle(points: Sequence[Point]) -> Array:
    """Return the middle (2,) between the outermost corners, m."""
    corners = np.array(points)
    return 0.5 * (corners.min(axis=0) + corners.max(axis=0))


def _outside(points: Sequence[Point], polygon: Sequence[Point]) -> float:
    """Return how far the farthest point is outside of a convex polygon, m; 0 if none is."""
    planes = half_planes(polygon)
    return max(0.0, *(-min(distances_inside(planes, point)) for point in points))


def simplified(corners: Sequence[Point], count: int = CORNERS,
               lost: float = AREA_LOST) -> list[Point]:
    """
    Return a convex polygon without the corners that matter least; it is inside the given one.

    Parameters
    ----------
    corners
        Counter-clockwise, m.
    count, lost
        Corners are left out while less than this share of the area is lost, and there are more
        than `count`, or one on an edge.

    """
    left, whole = list(corners), area(corners)
    while len(left) > 3:
        def cut(i: int) -> float:
            return area((left[i - 1], left[i], left[(i + 1) % len(left)]))
        i = min(range(len(left)), key=cut)
        if ((len(left) <= count and cut(i) > _ON_AN_EDGE * whole)
                or area([*left[:i], *left[i + 1:]]) < (1.0 - lost) * whole):
            break
        del left[i]
    return left


def _size(polygon: Sequence[Point]) -> str:
    x, y = (1e3 * np.ptp(column) for column in np.array(polygon).T)
    return f'{x:.0f} mm x {y:.0f} mm'


def _sensors(model: RobotModel, posture: Array) -> Iterator[Entry]:
    config = model.config
    sole_frames = {*map(sole_frame_name, config.feet)}
    for name, sensor in config.wrench_sensors.items():
        carried = model.subtree_links(sensor.link or sensor.frame)
        mass = float(np.asarray(model.link_masses)[carried].sum())
        what = 'the vertical force alone' if sensor.measures_force_z else 'the wrench'
        yield Entry(f'sensor {name}', f"{what} in frame '{sensor.frame}', topic {sensor.topic}; "
                    f'{mass:.2f} kg are beyond it',
                    '' if mass > NOTHING or sensor.frame in sole_frames else
                    f'give wrench_sensors.{name}.link, the first link beyond the sensor, unless '
                    'it is a pad under the sole: the weight of what it carries counts as force of '
                    'the ground', is_hint=True)
    yield from _sides(model, posture)
    for foot, its in config.feet.items():
        if its.is_virtual:
            yield Entry(f'foot {foot}', 'no sensor: joint torques and the URDF give its force '
                        '(source: virtual)')
        elif not its.has_wrench:
            yield Entry(f'foot {foot}', 'nothing measures it', f'give feet.{foot}.wrench_sensors, '
                        'or source: virtual where joint torques are measured', is_hint=True)
    for hand in config.virtual_hands:
        problem = failure(lambda: VirtualHandForces(model, VirtualHandSettings()))
        yield Entry(f'hand {hand}', problem or 'virtual: its force by the torques of the arm',
                    problem and f'give hands.{hand}.wrench_sensors', is_hint=bool(problem))
    for name, imu in config.imus.items():
        yield Entry(f'imu {name}', f"frame '{imu.frame}', topic {imu.topic}")
    if not config.imus:
        yield Entry('imu', 'none', "add one under 'imus', or run the nodes with another "
                    'base_source (odometry, tf, fixed)', is_hint=True)


def _sides(model: RobotModel, posture: Array) -> Iterator[Entry]:
    """Yield what is on the other side than its name says."""
    config, state = model.config, model.state(posture)
    named = [(f'foot {name}', name, foot.sole) for name, foot in config.feet.items()]
    named += [(f'sensor {name}', f'{name}/{sensor.topic}', sensor.frame)
              for name, sensor in config.wrench_sensors.items()]
    for entry, names, frame in named:
        y = float(state.pose_in_base(frame).position[1])
        words = set(re.split(r'[^a-z]+', names.lower()))
        sides = {side for side, known in _SIDES.items() if known & words}
        is_at = 'left' if y > 0.0 else 'right'
        if sides - {is_at} and abs(y) > _CENTRE:
            yield Entry(entry, f"is named '{names}', but frame '{frame}' is {1e3 * abs(y):.0f} mm "
                        f'to the {is_at}', 'exchange the frames or the topics of left and right, '
                        'or set base_rpy so that x points forward')


def _joints(model: RobotModel, posture: Array) -> Iterator[Entry]:
    limits = effort_limits(model)[model.joint_index(model.actuated_joint_names)]
    without = [name for name, limit in zip(model.actuated_joint_names, limits)
               if not (0.0 < limit < math.inf)]
    grouped = {joint for group in model.config.groups.values() for joint in group}
    loose = [name for name in model.joint_names if name not in grouped]
    text = f'{len(model.config.groups) or "no"} groups'
    if model.config.groups and loose:
        text += f', {len(loose)} joints in none ({some_of(loose)})'
    yield Entry('joints', text)
    if without:
        yield Entry('joints', f'no effort limit: {some_of(without)}', 'give <limit effort="..."/> '
                    'in the URDF, or gravity_compensation the parameter default_effort_limit: '
                    'without, these joints get no effort', is_hint=True)
    unlimited = [name for name, limit in zip(model.joint_names, velocity_limits(model))
                 if name in model.actuated_joint_names and math.isinf(limit)]
    if unlimited:
        yield Entry('joints', f'no velocity limit below {FASTEST:g} rad/s or m/s: '
                    f'{some_of(unlimited)}', 'give <limit velocity="..."/> in the URDF: without, '
                    'trajectories are commanded slowly', is_hint=True)
    written, used, needed = (of(model) for of in (
        urdf_effort_limits, effort_limits, needed_efforts))
    is_placeholder = placeholders(model)
    slides = StaticsRegressor(model).is_prismatic
    replaced = [f'{name} {written[k]:g} {"N" if slides[k] else "N m"} (gravity needs '
                f'{needed[k]:.3g}, {used[k]:.3g} is used)'
                for k, name in enumerate(model.joint_names) if is_placeholder[k]]
    if replaced:
        yield Entry('joints', f'effort limit is a placeholder: {some_of(replaced)}', 'give the '
                    "motor's torque, N m or N, in <limit effort=\"...\"/> of the URDF",
                    is_hint=True)


def _nodes(model: RobotModel, posture: Array) -> Iterator[Entry]:
    config = model.config
    feet = '' if config.has_foot_wrenches else 'no foot has wrench_sensors or source: virtual'
    yield _node('wrench_aggregator', feet)
    loads = config.force_z_restriction
    yield _node('com_estimator', '', 'without foot forces there is no fused CoM' if feet else
                loads and f'the fused CoM is by kinematics alone: {loads}')
    yield _node('zmp_monitor', '', 'without foot forces, the ZMP by the model only' if feet else
                loads and f'the ZMP by the model only: {loads}')
    yield _node('com_calibrator', failure(lambda: with_virtual_sensors(model))
                if config.wrench_sensors else feet)
    yield _node('gravity_compensation', failure(lambda: GravityModel(model)))
    yield _node('payload_estimator', failure(lambda: PayloadEstimator(model)))
    legs = failure(lambda: StanceIk(model, model.posture(STAND)))
    yield _node('gait_player', legs, '' if legs else _stepping(model))
    if not legs and (factor := time_scale(model)) != 1.0:
        yield Entry('walking', f'steps take {factor:.1f} times the usual time; walking.time_scale '
                    'changes that')
    yield _node('torso_controller', '' if config.torso else 'the robot has no tendon-driven torso')


def _stepping(model: RobotModel) -> str:
    """Return why the robot cannot step slowly, or which joint gets too little effort in it."""
    try:
        gait = single_step(model, _STEP * model.com_height, options=GaitOptions(
            dt=_INTERVAL, timing=StepTiming().slowed(time_scale(model))))
    except BipedComError as error:
        return f'the robot cannot step: {error}'
    gravity, up = GravityModel(model), np.array((0.0, 0.0, 1.0))
    efforts = [gravity.load(model.state(sample.positions), up).on_contacts(sample.shares).efforts
               for sample in map(gait.at, gait.times.tolist())]
    shares = np.abs(efforts).max(axis=0) / effort_limits(model)
    worst, clamp = int(np.argmax(shares)), SafetySettings().clamp
    share, name = float(shares[worst]), model.joint_names[worst]
    text = f"a slow step takes {100.0 * share:.0f} % of the effort limit of '{name}'"
    return ('' if share <= clamp else f'{text}: it sags' if share > 1.0 else
            f'{text}: it sags with effort_clamp of gravity_compensation at {clamp:g}')


def _node(name: str, reason: str, restriction: str = '') -> Entry:
    return Entry(f'node {name}', f'does not run: {reason}' if reason else
                 f'runs; {restriction}' if restriction else 'runs',
                 reason if reason.endswith(_REPORT) else '')


def failure(attempt: Callable[[], object]) -> str:
    """Return why something fails; '' if it does not."""
    try:
        attempt()
    except BipedComError as error:
        return str(error)
    except Exception as error:  # What nobody foresaw must not hide the other results.
        return f'{type(error).__name__}: {error}; {_REPORT}'
    return ''


_REPORT = "a fault of biped_com_ros: please report it with the robot's URDF and YAML"

Check = Callable[[RobotModel, Array], Iterable[Entry]]

#: Causes before consequences: the first remedy is the first to apply.
_CHECKS: tuple[tuple[str, Check], ...] = (
    ('robot', _robot), ('feet', _feet), ('posture', _posture), ('balance', _balance),
    ('sensors', _sensors), ('joints', _joints), ('nodes', _nodes))
