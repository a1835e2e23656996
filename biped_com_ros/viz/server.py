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

It serves the page from the installed package, by default to browsers on this computer only, and
accepts connections from its own page only: otherwise any other site that is open in the same
browser could use the buttons.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import io
import re
from typing import Any

from biped_com_ros.core.errors import ConfigurationError

LOOPBACK = ('127.0.0.1', 'localhost', '::1')
_LOCAL_ORIGINS = r'http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?'
_ANY_PLAIN_ORIGIN = r'http://[^/]+'


def open_server(host: str, port: int, label: str) -> Any:
    """
    Start to serve an empty page.

    Parameters
    ----------
    host, port
        Address; if the port is in use, the next free one; 0: any.
    label
        Title of the controls.

    Raises
    ------
    ConfigurationError
        If viser is not installed, or the host is not an address of this computer.

    """
    viser = import_viser()
    _check_host(host)
    pattern = re.compile(_LOCAL_ORIGINS if host in LOOPBACK else _ANY_PLAIN_ORIGIN)
    with _checked_origins(pattern) as used, contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
    if not used:
        server.stop()
        raise ConfigurationError(
            f'with viser {viser.__version__} other sites cannot be kept from connecting to the '
            'page; install another version: pip install viser==1.1.1')
    # viser can publish the page on the internet; disabled for a page that controls a robot.
    server.request_share_url = lambda verbose=True: None
    return server


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
def _checked_origins(pattern: re.Pattern[str]) -> Iterator[list[bool]]:
    """Let the server that viser starts meanwhile check the origin of connections."""
    import websockets.asyncio.server
    library: Any = websockets.asyncio.server
    serve = library.serve
    used: list[bool] = []

    def checked(*arguments: Any, **options: Any) -> Any:
        used.append(True)
        # None: clients other than browsers, which this check cannot protect from.
        return serve(*arguments, origins=[pattern, None], **options)

    library.serve = checked
    try:
        yield used
    finally:
        library.serve = serve
