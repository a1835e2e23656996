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
Processes that do many independent jobs, on this machine or on a Dask cluster.

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
from typing import Any, Protocol

from biped_com_ros.core.errors import ConfigurationError

MOST_TRIES = 3
_ONE_THREAD = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')

Job = Callable[[Any], str]
"""Does something with an item; returns what went wrong, '' if nothing."""


class Workers(Protocol):
    """Processes that do jobs."""

    def describe(self) -> str:
        """Return where the jobs are done."""

    def run(self, job: Job, items: Sequence[Any]) -> Iterator[tuple[int, str]]:
        """Do the job with each item; yield its index and what went wrong, as it ends."""


@contextmanager
def started_workers(scheduler: str, count: int) -> Iterator[Workers]:
    """
    Start workers, and end them.

    Parameters
    ----------
    scheduler
        Address of a Dask scheduler; '' for processes of this machine.
    count
        Number of these processes.

    Raises
    ------
    ConfigurationError
        If there is a scheduler but no Dask, or it does not respond.

    """
    if count < 1:
        raise ConfigurationError(f'the number of workers must be at least 1, not {count}')
    try:
        import distributed
    except ImportError:
        if scheduler:
            raise ConfigurationError(
                "--scheduler needs Dask: pip install 'dask[distributed]'") from None
        yield ProcessWorkers(count)
        return
    with _dask_client(distributed, scheduler, count) as client:
        yield DaskWorkers(client)


@contextmanager
def _dask_client(distributed: Any, scheduler: str, count: int) -> Iterator[Any]:
    if scheduler:
        try:
            client = distributed.Client(scheduler, timeout='10s')
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"Dask scheduler '{scheduler}' does not respond: {error}") from None
        with client:
            yield client
        return
    with distributed.LocalCluster(
            n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster, \
            distributed.Client(cluster) as client:
        yield client


class DaskWorkers:
    """
    Workers of a Dask cluster, which starts killed ones and their jobs again.

    Parameters
    ----------
    client
        Of the cluster.

    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def describe(self) -> str:
        """Return where the jobs are done."""
        count = sum(self._client.nthreads().values())
        return f'{count} workers of Dask at {self._client.scheduler.address}'

    def run(self, job: Job, items: Sequence[Any]) -> Iterator[tuple[int, str]]:
        """Do the job with each item; yield its index and what went wrong, as it ends."""
        import distributed
        futures = self._client.map(job, items, pure=False)
        index = {future.key: i for i, future in enumerate(futures)}
        for future in distributed.as_completed(futures):
            error = future.exception()
            yield index[future.key], future.result() if error is None else _problem(error)


class ProcessWorkers:
    """
    Processes of this machine, without Dask.

    Parameters
    ----------
    count
        Number of them.

    """

    def __init__(self, count: int) -> None:
        self._count = count

    def describe(self) -> str:
        """Return where the jobs are done."""
        return f'{self._count} processes'

    def run(self, job: Job, items: Sequence[Any]) -> Iterator[tuple[int, str]]:
        """Do the job with each item; yield its index and what went wrong, as it ends."""
        started: list[Process] = []
        ended = Event()
        with _one_thread_each(), ThreadPoolExecutor(self._count) as threads:
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
        sender.send(_problem(error))


def _problem(error: BaseException) -> str:
    return f'{type(error).__name__}: {error}'


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
