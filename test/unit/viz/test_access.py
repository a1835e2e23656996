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
"""Who may open the page: the rules, and the server that applies them."""

import contextlib
import gzip
import http.client
import socket

from biped_com_ros.core.errors import InputError, UnknownNameError
from biped_com_ros.viz import server as web
from biped_com_ros.viz.access import Access, HEADERS
from biped_com_ros.viz.controls import checked, GROUPS, permitted
import pytest

pytest.importorskip('viser', reason='the page needs viser: pip install viser')
LOCAL = Access('127.0.0.1')
OPEN = Access('0.0.0.0', 'the-token')


def status(access, host, origin=None, path='/', cookie=None):
    return access.check(path, [host], [] if origin is None else [origin],
                        [] if cookie is None else [cookie]).status


@pytest.mark.parametrize('code, hosts', [
    (0, ('localhost', 'localhost:8080', '127.0.0.1:8080', '127.0.0.2:8080', '[::1]:8080',
         'LOCALHOST:1')),
    # DNS rebinding: the browser takes the attacker's name for this computer.
    (421, ('example.com', 'localhost.example.com', '127.0.0.1.example.com:8080',
           '192.168.1.7:8080', '[2001:db8::1]:8080', 'localhost:8080@example.com', 'localhost:',
           'localhost:80:80', '', ' localhost', '0x7f.1', '2130706433', 'localhost\r\nX: y',
           '[::1', '::1', 'robot.local'))])
def test_the_names_of_this_computer_and_foreign_ones_that_point_here(code, hosts):
    for host in hosts:
        assert status(LOCAL, host) == status(LOCAL, host, f'http://{host}') == code, host


@pytest.mark.parametrize('origin', [
    'http://example.com', 'null', 'http://localhost:3000', 'http://127.0.0.1:8080',
    'http://localhost:8080.example.com', 'http://localhost', 'file://',
    'ftp://localhost:8080', ''])
def test_a_page_of_another_site_is_refused(origin):
    """Also one of this computer at another port, or by another name."""
    assert status(LOCAL, 'localhost:8080', origin) == 403
    assert status(OPEN, 'localhost:8080', origin, '/?token=the-token') == 403


def test_headers_that_are_missing_or_repeated():
    assert LOCAL.check('/', [], [], []).status == 421
    assert LOCAL.check('/', ['localhost', 'localhost'], [], []).status == 421
    assert LOCAL.check('/', ['localhost'], 2 * ['http://localhost'], []).status == 403
    # TLS before the page is its own origin.
    assert status(LOCAL, 'localhost:8443', 'https://localhost:8443') == 0


def test_a_network_needs_the_token_once():
    assert status(OPEN, '192.168.1.7:8080') == 401
    for wrong in ('/?token=', '/?token=the-tokem', '/?Token=the-token', '/the-token', '/?token=é'):
        assert status(OPEN, '192.168.1.7:8080', path=wrong) == 401
    response = OPEN.check('/?darkMode&token=the-token', ['192.168.1.7:8080'], [], [])
    assert (response.status, response.location) == (303, '/?darkMode=')
    assert 'HttpOnly' in response.cookie and 'SameSite' in response.cookie
    cookie = response.cookie.partition(';')[0]
    assert status(OPEN, '192.168.1.7:8080', cookie=cookie) == 0
    assert status(OPEN, '192.168.1.7:8080', cookie=f'a=b; {cookie}; c="d') == 0
    assert status(OPEN, '192.168.1.7:8080', cookie=cookie[:-1]) == 401
    assert status(OPEN, 'example.com', cookie=cookie) == 421
    assert OPEN.check('/?token=the-token', ['192.168.1.7'], [], []).location == '/'


def test_on_a_network_the_page_has_addresses_and_own_names():
    own = socket.gethostname()
    for host in (own, f'{own.partition(".")[0]}.local:8080', '10.0.0.1:8080', '[fe80::1]:8080'):
        assert status(OPEN, host, path='/?token=the-token') == 303
    assert status(OPEN, 'example.com', path='/?token=the-token') == 421


def test_every_start_has_another_secret_and_the_loopback_has_none():
    one, other = Access('0.0.0.0'), Access('0.0.0.0')
    assert len(one.token) >= 24 and one.token != other.token
    assert LOCAL.token == '' and Access('::1').token == ''
    assert status(one, '10.0.0.1', path=f'/?token={other.token}') == 401


@contextlib.contextmanager
def serving(**options):
    server, access = web.open_server('127.0.0.1', 0, 'x', **options)
    try:
        yield server, access
    finally:
        server.stop()


def get(port, path='/', **headers):
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=100.0)
    connection.putrequest('GET', path, skip_host=True, skip_accept_encoding=True)
    for name, value in ({'Host': f'127.0.0.1:{port}'} | headers).items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    return response, response.read()


def dial(port, host=None, **options):
    from websockets.sync.client import connect
    import viser
    address = f'ws://{host or "127.0.0.1"}:{port}'
    return connect(address, sock=socket.create_connection(('127.0.0.1', port)),
                   subprotocols=[f'viser-v{viser.__version__}'], **options)


