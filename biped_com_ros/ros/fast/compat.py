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
The only file that touches private or experimental parts of rclpy.

Each function states what it saves, and falls back to public parts if a private part is missing
or the environment variable ``BIPED_COM_PLAIN=1`` is set. That variable turns all optimizations of
this kind off: these, messages read and written as bytes (`codec`) and shared subscriptions
(`subscription_pool`).
"""

from __future__ import annotations

from collections.abc import Callable
import inspect
import os
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription


def plain_requested() -> bool:
    """Return whether BIPED_COM_PLAIN is set: only the public interface of rclpy is used."""
    return os.environ.get('BIPED_COM_PLAIN', '') not in ('', '0')


def make_executor() -> Any:
    """
    Return rclpy's experimental EventsExecutor, else a SingleThreadedExecutor.

    Saves more than half: a relay at 1 kHz takes 12 instead of 29 % of a core.
    """
    if not plain_requested():
        try:
            from rclpy.experimental import EventsExecutor
            return EventsExecutor()
        except ImportError:
            pass
    return SingleThreadedExecutor()


def is_events_executor(executor: Any) -> bool:
    """Return whether an executor is none of the public ones."""
    return not isinstance(executor, Executor)


def raw_publish(publisher: Publisher) -> Callable[[bytes], None]:
    """
    Return what publishes a serialized message.

    Saves 0.5 us per message, 8 % of the callback of com_estimator: the public way looks at the
    type of each message, and keeps another thread from destroying the publisher meanwhile. Either
    way raises after it was destroyed.
    """
    if not plain_requested():
        raw: Callable[[bytes], None] | None = getattr(
            getattr(publisher, 'handle', None), 'publish_raw', None)
        if raw is not None:
            return raw
    return publisher.publish


def parameter_override(node: Node, name: str) -> Any:
    """
    Return the value that a parameter was given from outside, None if none was.

    Saves 25 us per parameter, 1 ms of a node's start, and two messages on ``/parameter_events``:
    the public way declares the parameter, reads it and withdraws it.
    """
    if (overrides := _overrides(node)) is not None:
        return overrides[name].value if name in overrides else None
    node.declare_parameter(name, None, ParameterDescriptor(dynamic_typing=True))
    value = node.get_parameter(name).value
    node.undeclare_parameter(name)
    return value


def parameter_overrides(node: Node) -> dict[str, Any]:
    """
    Return the values of all parameters that were given from outside, by name.

    For the warning about misspelt ones, which is left out without the private part: the public
    ones know only parameters that are declared.
    """
    return {name: parameter.value for name, parameter in (_overrides(node) or {}).items()}


def wrap_callbacks(node: Node, wrap: Callable[..., Any], wrap_service: Callable[..., Any]) -> None:
    """
    Replace the callbacks of timers, subscriptions and services of a node by wrapped ones.

    Left alone are raw subscriptions, those whose callback takes the message's info, too,
    coroutines, and what is wrapped already. rclpy calls the attribute `callback` of all three,
    which it does not document; an object without it keeps its callback as it is. With
    ``BIPED_COM_PLAIN=1`` only services are wrapped: the public executors let the exceptions of
    the others out, but nobody else can answer the client of a service that failed.

    Parameters
    ----------
    node
        The rclpy node.
    wrap, wrap_service
        Classes, or partial ones, of the callables that take the place of a callback: of timers
        and subscriptions, and of services.

    """
    wrappers: Any = tuple(getattr(each, 'func', each) for each in (wrap, wrap_service))
    subscriptions = [subscription for subscription in node.subscriptions if not subscription.raw]
    others = () if plain_requested() else ((node.timers, wrap), (subscriptions, wrap))
    for entities, make in (*others, (node.services, wrap_service)):
        for entity in entities:
            callback = getattr(entity, 'callback', None)
            if (callback is None or isinstance(callback, wrappers)
                    or inspect.iscoroutinefunction(callback)
                    or (entities is subscriptions and not _takes_a_message(callback))):
                continue
            entity.callback = make(callback)


def callback_of(subscription: Subscription) -> Callable[..., Any]:
    """Return what a subscription calls, for measurements without DDS."""
    found: Callable[..., Any] = subscription.callback
    return found


def _takes_a_message(callback: Callable[..., Any]) -> bool:
    try:
        inspect.signature(callback).bind(object())
    except TypeError:
        return False
    return True


def _overrides(node: Any) -> dict[str, Parameter] | None:
    return None if plain_requested() else getattr(node, '_parameter_overrides', None)
