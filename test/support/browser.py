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
"""A headless Chromium for the tests of the page."""

import base64
import contextlib
import io
import json
import shutil
import time

import numpy as np
import pytest

CHROMIUMS = ('chromium', 'chromium-browser', 'google-chrome')
FLAGS = ('--headless', '--no-sandbox', '--disable-quic', '--no-first-run',
         '--disable-background-networking', '--disable-component-update', '--disable-sync',
         # WebGL without a graphics card.
         '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--mute-audio',
         # A computer without internet.
         '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost')
SIZE = (1000, 700)
PATIENCE = 200.0  # of a busy machine, s
# Drawing without a graphics card takes all the cores there are, frame after frame: a frame now
# and then (the page takes what is new with a frame), and one whenever a picture is taken, is what
# these tests need.
CALM = """
const waiting = new Map();
let last = 0;
window.requestAnimationFrame = draw => { waiting.set(++last, draw); return last; };
window.cancelAnimationFrame = number => waiting.delete(number);
window.drawNow = () => {
    const draws = [...waiting.values()];
    waiting.clear();
    draws.forEach(draw => draw(performance.now()));
};
setInterval(window.drawNow, 1000 * EVERY);
"""


def require():
    """Skip the tests of a module where there is no Chromium that can be driven."""
    pytest.importorskip('viser', reason='the page needs viser: pip install viser')
    pytest.importorskip('selenium', reason='it takes selenium to drive a browser')
    if not any(map(shutil.which, CHROMIUMS)) or not shutil.which('chromedriver'):
        pytest.skip('no Chromium to look at the page with: apt install chromium chromium-driver',
                    allow_module_level=True)


