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
"""``run_launch --isolated``: the variables, and the reservation of domains."""

from contextlib import closing, ExitStack
import socket
import subprocess
import sys

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.launching import isolation
from biped_com_ros.launching.isolation import DOMAIN, Isolation, RANGE
import pytest

UNUSED = -4
"""The first of domains that no participant can have. Their ports lie below those that the system
gives to whoever asks for any (Linux: from 32768 on), as those of domain 102 and above do."""

linux = pytest.mark.skipif(not sys.platform.startswith('linux'), reason='abstract names')


def test_this_machine_only_in_a_domain_that_is_not_the_common_one():
    with closing(Isolation({'PATH': '/bin'})) as isolated:
        assert isolated.environment[RANGE] == 'LOCALHOST'
        assert int(isolated.environment[DOMAIN]) in isolation.DOMAINS
        assert 0 not in isolation.DOMAINS
        assert isolated.environment['PATH'] == '/bin'


@pytest.mark.parametrize('given, kept', [
    ({DOMAIN: '0'}, {DOMAIN: '0', RANGE: 'LOCALHOST'}),
    ({RANGE: 'SUBNET', 'ROS_STATIC_PEERS': '10.0.0.2'},
     {RANGE: 'SUBNET', 'ROS_STATIC_PEERS': '10.0.0.2'}),
    ({DOMAIN: '7', RANGE: 'SUBNET'}, {DOMAIN: '7', RANGE: 'SUBNET'})])
def test_what_the_user_has_set_is_kept(given, kept):
    with closing(Isolation(given)) as isolated:
        assert isolated.environment.items() >= kept.items()


def test_no_other_way_leads_to_other_machines():
    others = {'ROS_STATIC_PEERS': '10.0.0.2', 'ROS_DISCOVERY_SERVER': '10.0.0.3:11811'}
    with closing(Isolation(others)) as isolated:
        assert not others.keys() & isolated.environment.keys()


@linux
def test_no_two_have_the_same_domain(monkeypatch):
    monkeypatch.setattr(isolation, 'DOMAINS', range(UNUSED, UNUSED + 4))
    with ExitStack() as stack:
        all_four = [stack.enter_context(closing(Isolation({}))) for _ in range(4)]
        assert len({one.environment[DOMAIN] for one in all_four}) == 4
        with pytest.raises(ConfigurationError, match=f'{UNUSED} to {UNUSED + 3} are all in use'):
            Isolation({})
        all_four[2].close()
        with closing(Isolation({})) as again:
            assert again.environment[DOMAIN] == all_four[2].environment[DOMAIN]


@linux
def test_a_killed_launcher_holds_no_domain(monkeypatch):
    monkeypatch.setattr(isolation, 'DOMAINS', range(UNUSED, UNUSED + 1))
    code = ('import sys; from biped_com_ros.launching.isolation import _hold; '
            'kept = _hold(int(sys.argv[1])); print("held", flush=True); sys.stdin.read()')
    with subprocess.Popen([sys.executable, '-c', code, str(UNUSED)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == 'held\n'
        with pytest.raises(ConfigurationError, match='in use'):
            Isolation({})
        other.kill()
        other.wait()
    Isolation({}).close()


def test_a_domain_with_a_participant_is_not_taken(monkeypatch):
    monkeypatch.setattr(isolation, 'DOMAINS', range(UNUSED, UNUSED + 1))
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as participant:
        participant.bind(('', 7400 + 250 * UNUSED + 10 + 3))  # data, of the second one
        with pytest.raises(ConfigurationError, match='in use'):
            Isolation({})


def test_the_text_shows_how_to_inspect_it():
    with closing(Isolation({DOMAIN: '12'})) as isolated:
        assert 'on this machine only' in isolated.describe()
        assert f'export {DOMAIN}=12 {RANGE}=LOCALHOST' in isolated.describe()
        assert max(map(len, isolated.describe().splitlines())) < 80
    with closing(Isolation({DOMAIN: '12', RANGE: 'SUBNET'})) as open_one:
        assert 'this machine only' not in open_one.describe()
