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
The web server behind the page, kept to this computer.

It serves everything the page needs out of the installed package, to browsers on this computer
only unless told otherwise, and takes connections from its own page only: any other page that is
open in the same browser could press the buttons, too.
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
        Where; a port that is taken is counted up until one is free, 0 lets the system choose.
    label
        Shown over the controls.

    Raises
    ------
    ConfigurationError
        If viser is not installed, or nothing can be served on that host.

    """
    viser = import_viser()
    _check_host(host)
    pattern = re.compile(_LOCAL_ORIGINS if host in LOOPBACK else _ANY_PLAIN_ORIGIN)
    with _checked_origins(pattern) as used, contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
    if not used:
        server.stop()
        raise ConfigurationError(
            f'viser {viser.__version__} starts its server in an unknown way, so that pages of '
            'other sites could not be kept away; take another version: pip install viser==1.1.1')
    # A page that anybody on the internet can open is nothing a robot should have a button for.
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
        If it is not installed; says how to.

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
    """Raise where nothing can be served: viser would try port after port for ever."""
    import socket
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except OSError as error:
        raise ConfigurationError(
            f"nothing can be served on host '{host}': {error.strerror or error}; valid: "
            "'127.0.0.1' (this computer only), '0.0.0.0' (everybody in the network), or an "
            'address of this computer') from None


@contextlib.contextmanager
def _checked_origins(pattern: re.Pattern[str]) -> Iterator[list[bool]]:
    """Have viser's server, while it starts, check where the pages come from that connect."""
    import websockets.asyncio.server
    library: Any = websockets.asyncio.server
    serve = library.serve
    used: list[bool] = []

    def checked(*arguments: Any, **options: Any) -> Any:
        used.append(True)
        # None: programs that are no browsers, which have no need of a browser to do harm.
        return serve(*arguments, origins=[pattern, None], **options)

    library.serve = checked
    try:
        yield used
    finally:
        library.serve = serve
