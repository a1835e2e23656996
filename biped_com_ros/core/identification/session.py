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
The procedure of a calibration: plan poses, go from one to the next, capture, solve.

A session does not depend on ROS or threads. It receives readings
(`CalibrationSession.add_readings`) and the time (`CalibrationSession.update`), moves the robot by
a `RobotDriver`, and runs long computations by `Jobs`. Every capture is on disk before the next
movement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
import enum
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from biped_com_ros.core.errors import BipedComError, ConfigurationError, InputError
from biped_com_ros.core.files import make_directory
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.identification.captures.capture import Capture, SensorNoise
from biped_com_ros.core.identification.captures.capture_log import CaptureLog
from biped_com_ros.core.identification.captures.stillness import (
    CaptureWindow, carried_share, StillnessOptions)
from biped_com_ros.core.identification.equations.com_measurements import (
    ComMeasurement, read_com_measurements)
from biped_com_ros.core.identification.equations.first_moments import StaticsRegressor
from biped_com_ros.core.identification.estimation.estimates import Identification
from biped_com_ros.core.identification.estimation.estimator import CaptureInformation, Estimator
from biped_com_ros.core.identification.estimation.moments_from_com import describe_poses, rank_of
from biped_com_ros.core.identification.estimation.prior import Prior
from biped_com_ros.core.identification.estimation.two_poses import last_pair
from biped_com_ros.core.identification.output.exports import write_exports
from biped_com_ros.core.identification.output.results import (
    calibrated_urdf, solve_and_write, summary)
from biped_com_ros.core.identification.poses.pose_design import (
    PlannedPose, PoseDesign, PoseDesigner)
from biped_com_ros.core.identification.poses.pose_safety import DesignOptions
from biped_com_ros.core.identification.poses.posture_plan import PosturePlan, PosturePlanner
from biped_com_ros.core.identification.poses.transfer import (
    HANGS, HoistMove, PathSegment, RobotDriver, SlowPath, Transfer)
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.settings import setting, Settings, settings
import numpy as np

LOCATE_PERIOD = 1.0  # s between attempts to find the pose that the robot is in


class SessionState(enum.Enum):
    """What a calibration is doing."""

    IDLE = 'idle'
    PLANNING = 'planning'
    LOCATING = 'locating'
    MOVING = 'moving'
    WAITING = 'waiting'
    RETREATING = 'retreating'
    RETURNING = 'returning'
    DONE = 'done'
    SOLVED = 'solved'
    FAILED = 'failed'


#: Time until what keeps the session from going on is reported, and again, s.
_REMINDER_PERIOD = 5.0


@dataclass(frozen=True, kw_only=True)
class SessionOptions(Settings):
    """How poses are taken; captures and results are written to `directory`."""

    directory: Path
    robot: str = ''
    mjcf: str = setting(
        '', 'Path of a MuJoCo model whose bodies have the names of the links; it is written with '
        'the calibrated inertials; empty: none', read_only=True)
    known_coms: str = setting(
        '', 'Path of a YAML file of total centres of mass that are known otherwise, which ~/solve '
        'and ~/poses use as measurements; empty: none', read_only=True)
    design: DesignOptions = settings(DesignOptions)
    stillness: StillnessOptions = settings(StillnessOptions, 'still_{}')
    com_sigma: float = setting(
        0.015, "Standard deviation of a link's centre of mass about the URDF's, per axis", 'm',
        1e-4, 0.5)
    move: bool = setting(
        False, 'Whether to send trajectories; else an operator moves the robot', read_only=True)
    automatic: bool = setting(
        True, 'Whether to capture as soon as the robot is still in the next pose, and to solve '
        'after the last one; else with ~/capture and ~/solve')
    #: Largest distance of a motor's joint from a pose in which the robot has arrived, rad.
    arrival_tolerance: float = 0.3
    settling_time: float = setting(
        0.0, 'Time after arrival until readings count, for a robot that sways longer than the '
        'limits of stillness show', 's', 0.0, 60.0)
    pose_timeout: float = setting(
        60.0, 'Time after arrival until a pose that cannot be captured is skipped, with move; 0: '
        'never', 's', 0.0, 3600.0)


