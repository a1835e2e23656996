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
Who may open the page: a decision for each request, from its headers alone.

A browser carries out what any page that is open in it requests. So requests count as those of the
page itself only if they are made to a name of this computer (not to a name of somebody else's that
was pointed here: DNS rebinding), and by the page of that name (not by another site). On a network
they need a token as well, which the address to open has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
from urllib.parse import parse_qsl, urlencode, urlsplit

LOOPBACK = ('127.0.0.1', 'localhost', '::1')

#: Headers of every response: no other site may frame the page (its buttons would be clicked
#: unseen), load parts of it, keep a reference to its window or learn its address.
HEADERS = {
    'X-Frame-Options': 'DENY',
    'Content-Security-Policy': "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
                               "object-src 'none'",
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cache-Control': 'no-store'}

_HOST = re.compile(r'(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?')


@dataclass(frozen=True)
class Decision:
    """
    What becomes of a request.

    Attributes
    ----------
    status
        HTTP status of a response that ends it; 0: the request is permitted.
    text
        Of that response.
    location, cookie
        Headers of that response, where not empty.

    """

    status: int = 0
    text: str = ''
    location: str = ''
    cookie: str = ''


class Access:
    """
    The rules of one page.

    Parameters
    ----------
    host
        Address that is served; those of :data:`LOOPBACK` are reached from this computer only.
    token
        What requests from a network have to know; default: a new secret.

    Attributes
    ----------
    token : str
        Empty on the loopback.

    """

    def __init__(self, host: str, token: str = '') -> None:
        self._is_local = host in LOOPBACK
        self.token = '' if self._is_local else token or secrets.token_urlsafe(18)
        own = socket.gethostname().lower()
        self._names = {'localhost'} if self._is_local else {
            'localhost', own, socket.getfqdn().lower(), f'{own.partition(".")[0]}.local'}
        self._cookie = 'biped_com_ros_' + hashlib.sha256(self.token.encode()).hexdigest()[:12]

    def check(self, path: str, hosts: Sequence[str], origins: Sequence[str],
              cookies: Sequence[str]) -> Decision:
        """
        Decide about a request.

        Parameters
        ----------
        path
            With its query.
        hosts, origins, cookies
            Values of the headers of these names.

        """
        if len(hosts) != 1 or not self._is_own_name(hosts[0]):
            return Decision(421, 'This page answers to names of its own computer only. Open it by '
                            f'its address, or by one of: {", ".join(sorted(self._names))}\n')
        own = [f'{scheme}://{hosts[0]}'.lower() for scheme in ('http', 'https')]
        if len(origins) > 1 or any(origin.lower() not in own for origin in origins):
            return Decision(403, 'Other sites may not use this page.\n')
        return self._check_token(path, cookies)

    def _is_own_name(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = (match['six'] or match['name']).lower()
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        # An address cannot be pointed elsewhere; that of another interface is of this computer.
        return not self._is_local or address.is_loopback

    def _check_token(self, path: str, cookies: Sequence[str]) -> Decision:
        if not self.token:
            return Decision()
        url = urlsplit(path)
        query = parse_qsl(url.query, keep_blank_values=True)
        if any(key == 'token' and self._is_token(value) for key, value in query):
            others = urlencode([(key, value) for key, value in query if key != 'token'])
            # The token leaves the address bar and the history.
            return Decision(303, 'Go on without the token.\n', f'/?{others}' if others else '/',
                            f'{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Lax')
        given = [part.strip().partition('=') for line in cookies for part in line.split(';')]
        if any(name == self._cookie and self._is_token(value) for name, _, value in given):
            return Decision()
        return Decision(401, 'Open the address that the viewer has printed, with its token.\n')

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())
