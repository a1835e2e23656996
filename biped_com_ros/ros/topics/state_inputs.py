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
Subscriptions from which the state of the robot is estimated; see `core.state`.

`StateInputs` subscribes to what the parameters of a node require, and hands what arrives to one or
several `StateEstimator` objects, which nodes of one process share (`located_states`). Stamps,
frames and values have been checked before (see `inputs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
import math
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.core.geometry.polygon import Point
from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.core.geometry.wrench import largest_credible_load
from biped_com_ros.core.model.robot import RobotModel
from biped_com_ros.core.state.base import LocatedState, Lookup
from biped_com_ros.core.state.contacts import ContactHistory
from biped_com_ros.core.state.estimator import StateEstimator, SynchronizedSettings
from biped_com_ros.core.wrench.contact import ContactThresholds
from biped_com_ros.ros.fast.subscription_pool import pool_of
from biped_com_ros.ros.node.clock import steady_time
from biped_com_ros.ros.node.common_parameters import EstimatorParameters, FootWrenchParameters
from biped_com_ros.ros.topics import names
from biped_com_ros.ros.topics.inputs import (
    ImuInput, Input, JointStateInput, OdometryInput, StampedArrayInput, WrenchInput)
from biped_com_ros.ros.topics.located_states import (
    Callback, deliver, LocatedStates, SharedStates, StateNeeds)
from biped_com_ros.ros.topics.qos import COMMAND_INPUT
from biped_com_ros.ros.topics.tf import TransformLookup
import numpy as np
from rclpy.node import Node

#: Least thresholds of contact for wrenches from joint torques, as shares of body weight, and s.
_VIRTUAL_ENGAGE, _VIRTUAL_RELEASE, _VIRTUAL_DWELL = 0.10, 0.06, 0.006


class StateInputs:
    """
    Subscribes to the joints, to the source of the base and, on request, to foot wrenches.

    Parameters
    ----------
    node, model, params
        The rclpy node, the robot, the node's parameters.
    options
        For the inputs; see `inputs.Input`.

    Attributes
    ----------
    joints
        The subscription to the joints.
    wrenches
        The subscriptions to the wrenches, one per foot, then those of the hands; empty if the
        feet have no sensors, or nothing uses them.
    inputs
        All subscriptions by what they are called in messages.

    """

    def __init__(self, node: Node, model: RobotModel, params: EstimatorParameters,
                 **options: Any) -> None:
        self._node, self._model, self._params, self._options = node, model, params, options
        self._lookup = _lookup(node, model, params)
        self._states: list[LocatedStates] = []
        self._synchronized: list[SharedStates] = []
        pool = pool_of(node)
        self._group: list[SharedStates] = [] if pool is None else pool.states
        self.wrenches: list[WrenchInput] = []
        base_input = self._subscribe_to_base()
        self.joints = JointStateInput(
            node, model.joint_names, self._on_joints, limits=model.credible_positions,
            **model.corrections_of(model.joint_names), uses_velocities=True, **options)
        self.inputs: dict[str, Input] = {'joint states': self.joints, **base_input}

    def estimate_latest(self, callback: Callback,
                        contacts: ContactHistory | None = None) -> LocatedStates:
        """Call back with the state at each sample of the joints; see `StateEstimator`."""
        self._states.append(LocatedStates(self._node, callback, StateEstimator(
            self._model, self._params.base, lookup=self._lookup, contacts=contacts)))
        return self._states[-1]

    def estimate_synchronized(self, callback: Callback, params: FootWrenchParameters, *,
                              thresholds: ContactThresholds, body_weight: float,
                              wrenches_required: bool = True,
                              hand_topics: Mapping[str, str] | None = None,
                              wrench_delay: float = 0.0) -> LocatedStates:
        """
        Call back with synchronized states; subscribes to the wrenches of the feet.

        Parameters
        ----------
        callback
            Called with each located state.
        params
            The parameters of the node.
        thresholds, body_weight
            When a foot is in contact; N.
        wrenches_required
            Whether states without wrenches are left out, where the feet have topics of them.
        hand_topics
            Topics of the wrenches on hands, by the name of the hand.
        wrench_delay
            See `SynchronizedSettings`.

        Raises
        ------
        ConfigurationError
            If `wrench_topics` are not one per foot, or there are none for the base filter.

        """
        topics, hands = _wrench_topics(self._model, params), hand_topics or {}
        probabilities = () if params.wrench_topics else _virtual_feet(self._model)
        virtual_hands = tuple(hand for hand in self._model.config.virtual_hands if hand in hands)
        if params.base.source == 'filter' and not topics:
            raise ConfigurationError(
                f"base_source 'filter' needs the wrenches of all feet of "
                f"'{self._model.config.name}': set wrench_topics, or choose imu")
        if not self._synchronized:
            self._subscribe_to_wrenches(topics, hands, wrenches_required)
            if probabilities:
                self._subscribe_to_uncertainty()
            if virtual_hands:
                self._subscribe_to_hand_covariance(len(virtual_hands))
        if topics and wrenches_required:
            callback = partial(_with_wrenches, callback)
        self._synchronized.append(SharedStates(self._node, callback, self._needs(
            SynchronizedSettings(
                wrenches=bool(topics), wrenches_required=False, hands=tuple(hands),
                probabilities=probabilities, covariance=bool(probabilities),
                hand_covariance=bool(virtual_hands),
                thresholds=_thresholds(self._model, thresholds), body_weight=body_weight,
                wrench_delay=wrench_delay)), self._group))
        self._states.append(self._synchronized[-1])
        return self._synchronized[-1]

    def _needs(self, settings: SynchronizedSettings) -> StateNeeds:
        return StateNeeds(
            [source.reader for source in self.inputs.values()], self._model, self._params.base,
            self._lookup, self._params.max_stamp_age, settings)

    def _subscribe_to_wrenches(self, topics: Sequence[str], hands: Mapping[str, str],
                               wrenches_required: bool) -> None:
        """Subscribe to the wrenches of feet and hands."""
        options = {**self._options, 'largest': largest_credible_load(self._model.mass),
                   'required': wrenches_required}
        config = self._model.config
        for foot, (name, topic) in enumerate(zip(self._model.soles.names, topics)):
            force_z = name in config.feet_with_force_z
            on_wrench = self._on_force_z if force_z else self._on_wrench
            source = WrenchInput(
                self._node, topic, '', partial(on_wrench, foot), force_z=force_z, **options)
            self.inputs[f'wrench of the {name} foot'] = source
            self.wrenches.append(source)
        options['required'] = False
        for index, (name, topic) in enumerate(hands.items(), len(topics)):
            source = WrenchInput(  # a virtual hand that touches nothing is exactly zero
                self._node, topic, '', partial(self._on_wrench, index),
                noisy=not self._model.config.hands[name].is_virtual, **options)
            self.inputs[f'wrench of the {name} hand'] = source
            self.wrenches.append(source)

    def _subscribe_to_uncertainty(self) -> None:
        """Subscribe to what `wrench_aggregator` publishes beside the wrenches of virtual feet."""
        feet, options = self._model.soles.names, {**self._options, 'required': False}
        largest = largest_credible_load(self._model.mass) ** 2
        self.inputs['contact probabilities'] = JointStateInput(
            self._node, feet, self._on_probabilities,
            names.CONTACT_PROBABILITIES, **options)
        self.inputs['covariance of the wrenches'] = StampedArrayInput(
            self._node, names.WRENCH_COVARIANCE, (6 * len(feet)) ** 2,
            partial(self._on_covariance, 'covariance'), largest=largest, **options)

    def _subscribe_to_hand_covariance(self, count: int) -> None:
        """Subscribe to the covariance that `wrench_aggregator` publishes of virtual hands."""
        self.inputs["covariance of the hands' forces"] = StampedArrayInput(
            self._node, names.HAND_COVARIANCE, (3 * count) ** 2,
            partial(self._on_covariance, 'hand covariance'),
            largest=largest_credible_load(self._model.mass) ** 2,
            **{**self._options, 'required': False})

    def _subscribe_to_base(self) -> dict[str, Input]:
        node, params, config = self._node, self._params, self._model.config
        if params.base.source == 'imu':
            return {'IMU': ImuInput(
                node, config.imu.topic, config.imu.frame, self._on_imu,
                tilt=config.instruments.tilt(config.imu.frame), **self._options)}
        if params.base.source == 'filter':
            return {**self._external_odometry(), 'IMU': ImuInput(
                node, config.imu.topic, config.imu.frame, self._on_base, need_orientation=False,
                need_acceleration=True, tilt=config.instruments.tilt(config.imu.frame),
                **self._options)}
        if params.base.source == 'odometry':
            return {'odometry': OdometryInput(
                node, 'odom', self._on_base, params.world_frame, config.base_link,
                **self._options)}
        return {}

    def _external_odometry(self) -> dict[str, Input]:
        topic = self._params.filter_odometry_topic
        return {} if not topic else {'odometry': OdometryInput(
            self._node, topic, self._on_external_odometry, '', self._model.config.base_link,
            need_twist=False, **{**self._options, 'required': False})}

    def use(self, params: EstimatorParameters, **contacts: Any) -> None:
        """
        Use changed parameters from the next message on.

        Parameters
        ----------
        params
            The parameters of the node.
        contacts
            `thresholds`, `body_weight` and `wrench_delay` of the synchronized states, those that
            may have changed.

        """
        self._params = params
        for states in self._states:
            if not isinstance(states, SharedStates):
                states.estimator.configure(params.base)
        if contacts:
            contacts['thresholds'] = _thresholds(self._model, contacts['thresholds'])
        for shared in self._synchronized:
            shared.change(self._needs(replace(shared.needs.synchronized, **contacts)))
        for source in self.inputs.values():
            source.timeout = params.sensor_timeout

    def _on_joints(self, stamp_ns: int, positions: Array, velocities: Array, _: Array) -> None:
        state = self._model.state(positions, velocities)
        deliver(self._states, StateEstimator.add_joints, stamp_ns, state)

    def _on_imu(self, stamp_ns: int, quaternion: Array, gyro: Array, _: Array) -> None:
        self._on_base(stamp_ns, quaternion, gyro)

    def _on_base(self, stamp_ns: int, *sample: Array) -> None:
        kept = [array.copy() for array in sample]  # the input reuses its arrays
        deliver(self._states, StateEstimator.add_base, stamp_ns, *kept)

    def _on_external_odometry(self, stamp_ns: int, position: Array, quaternion: Array,
                              _: Array) -> None:
        kept = position.copy(), quaternion.copy()  # the input reuses its arrays
        for states in self._synchronized:
            states.estimator.add_odometry(stamp_ns, *kept)

    def _on_wrench(self, foot: int, stamp_ns: int, wrench: Array) -> None:
        deliver(self._synchronized, StateEstimator.add_wrench, foot, stamp_ns, wrench,
                self.wrenches[foot].frame)

    def _on_force_z(self, foot: int, stamp_ns: int, wrench: Array) -> None:
        """Add a load of which it is not known where it acts."""
        config, name = self._model.config, self._model.soles.names[foot]
        at_middle = wrench[2] * force_at_middle(config.feet[name].polygon)
        deliver(self._synchronized, StateEstimator.add_wrench, foot, stamp_ns, at_middle,
                config.sole_frame(name))

    def _on_covariance(self, name: str, stamp_ns: int, values: Array) -> None:
        size = math.isqrt(values.size)
        covariance = values.reshape(size, size).copy()  # the input reuses its array
        self._add_auxiliary(name, stamp_ns, covariance)

    def _on_probabilities(self, stamp_ns: int, values: Array, *_: Array) -> None:
        self._add_auxiliary('contact probabilities', stamp_ns, values.tolist())

    def _add_auxiliary(self, name: str, stamp_ns: int, value: Any) -> None:
        deliver(self._synchronized, StateEstimator.add_auxiliary, name, stamp_ns, value)


def _with_wrenches(callback: Callback, located: LocatedState) -> None:
    """Call back with a state that has wrenches."""
    if located.wrenches is not None:
        callback(located)


class ContactInputs:
    """
    Subscribes to the contacts that another node publishes.

    Parameters
    ----------
    node, model, params, options
        See `StateInputs`.

    Attributes
    ----------
    history
        The contacts.
    input
        The subscription.

    """

    def __init__(self, node: Node, model: RobotModel, params: EstimatorParameters,
                 **options: Any) -> None:
        self.history = ContactHistory(params.sensor_timeout, steady_time)
        options.update(required=False, timeout=params.sensor_timeout)
        if not model.config.has_foot_wrenches:  # then it is normal that there are none
            options['diagnostics'] = None
        feet = tuple(model.config.feet)
        self.input = JointStateInput(node, feet, self._on_contacts, names.CONTACTS,
                                     qos=COMMAND_INPUT, **options)

    def use(self, params: EstimatorParameters) -> None:
        """Use another age above which contacts are not used."""
        self.history.set_timeout(params.sensor_timeout)
        self.input.timeout = params.sensor_timeout

    def _on_contacts(self, stamp_ns: int, values: Array, _: Array, loads: Array) -> None:
        measured = bool(np.isfinite(loads).all())
        self.history.add(stamp_ns, tuple([value > 0.5 for value in values.tolist()]),
                         loads.tolist() if measured else None)


def force_at_middle(polygon: Sequence[Point]) -> Array:
    """
    Return the wrench (6,) of a unit force in the middle of a sole.

    The base filter assumes it there where nothing measures where it acts; all else that uses
    located wrenches has to look at ``config.feet_with_force_z``.
    """
    x, y = np.mean(polygon, axis=0).tolist()
    return np.array((0.0, 0.0, 1.0, y, -x, 0.0))


def describe_contacts(feet: Sequence[str], in_contact: Sequence[bool]) -> str:
    """Return the names of the feet in contact, separated by commas."""
    return ', '.join(foot for foot, touches in zip(feet, in_contact) if touches) or 'no foot'


def _lookup(node: Node, model: RobotModel, params: EstimatorParameters) -> Lookup | None:
    if params.base.source != 'tf':
        return None
    transforms, prefix = TransformLookup(node), params.frame_prefix
    frames = prefix + params.world_frame, prefix + model.config.base_link
    return lambda stamp_ns: transforms.at(*frames, stamp_ns)


def _wrench_topics(model: RobotModel, params: FootWrenchParameters) -> Sequence[str]:
    """Return one topic per foot; none if the feet have no sensors."""
    feet, topics = tuple(model.config.feet), params.wrench_topics
    if not topics:
        return [names.wrench_of(foot) for foot in feet] if model.config.has_foot_wrenches else ()
    if len(topics) != len(feet):
        raise ConfigurationError(
            f"parameter 'wrench_topics': {topics} must be {len(feet)} topics, one per foot, in "
            f'the order {", ".join(feet)}; or empty')
    return topics


def hand_wrench_topics(model: RobotModel, topics: Sequence[str]) -> dict[str, str]:
    """
    Return the topics of the wrenches on hands, with sensors or virtual, by the name of the hand.

    Parameters
    ----------
    model
        The robot.
    topics
        In that order; empty: those of `wrench_aggregator`.

    Raises
    ------
    ConfigurationError
        If there is another number of topics.

    """
    config = model.config
    hands = [name for name, hand in config.hands.items() if hand.has_wrench]
    if topics and len(topics) != len(hands):
        raise ConfigurationError(
            f"parameter 'hand_wrench_topics' has {len(topics)} topics; robot '{config.name}' has "
            f'{len(hands)} hands with wrench_sensors or source: virtual ({", ".join(hands)})')
    return dict(zip(hands, topics or [names.wrench_of(config.hand_label(hand)) for hand in hands]))


def _virtual_feet(model: RobotModel) -> tuple[bool, ...]:
    """Return which feet are virtual; empty if none is."""
    virtual = tuple(foot.is_virtual for foot in model.config.feet.values())
    return virtual if any(virtual) else ()


def _thresholds(model: RobotModel, thresholds: ContactThresholds) -> ContactThresholds:
    """
    Return the thresholds, above the noise of a virtual foot in the air if there is one.

    They decide for such a foot only while no probabilities of contact are received.
    """
    if not _virtual_feet(model):
        return thresholds
    return replace(thresholds, engage=max(thresholds.engage, _VIRTUAL_ENGAGE),
                   release=max(thresholds.release, _VIRTUAL_RELEASE),
                   engage_dwell=max(thresholds.engage_dwell, _VIRTUAL_DWELL),
                   release_dwell=max(thresholds.release_dwell, _VIRTUAL_DWELL))
