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
A ROS domain of its own on this machine only, for simulated robots of ``make``.

Simulated robots publish on the topics of real ones: on the network of a laboratory, in the domain
that all use by default, their commands would reach a real robot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
import random
import socket
import sys

from biped_com_ros.core.errors import ConfigurationError

DOMAIN, RANGE = 'ROS_DOMAIN_ID', 'ROS_AUTOMATIC_DISCOVERY_RANGE'
#: What would connect to other machines nevertheless.
_OTHER_WAYS = ('ROS_STATIC_PEERS', 'ROS_DISCOVERY_SERVER')
#: Domains whose ports are free everywhere, without 0, which all use by default.
DOMAINS = range(1, 101)
# The ports of DDS-RTPS: 7400 + 250 domain, then 10 (discovery) and 11 (data) of its participants,
# two of each; it is looked for the first of them.
_PORT, _PORTS_OF_DOMAIN, _FIRST, _PARTICIPANTS = 7400, 250, 10, 5


class Isolation:
    """
    What environment variables keep processes apart from the network and from other demos.

    A variable that the user has set is kept. The domain is reserved until `close`, or the end of
    this process.

    Parameters
    ----------
    environment
        Variables of the user.

    Attributes
    ----------
    environment : dict
        Variables for the processes.

    Raises
    ------
    ConfigurationError
        If all domains are in use.

    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._reservation: socket.socket | None = None
        self.environment = dict(environment)
        if not environment.get(RANGE):
            self.environment[RANGE] = 'LOCALHOST'
            for name in _OTHER_WAYS:
                self.environment.pop(name, None)
        if not environment.get(DOMAIN):
            domain, self._reservation = _reserve(_shuffled(DOMAINS))
            self.environment[DOMAIN] = str(domain)

    def describe(self) -> str:
        """Return who can reach the processes, and how to inspect them."""
        domain, discovery = self.environment[DOMAIN], self.environment[RANGE]
        where = 'on this machine only' if discovery == 'LOCALHOST' else f'{RANGE}={discovery}'
        return (f'ROS domain {domain}, {where} (NETWORK=1: as your environment sets it).\n'
                'To use ros2 in another terminal:\n'
                f'  export {DOMAIN}={domain} {RANGE}={discovery}')

    def close(self) -> None:
        """Release the domain."""
        if self._reservation is not None:
            self._reservation.close()


def _shuffled(domains: Iterable[int]) -> list[int]:
    """Return them in random order: also what is not visible from here rarely has the same one."""
    shuffled = list(domains)
    random.SystemRandom().shuffle(shuffled)
    return shuffled


def _reserve(domains: Iterable[int]) -> tuple[int, socket.socket | None]:
    """Return the first domain that nobody here uses, and what holds it."""
    for domain in domains:
        if _is_in_use(domain):
            continue
        with suppress(OSError):
            return domain, _hold(domain)
    raise ConfigurationError(
        f'ROS domains {DOMAINS[0]} to {DOMAINS[-1]} are all in use on this machine; end some '
        f'ROS processes, or set {DOMAIN}')


def _hold(domain: int) -> socket.socket | None:
    """
    Bind a name that only one process can have, which the system releases when that ends.

    Raises
    ------
    OSError
        If another process has it.

    """
    if not sys.platform.startswith('linux'):  # without abstract names
        return None
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(f'\0biped_com_ros/domain/{domain}')
    except OSError:
        holder.close()
        raise
    return holder


def _is_in_use(domain: int) -> bool:
    """Whether a participant of the domain runs on this machine."""
    first = _PORT + _PORTS_OF_DOMAIN * domain + _FIRST
    for port in range(first, first + 2 * _PARTICIPANTS):
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
            try:
                probe.bind(('', port))
            except OSError:
                return True
    return False
