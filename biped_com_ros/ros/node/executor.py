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
Runs nodes: one process, one executor, a clean end.

Exceptions of callbacks are logged under the node's name, and the node keeps running. Two faults of
rclpy's EventsExecutor are avoided: `spin` may hang at full load and deliver nothing, which
``spin_until_future_complete`` with a limit does not; and callbacks with two arguments raise
SystemError, so that no subscription of this package has one.

A node with the methods `stop` and `busy` commands something that has to end softly: at SIGINT or
SIGTERM its callbacks run until it is no longer busy.

Words of the command line that are not for ROS are refused, or answered (``--help``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
import gc
import inspect
import math
from pathlib import Path
import re
import signal
import sys
import time
import traceback
from types import FrameType
from typing import Any

from biped_com_ros.core.errors import BipedComError
from biped_com_ros.ros.fast.backlog import BACKLOG
from biped_com_ros.ros.fast.compat import is_events_executor, make_executor, wrap_callbacks
from biped_com_ros.ros.node.callback_errors import log_exception
from biped_com_ros.ros.node.ending import limited
import rclpy
from rclpy.exceptions import InvalidParameterTypeException, NameValidationException
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.signals import uninstall_signal_handlers
from rclpy.task import Future

#: What ROS takes behind --ros-args only.
_ROS_FLAGS = ('-p', '-r', '-e', '--param', '--params-file', '--remap', '--enclave', '--log-level')


def needs_help(words: Sequence[str]) -> bool:
    """Return whether the words before ``--ros-args`` request help."""
    return any(word in ('-h', '--help') for word in _before_ros(words))


def complaint(create: Callable[..., Any], words: Sequence[str]) -> str:
    """
    Return why the words of a command line cannot be meant so; '' if they can.

    rclpy ignores what comes without ``--ros-args``: the node would run with its defaults.
    """
    before = list(_before_ros(words))
    if not any(word in _ROS_FLAGS or ':=' in word for word in before):
        return ''
    corrected = [word if ':=' not in word or before[max(i - 1, 0)] in _ROS_FLAGS else f'-p {word}'
                 for i, word in enumerate(before)]
    return (f"'{' '.join(before)}' is ignored without --ros-args; call: ros2 run biped_com_ros "
            f"{_name_of(create)} --ros-args {' '.join(corrected)}")


def help_text(create: Callable[..., Any]) -> str:
    """Return call, description and parameters of the node that a function creates."""
    name, module = _name_of(create), sys.modules[create.__module__]
    lines = [f'ros2 run biped_com_ros {name} --ros-args -p PARAMETER:=VALUE '
             '--params-file FILE -r FROM:=TO', '', _plain(module.__doc__ or '')]
    parameters = getattr(module, f"{name.title().replace('_', '')}Parameters", None)
    if parameters is not None:
        from biped_com_ros.core.settings import setting_fields
        lines += ['', 'Parameters:']
        lines += [f'  {field}: {info.text()}; default {default!r}'
                  for field, (_, default, info) in setting_fields(parameters).items()]
    return '\n'.join(lines)


def _plain(docstring: str) -> str:
    """Return a docstring without what only Sphinx shows: indentation and roles."""
    return re.sub(r':\w+:`~?([^`]*)`', r'\1', inspect.cleandoc(docstring))


def _before_ros(words: Sequence[str]) -> Sequence[str]:
    words = list(words)
    return words[:words.index('--ros-args')] if '--ros-args' in words else words


def _name_of(create: Callable[..., Any]) -> str:
    """Return the name of the executable, which is that of the folder of its module."""
    return Path(inspect.getfile(create)).parent.name


#: Period of checks for shutdown, s. The SingleThreadedExecutor misses a signal that comes just
#: before it waits; the EventsExecutor does not.
_SLICE_SINGLE, _SLICE_EVENTS = 0.4, 2.0
#: The same while a signal has to be handled by Python, s.
_SLICE_SOFT = 0.1
#: Time that a node that commands something has to end softly, s, beyond its `stopping_time`.
_LONGEST_SOFT_END = 5.0
#: Its last message is lost if its publisher is destroyed before the subscribers have taken it, s.
_DELIVERY_TIME = 0.1
_ENDS = (KeyboardInterrupt, ExternalShutdownException)


def run(create: Callable[[], Node | list[Node]], argv: Sequence[str] | None = None) -> int:
    """
    Run one node or several until SIGINT, SIGTERM or shutdown.

    Then `close_files` of each node that has it is called, which may take long; everything else
    has to end in seconds.

    Parameters
    ----------
    create
        Returns a node or a list of nodes.
    argv
        Command line with ``--ros-args``; default: the process's.

    Returns
    -------
    int
        Exit code: 0 after a clean end, 1 if a node could not start (logged in one line), 2 if the
        command line is wrong.

    """
    words = sys.argv[1:] if argv is None else argv
    if needs_help(words):
        print(help_text(create))
        return 0
    if problem := complaint(create, words):
        return _fail(problem, code=2)
    # rclpy's own handler shuts down; Python's would interrupt any callback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # while starting: hardly anything that is built now is garbage
    try:
        rclpy.init(args=None if argv is None else list(argv))
    except Exception as error:  # noqa: B902 - rclpy has no common root for bad arguments
        return _fail(f'cannot start: {error}{_remedy(str(error))}')
    nodes: list[Node] = []
    code = 1
    try:
        code = _create_and_spin(create, nodes)
    finally:
        gc.enable()
        _end(nodes, code)
    return code


def _create_and_spin(create: Callable[[], Node | list[Node]], nodes: list[Node]) -> int:
    """Return the exit code; `nodes` receives what was created."""
    try:
        created = create()
        nodes += created if isinstance(created, list) else [created]
        _spin(nodes)
    except _ENDS:
        pass
    except BipedComError as error:
        return _fail(str(error), nodes)
    except InvalidParameterTypeException as error:  # of rclpy's own, as use_sim_time
        return _fail(f'{error}; write numbers, true and false of a parameter file without quotes',
                     nodes)
    except NameValidationException as error:  # of a topic or service in a parameter
        return _fail(' '.join(str(error).split()).rstrip(' ^'), nodes)
    except Exception:
        if rclpy.ok():
            raise
        # interrupted while starting
    return 0


def _spin(nodes: Sequence[Node]) -> None:
    """Run the callbacks of nodes until shutdown; exceptions of callbacks are logged."""
    executor = make_executor()
    for node in nodes:
        guard_callbacks(node)
        executor.add_node(node)
    if is_events_executor(executor):
        BACKLOG.watch(nodes[0])
    settle_memory()
    gc.enable()
    softly = [node for node in nodes if hasattr(node, 'stop') and hasattr(node, 'busy')]
    request = _EndRequest() if softly else None
    try:
        while rclpy.ok() and not (request and request.received):
            _spin_some(executor, nodes, _SLICE_SOFT if request else math.inf)
        _end_softly(executor, nodes, softly)
    except _ENDS:
        pass
    finally:
        executor.shutdown()


class _EndRequest:
    """Notes SIGINT or SIGTERM instead of shutting down; a second one shuts down."""

    def __init__(self) -> None:
        self.received = False
        uninstall_signal_handlers()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            rclpy.try_shutdown()
        self.received = True


def _end_softly(executor: Any, nodes: Sequence[Node], softly: Sequence[Any]) -> None:
    """Stop the nodes that command something, and run callbacks until they have ended."""
    for node in softly:
        node.stop()
    end = time.monotonic() + _LONGEST_SOFT_END + max(
        (getattr(node, 'stopping_time', 0.0) for node in softly), default=0.0)
    while rclpy.ok() and time.monotonic() < end and any(node.busy() for node in softly):
        _spin_some(executor, nodes, 0.02)
    if softly:
        time.sleep(_DELIVERY_TIME)


def _spin_some(executor: Any, nodes: Sequence[Node], longest: float) -> None:
    slice_time = _SLICE_EVENTS if is_events_executor(executor) else _SLICE_SINGLE
    try:
        executor.spin_until_future_complete(Future(), min(slice_time, longest))
    except _ENDS:
        raise
    except Exception as error:  # noqa: B902 - no callback may end the process
        log_exception(_node_of(error, nodes), error)
        for node in nodes:
            guard_callbacks(node)  # the one that failed was created after the start


def settle_memory() -> None:
    """
    Exclude all present objects from garbage collection.

    A full collection of a node's objects takes 20 ms, and what was set up stays for good. There is
    no collection before: it would find a few hundred objects, and take 20 ms of the start.
    """
    gc.freeze()


def guard_callbacks(node: Node) -> None:
    """
    Let no exception out of the callbacks of timers, subscriptions and services of a node.

    They are logged with the node's name, once per 5 s, and counted in its diagnostics. Left to the
    EventsExecutor, each would be logged as FATAL and end its loop; a service would not respond, as
    rclpy's own does not to a transition that is impossible. (Inputs catch what their callbacks
    raise themselves.)
    """
    wrap_callbacks(node, partial(_Guarded, node, _nothing), partial(_Guarded, node, _failure))


class _Guarded:
    """
    A callback that logs what it raises.

    Parameters
    ----------
    node
        Whose callback it is.
    substitute
        Returns the result in place of that of a callback that raised, by the arguments of the
        call.
    callback
        What to call.

    """

    def __init__(self, node: Node, substitute: Callable[..., Any],
                 callback: Callable[..., Any]) -> None:
        update_wrapper(self, callback, updated=())
        self._node, self._substitute, self._callback = node, substitute, callback

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self._callback(*arguments)
        except _ENDS:
            raise
        except Exception as error:  # noqa: B902 - see guard_callbacks
            log_exception(self._node, error)
            return self._substitute(*arguments)


def _nothing(*arguments: Any) -> None:
    """Return the result of timers and subscriptions."""


def _failure(request: Any, response: Any) -> Any:
    """Return the response of a service that failed: the client waits for one."""
    return type(response)()


def _node_of(error: BaseException, nodes: Sequence[Node]) -> Node:
    """Return the node in whose callback an exception was raised, else the first one."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        owner = frame.f_locals.get('self')
        for candidate in (owner, getattr(owner, 'node', None), getattr(owner, '_node', None)):
            if candidate is not None and any(candidate is node for node in nodes):
                return candidate
    return nodes[0]


def _fail(message: str, nodes: Sequence[Node] = (), code: int = 1) -> int:
    line = ' '.join(message.split())
    name = nodes[0].get_name() if len(nodes) == 1 else _executable()
    print(f'[FATAL] [{name}]: {line}', file=sys.stderr, flush=True)
    return code


def _executable() -> str:
    """Return the name of the executable; with `python -m` that of the folder of its node.py."""
    path = Path(sys.argv[0])
    return path.parent.name if path.name == 'node.py' else path.name


def _remedy(reason: str) -> str:
    """Return what to do about the reason for which rclpy cannot be initialized; '' if unknown."""
    if 'log directory' in reason:
        return '; set ROS_LOG_DIR to a directory that can be written'
    return ''


def _end(nodes: Sequence[Node], code: int) -> None:
    """Complete the files of all nodes, however long it takes; then destroy them, in seconds."""
    for node in reversed(nodes):
        _attempt(node, getattr(node, 'close_files', None) or (lambda: None))
    with limited(code):
        for node in reversed(nodes):
            _attempt(node, node.destroy_node)
        rclpy.try_shutdown()


def _attempt(node: Node, action: Callable[[], Any]) -> None:
    """Do it even if interrupted again; the other nodes remain after an error."""
    try:
        action()
    except (KeyboardInterrupt, Exception) as error:  # noqa: B902 - see above
        print(f'[WARN] {node.get_name()}: {error}', file=sys.stderr)
