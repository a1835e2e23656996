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
"""Launch files that run, and a node that observes them."""

from biped_com_ros.core.model.resources import package_share
import pytest
from support.launched import busyness, changed_parameters, Launched


@pytest.fixture
def observer():
    pytest.importorskip('rclpy')
    from support.observer import Observer
    observer = Observer()
    yield observer
    observer.close()


@pytest.fixture
def launch(tmp_path, observer):
    """Return a function that launches what has to run as long as the observer waits."""
    started = []

    def run(*words, **options):
        started.append(Launched(tmp_path, *words, **options))
        observer.launches.append(started[-1])
        return started[-1]

    yield run
    for launched in reversed(started):
        launched.end()


def paced(directory, real_time_factor):
    """Return words with which a simulation sends a fifth of the messages, at another pace."""
    file = package_share() / 'config' / 'simulator.yaml'
    params = changed_parameters(file, directory, real_time_factor=real_time_factor, rate=100.0)
    return f'simulator_params:={params}', 'seed:=1'


@pytest.fixture
def brisk(tmp_path):
    """Return words for twice the pace of reality: of nodes that may be late."""
    return paced(tmp_path, 2.0)


@pytest.fixture
def real(tmp_path):
    """Return words for the pace of reality, on a busy machine less: motion is compared."""
    return paced(tmp_path, min(1.0, 2.0 / busyness()))


@pytest.fixture
def steady(tmp_path):
    """Return words for a pace at which none that commands is late on a busy machine."""
    return paced(tmp_path, 0.25)
