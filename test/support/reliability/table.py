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
"""The table of faults."""

from pathlib import Path


FILE = Path(__file__).resolve().parents[3] / 'doc' / 'results' / 'reliability.txt'
_HEAD = ('fault', 'efforts', 'since', 'node again', 'efforts again', 'step')


def as_table(results):
    """Return the rows as a table of text."""
    rows = [_HEAD, *((r.name, r.outcome, f'{r.safe_after:.2f} s', f'{r.output_after:.1f} s',
                      f'{r.recovered_after:.1f} s', f'{100.0 * r.largest_step:.0f} %')
                     for r in results)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    rule = '  '.join('=' * width for width in widths)
    lines = ['  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
             for row in rows]
    return '\n'.join([rule, lines[0], rule, *lines[1:], rule])


def write(results, where):
    """Write the file that the documentation shows."""
    FILE.write_text(f'$ python -m benchmarks.reliability\n{where}\n\n{as_table(results)}\n')
