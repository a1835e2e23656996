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
"""The report of a calibration in a real browser, of the recording that the README names."""

from pathlib import Path
import subprocess
import sys

import pytest
from support.browser import Browser, require

require()

pytestmark = pytest.mark.thorough
RECORDING = Path(__file__).resolve().parents[2] / 'doc' / 'sample' / 'sabian.mcap'


@pytest.fixture(scope='module')
def browser(tmp_path_factory):
    """Yield a browser that shows the report."""
    directory = tmp_path_factory.mktemp('report')
    subprocess.run([sys.executable, '-m', 'biped_com_ros.offline.calibrate', str(RECORDING),
                    '--robot', 'sabian', '--out', str(directory)], check=True, timeout=300)
    browser = Browser(directory)
    try:
        browser.visit((directory / 'report.html').as_uri())
        yield browser
    finally:
        browser.close()


def test_on_a_phone_nothing_is_wider_than_the_screen_and_the_result_is_on_it(browser):
    with browser.phone():
        page, screen = browser.until(lambda: [
            sizes for sizes in [browser.page_and_screen()] if sizes[1] == 390], 'the phone')[0]
        assert page <= screen
        left, _, right, _ = browser.look_of('calibrated')['box']
        assert 0.0 < left < right < 1.0
        assert 'Horizontal CoM, rms' in browser.text


def test_a_wide_screen_shows_no_sideways_scroll_bar_either(browser):
    page, screen = browser.page_and_screen()
    assert page <= screen == 1000


def test_a_small_window_shows_all_columns_of_the_results(browser):
    with browser.phone(848):
        browser.until(lambda: browser.page_and_screen()[1] == 848, 'the small window')
        left, _, right, _ = browser.look_of('expected there')['box']
        assert 0.5 < left < right < 1.0
