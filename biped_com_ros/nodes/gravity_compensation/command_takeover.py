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
Which node may command a controller: one at a time, starting from the efforts of a killed one.

A controller keeps applying the last command of a node that was killed, and that node is still
discovered for up to 20 s. The next one has to begin there. What was commanded last, and by whom,
is in a :class:`CommandRecord`: a file in the system's shared memory (a few hundred bytes; nothing
is written to a disk), whose lock the kernel releases however its holder ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import contextlib
import hashlib
import mmap
import os
from pathlib import Path
import stat
import tempfile
from typing import Any

from biped_com_ros.core.geometry.pose import Array
from biped_com_ros.nodes.gravity_compensation.controller_watch import DISCOVERY_TIME
from biped_com_ros.ros.node.clock import steady_time
import numpy as np
from rclpy.node import Node

try:
    import fcntl
except ImportError:  # not POSIX: nothing is kept
    fcntl = None  # type: ignore[assignment]

_SHARED_MEMORY = Path('/dev/shm')
#: Largest number of subscribers in the record.
_MOST_SUBSCRIBERS = 16
_GID = 16  # bytes


class CommandTakeover:
    """
    Decides whether this node may command, and where it begins.

    Parameters
    ----------
    node
        The rclpy node.
    topic
        Full name of the topic of commands.
    joints
        Of the commands, in their order.
    remedy
        What other publishers of the topic do, and what to do about it.

    Attributes
    ----------
    record
        Where commands are noted; its `efforts` are written with each command.
    is_pending
        Whether a predecessor was killed, and it is not known yet who applies its commands.

    """

    def __init__(self, node: Node, topic: str, joints: Sequence[str], remedy: str) -> None:
        self._node, self._topic, self._remedy = node, topic, remedy
        self.record = CommandRecord(f'{node.context.get_domain_id()} {topic}', joints)
        self._ended: set[bytes] = set()  # publishers of processes that were killed
        self._noted: set[bytes] | None = None
        self.is_pending, self._pending_since = False, 0.0

    def start(self) -> None:
        """Request to command from now on."""
        self._acquire()
        if self.record.problem:
            self._node.get_logger().warning(
                'if this node is killed, its commands cannot be continued by the next one: '
                f'{self.record.problem}; check permissions and free space')

    def end(self) -> None:
        """Let others command."""
        self.record.release()
        self.is_pending = False

    destroy = end

    def conflict(self) -> str:
        """Return the problem if another node commands, or may do so; '' if not."""
        if not self._acquire():
            return (f"another node of this computer commands '{self._topic}': stop one of them")
        others = self._node.count_publishers(self._topic) - 1
        if others < 1 and self.record.publisher:
            return ''
        gids = self._publishers()
        if len(gids) == 1:
            self.record.publisher = gids.pop()
            return ''
        others = len(gids) - 1
        return '' if others < 1 else (
            f"{others} other publisher(s) on '{self._topic}': {self._remedy}")

    def take_efforts(self, subscribers: set[bytes]) -> Array | None:
        """
        Return what a killed predecessor commanded, once its controllers are discovered.

        Parameters
        ----------
        subscribers
            Ids of the present subscribers of the commands.

        Returns
        -------
        numpy.ndarray or None
            In the order of the commands, N m or N; None while that is not known, or for good if
            the controllers are others now, which apply nothing.

        """
        if not self.is_pending:
            return None
        if self.record.subscribers <= subscribers:
            self.is_pending = False
            return self.record.efforts.copy()
        if subscribers and steady_time() > self._pending_since + DISCOVERY_TIME:
            self.is_pending = False
            self.record.clear()
        return None

    def note_subscribers(self, subscribers: set[bytes]) -> None:
        """Note who applies the commands; a set that was noted already costs nothing."""
        if subscribers is not self._noted:
            self._noted = self.record.subscribers = subscribers

    def _acquire(self) -> bool:
        """Take the record, with what a predecessor has left in it; return whether it is held."""
        record = self.record
        if record.is_held:
            return True
        if not record.acquire():
            return False
        self._noted, self._pending_since = None, steady_time()
        if record.publisher:
            self._ended.add(record.publisher)
            record.publisher = b''
        self.is_pending = bool(record.efforts.any() and record.subscribers)
        if not self.is_pending:
            record.clear()
        return True

    def _publishers(self) -> set[bytes]:
        found = self._node.get_publishers_info_by_topic(self._topic)
        return {bytes(info.endpoint_gid) for info in found} - self._ended


