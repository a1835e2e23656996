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
Takes the picture of a calibration's report, with Chromium, of the recording in ``doc/sample``.

::

    python doc/pictures/draw_report.py

Writes ``calibration_report.png`` beside this file. Needs chromium.
"""

from __future__ import annotations

from pathlib import Path
import subprocess
import sys
import tempfile

from PIL import Image

HERE = Path(__file__).resolve().parent
RECORDING = HERE.parent / 'sample' / 'sabian.mcap'
SIZE = (848, 985)  # pixels: down to the centres of mass by pose


def main() -> None:
    """Calibrate, look, write the file."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(
            [sys.executable, '-m', 'biped_com_ros.offline.calibrate', str(RECORDING),
             '--robot', 'sabian', '--out', directory], check=True, stdout=subprocess.DEVNULL)
        picture = Path(directory) / 'report.png'
        subprocess.run(
            ['chromium', '--headless', '--no-sandbox', '--hide-scrollbars',
             f'--window-size={SIZE[0]},{SIZE[1]}', f'--screenshot={picture}',
             (Path(directory) / 'report.html').as_uri()], check=True, stderr=subprocess.DEVNULL)
        Image.open(picture).convert('RGB').quantize(128).save(
            HERE / 'calibration_report.png', optimize=True)


if __name__ == '__main__':
    main()
