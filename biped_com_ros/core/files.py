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
Reading files that others made, and writing results.

What is read is bounded, and what is written is there as a whole or not at all: after a full disk,
a kill or a loss of power there is either the old or the new file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
import errno
import fcntl
import glob
import os
from pathlib import Path
import re
import shutil
import stat
import tempfile
import time

from biped_com_ros.core.errors import ConfigurationError

LARGEST_FILE = 64 * 1024 ** 2
"""Bytes of the largest file that is read by default."""

KEPT_DAYS = 14.0
"""What need not last is removed when nothing has been written to it for longer."""


def read_text(path: Path, what: str, limit: int = LARGEST_FILE) -> str:
    """
    Return the text of a file; no more than the limit is ever in memory.

    Parameters
    ----------
    path
        The file, in UTF-8.
    what
        Description of the file, for messages.
    limit
        Its largest size, bytes.

    Raises
    ------
    ConfigurationError
        If it cannot be read, is larger, or is not text.

    """
    try:
        return read_bytes(path, what, limit).decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{what} '{path}' cannot be read: {error}") from None


def read_bytes(path: Path, what: str, limit: int = LARGEST_FILE) -> bytes:
    """Return the bytes of a file; see :func:`read_text`."""
    try:
        with path.open('rb') as file:
            content = file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        reason = getattr(error, 'strerror', None) or error
        raise ConfigurationError(f"{what} '{path}' cannot be read: {reason}") from None
    if len(content) > limit:
        raise ConfigurationError(
            f"{what} '{path}' is larger than the {limit / 1024 ** 2:g} MiB that are read; check "
            'that it is the right file')
    return content


def make_directory(path: Path) -> None:
    """
    Make a directory for results.

    Raises
    ------
    ConfigurationError
        If nothing can be written there.

    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        raise ConfigurationError(
            f"directory '{path}' cannot be written to: {_reason(error)}; give another "
            'directory') from None


def make_temporary_directory(prefix: str) -> Path:
    """
    Make a new directory for what need not last, and return it.

    Parameters
    ----------
    prefix
        With which its name begins.

    Raises
    ------
    ConfigurationError
        If nothing can be written where temporary files are, nor in the current directory.

    """
    try:
        return Path(tempfile.mkdtemp(prefix=prefix))
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        raise ConfigurationError(
            f'no temporary directory can be made: {_reason(error)}; free space on the disk, or '
            'set TMPDIR to a directory that can be written to') from None


def remove_old_temporaries(prefix: str, now: float | None = None) -> None:
    """
    Remove directories of this user that `make_temporary_directory` has made and nobody uses.

    Parameters
    ----------
    prefix
        With which their names begin.
    now
        Time of day, s; by default the present. What was written to in the `KEPT_DAYS` before
        stays.

    """
    # As mkdtemp ends names.
    name = re.compile(re.escape(prefix) + '[a-z0-9_]{8}')
    remove_old_directories(Path(tempfile.gettempdir()), name, now)


def remove_old_directories(parent: Path, name: re.Pattern[str], now: float | None = None) -> None:
    """Remove this user's directories of such names; see :func:`remove_old_temporaries`."""
    oldest = (time.time() if now is None else now) - 86400.0 * KEPT_DAYS
    for path in parent.glob('*'):
        with suppress(OSError):  # gone meanwhile, or partly of another user
            if name.fullmatch(path.name) and _is_own_directory(path) and (
                    _last_written(path) < oldest):
                shutil.rmtree(path, ignore_errors=True)


def _is_own_directory(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _last_written(directory: Path) -> float:
    return max(path.lstat().st_mtime for path in (directory, *directory.rglob('*')))


def write_atomically(path: Path, text: str) -> None:
    """
    Write a file atomically: at any time there is either the old or the new one.

    The new one grows beside it, readable by its owner only; one that a killed process has left
    there is removed.

    Raises
    ------
    ConfigurationError
        If it cannot be written; then the old one is still there.

    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(path)
        with _temporary(path) as (descriptor, temporary):
            with os.fdopen(descriptor, 'w', encoding='utf-8', closefd=False) as file:
                file.write(text)
            os.fsync(descriptor)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        _sync_directory(path.parent)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL, text not for UTF-8
        raise ConfigurationError(
            f"file '{path}' cannot be written: {_reason(error)}; free space on the disk, or give "
            'another directory') from None


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, 'strerror', None) or str(error)


def remove_abandoned(path: Path) -> None:
    """Remove what processes have left that were killed while they wrote this file."""
    for temporary in path.parent.glob(f'{glob.escape(_prefix(path))}*'):
        try:
            descriptor = os.open(temporary, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # gone meanwhile, or not of this user
            continue
        try:
            # Who writes holds the lock; the system has released that of a killed process.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            temporary.unlink(missing_ok=True)
        except OSError:
            pass
        finally:
            os.close(descriptor)


def _prefix(path: Path) -> str:
    return f'.{path.name}.new-'


@contextmanager
def _temporary(path: Path) -> Iterator[tuple[int, str]]:
    """Yield a new locked file beside `path`; removed afterwards, unless it was renamed."""
    descriptor, temporary = _locked_file(path)
    try:
        yield descriptor, temporary
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)


def _locked_file(path: Path) -> tuple[int, str]:
    """Make a file that `remove_abandoned` of another process does not take for abandoned."""
    while True:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return descriptor, temporary
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                return descriptor, temporary  # a file system without locks
        os.close(descriptor)  # just removed by another process


def _sync_directory(directory: Path) -> None:
    """Make a rename survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