class Jobs(Protocol):
    """Executes one piece of work at a time, and hands its result over in `poll`."""

    @property
    def is_busy(self) -> bool:
        """Whether work goes on, or its result is not handed over yet."""

    def start(self, work: Callable[[], Any], on_result: Callable[[Any], object]) -> None:
        """Begin `work`; `on_result` gets its result."""

    def poll(self) -> bool:
        """Hand over a result, or raise the error of the work; return whether there was one."""


class SessionReports(Protocol):
    """Where a session reports to."""

    def info(self, text: str) -> None:
        """Log a result."""

    def progress(self, text: str, is_error: bool) -> None:
        """Publish what the session is doing."""

    def target(self, pose: PlannedPose) -> None:
        """Publish the next pose."""


class CalibrationSession:
    """
    A calibration from the first planned pose to the results.

    Parameters
    ----------
    model
        The robot.
    options
        How poses are taken; may be replaced while the session runs.
    noise
        Of the sensors.
    driver, jobs, reports
        See there.

    Attributes
    ----------
    state
        What it is doing.
    queue
        The planned poses that are left.
    window
        The last readings.
    log
        The captures.
    identification
        The last estimate, if there is one.
    status
        The last text of `SessionReports.progress`.
    biases
        Biases that are subtracted from the wrenches, (sensors, 6), N and N m; None: those
        configured.

    Raises
    ------
    ConfigurationError
        If the directory cannot be written to, or holds captures of another robot.

    """

    def __init__(self, model: RobotModel, options: SessionOptions, noise: SensorNoise,
                 driver: RobotDriver, jobs: Jobs, reports: SessionReports) -> None:
        make_directory(options.directory)
        self.model, self.options = model, options
        self._next_design = options.design
        self.estimator = Estimator(model, noise, Prior(com_sigma=options.com_sigma))
        self.log = CaptureLog(options.directory / 'captures.json', model)
        self.window = CaptureWindow(model, model.config.imu.frame, options.stillness)
        self.state, self.status = SessionState.IDLE, ''
        self.queue: list[PlannedPose] = []
        self.identification: Identification | None = None
        self.biases: Array | None = None
        self._information = CaptureInformation(self.estimator, self.log.captures)
        self._transfer = Transfer(driver)
        self._driver, self._jobs, self._reports = driver, jobs, reports
        self._positions = np.full(len(model.joint_names), np.nan)
        self._wrenches = np.full((len(model.config.wrench_sensors), 6), np.nan)
        self._pose: PlannedPose | None = None  # the planned one that the robot is in
        self._way_to_home: list[PathSegment] = []  # from where it was found
        self._skipped: set[str] = set()
        self._results = self._planning = ''
        self._now = self._locate_at = 0.0
        self._reminded_at: dict[str, float] = {}
        self._is_stopped = False
        if self.log.captures:
            reports.info(f'{len(self.log.captures)} captures found in {self.log.path}: resuming')

    # -- what drives it

    def add_readings(self, time: float, positions: Array, torques: Array, wrenches: Array,
                     up: Array) -> None:
        """Add what the sensors measured at an instant; see `CaptureWindow.add`."""
        self._positions, self._wrenches = positions.copy(), wrenches.copy()
        self.window.add(time, positions, torques, wrenches, up)

    def check_options(self, options: SessionOptions, noise: SensorNoise) -> None:
        """
        Check whether `use_options` may be called.

        Raises
        ------
        InputError
            If they change the noise that a running computation depends on.

        """
        if (noise, options.com_sigma) != (self.estimator.noise, self.options.com_sigma):
            self._require_idle_jobs()

    def use_options(self, options: SessionOptions, noise: SensorNoise) -> None:
        """Use other options and noise at once, and those of poses from the next plan on."""
        self._next_design = options.design
        self.options = replace(options, design=self.options.design)
        self.window.options = options.stillness
        prior = Prior(com_sigma=options.com_sigma)
        if (noise, prior) != (self.estimator.noise, self.estimator.prior):
            self.estimator = Estimator(self.model, noise, prior)
            self._information = CaptureInformation(self.estimator, self.log.captures)

    def update(self, now: float) -> None:
        """Do what is due at the time `now`, s; call it about ten times per second."""
        self._now = now
        if self._poll_job():
            return
        if self.state is SessionState.PLANNING and self._planning:
            self._remind(self._planning, 'planning')
        elif self.state is SessionState.LOCATING and not self._jobs.is_busy:
            self._locate()
        elif self.state in (SessionState.MOVING, SessionState.RETREATING, SessionState.RETURNING):
            self._continue_transfer()
        elif self.state is SessionState.WAITING and self.options.automatic and self.queue:
            self._capture_if_arrived()

    def stop(self) -> None:
        """Cancel planning."""
        self._is_stopped = True

    # -- what a user requests; each returns a description, and raises InputError if it cannot

    def start(self) -> str:
        """Plan poses and begin."""
        if self.state is not SessionState.IDLE:
            raise InputError(f'the calibration has already begun: {self.state.value}')
        self._plan()
        return f'results will be written to {self.options.directory}'

    def capture(self) -> str:
        """Capture the posture as it is; as the next planned pose where it is that one."""
        # Otherwise the paths of the queue do not begin where the robot is.
        is_due = self.state in (SessionState.MOVING, SessionState.WAITING)
        arrived = bool(self.queue) and is_due and not self._distance_problem(self.queue[0])
        name = self.queue[0].name if arrived else f'by hand {len(self.log.captures) + 1}'
        self._add_capture(self.window.capture(name))
        if arrived:
            self._pose = self.queue.pop(0)
            self._go_to_next()
        else:
            self._report(self._describe(self.queue[0]) if self.queue else f'captured {name}')
        return f'captured {name}; {self._information.describe()}'

    def skip(self) -> str:
        """Leave out the next planned pose."""
        self._require_idle_jobs()
        if not self.queue:
            raise InputError('there is no pose to skip: all planned poses are done')
        return f'{self._skip_next()} skipped'

    def reset(self) -> str:
        """Begin again; the file of captures is kept under another name."""
        self._require_idle_jobs()
        kept = self.log.clear()
        self._skipped.clear()
        self._information = CaptureInformation(self.estimator, [])
        self.identification, self._results = None, ''
        self._plan()
        return f'calibration restarted; old captures are in {kept}' if kept else (
            'calibration restarted')

    def solve(self) -> str:
        """Estimate from the captures there are, and write the results."""
        captures = list(self.log.captures)
        self._require_idle_jobs()
        if len(captures) < 2:
            raise InputError(
                f'{len(captures)} captures are too few: capture at least 2 poses, better 40')
        self._results = ''
        self._jobs.start(partial(self._solve, captures, self.biases), self._use_solution)
        return (f'solving with {len(captures)} captures; results will be written to '
                f'{self.options.directory}')

    def _solve(self, captures: list[Capture], biases: Array | None) -> tuple[
            Identification, dict[str, Path]]:
        """Estimate and write the results, in a job."""
        options, model = self.options, self._model_for_job()
        found, paths = solve_and_write(
            options.directory, model, captures, self.estimator.noise, options.com_sigma,
            self._known_coms(model, captures))
        paths |= write_exports(
            options.directory, model, found, robot=options.robot, biases=biases,
            mjcf=Path(options.mjcf).expanduser() if options.mjcf else None)
        return found, paths

    def _known_coms(self, model: RobotModel, captures: list[Capture]) -> list[ComMeasurement]:
        path = self.options.known_coms
        return read_com_measurements(Path(path).expanduser(), model, captures) if path else []

    def poses(self) -> str:
        """Return what all captures determine of the first moments, with known masses."""
        captures, regressor = self.log.captures, StaticsRegressor(self.model)
        return describe_poses(regressor, captures, self.estimator.noise,
                              self._known_coms(self.model, captures))

    def two_pose(self) -> str:
        """Return the total CoM from the last captures that lean, and what all determine."""
        captures, regressor = self.log.captures, StaticsRegressor(self.model)
        first, second, found = last_pair(regressor, captures, self.estimator.noise)
        return (f"'{first.name}' and '{second.name}': {found.describe()}; "
                f'{rank_of(regressor, captures).describe()}')

    def _report_two_pose(self) -> None:
        try:
            self._reports.info(self.two_pose())
        except InputError as error:
            self._reports.info(f'the postures give no total centre of mass: {error}')

    def calibrated_urdf(self) -> str:
        """Return the URDF with the estimated masses and centres of mass."""
        if self.identification is None:
            raise InputError('there is no estimate yet: call ~/solve first')
        return calibrated_urdf(self.model, self.identification)

    # -- planning

    def _plan(self) -> None:
        self.state = SessionState.PLANNING
        self._drop_plan()
        self.options = replace(self.options, design=self._next_design)
        self._report('planning poses')
        self._jobs.start(self._design, self._use_design)

    def _drop_plan(self) -> None:
        """Forget all poses and paths: the robot must not move by them any more."""
        self.queue, self._pose, self._way_to_home = [], None, []
        self._transfer.begin(())
        self._driver.end_hoist()

    def _model_for_job(self) -> RobotModel:
        """Return a model for another thread: Pinocchio's buffers must not be shared."""
        return RobotModel(self.model.config, self.model.urdf)

    def _design(self) -> tuple[PoseDesigner | PosturePlanner, PoseDesign | PosturePlan]:
        model, options, noise = self._model_for_job(), self.options.design, self.estimator.noise
        if options.postures:
            planner = PosturePlanner(model, options, noise)
            return planner, planner.design(self._on_planning)
        designer = PoseDesigner(model, options, noise, self.estimator.prior)
        return designer, designer.design(self._on_planning)

    def _on_planning(self, what: str, done: int, total: int) -> None:
        if self._is_stopped:
            raise InputError('planning was stopped')
        self._planning = f'planning poses: {what}, {done} of {total}'

    def _use_design(self, result: tuple[Any, Any]) -> None:
        self._designer, self._plan_in_use = _, plan = result
        self._transfer.lift_request = plan.lift_request
        self._reports.info(plan.summary())
        self._locate()

    def _locate(self) -> None:
        """Find the pose that the robot is in, and paths from there to the poses that are left."""
        self.state = SessionState.LOCATING
        is_unknown = self.options.move and not np.isfinite(self._positions).all()
        if is_unknown or self._now < max(self._locate_at, self._transfer.arrives_at):
            return  # the next update tries again
        done = {capture.name for capture in self.log.captures} | self._skipped
        positions = self._positions.copy() if self.options.move else None
        self._jobs.start(partial(self._find_paths, done, positions), self._use_paths)

    def _find_paths(self, done: set[str], positions: Array | None) -> tuple[
            str, PlannedPose | None, list[PlannedPose]]:
        designer, plan, pose, problem = self._designer, self._plan_in_use, None, ''
        if positions is not None:
            try:
                pose = designer.locate(plan, positions, self.options.arrival_tolerance)
            except InputError as error:
                problem = str(error)
        return problem, pose, designer.remaining(plan, done)

    def _use_paths(self, result: tuple[str, PlannedPose | None, list[PlannedPose]]) -> None:
        problem, self._pose, self.queue = result
        if problem and self.queue:
            self._locate_at = self._now + LOCATE_PERIOD
            self._remind(problem)
            return
        self._way_to_home = [self._designer.way_home(self._pose)] if self._pose else []
        self._go_to_next()

    # -- moving

    def _go_to_next(self) -> None:
        if not self.queue:
            self._finish()
            return
        pose = self.queue[0]
        self._reports.target(pose)
        self._transfer.begin(self._legs_to(pose))
        self.state = SessionState.MOVING
        self._report(self._describe(pose))

    def _legs_to(self, pose: PlannedPose) -> list[PathSegment]:
        before, self._way_to_home = self._way_to_home, []
        hoist: list[PathSegment] = []
        if bool(pose.standing) == self._is_hanging:
            hoist = [HoistMove.LOWER if pose.standing else HoistMove.LIFT]
            if self._pose is not None and not before:
                before = [self._designer.way_home(self._pose)]
        if not self.options.move:
            return hoist
        if not pose.slow_steps:
            return [*before, *hoist, pose.path]
        first = len(pose.path) - pose.slow_steps
        return [*before, *hoist, pose.path[:first], SlowPath(pose.path[first:])]

    def _continue_transfer(self) -> None:
        settling = self.options.settling_time if self.state is SessionState.MOVING else 0.0
        if not self._transfer.is_done(self._now - settling):
            if problem := self._transfer.update(self._now, self._positions, self._load_share):
                self._remind(problem)
                timeout = self.options.pose_timeout
                if self.state is SessionState.MOVING and timeout > 0.0 and (
                        self._transfer.has_waited(self._now, timeout)):
                    self._skip_after_timeout(self.queue[0], problem)
            return
        self.window.clear()
        if self.state is SessionState.MOVING:
            self.state = SessionState.WAITING
            return
        if self.state is SessionState.RETREATING:
            self._locate()
            return
        self.state = SessionState.DONE if self.identification is None else SessionState.SOLVED
        if self.options.move:
            self._report('the robot is back in posture stand')

    def _finish(self) -> None:
        legs: list[PathSegment] = []
        if self.options.move and self._pose is not None:
            legs.append(self._designer.way_home(self._pose))
        if self._is_hanging:
            legs.append(HoistMove.LOWER)
        self._transfer.begin(legs)
        self.state = SessionState.RETURNING
        self._report('all planned poses are done')
        if self.options.design.postures:
            self._report_two_pose()
        if self.options.automatic:
            try:
                self.solve()
            except InputError as error:
                self._report(str(error), is_error=True)

    @property
    def _load_share(self) -> float:
        return carried_share(self.model, self._wrenches)

    @property
    def _is_hanging(self) -> bool:
        return self._load_share < HANGS

    # -- capturing

    def _capture_if_arrived(self) -> None:
        pose = self.queue[0]
        problem = (self._distance_problem(pose) or self._support_problem(pose, self._load_share)
                   or self.window.problem)
        try:
            if not problem:
                capture = self.window.capture(pose.name)
                # Virtual feet may have noticed only now that the robot hangs.
                problem = self._support_problem(pose, carried_share(self.model, capture.wrenches))
            if not problem:
                self._add_capture(capture)
        except InputError as error:
            problem = str(error)
        except ConfigurationError as error:  # not written: wait until it can be
            self._remind(str(error), 'files')
            return
        if problem:
            self._handle_capture_problem(pose, problem)
            return
        self._pose = self.queue.pop(0)
        self._go_to_next()

    def _handle_capture_problem(self, pose: PlannedPose, problem: str) -> None:
        """Report what keeps a pose from being captured; after the timeout skip it."""
        if not self.options.move:
            return  # an operator needs time to get there
        waited, timeout = self._now - self._transfer.arrives_at, self.options.pose_timeout
        if 0.0 < timeout < waited and not self._jobs.is_busy:
            self._skip_after_timeout(pose, problem)
        elif waited > _REMINDER_PERIOD:
            self._remind(f'{pose.name}: {problem}')

    def _skip_after_timeout(self, pose: PlannedPose, problem: str) -> None:
        self._report(f'{pose.name} skipped after {self.options.pose_timeout:g} s: {problem}',
                     is_error=True)
        self._skip_next()

    @property
    def waits_for(self) -> str:
        """Return what keeps the session from going on, or ''."""
        if self.state is SessionState.WAITING:
            return f'not still: {self.window.problem}' if self.window.problem else ''
        return self._transfer.problem

    def _distance_problem(self, pose: PlannedPose) -> str:
        names, tolerance = self.model.actuated_joint_names, self.options.arrival_tolerance
        distance = np.abs(self._positions - pose.positions)[self.model.joint_index(names)]
        worst = int(np.argmax(distance))
        if distance[worst] < tolerance:
            return ''
        return (f"joint '{names[worst]}' is {distance[worst]:.3f} rad away from the pose (allowed "
                f'{tolerance}); ~/capture captures the posture as it is, ~/skip skips the pose')

    def _support_problem(self, pose: PlannedPose, load_share: float) -> str:
        if bool(pose.standing) == (load_share >= HANGS):
            return ''
        remedy = 'put the robot down' if pose.standing else 'hoist the robot'
        return f'the feet carry {100.0 * load_share:.0f} % of the weight: {remedy}'

    def _add_capture(self, capture: Capture) -> None:
        self.log.append(capture)
        self._information.add(capture)
        self.window.clear()

    def _skip_next(self) -> str:
        skipped = self.queue.pop(0)
        self._skipped.add(skipped.name)
        self._driver.end_hoist()
        if self.state in (SessionState.RETREATING, SessionState.LOCATING):
            pass  # it is on its way out of the last pose; the paths to those left follow
        elif self.options.move:
            self._retreat()
        else:
            self._go_to_next()
        return skipped.name

    def _retreat(self) -> None:
        """Go back the way that the robot came: known to be safe, unlike any other from there."""
        way = self._transfer.way_back
        if way is None:
            self._locate()
            return
        self._transfer.begin([way])
        self.state = SessionState.RETREATING

    # -- jobs and reports

    def _poll_job(self) -> bool:
        try:
            return self._jobs.poll()
        except BipedComError as error:
            # An estimate that was requested too early does not end the session.
            if not self.queue:
                self.state = SessionState.FAILED
            self._report(str(error), is_error=True)
            return True

    def _use_solution(self, result: tuple[Identification, dict[str, Path]]) -> None:
        self.identification, paths = result
        for line in summary(self.identification).splitlines():
            self._reports.info(line)
        self._results = f'solved: {", ".join(map(str, paths.values()))}'
        self._report(self._results)
        if not self.queue and self.state is SessionState.DONE:
            self.state = SessionState.SOLVED

    def _require_idle_jobs(self) -> None:
        if self._jobs.is_busy:
            raise InputError(f'busy ({self.state.value}): try again in a moment')

    def describe(self) -> dict[str, object]:
        """Return captures, state and what is predicted, for diagnostics."""
        return {'captured': len(self.log.captures), 'poses': self._total,
                'state': self.state.value, 'predicted': self._information.describe(),
                'still': self.window.problem or 'yes'}

    def _describe(self, pose: PlannedPose) -> str:
        of = '' if self.options.design.postures else f' of {self.options.design.count}'
        return f'{pose.name}{of}, {pose.support}'

    @property
    def _total(self) -> int:
        """Return the number of captures when all is done."""
        if self.state in (SessionState.IDLE, SessionState.PLANNING, SessionState.LOCATING):
            return self.options.design.visits
        return len(self.log.captures) + len(self.queue)

    def _report(self, text: str, is_error: bool = False) -> None:
        if self._results and not self.queue and text != self._results:
            # Where the results are stays readable while the robot returns.
            text = f'{self._results}; {text}'
        text = (f'{text} ({len(self.log.captures)} of {self._total} captured, '
                f'{self._information.describe()})')
        if text != self.status:
            self.status = text
            self._reports.progress(text, is_error)

    def _remind(self, text: str, key: str = '') -> None:
        """Report `text` once per reminder period and key."""
        key = key or text
        last = self._reminded_at.get(key, -np.inf)
        if not last <= self._now < last + _REMINDER_PERIOD:
            self._reminded_at[key] = self._now
            self._report(text)
