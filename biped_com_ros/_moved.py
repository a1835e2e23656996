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
Names that moved: imports of the old ones work, with a DeprecationWarning.

All names are below ``biped_com_ros``. What a module had is looked up in :data:`NAMES`, then in the
modules that :data:`MODULES` has for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
import sys
from types import ModuleType
from typing import Any
import warnings

ROOT = 'biped_com_ros.'

# Since 0.1.0 these modules moved from `core`, or `core.identification`, to a folder there.
_MOVED_TO = {
    'core.model': 'config frames pinocchio_model resources robot robot_state '
                  'sole_geometry urdf',
    'core.geometry': 'pose wrench',
    'core.signals': 'filters synchronizer',
    'core.wrench': 'contact tare weight_check',
    'core.gravity': 'load_sharing support_qp',
    'core.identification.captures': 'recordings stillness',
    'core.identification.equations': 'first_moments',
    'core.identification.estimation': 'prior',
    'core.identification.poses': 'stances'}

MODULES = {
    **{f'{"core" if new.count(".") == 1 else "core.identification"}.{name}': f'{new}.{name}'
       for new, names in _MOVED_TO.items() for name in names.split()},
    # The modules that have the names of one that is gone, or is a package now.
    'core.base': 'core.state.stance core.state.leg_odometry',
    'core.com': 'core.constants core.com.estimate',
    'core.com_check': 'core.com.check',
    'core.effort_safety': 'core.gravity.effort_limiter core.gravity.attitude',
    'core.footprint': 'core.geometry.pose',
    'core.gravity': 'core.gravity.contacts core.gravity.attitude core.gravity.model',
    'core.gravity_compensation': 'core.gravity.compensation',
    'core.identification.captures': 'core.identification.captures.capture',
    'core.identification.collisions': 'core.identification.poses.pose_safety',
    'core.identification.estimator':
        'core.identification.estimation.estimates core.identification.estimation.estimator',
    'core.identification.figures': 'core.identification.output.pose_figures',
    'core.identification.geometry': 'core.identification.estimation.prior',
    'core.identification.planar': 'papers.muscolo_2017',
    'core.identification.pose_design':
        'core.identification.poses.pose_safety core.identification.poses.pose_design',
    'core.identification.prediction': 'core.identification.equations.first_moments',
    'core.identification.report':
        'core.identification.output.report core.identification.output.results',
    'core.identification.residuals': 'core.identification.estimation.estimates',
    'core.identification.storage': 'core.identification.captures.capture_log core.files',
    'core.identification.travel': 'core.identification.poses.transfer',
    'core.identification.two_pose': 'papers.muscolo_2017',
    'core.identification.urdf': 'core.identification.output.urdf_inertials',
    'core.kinematics': 'core.model.pinocchio_model',
    'core.legs.preview': 'core.legs.gait',
    'core.limits': 'core.model.efforts core.model.robot',
    'core.motion': 'core.legs.keyframes',
    'core.stability': 'core.stability.levels',
    'core.stability_monitor': 'core.stability.monitor',
    'core.support': 'core.geometry.polygon core.stability.support',
    'core.torso.drift': 'core.torso.orientation',
    'core.torso.elapsed': 'core.torso.cycle',
    'core.torso.sight': 'core.torso.orientation',
    'core.torso.taut': 'core.torso.slack',
    'core.torso.workspace': 'core.torso.constant_curvature',
    'core.wrench_aggregation': 'core.wrench.aggregation',
    'core.zmp': 'papers.wang_2013 core.stability.zmp',
    # Since then.
    'core.identification.paper': '',
    'core.identification.paper.captures': 'core.identification.estimation.two_poses',
    'core.identification.paper.planar': 'papers.muscolo_2017',
    'core.identification.paper.poses': 'core.identification.estimation.moments_from_com',
    'core.identification.paper.two_pose': 'papers.muscolo_2017',
    'core.com.link_group': 'papers.newman_2013',
    'core.com.momentum': 'core.stability.zmp',
    'core.legs.denavit_hartenberg': 'papers.wang_2013',
}