class CommandRecord:
    """
    The last commands on a topic.

    Where no such file can be made, it behaves as if there had been no command before.

    Parameters
    ----------
    key
        Domain and full name of the topic.
    joints
        Of the commands, in their order: a record of others is not used.
    directory
        For the file; default: the system's shared memory.

    Attributes
    ----------
    path
        The file.
    is_held
        Whether this one holds the lock: no other process of this computer commands.
    problem
        Why nothing is kept; '' if it is.

    """

    def __init__(self, key: str, joints: Sequence[str], directory: Path | None = None) -> None:
        name = hashlib.sha256(key.encode()).hexdigest()[:24]
        self.path = _directory(directory) / f'biped_com_ros_{_user()}_{name}'
        self._signature = np.frombuffer(
            hashlib.sha256('\n'.join(joints).encode()).digest(), dtype='u1')
        self._layout = np.dtype([
            ('signature', 'u1', 32), ('publisher', 'u1', _GID), ('count', 'u8'),
            ('subscribers', 'u1', (_MOST_SUBSCRIBERS, _GID)), ('efforts', 'f8', len(joints))])
        self._descriptor: int | None = None
        self._data: Any = np.zeros(1, self._layout)[0]
        self.efforts: Array = self._data['efforts']
        self.is_held, self.problem = False, ''

    def acquire(self) -> bool:
        """Take the lock if nobody else holds it; return whether this one does."""
        if self.is_held:
            return True
        try:
            descriptor = _locked(self.path)
        except BlockingIOError:
            return False
        except OSError as error:
            self.problem = f"'{self.path}' cannot be used: {error.strerror or error}"
            descriptor = None
        self.is_held = True
        if descriptor is not None:
            self._map(descriptor)
        return True

    def release(self) -> None:
        """Give the lock up; the record stays for a successor if efforts are commanded."""
        if self._descriptor is not None:
            if not self.efforts.any():
                with contextlib.suppress(OSError):
                    self.path.unlink()
            os.close(self._descriptor)
        self._descriptor, self.is_held = None, False
        self._use(np.zeros(1, self._layout)[0])

    def clear(self) -> None:
        """Record that no efforts are applied any more."""
        self.efforts[...] = 0.0

    @property
    def publisher(self) -> bytes:
        """Id of the publisher of the commands; empty if it is not known."""
        gid = self._data['publisher'].tobytes()
        return gid if any(gid) else b''

    @publisher.setter
    def publisher(self, gid: bytes) -> None:
        self._data['publisher'] = _bytes_of(gid)

    @property
    def subscribers(self) -> frozenset[bytes]:
        """Ids of the subscribers that apply the commands."""
        count = min(int(self._data['count']), _MOST_SUBSCRIBERS)
        return frozenset(row.tobytes() for row in self._data['subscribers'][:count])

    @subscribers.setter
    def subscribers(self, gids: Iterable[bytes]) -> None:
        rows = sorted(gids)[:_MOST_SUBSCRIBERS]
        self._data['count'] = 0  # never more than there are, whenever this process is killed
        for i, gid in enumerate(rows):
            self._data['subscribers'][i] = _bytes_of(gid)
        self._data['count'] = len(rows)

    def _map(self, descriptor: int) -> None:
        """Use the file; one of another size, or of other joints, begins with zeros."""
        size, self._descriptor = self._layout.itemsize, descriptor
        if os.fstat(descriptor).st_size != size:
            os.ftruncate(descriptor, 0)
            os.ftruncate(descriptor, size)
        self._use(np.frombuffer(mmap.mmap(descriptor, size), self._layout)[0])
        if not (np.array_equal(self._data['signature'], self._signature)
                and np.isfinite(self.efforts).all()):
            self._data['publisher'], self._data['count'], self.efforts[...] = 0, 0, 0.0
            self._data['signature'] = self._signature

    def _use(self, data: Any) -> None:
        self._data, self.efforts = data, data['efforts']


def _directory(given: Path | None) -> Path:
    return given or (_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir()))


def _user() -> int:
    return os.getuid() if hasattr(os, 'getuid') else 0


def _bytes_of(gid: bytes) -> Any:
    return np.frombuffer(gid[:_GID].ljust(_GID, b'\0'), dtype='u1')


def _locked(path: Path) -> int:
    """Open the file and lock it; raise BlockingIOError while another process has it."""
    if fcntl is None:
        raise OSError('file locking (fcntl) is not available on this system')
    while True:
        # Others may write into this directory: no links, and only files of this user.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode) or state.st_uid != _user():
                raise OSError('it is not a file of this user')
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, state):
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder has removed it meanwhile


def _is_at(path: Path, state: os.stat_result) -> bool:
    try:
        return os.stat(path).st_ino == state.st_ino
    except FileNotFoundError:
        return False