@pytest.mark.parametrize('encoding', ['gzip', 'identity'])
def test_the_title_is_that_of_the_page(encoding):
    with serving(title=lambda: 'a <robot>') as (server, _):
        response, page = get(server.get_port(), **{'Accept-Encoding': encoding})
        assert int(response.headers['Content-Length']) == len(page)
        page = gzip.decompress(page) if encoding == 'gzip' else page
        assert b'<title>a &lt;robot&gt;</title>' in page and page.count(b'<title>') == 1


def test_the_server_applies_the_rules():
    from websockets.exceptions import InvalidStatus
    with serving() as (server, _):
        port = server.get_port()
        response, page = get(port)
        assert response.status == 200 and b'<html' in page
        for name, value in HEADERS.items():
            assert response.headers[name] == value
        assert "frame-ancestors 'none'" in response.headers['Content-Security-Policy']
        for headers, code in (({'Host': 'attacker.example'}, 421),
                              ({'Origin': 'http://attacker.example'}, 403)):
            response, text = get(port, **headers)
            assert response.status == code and b'<html' not in text
            assert response.headers['X-Frame-Options'] == 'DENY'
        for host, origin, code in (
                ('attacker.example', 'http://attacker.example', 421),
                ('attacker.example', None, 421),
                (None, 'http://attacker.example', 403), (None, 'null', 403),
                (None, f'http://127.0.0.1:{port + 1}', 403)):
            with pytest.raises(InvalidStatus, match=str(code)):
                dial(port, host, origin=origin)
        dial(port, origin=f'http://127.0.0.1:{port}').close()


def test_the_token_opens_page_and_connection(monkeypatch):
    from websockets.exceptions import InvalidStatus
    monkeypatch.setattr(web, 'Access', lambda host: Access('0.0.0.0'))  # on the loopback here
    with serving() as (server, access):
        port = server.get_port()
        assert get(port)[0].status == 401
        with pytest.raises(InvalidStatus, match='401'):
            dial(port)
        response, _ = get(port, f'/?token={access.token}')
        assert response.status == 303 and response.headers['Location'] == '/'
        cookie = response.headers['Set-Cookie'].partition(';')[0]
        assert get(port, Cookie=cookie)[0].status == 200
        dial(port, additional_headers={'Cookie': cookie}).close()


def test_messages_and_connections_are_limited():
    from websockets.exceptions import ConnectionClosed, InvalidStatus
    with serving(most_browsers=2) as (server, _):
        port = server.get_port()
        first, second = dial(port), dial(port)
        with pytest.raises(InvalidStatus, match='503'):
            dial(port)
        with pytest.raises(ConnectionClosed):
            first.send(b'x' * (web.LARGEST_MESSAGE + 1))
            while True:
                first.recv(timeout=100.0)
        assert get(port)[0].status == 200
        second.close()


def test_idle_connections_do_not_use_up_the_computer():
    with serving() as (server, _), contextlib.ExitStack() as stack:
        port = server.get_port()
        idle = [stack.enter_context(socket.create_connection(('127.0.0.1', port), timeout=100.0))
                for _ in range(web.MOST_CONNECTIONS + 10)]
        closed = 0
        for one in idle[web.MOST_CONNECTIONS:]:
            with contextlib.suppress(ConnectionResetError):
                one.recv(1)
            closed += 1
        assert closed == 10
        stack.close()
        for _ in range(50):
            with contextlib.suppress(OSError, http.client.HTTPException):
                if get(port)[0].status == 200:
                    return
        pytest.fail('the page is not served any more')


def test_groups_of_controls_are_permitted():
    everything = permitted('all')
    assert {'push', 'walk', 'tare', 'feedforward', 'calibration/start'} <= everything
    assert permitted('none') == frozenset()
    assert permitted('tare, walk') == {
        'tare', 'untare', 'step', 'walk', 'stop', 'balance'}
    assert permitted(','.join(GROUPS)) == everything
    with pytest.raises(UnknownNameError, match="'pish'"):
        permitted('pish')
    with pytest.raises(UnknownNameError):
        permitted('')


@pytest.mark.parametrize('command, taken, refused', [
    ('push', [('forward', 0.15), ('left', 0.6), ('back', 0.02)],
     [('up', 0.1), ('forward', 1e308), ('forward', -0.1), ('forward', float('nan')),
      ('forward', 'a')]),
    ('torso', [(15.0, -15.0)], [(15.1, 0.0), (float('inf'), 0.0), (0.0,), (None, 0.0)]),
    ('hang', [True], ['yes']), ('feedforward', [False], []), ('tare', [None], [{'x': 1}])])
def test_only_what_controls_send_is_taken(command, taken, refused):
    assert [checked(command, value) for value in taken] == taken
    for value in refused:
        with pytest.raises(InputError, match='refused'):
            checked(command, value)
