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
The web server of the page.

It serves the page from the installed package, by default to browsers on this computer only. Every
request is checked by :mod:`access`, and what one can send and how often is limited: otherwise any
site that is open in the same browser could use the buttons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import gzip
from html import escape
import io
from typing import Any

from biped_com_ros.core.errors import ConfigurationError
from biped_com_ros.viz.access import Access, HEADERS

LARGEST_MESSAGE = 64 * 1024
"""Bytes of the largest message of a browser; a change of a control has some hundred."""
MOST_CONNECTIONS = 64
"""Connections at a time, of all kinds: a browser opens some to load the page, and keeps one."""


_TITLE = b'<title>Viser</title>'


def open_server(host: str, port: int, label: str, most_browsers: int = 8,
                title: Callable[[], str] | None = None) -> tuple[Any, Access]:
    """
    Start to serve an empty page.

    Parameters
    ----------
    host, port
        Address; if the port is in use, the next free one; 0: any.
    label
        Title of the controls.
    most_browsers
        Browsers that may show it at a time.
    title
        Returns the title of the page in the browser; by default the label.

    Returns
    -------
    tuple
        The server, and the rules of access.

    Raises
    ------
    ConfigurationError
        If viser is not installed, or the host is not an address of this computer.

    """
    viser = import_viser()
    _check_host(host)
    access = Access(host)
    with (_guarded(access, most_browsers, title or (lambda: label)) as used,
          contextlib.redirect_stdout(io.StringIO())):
        server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
    if not used:
        server.stop()
        raise ConfigurationError(
            f'with viser {viser.__version__} other sites cannot be kept from connecting to the '
            'page; install another version: pip install viser==1.1.1')
    # viser can publish the page on the internet; disabled for a page that controls a robot.
    server.request_share_url = lambda verbose=True: None
    return server, access


def url_of(server: Any) -> str:
    """Return the address to open in a browser."""
    host = server.get_host()
    shown = '127.0.0.1' if host in ('0.0.0.0', '::') else f'[{host}]' if ':' in host else host
    return f'http://{shown}:{server.get_port()}'


def import_viser() -> Any:
    """
    Return the module.

    Raises
    ------
    ConfigurationError
        If it is not installed.

    """
    try:
        import viser
    except ImportError as error:
        missing = error.name or 'viser'
        raise ConfigurationError(
            f'the page needs the Python package viser ({missing} cannot be imported): '
            'pip install viser (with ROS 2 from apt: pip install --user '
            '--break-system-packages viser)') from None
    return viser


def _check_host(host: str) -> None:
    """Raise if the host is not valid: viser would try ports for ever."""
    import socket
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except OSError as error:
        raise ConfigurationError(
            f"the page cannot be served on host '{host}': {error.strerror or error}; valid: "
            "'127.0.0.1' (this computer only), '0.0.0.0' (the whole network), or an "
            'address of this computer') from None


@contextlib.contextmanager
def _guarded(access: Access, most_browsers: int,
             title: Callable[[], str]) -> Iterator[list[bool]]:
    """Let the server that viser starts meanwhile check every request."""
    import websockets.asyncio.server
    library: Any = websockets.asyncio.server
    serve = library.serve
    used: list[bool] = []

    def guarded(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
        used.append(True)
        return serve(*arguments, **options | {
            'process_request': _checked(process_request, access, most_browsers, title),
            'max_size': LARGEST_MESSAGE, 'create_connection': _limited(library.ServerConnection)})

    library.serve = guarded
    try:
        yield used
    finally:
        library.serve = serve


def _checked(process: Callable[[Any, Any], Any], access: Access,
             most_browsers: int, title: Callable[[], str]) -> Callable[[Any, Any], Any]:
    """Return a handler that passes permitted requests to `process`, and refuses the others."""
    def handle(connection: Any, request: Any) -> Any:
        headers = request.headers
        decision = access.check(request.path, headers.get_all('Host'), headers.get_all('Origin'),
                                headers.get_all('Cookie'))
        if decision.status:
            response = connection.respond(decision.status, decision.text)
            for name, value in (('Location', decision.location), ('Set-Cookie', decision.cookie)):
                if value:
                    response.headers[name] = value
        else:
            response = process(connection, request)
            if response is None and len(connection.server.connections) >= most_browsers:
                response = connection.respond(
                    503, f'{most_browsers} browsers show this page already; close one.\n')
            elif response is not None:
                _entitle(response, title())
        if response is not None:
            for name, value in HEADERS.items():
                response.headers[name] = value
        return response

    return handle


def _entitle(response: Any, title: str) -> None:
    """Replace viser's title in a response that has it; with other versions it stays."""
    is_packed = response.headers.get('Content-Encoding') == 'gzip'
    if 'text/html' not in response.headers.get('Content-Type', ''):
        return
    body = gzip.decompress(response.body) if is_packed else response.body
    if _TITLE not in body:
        return
    body = body.replace(_TITLE, f'<title>{escape(title)}</title>'.encode(), 1)
    response.body = gzip.compress(body, 1) if is_packed else body
    del response.headers['Content-Length']
    response.headers['Content-Length'] = str(len(response.body))


def _limited(base: Any) -> Any:
    """Return a kind of connection of which there is a limited number at a time."""
    class Limited(base):

        def connection_made(self, transport: Any) -> None:
            if len(self.server.handlers) >= MOST_CONNECTIONS:
                transport.abort()
            else:
                super().connection_made(transport)

        def connection_lost(self, error: Exception | None) -> None:
            if hasattr(self, 'transport'):
                super().connection_lost(error)

    return Limited