NAMES = {
    'core.base.StanceBase': 'core.state.leg_odometry.LegOdometry',
    'core.com.divergent_point': 'core.com.estimate.divergent_component',
    'core.com.estimate.divergent_point': 'core.com.estimate.divergent_component',
    'core.com_check.ComVerdict': 'core.check_result.CheckResult',
    'core.gravity.MINIMUM_NORM': 'core.gravity.model.minimum_norm',
    'core.gravity.Support': 'core.gravity.model.ContactSolution',
    'core.gravity.WrenchDistribution': 'core.gravity.model.Distribution',
    'core.identification.first_moments.Layout':
        'core.identification.equations.statics_kinematics.RegressorLayout',
    'core.identification.stillness.StillnessWatch':
        'core.identification.captures.stillness.CaptureWindow',
    'core.legs.gait.Stance': 'core.legs.stance_ik.StanceIk',
    'core.legs.kinematics.LegGeometry': 'papers.wang_2013.LegGeometry',
    'core.legs.kinematics.WANG': 'papers.wang_2013.WANG',
    'core.legs.kinematics.legs_of': 'core.legs.ik.legs_of',
    'core.legs.kinematics.straight_chain': 'papers.wang_2013.straight_chain',
    'core.legs.kinematics.wang_angles': 'papers.wang_2013.wang_angles',
    'core.legs.kinematics.wang_matrices': 'papers.wang_2013.wang_matrices',
    'core.legs.player.Upcoming': 'core.legs.player.RemainingMotion',
    'core.legs.player.WalkOrder': 'core.legs.player.WalkRequest',
    'core.stability.zmp.LinkMotion': 'papers.wang_2013.LinkMotion',
    'core.stability.zmp.link_motion': 'papers.wang_2013.link_motion',
    'core.stability.zmp.zmp_by_links': 'papers.wang_2013.zmp_by_links',
    'core.stability.zmp.zmp_of_motion': 'papers.wang_2013.zmp_of_motion',
    'core.stability_monitor.Report': 'core.stability.monitor.StabilityReport',
    'core.synchronizer.Instants': 'core.signals.synchronizer.Synchronizer',
    'core.synchronizer.Synchronizer': 'core.signals.synchronizer.Synchronizer',
    'core.tare.StillnessWatch': 'core.wrench.tare.JointStillness',
    'core.torso.controller.TorsoController': 'core.torso.controller.TendonController',
    'core.torso.drift.YawDrift': 'core.torso.orientation.YawOffsetEstimator',
    'core.torso.elapsed.Elapsed': 'core.torso.cycle.StepTimer',
    'core.torso.sight.Foot': 'core.torso.orientation.BaseReading',
    'core.torso.sight.Sight': 'core.torso.orientation.TorsoOrientation',
    'core.torso.sight.Tip': 'core.torso.orientation.TipReading',
    'core.torso.taut.Guard': 'core.torso.slack.SlackPrevention',
    'core.torso.workspace.Clamped': 'core.torso.constant_curvature.LimitedShape',
    'core.weight_check.Verdict': 'core.check_result.CheckResult',
    'core.zmp.Comparison': 'core.stability.zmp.FilteredWrenches',
}

_OLD = {*MODULES, *(name.rpartition('.')[0] for name in NAMES)}


class MovedFinder:
    """
    Makes the modules that are gone, and adds moved names to those that are still there.

    Not derived from :mod:`importlib.abc`, whose import takes ten times as long as this package.
    """

    def find_spec(self, name: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the specification of a module with moved names; None for all others."""
        if name.removeprefix(ROOT) not in _OLD:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.origin is None:  # gone, or only its folder is left
            return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self.exec_module(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: Python makes the modules that are gone, as any other one."""

    def exec_module(self, module: ModuleType) -> None:
        """Let a module find what it had."""
        own: Callable[[str], Any] | None = vars(module).get('__getattr__')

        def find(name: str) -> Any:
            if own is not None:
                try:
                    return own(name)
                except AttributeError:
                    pass
            return find_moved(module.__name__, name)

        vars(module)['__getattr__'] = find


def find_moved(module: str, name: str) -> Any:
    """
    Return what a module had under a name, with a DeprecationWarning.

    Raises
    ------
    AttributeError
        If it had no such name, or that is gone.

    """
    old = module.removeprefix(ROOT)
    if not name.startswith('_'):
        there, _, renamed = NAMES.get(f'{old}.{name}', '').rpartition('.')
        for place in [there] if there else MODULES.get(old, '').split():
            found = vars(import_module(ROOT + place))
            if (renamed or name) in found:
                warnings.warn(f'{module}.{name} is {ROOT}{place}.{renamed or name} now',
                              DeprecationWarning, stacklevel=3)
                return found[renamed or name]
    raise AttributeError(
        f"module '{module}' has no attribute '{name}'; doc/api.rst has the public names")


def install() -> None:
    """Use these tables for all imports from now on."""
    sys.meta_path.insert(0, MovedFinder())
