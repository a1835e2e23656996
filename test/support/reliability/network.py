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
Two hosts on one computer: network namespaces, and a wire that loses and delays packets.

The wire is a process that carries Ethernet frames between two TAP devices, so that nothing but
``/dev/net/tun`` and network namespaces are needed (``tc netem`` is not in every kernel). Each
host has its own ``/dev/shm``, as Fast DDS would go past the network otherwise.
"""

import contextlib
import fcntl
from functools import cache
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time

_SET_INTERFACE, _TAP, _NO_PACKET_INFO = 0x400454CA, 0x0002, 0x1000
_LARGEST_FRAME = 65536
#: How the frames to multicast groups of IPv4 and IPv6 begin; those of ARP are broadcast.
_GROUPS = (b'\x01\x00\x5e', b'\x33\x33')
ADDRESSES = ('10.123.45.1', '10.123.45.2')


@cache
def unavailable():
    """Return why two hosts cannot be made here; '' if they can, which is tried once."""
    if os.name != 'posix' or os.geteuid() != 0:
        return 'network namespaces need root'
    try:
        with two_hosts() as (hosts, _):
            subprocess.run(on_host(hosts[0], ['true']), check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f'no network namespaces or no TAP devices: {error}'
    return ''


class Wire:
    """
    Controls the process that carries frames.

    Parameters
    ----------
    descriptor
        Where it reads from.

    """

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def impair(self, loss=0.0, delay=0.0, jitter=0.0, multicast=True):
        """
        Lose a share of all packets; delay the others by `delay` and up to `jitter` more, s.

        Without `multicast` none of those to groups is carried.
        """
        line = json.dumps({'loss': loss, 'delay': delay, 'jitter': jitter,
                           'multicast': multicast}) + '\n'
        os.write(self.descriptor, line.encode())


def on_host(name, command):
    """Return the command that runs another one on a host."""
    return ['ip', 'netns', 'exec', name, 'sh', '-c',
            'mount -t tmpfs none /dev/shm && exec "$@"', 'sh', *command]


@contextlib.contextmanager
def two_hosts():
    """Make two hosts; yields their names and the wire between them."""
    names = tuple(f'biped_{side}_{os.getpid()}' for side in 'ab')
    with contextlib.ExitStack() as stack:
        taps = []
        for side, name, address in zip('ab', names, ADDRESSES):
            _ip('netns', 'add', name)
            stack.callback(_ip, 'netns', 'delete', name)
            device = f'biped{side}{os.getpid() % 1000000}'
            taps.append(_tap(device))
            stack.callback(os.close, taps[-1])
            _ip('link', 'set', device, 'netns', name)
            inside = ('-n', name)
            _ip(*inside, 'address', 'add', f'{address}/24', 'dev', device)
            for link in ('lo', device):
                _ip(*inside, 'link', 'set', link, 'up')
            _ip(*inside, 'route', 'add', '224.0.0.0/4', 'dev', device)
        read, write = os.pipe()
        carrier = subprocess.Popen(
            [sys.executable, __file__, *map(str, (*taps, read))],
            pass_fds=(*taps, read))
        os.close(read)
        stack.callback(carrier.wait)
        stack.callback(os.close, write)  # ends it
        yield (names[0], names[1]), Wire(write)


def _ip(*arguments):
    done = subprocess.run(['ip', *arguments], text=True, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise OSError(f'ip {" ".join(arguments)}: {done.stderr.strip()}')


def _tap(name):
    descriptor = os.open('/dev/net/tun', os.O_RDWR)
    request = struct.pack('16sH', name.encode(), _TAP | _NO_PACKET_INFO)
    fcntl.ioctl(descriptor, _SET_INTERFACE, request)
    return descriptor


def carry(first, second, control):
    """Carry frames until the other end of `control` is closed."""
    other = {first: second, second: first}
    settings = {'loss': 0.0, 'delay': 0.0, 'jitter': 0.0, 'multicast': True}
    waiting = []
    count = 0
    while True:
        timeout = max(waiting[0][0] - time.monotonic(), 0.0) if waiting else None
        ready, _, _ = select.select([*other, control], [], [], timeout)
        if control in ready:
            lines = os.read(control, 4096)
            if not lines:
                return
            settings = json.loads(lines.splitlines()[-1])
        now = time.monotonic()
        for source in set(ready) & other.keys():
            frame = os.read(source, _LARGEST_FRAME)
            if not settings['multicast'] and frame.startswith(_GROUPS):
                continue
            if random.random() >= settings['loss']:
                due = now + settings['delay'] + settings['jitter'] * random.random()
                count += 1
                heapq.heappush(waiting, (due, count, other[source], frame))
        while waiting and waiting[0][0] <= now:
            _, _, target, frame = heapq.heappop(waiting)
            with contextlib.suppress(OSError):  # the other host is not up
                os.write(target, frame)


if __name__ == '__main__':
    carry(*map(int, sys.argv[1:]))
