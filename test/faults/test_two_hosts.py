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
Two hosts: lost and late packets, a cable that is cut, and discovery where multicast is blocked.

It needs root for the namespaces. `make faults-check` runs the tests with the mark ``checked``, and
gives recovery ``BIPED_COM_PATIENCE`` times the time of a quiet computer.
"""

import os

import pytest
from support.reliability.discovery import discovery_server, meet
from support.reliability.network import ADDRESSES, unavailable
from support.reliability.two_hosts import measure

PATIENCE = float(os.environ.get('BIPED_COM_PATIENCE', '1'))
#: Longest time until the other host's nodes publish again after the network is back, s.
_RECOVERY = 3.0 * PATIENCE

needs_hosts = pytest.mark.skipif(bool(unavailable()), reason=unavailable() or 'available')


@pytest.mark.checked
@needs_hosts
def test_the_other_host_is_back_within_seconds_and_no_effort_steps():
    for _ in range(3):  # another process may have taken the time
        impaired, cut = measure()
        for result in (impaired, cut):
            assert result.is_finite and result.is_clamped, result
            assert result.largest_step <= 1.0 + 1e-9, result
        assert cut.outcome == 'zero', cut
        if max(impaired.recovered_after, cut.recovered_after) < _RECOVERY:
            return
    raise AssertionError((impaired, cut))


@pytest.mark.checked
@needs_hosts
def test_without_multicast_hosts_do_not_find_each_other_by_themselves():
    """Otherwise the next tests would prove nothing."""
    assert meet({'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'}, 10.0) == (False, False)


@pytest.mark.checked
@needs_hosts
@pytest.mark.parametrize('discovery_range', ['LOCALHOST', 'SUBNET'])
def test_without_multicast_unicast_peers_connect_two_hosts(discovery_range):
    assert meet({'ROS_AUTOMATIC_DISCOVERY_RANGE': discovery_range,
                 'ROS_STATIC_PEERS': ';'.join(ADDRESSES)}, 60.0) == (True, True)


@needs_hosts
@pytest.mark.skipif(discovery_server() is None, reason='fast-discovery-server is not installed')
def test_without_multicast_a_discovery_server_connects_two_hosts():
    server = [discovery_server(), '-i', '0', '-l', ADDRESSES[0], '-p', '11811']
    profile = {'ROS_DISCOVERY_SERVER': f'{ADDRESSES[0]}:11811', 'ROS_SUPER_CLIENT': 'TRUE'}
    assert meet(profile, 60.0, server) == (True, True)
    assert meet(profile, 10.0) == (False, False)  # without the server
