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
Processes that do many independent jobs.

A process that is killed takes its job with it: the job is done again by another one, up to
``MOST_TRIES`` times, so that a job that kills its process does not hold up the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed, ThreadPoolExecutor
from contextlib import contextmanager
import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess as Process
import os
import signal
from threading import Event
from typing import Any

from biped_com_ros.core.errors import ConfigurationError

MOST_TRIES = 3
_ONE_THREAD = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')

Job = Callable[[Any], str]
"""Does something with an item; returns what went wrong, '' if nothing."""


def run_in_processes(job: Job, items: Sequence[Any], count: int) -> Iterator[tuple[int, str]]:
    """
    Do a job with each item; yield its index and what went wrong, as it ends.

    Raises
    ------
    ConfigurationError
        If the number of processes is not positive.

    """
    if count < 1:
        raise ConfigurationError(f'the number of workers must be at least 1, not {count}')
    started: list[Process] = []
    ended = Event()
    with _one_thread_each(), ThreadPoolExecutor(count) as threads:
        try:
            index = {threads.submit(_work_apart, job, item, started, ended): i
                     for i, item in enumerate(items)}
            for future in as_completed(index):
                yield index[future], future.result()
        finally:
            ended.set()
            threads.shutdown(wait=False, cancel_futures=True)
            for process in started:
                process.terminate()


def _work_apart(job: Job, item: Any, started: list[Process], ended: Event) -> str:
    """Do a job in a process of its own: if that is killed, it is known which job has to wait."""
    context = multiprocessing.get_context('spawn')
    for _ in range(MOST_TRIES):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(sender, job, item), daemon=True)
        # Ctrl-C is for this process, which ends the others.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        process.start()
        started.append(process)
        if ended.is_set():
            process.terminate()
        sender.close()
        try:
            return str(receiver.recv())
        except EOFError:
            pass  # it was killed
        finally:
            receiver.close()
            process.join()
        if ended.is_set():
            break
    return f'its process was killed {MOST_TRIES} times'


def _work(sender: Connection, job: Job, item: Any) -> None:
    try:
        sender.send(job(item))
    except Exception as error:  # noqa: B902 - whatever it is, the other jobs continue
        sender.send(f'{type(error).__name__}: {error}')


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Give each process one thread for linear algebra: there is a process for each core."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, '1'))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
