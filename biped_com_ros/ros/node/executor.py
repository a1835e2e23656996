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
Runs nodes: one process, one executor, clean ends.

The EventsExecutor of rclpy costs less than half of the SingleThreadedExecutor. Two of its
faults are kept away from here: `spin` may hang at full load and deliver nothing, which
``spin_until_future_complete`` with a limit does not; and callbacks with two arguments raise
SystemError, so that no subscription of this package has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import functools
import gc
import inspect
import os
import signal
import sys
import traceback
from typing import Any

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.ros.fast.compat import is_events_executor, make_executor
from biped_com_ros.ros.node.callback_errors import log_exception
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.task import Future

#: Seconds after which shutdown is looked for. To the SingleThreadedExecutor a signal that slips
#: in just before it waits is lost; to the EventsExecutor it was never seen to be.
_SLICE_SINGLE, _SLICE_EVENTS = 0.4, 2.0
_ENDS = (KeyboardInterrupt, ExternalShutdownException)


def run(node_factories: Any, argv: Sequence[str] | None = None) -> int:
    """
    Run nodes until SIGINT, SIGTERM or shutdown.

    Parameters
    ----------
    node_factories
        A callable, or several, that return a node or a list of nodes.
    argv
        Command line with ``--ros-args``; default: the process's.

    Returns
    -------
    int
        Exit code: 0 after a clean end, 1 if a node could not start (said in one line).

    """
    factories = [node_factories] if callable(node_factories) else list(node_factories)
    # rclpy's own handler shuts down; Python's on top would break into whatever callback runs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # while starting: hardly anything that is built now is garbage
    try:
        rclpy.init(args=None if argv is None else list(argv))
    except Exception as error:  # noqa: B902 - rclpy has no common root for bad arguments
        return _fail(f'cannot start: {error}')
    nodes: list[Node] = []
    try:
        for factory in factories:
            made = factory()
            nodes.extend(made if isinstance(made, list) else [made])
        spin(nodes)
        return 0
    except _ENDS:
        return 0
    except BipedComError as error:
        return _fail(str(error), nodes)
    except Exception:
        if rclpy.ok():
            raise
        return 0  # interrupted while starting: whatever it was about to create cannot be had
    finally:
        gc.enable()
        _end(nodes)


def spin(nodes: Sequence[Node], executor: Any = None) -> None:
    """
    Serve the callbacks of nodes until shutdown; what a callback raises is logged.

    Parameters
    ----------
    nodes
        The nodes.
    executor
        Default: `make_executor`.

    """
    executor = make_executor() if executor is None else executor
    for node in nodes:
        guard_callbacks(node)
        executor.add_node(node)
    settle_memory()
    gc.enable()
    try:
        while rclpy.ok():
            _spin_some(executor, nodes)
    except _ENDS:
        pass
    finally:
        executor.shutdown()


def _spin_some(executor: Any, nodes: Sequence[Node]) -> None:
    try:
        executor.spin_until_future_complete(Future(), _slice_of(executor))
    except _ENDS:
        raise
    except Exception as error:  # noqa: B902 - no callback may end the process
        log_exception(_node_behind(error, nodes), error)
        for node in nodes:
            guard_callbacks(node)  # the one that failed was created after the start


def _slice_of(executor: Any) -> float:
    return _SLICE_EVENTS if is_events_executor(executor) else _SLICE_SINGLE


def settle_memory() -> None:
    """
    Take what exists now out of the garbage collector's sight.

    A full collection of a node's objects takes 20 ms; what was set up stays for good anyway. No
    collection first: it would find a few hundred objects and add those 20 ms to the start.
    """
    gc.freeze()


def guard_callbacks(node: Node) -> None:
    """
    Let no exception out of the callbacks that a node has now.

    Those of timers, services and subscriptions are logged with the node's name, once per 5 s,
    and counted in its diagnostics; a service answers with its error. (Raw subscriptions are
    left alone: `inputs` guards its own, at less cost.)
    """
    for timer in node.timers:
        timer.callback = guarded(node, timer.callback)
    for subscription in node.subscriptions:
        if not subscription.raw and _takes_one_argument(subscription.callback):
            subscription.callback = guarded(node, subscription.callback)
    for service in node.services:
        if not hasattr(service.callback, '_is_guarded'):
            service.callback = _guarded_service(node, service.callback)


def guarded(node: Node, callback: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a callback so that what it raises is logged and counted, and goes no further."""
    if inspect.iscoroutinefunction(callback) or hasattr(callback, '_is_guarded'):
        return callback

    @functools.wraps(callback)
    def wrapped(*arguments: Any) -> Any:
        try:
            return callback(*arguments)
        except _ENDS:
            raise
        except Exception as error:  # noqa: B902 - see above
            log_exception(node, error)
            return None
    wrapped._is_guarded = True  # type: ignore[attr-defined]
    return wrapped


def _guarded_service(node: Node, callback: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(callback):
        return callback
    guard = guarded(node, callback)

    def answer(request: Any, response: Any) -> Any:
        result = guard(request, response)
        if result is None and hasattr(response, 'success'):
            response.success = False
            response.message = f'failed; see the log of {node.get_name()}'
        return response if result is None else result
    answer._is_guarded = True  # type: ignore[attr-defined]
    return answer


def _takes_one_argument(callback: Callable[..., Any]) -> bool:
    try:
        inspect.signature(callback).bind(object())
    except TypeError:
        return False
    return True


def _node_behind(error: BaseException, nodes: Sequence[Node]) -> Node:
    """Node whose method, or whose part's method, raised; the first one if none is found."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        owner = frame.f_locals.get('self')
        for candidate in (owner, getattr(owner, 'node', None), getattr(owner, '_node', None)):
            if any(candidate is node for node in nodes):
                return candidate
    return nodes[0]


def _fail(message: str, nodes: Sequence[Node] = ()) -> int:
    line = ' '.join(message.split())
    name = nodes[0].get_name() if len(nodes) == 1 else os.path.basename(sys.argv[0])
    print(f'[FATAL] [{name}]: {line}', file=sys.stderr, flush=True)
    return 1


def _end(nodes: Sequence[Node]) -> None:
    """Destroy everything; a second interrupt meanwhile changes nothing."""
    for node in reversed(nodes):
        try:
            node.destroy_node()
        except (KeyboardInterrupt, Exception) as error:  # noqa: B902 - the others have to go
            print(f'[WARN] {node.get_name()}: {error}', file=sys.stderr)
    rclpy.try_shutdown()
