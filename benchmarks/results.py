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
Runs benchmarks and examples and keeps what they print, for doc/appendix/results.rst.

::

    python -m benchmarks.results                    all whose numbers do not depend on the machine
    python -m benchmarks.results stepping torso     some of them
    python -m benchmarks.results core latency       what wants an idle machine
    BIPED_COM_WALKS=DIR python -m benchmarks.results walks
    BIPED_COM_REAL_DATA=DIR python -m benchmarks.results real_data real_forces real_torso

What a failing one prints is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
import os
from pathlib import Path
import subprocess
import sys
import time

ROOT = Path(__file__).resolve().parents[1]
DIRECTORY = ROOT / 'doc' / 'results'
# What is above a file's text on the page.
TITLES = {
    'real_data': 'A real iCub that walks and sways (:doc:`/concepts`)',
    'real_forces': 'A real leg that hops on a slider (:doc:`/virtual_sensors`)',
    'real_torso': 'A real spring bent by three tendons (:doc:`/torso`)',
    'identification': 'Masses and centres of mass found where instruments are wrong '
                      '(:doc:`/calibration`)',
    'com_filter': 'The fused centre of mass of robots whose links and sensors are wrong '
                  '(:doc:`/stability`)',
    'imperfections': 'What imperfections of instruments and drives do to live estimates '
                     '(:doc:`/robot`)',
    'gravity_droop': 'Gravity compensation of Talos, its arms stretched out (:doc:`/gravity`)',
    'stepping': 'Steps of the demo robot (:doc:`/legs`)',
    'slope': 'Quick steps down slopes (:doc:`/legs`)',
    'torso': 'The experiment of Russo et al., section 3.2 (:doc:`/torso`)',
    'walks': 'Feet without sensors on recorded walks (:doc:`/virtual_sensors`)',
    'zmp_methods': 'What simplifications of equation (8) cost (:doc:`/stability`)',
    'table_1': 'Table 1 and the worked example of Muscolo et al. (:doc:`/errata`)',
    'wang_errata': 'What is printed wrong in Wang et al. (:doc:`/errata`)',
    'core': 'Cost of functions of the core (:doc:`/performance`)',
    'callbacks': 'Cost of callbacks of the nodes (:doc:`/performance`)',
    'latency': 'Cost of the nodes as processes (:doc:`/performance`)',
}
# Name of the file -> what is run.
REPEATABLE = {
    'identification': ('-m', 'benchmarks.identification'),
    'com_filter': ('-m', 'examples.com_filter', '--world', 'real', '--rate', '250'),
    'imperfections': ('-m', 'benchmarks.imperfections'),
    'gravity_droop': ('examples/gravity_droop.py', 'talos'),
    'slope': ('-m', 'examples.slope'),
    'stepping': ('-m', 'examples.stepping'),
    'table_1': ('examples/table_1.py',),
    'torso': ('-m', 'examples.torso'),
    'wang_errata': ('examples/wang_errata.py',),
    'zmp_methods': ('examples/zmp_methods.py', 'talos'),
}
# Need recordings that are not part of the package; the page says which.
RECORDED = {name: ('-m', f'benchmarks.{name}')
            for name in ('walks', 'real_data', 'real_forces', 'real_torso')}
TIMED = {
    'core': ('benchmarks/core.py',),
    'callbacks': ('-m', 'benchmarks.callbacks'),
    'latency': ('benchmarks/latency.py',),
}


def run(name: str, command: Sequence[str]) -> bool:
    """Run one and write its file; tells whether it went well."""
    print(f'{name} ...', end='', flush=True)
    begun = time.monotonic()
    environment = {**os.environ, 'COLUMNS': '160' if name in RECORDED else '110',
                   'NO_COLOR': '1', 'TERM': 'dumb', 'OPENBLAS_NUM_THREADS': '1'}
    result = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, text=True,
                            capture_output=True, check=False)
    print(f' {time.monotonic() - begun:.0f} s', flush=True)
    if result.returncode != 0:
        print(f'{name} failed with code {result.returncode}:\n{result.stdout}{result.stderr}')
        return False
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    text = f'$ python {" ".join(command)}\n' + '\n'.join(lines).rstrip() + '\n'
    (DIRECTORY / f'{name}.txt').write_text(text)
    return True


def write_page() -> None:
    """Have doc/appendix/results.rst show the files that there are."""
    parts = [f'{title}\n{"-" * len(title)}\n\n.. literalinclude:: /results/{name}.txt\n'
             '   :language: none\n'
             for name, title in TITLES.items() if (DIRECTORY / f'{name}.txt').is_file()]
    (DIRECTORY / 'tables.inc').write_text('\n'.join(parts))


def main(names: Sequence[str]) -> int:
    """Run those that are named, or all whose numbers do not depend on the machine."""
    known = {**REPEATABLE, **RECORDED, **TIMED}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f'unknown: {", ".join(unknown)} (valid: {", ".join(known)})', file=sys.stderr)
        return 2
    DIRECTORY.mkdir(exist_ok=True)
    failed = [name for name in names or REPEATABLE if not run(name, known[name])]
    write_page()
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