class Browser:
    """
    Chromium with a page open, as seen by somebody who reads and clicks.

    Parameters
    ----------
    directory
        For the browser's own files; new and empty.
    size
        Of its window, pixels.
    scale
        Of what is drawn; small pictures are drawn sooner.
    every
        Between two frames, s.

    """

    def __init__(self, directory, size=SIZE, scale=0.5, every=0.8):
        from selenium import webdriver
        options = webdriver.ChromeOptions()
        options.binary_location = next(filter(None, map(shutil.which, CHROMIUMS)))
        self._log = directory / 'network.json'
        for flag in (*FLAGS, f'--window-size={size[0]},{size[1]}',
                     f'--force-device-scale-factor={scale}',
                     f'--user-data-dir={directory / "profile"}', f'--log-net-log={self._log}'):
            options.add_argument(flag)
        service = webdriver.ChromeService(shutil.which('chromedriver'))
        self._driver = webdriver.Chrome(options=options, service=service)
        self._driver.set_script_timeout(110.0)
        self._every = every
        self._calm()

    def visit(self, url):
        """Go to a page; the one of the viewer counts as seen after some frames."""
        self._driver.get(url)
        for _ in range(5):
            self._driver.execute_script('window.drawNow()')
            time.sleep(0.2)

    def leave(self):
        """Close the page, and have an empty one."""
        old = self._driver.current_window_handle
        self._driver.switch_to.new_window('tab')
        new = self._driver.current_window_handle
        self._driver.switch_to.window(old)
        self._driver.close()
        self._driver.switch_to.window(new)
        self._calm()

    def _calm(self):
        self._driver.execute_cdp_cmd('Page.addScriptToEvaluateOnNewDocument', {
            'source': CALM.replace('EVERY', str(self._every))})

    def close(self):
        """End it, if it has not been ended yet."""
        driver, self._driver = self._driver, None
        if driver is not None:
            from selenium.common.exceptions import WebDriverException
            with contextlib.suppress(WebDriverException):  # it is gone before it answers
                driver.execute_cdp_cmd('Browser.close', {})  # it finishes its log
            driver.quit()

    def requests_of(self, origin):
        """Return what pages of an origin, and their workers, asked for; once it is closed."""
        events = [event.get('params', {}) for event in json.loads(self._log.read_text())['events']]
        return {event['url'] for event in events
                if 'url' in event and str(event.get('initiator', '')).startswith(origin)}

    @property
    def text(self):
        """Return what can be read."""
        return self._driver.execute_script('return document.body.innerText')

    def until(self, condition, what, timeout=PATIENCE):
        """Wait until something holds, and return it; not while the page is made anew."""
        from selenium.common.exceptions import StaleElementReferenceException

        def found_now():
            with contextlib.suppress(StaleElementReferenceException):
                return condition()
        end = time.monotonic() + timeout
        while not (found := found_now()):
            assert time.monotonic() < end, (
                f'waited in vain for {what}; the page says:\n{self.text}')
            time.sleep(0.1)
        return found

    def wait_for(self, *words, timeout=PATIENCE):
        """Wait until the page says something."""
        self.until(lambda: all(word in self.text for word in words), ' '.join(words), timeout)

    def tab(self, name):
        """Turn to a tab, by the mouse: tabs can be dragged, too."""
        def is_open():
            return self._find('[role=tab]', name).get_attribute('aria-selected') == 'true'

        def click():
            if not is_open():
                self._find('[role=tab]', name).click()
            time.sleep(1.0)  # a page that was resized makes its tabs anew a little later
            return is_open()

        self.until(click, f'tab {name}')

    def button(self, name):
        """Tell whether there is a button that can be pressed."""
        return any(button.is_enabled() for button in self._all('button', name))

    def press(self, name):
        """Press a button, once it can be pressed."""
        def click():
            if can_be_pressed := self.button(name):
                self._click(self._find('button', name))
            return can_be_pressed
        self.until(click, f'button {name}')

    def tick(self, name):
        """Click a checkbox by the words before it, once it is there."""
        def click():
            if checkbox := self._checkbox(name):
                self._click(checkbox)
            return checkbox
        self.until(click, f'checkbox {name}')

    def slide(self, index, keys):
        """Move a slider by the keyboard; `keys` is how often right (or, negative, left)."""
        from selenium.webdriver.common.keys import Keys
        thumbs = self._driver.find_elements('css selector', '[role=slider]')
        thumbs[index].send_keys((Keys.ARROW_RIGHT if keys > 0 else Keys.ARROW_LEFT) * abs(keys))

    @contextlib.contextmanager
    def phone(self, width=390):
        """Have a small window, by default one that is higher than wide."""
        self._driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
            'width': width, 'height': 844, 'deviceScaleFactor': 0.5, 'mobile': True})
        try:
            yield
        finally:
            self._driver.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})

    def click_on(self, words):
        """Click on words that are no button."""
        self._click(self._driver.execute_script("""
            return [...document.querySelectorAll('*')].filter(
                e => e.children.length <= 1 && e.textContent.trim() === arguments[0]
                     && e.checkVisibility())[0];""", words))

    def widths(self, selector):
        """Return the widths of visible elements as shares of that of the window."""
        return self._driver.execute_script("""
            return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility())
                .map(e => e.getBoundingClientRect().width / innerWidth);""", selector)

    def turn(self, pixels=2):
        """Turn the view by the mouse, above the robot, which would be marked below it."""
        from selenium.webdriver.common.action_chains import ActionChains
        canvas = max(self._driver.find_elements('css selector', 'canvas'),
                     key=lambda e: e.size['width'] * e.size['height'])
        ActionChains(self._driver).move_to_element_with_offset(
            canvas, 0, round(-0.45 * canvas.size['height'])).click_and_hold().move_by_offset(
            pixels, 0).release().perform()
        for _ in range(3):
            self._driver.execute_script('window.drawNow()')
            time.sleep(0.3)

    def page_and_screen(self):
        """Return how wide the page is, also what is beyond the screen, and the screen, pixels."""
        return self._driver.execute_script(
            'return [document.documentElement.scrollWidth, innerWidth];')

    def look_of(self, words):
        """Return the box of words as shares of the window, and how bright ink and ground are."""
        return self._driver.execute_script("""
            const element = [...document.querySelectorAll('*')].filter(
                e => e.children.length <= 1 && e.textContent.trim() === arguments[0]
                     && e.checkVisibility())[0];
            if (!element) return null;
            const box = element.getBoundingClientRect();
            let behind = element;
            const colour = e => getComputedStyle(e).backgroundColor;
            while (behind.parentElement && colour(behind) === 'rgba(0, 0, 0, 0)')
                behind = behind.parentElement;
            const grey = text => text.match(/[0-9.]+/g).slice(0, 3).reduce(
                (sum, part) => sum + Number(part), 0) / 765;
            return {box: [box.left / innerWidth, box.top / innerHeight,
                          box.right / innerWidth, box.bottom / innerHeight],
                    ink: grey(getComputedStyle(element).color), ground: grey(colour(behind))};
            """, words)

    def dismiss(self):
        """Close what has popped up over the page."""
        for button in self._driver.find_elements(
                'css selector', '.mantine-Notification-closeButton'):
            button.click()

    def screenshot(self):
        """Return the page as it is drawn now, as PNG."""
        self._driver.execute_script('window.drawNow()')
        return self._driver.get_screenshot_as_png()

    def picture(self):
        """
        Return the robot as it is drawn now, (160, 300, 3) of bytes.

        Always of one size: the page draws fewer pixels on a computer that is busy.
        """
        import imageio.v3 as imageio
        # What WebGL has drawn can be read until the browser takes it away at the script's end.
        found = self._driver.execute_script("""
            const area = canvas => canvas.width * canvas.height;
            const canvas = [...document.querySelectorAll('canvas')].reduce(
                (one, other) => area(one) < area(other) ? other : one);
            const small = document.createElement('canvas');
            [small.width, small.height] = [300, 160];
            window.drawNow();
            small.getContext('2d').drawImage(canvas, 0, 0, 300, 160);
            return small.toDataURL('image/png');""")
        return imageio.imread(io.BytesIO(base64.b64decode(found.split(',')[1])))[..., :3]

    def _all(self, selector, words):
        return self._driver.execute_script("""
            return [...document.querySelectorAll(arguments[0])].filter(
                element => element.textContent.trim() === arguments[1]);""", selector, words)

    def _find(self, selector, words):
        found = self._all(selector, words)
        assert found, f'no {selector} says {words!r}; the page says:\n{self.text}'
        return found[0]

    def _checkbox(self, name):
        return self._driver.execute_script("""
            const label = [...document.querySelectorAll('*')].filter(
                e => e.children.length === 0 && e.textContent.trim() === arguments[0])[0];
            let e = label;
            while (e && !e.querySelector('input[type=checkbox]')) e = e.parentElement;
            return e && e.querySelector('input[type=checkbox]');""", name)

    def _click(self, element):
        assert element is not None
        # Without a mouse: what is below the visible part of a panel can be clicked, too.
        self._driver.execute_script('arguments[0].click()', element)


def difference(one, other):
    """Return the share of pixels that clearly differ."""
    return float((np.abs(one.astype(int) - other.astype(int)).max(axis=2) > 25).mean())
