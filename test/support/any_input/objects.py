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
Objects of the core with a state, and what sequences of calls of their methods get.

Those that messages reach first, and those that efforts depend on. Filters get times and samples as
``ros/fast`` lets them pass; the limiter and the supervisor of efforts get anything.
"""

import math

from biped_com_ros.core.gravity.compensation import AUTO, CompensationSettings, GravityCompensator
from biped_com_ros.core.gravity.effort_limiter import EffortLimiter, SafetySettings
from biped_com_ros.core.gravity.supervisor import EffortSupervisor
from biped_com_ros.core.model.config import WrenchSensorConfig
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.model.robot_state import RobotState
from biped_com_ros.core.signals.filters import Differentiator, LowPass
from biped_com_ros.core.signals.schmitt import SchmittTrigger
from biped_com_ros.core.signals.synchronizer import StampThrottle, Synchronizer
from biped_com_ros.core.wrench.contact import ContactThresholds, FootContacts
from biped_com_ros.core.wrench.tare import JointStillness, RecentReadings, TareLimits
from hypothesis import strategies as st
from support.any_input import robots as r, values as v
from support.any_input.contract import ObjectCase

OBJECTS = {}


def add(make, arguments, *, kind=None, by_object=None, may_be_infinite=(), elsewhere=(),
        **methods):
    """Call methods with strategies, which may depend on the object (`by_object`)."""
    OBJECTS[kind or make] = ObjectCase(
        make, arguments, by_object or (lambda _: methods), may_be_infinite, elsewhere)


_N = 3
_samples = v.vectors(_N)
#: Times between messages; a stamp that repeats gives none.
_steps = st.floats(1e-9, 1e9)
_stamps = st.integers(-2 ** 62, 2 ** 62) | st.integers(0, 10 ** 10)
_sources = st.integers(0, 1)
_joints = ('a', 'b', 'c')

add(LowPass, st.tuples(v.anything, st.just(_N)),
    update=(_samples, _steps), reset=())
add(Differentiator, st.tuples(v.anything, st.just(_N)), update=(_samples, _steps), reset=())

add(lambda max_age, tolerances, optional, timeout: Synchronizer(
    2, max_age, tolerances_ns=tolerances, optional=optional, timeouts_ns=[timeout]),
    st.tuples(st.floats(0.0, 1e6), st.sampled_from(((), (0,), (10 ** 7,))), v.flags.map(
        lambda flag: (flag,)), st.integers(0, 10 ** 10)), kind=Synchronizer,
    add=(_sources, _stamps, v.credible), set_max_age=(st.floats(0.0, 1e6),), reset=(),
    set_tolerances=(st.sampled_from(((0,), (10 ** 7,))),),
    describe_lateness=(st.just(('a', 'b')),))
add(StampThrottle, st.tuples(st.floats(0.0, 1e6)), is_due=(_stamps,), set_rate=(
    st.floats(0.0, 1e6),))

_thresholds = st.builds(
    ContactThresholds, engage=st.floats(0.04, 0.9), release=st.floats(0.001, 0.03),
    engage_dwell=st.floats(0.0, 1e6), release_dwell=st.floats(0.0, 1e6))
add(SchmittTrigger, st.tuples(v.credible, v.credible, st.floats(0.0, 1e6), st.floats(0.0, 1e6)),
    update=(v.credible, _stamps), configure=(v.credible, v.credible), reset=())
add(FootContacts, st.tuples(_thresholds, v.positive, st.just(2)),
    update=(v.plain(2), _stamps), configure=(_thresholds, v.positive), reset=())

_stillness = st.builds(JointStillness, st.just(_joints), v.positive)
_limits = st.builds(TareLimits, **dict.fromkeys(
    TareLimits.__dataclass_fields__, st.floats(1e-3, 10.0)))
add(JointStillness, st.tuples(st.just(_joints), v.positive), update=(_samples, _stamps))
add(RecentReadings, st.tuples(v.names, v.positive), add=(v.vectors(6), _stamps),
    configure=(v.positive,), estimate_offset=(
        v.vectors(6), _stillness, _limits,
        st.just(WrenchSensorConfig(frame='sensor', topic='wrench')), _stamps))


def _by_keyword(kind):
    names = tuple(kind.__dataclass_fields__)
    add(lambda *values: kind(**dict(zip(names, values))), v.plain(len(names), v.anything),
        kind=kind, may_be_infinite=names)


_by_keyword(ContactThresholds)
_by_keyword(SafetySettings)
_settings = st.builds(SafetySettings, **{
    name: st.floats(0.01, 1.0) for name in SafetySettings.__dataclass_fields__})
_targets = st.none() | v.vectors(_N, v.anything) | v.vectors(2)
add(EffortLimiter, st.tuples(v.vectors(_N, st.floats(0.0, 1e10) | st.just(math.inf))),
    update=(_targets, v.anything), configure=(_settings,), start=(), stop=(),
    continue_from=(_samples,), describe_saturation=(st.just(('a', 'b', 'c', 'd', 'e')[:_N]),),
    may_be_infinite=('bounds',))


def _supervisor(model, support):
    compensator = GravityCompensator(model, CompensationSettings(support=support))
    return EffortSupervisor(compensator, lambda name: '')


_models = st.tuples(r.light_robots, st.sampled_from((AUTO, 'fixed', 'all')))

_inputs = st.sampled_from(('the IMU', 'left', 'other'))
add(_supervisor, _models, kind=EffortSupervisor, by_object=lambda supervisor: {
    'update': (v.vectors(len(supervisor.limiter.efforts), v.angles), _stamps, v.times,
               st.sampled_from(('', 'another node commands')), v.flags),
    'watch': (v.times, v.flags), 'receive': (_inputs, _stamps), 'start': (v.times,), 'stop': (),
    'continue_from': (v.vectors(len(supervisor.limiter.efforts)), v.times),
    'configure': (st.lists(_inputs, max_size=2), st.floats(0.0, 1e6)), 'take_problem': ()})


def _calls_of(model):
    n = len(model.joint_names)
    links = st.sampled_from((*model.link_names, 'none'))
    names = st.lists(st.sampled_from((*model.joint_names, 'none')), max_size=3)
    return {
        'state': (v.vectors(n, v.angles), st.none() | v.vectors(n)),
        'configuration': (v.vectors(n, v.angles),), 'velocity': (st.none() | v.vectors(n),),
        'use_inertials': (st.sampled_from((model.urdf, '', '<robot name="x"/>')),),
        'corrections_of': (names,), 'corrected_torques': (v.vectors(n),),
        'joint_index': (names,), 'group_index': (v.names,),
        'posture': (st.sampled_from(('stand', 'none')),), 'usual_posture': (),
        'positions': (st.dictionaries(st.sampled_from((*model.joint_names, 'none')), v.angles,
                                      max_size=3),),
        'subtree_links': (links,), 'subtree': (links,), 'foot_index': (v.names,),
        'frames': (st.lists(st.sampled_from((*model.frame_names, 'none')), max_size=3),)}


add(lambda model: RobotModel(model.config, model.urdf), st.tuples(r.light_robots),
    kind=RobotModel, by_object=_calls_of, may_be_infinite=('credible_positions',),
    elsewhere=('load',))


def _calls_of_state(state):
    model = state.model
    frames = st.just(model.frames(list(model.frame_names)[:3]))
    names = st.sampled_from((*model.frame_names, 'none'))
    return {
        'in_world': (v.poses,),
        'placements_in_base': (frames,), 'poses_in_base': (frames,),
        'along_world': (frames, v.rotations),
        'joints_of': (frames,), 'twists_in_base': (frames,),
        'pose_in_base': (names,)}


add(lambda model, *motion: model.state(*motion), r.light_robots.flatmap(
    lambda model: st.tuples(st.just(model), r.positions(model), r.positions(model))),
    kind=RobotState, by_object=_calls_of_state)
