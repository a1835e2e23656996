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
The page in a real browser, with the real nodes behind its buttons.

One browser looks at one page while, first, nothing runs, and then everything does.
"""

import contextlib
import re
import time

import numpy as np
import pytest
from support.browser import Browser, difference, require

require()

from biped_com_ros.core.model.resources import package_share  # noqa: E402, I100
from biped_com_ros.core.model.robot import RobotModel  # noqa: E402, I100
from lifecycle_msgs.msg import State  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from support.launched import Processes  # noqa: E402
from support.page_stage import BystanderRobot, MODEL  # noqa: E402

COMPOSED = ('wrench_aggregator', 'com_estimator', 'zmp_monitor',
            'gravity_compensation', 'torso_controller')
# Of motions, s: on a busy computer simulated time passes at a twentieth of the pace.
MOTION = 240.0
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]
# A hundred messages per second are enough here. Not faster than in reality: beside a browser that
# draws in software the nodes do not keep up then, and what monitors walks stops them.
HIDDEN = ('rate:=100.0', 'real_time_factor:=1.0', 'virtual_joints:=false', 'seed:=1',
          "hidden_errors:=['torso 0.4 0.05 0.02 0.0']")


@pytest.fixture(scope='module')
def stage(tmp_path_factory):
    """Yield (browser, robot, processes, url) with the viewer running, and nothing else yet."""
    directory = tmp_path_factory.mktemp('page')
    processes, robot, browser = Processes(directory), BystanderRobot(), None
    try:
        output = processes.start('viewer', '-p', 'port:=0', '-p', 'rate:=8.0')
        browser = Browser(directory)
        url = browser.until(lambda: re.search(r'http://127\.0\.0\.1:\d+', output.read_text()),
                            'the address')[0]
        browser.visit(url)
        yield browser, robot, processes, url
    finally:
        codes = processes.end()
        robot.close()
        if browser is not None:
            browser.close()
    assert set(codes) == {0}, codes


@pytest.fixture(scope='module')
def live(stage):
    """Yield (browser, robot) with everything running."""
    browser, robot, processes, _ = stage
    remappings = ('torso_controller:~/joint_states:=joint_states',
                  'torso_controller:~/tendon_lengths:=tendon_controller/commands')
    processes.start('simulator', *(o for parameter in HIDDEN for o in ('-p', parameter)))
    processes.start('suite', '-p', f'nodes:=[{", ".join(COMPOSED)}]', '-p', 'use_sim_time:=true',
                    *(o for remapping in remappings for o in ('-r', remapping)))
    calibration = ('use_sim_time:=true', 'poses:=2', 'candidates:=4', 'hoisted:=0',
                   'automatic:=false', 'autostart:=false', f'directory:={processes.directory}')
    # The demo's parameters: its sensors are exact.
    params = package_share() / 'config' / 'demo' / 'calibration.yaml'
    processes.start('com_calibrator', '--params-file', str(params),
                    *(o for parameter in calibration for o in ('-p', parameter)))
    processes.start('gait_player', '-p', 'use_sim_time:=true', '-p', 'pattern:=preview', '-p',
                    'steps:=10')
    browser.wait_for('mm to the edge', 'both feet', timeout=150.0)
    return browser, robot


def test_controls_are_grey_with_a_reason_while_nothing_runs(stage):
    browser = stage[0]
    browser.wait_for('Tare', 'wrench_aggregator is not running', 'simulator is not running',
                     'torso_controller is not running', 'gravity_compensation is not running',
                     'gait_player is not running', 'com_calibrator is not running')
    for name in ('Tare', 'Push', 'Turn on', 'Upright', 'Single step', 'Start anew', 'Solve'):
        assert not browser.button(name), name
    assert 'margin unknown' in browser.text


def test_other_sites_may_not_connect(stage):
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect
    address = stage[3].replace('http', 'ws')
    for origin in ('http://example.com', 'https://127.0.0.1.example.com', 'null'):
        with pytest.raises(InvalidStatus, match='403'):
            connect(address, origin=origin, subprotocols=['viser-v0'])
    connect(address, origin=stage[3], subprotocols=['viser-v0']).close()


def test_figures_are_those_of_the_nodes(live):
    browser, robot = live
    true = robot.last['simulator/truth/com'].point
    shown = re.search(r'CoM, true \(simulator\)\s+(-?\d+), (-?\d+), (-?\d+)', browser.text)
    np.testing.assert_allclose(
        np.array([int(part) for part in shown.groups()]), 1e3 * np.array(
            (true.x, true.y, true.z)), atol=2.0)
    browser.tab('Joints')
    browser.wait_for('left leg', 'l_knee', 'measured effort against its limit')
    browser.tab('Torso')
    browser.wait_for('tendon 3', 'torso is bent by')
    browser.tab('Balance')
    browser.tab('Health')
    browser.wait_for('checks are OK', 'com_estimator', 'torso_controller')
    browser.tab('Controls')


def test_a_browser_that_was_there_before_the_robot_shows_it_large(live):
    picture = live[0].picture().astype(int)
    drawn = (picture.max(axis=2) < 150) | (np.ptp(picture, axis=2) > 60)
    rows = np.flatnonzero(drawn.any(axis=1))
    assert rows[-1] - rows[0] > 0.5 * len(picture)


def test_a_phone_shows_the_robot_above_the_controls_and_figures_first(live):
    browser, _ = live
    with browser.phone():
        sheet = browser.until(lambda: browser.look_of('Balance · Joints · Torso'), 'the figures')
        button = browser.look_of('Tare')
        assert 0.5 <= sheet['box'][1] < button['box'][1]
        assert button['box'][2] - button['box'][0] > 0.85
        assert re.search(r'^\d+ mm to the edge', browser.text, re.MULTILINE)
        assert 0.5 < browser.look_of('CoM [mm]')['box'][1] < button['box'][1]
        browser.click_on('Balance · Joints · Torso')
        browser.until(lambda: len(browser.widths('.uplot')) > 1, 'the charts')
        time.sleep(8.0)  # of ten updates, each of which made them wider
        assert 0.8 < max(browser.widths('.uplot')) < 0.97
        browser.click_on('Balance')
    browser.until(lambda: not browser.look_of('Balance · Joints · Torso'), 'the wide page again')


def test_words_can_be_read_light_and_dark(live):
    browser, _ = live
    light = browser.until(lambda: browser.look_of('stands on'), 'the figures')
    assert light['ink'] < light['ground'] - 0.5
    browser.tab('Look')
    browser.tick('dark')

    def darkened():
        look = browser.look_of('stands on')
        return look if look and look['ground'] < 0.3 else None
    dark = browser.until(darkened, 'a dark page')
    assert dark['ink'] > dark['ground'] + 0.5
    browser.tick('dark')
    browser.tab('Controls')


def test_gravity_feedforward_is_turned_off_and_on(live):
    browser, robot = live
    browser.until(lambda: robot.feedforward_state() == State.PRIMARY_STATE_ACTIVE, 'active')
    browser.press('Turn off')
    browser.until(lambda: robot.feedforward_state() == State.PRIMARY_STATE_INACTIVE, 'inactive')
    browser.press('Turn on')
    browser.until(lambda: robot.feedforward_state() == State.PRIMARY_STATE_ACTIVE, 'active again')


def test_a_tare_is_refused_standing_and_done_hanging(live):
    browser, robot = live
    browser.press('Tare')
    browser.until(lambda: re.search('stands|carries|touch|ground|weight', browser.text.split(
        'Clear the tare')[1].split('Gravity')[0]), 'a refusal in words')
    before, height = robot.last.get('wrench_aggregator/offsets'), robot.height()
    browser.tick('hangs in the air')
    browser.until(lambda: robot.height() > height + 0.01, 'a robot in the air')

    def tared():
        browser.press('Tare')
        return browser.until(lambda: robot.last.get('wrench_aggregator/offsets'), 'offsets', 3.0
                             ) is not before
    browser.until(tared, 'offsets')
    assert np.abs(robot.last['wrench_aggregator/offsets'].data).max() < 5.0
    browser.press('Clear the tare')
    browser.until(lambda: not np.any(robot.last['wrench_aggregator/offsets'].data), 'no offsets')
    browser.press('Put it on its feet again')
    browser.until(lambda: robot.height() < height + 0.005, 'a robot on the ground')


def test_the_torso_follows_the_sliders_unless_it_is_to_hold_still(live):
    browser, robot = live
    browser.until(lambda: browser.button('Upright'), 'the torso')
    browser.slide(1, 12)
    browser.until(lambda: 'torso_controller/target' in robot.last, 'a target')
    browser.until(lambda: robot.last['torso_controller/target'].vector.x == pytest.approx(
        np.radians(6.0)), 'a target of 6 deg')
    assert robot.last['torso_controller/target'].vector.y == pytest.approx(0.0)
    browser.until(lambda: robot.last['torso_controller/shape'].vector.x > np.radians(3.0),
                  'a bent torso')
    browser.tick('hold still')
    browser.wait_for('targets are ignored')
    browser.tick('hold still')
    browser.wait_for('targets are accepted')
    browser.press('Upright')
    browser.until(lambda: robot.last['torso_controller/shape'].vector.x < np.radians(1.5),
                  'a straight torso')


def test_a_push_moves_the_robot(live):
    browser, robot = live
    browser.press('Push')
    browser.until(lambda: robot.all.get('simulator/push'), 'a push')
    push = robot.all['simulator/push'][-1]
    force = push.wrench.force
    assert push.header.frame_id in MODEL.link_names
    assert force.x == pytest.approx(0.15 * MODEL.mass * 9.81, rel=0.02)
    assert abs(force.y) < 0.05 * force.x and force.z == 0.0
    browser.wait_for('pushed forward')


def test_a_calibration_is_begun_skipped_captured_and_begun_anew(live):
    browser, _ = live
    browser.press('Start')
    browser.wait_for('results will be written to', '0 of 2 captured')
    first = browser.until(lambda: pose(browser.text), 'a first pose')
    browser.press('Skip this pose')
    browser.wait_for(f'{first} skipped')
    browser.until(lambda: pose(browser.text) not in ('', first), 'the next pose')
    capture(browser, 1)
    browser.press('Start anew')
    browser.wait_for('calibration restarted', '0 of 2 captured')
    browser.until(lambda: pose(browser.text) == first, 'the first pose again')


def test_the_robot_is_drawn_and_moves_and_what_was_captured_is_solved_and_used(live):
    browser, robot = live
    capture(browser, 1)
    before = browser.picture()

    def rests():
        nonlocal before
        last, before = before, browser.picture()
        return difference(last, before) < 0.002
    browser.until(rests, 'a picture of a robot at rest')
    colours = {tuple(colour) for colour in before.reshape(-1, 3)[::7].tolist()}
    assert len(colours) > 200  # shaded surfaces, and not an empty canvas
    lowered, raised = (MODEL.posture(name)[MODEL.joint_index(MODEL.actuated_joint_names)]
                       for name in ('stand', 'arms_up'))
    browser.until(lambda: robot.positions.get_subscription_count(), 'the simulator')
    for share in np.linspace(0.0, 1.0, 50):  # at once, the torso would swing for a minute
        robot.positions.publish(Float64MultiArray(
            data=(lowered + share * (raised - lowered)).tolist()))
        time.sleep(0.05)
    browser.until(lambda: difference(before, browser.picture()) > 0.01,
                  'a picture of raised arms')
    capture(browser, 2)
    browser.press('Solve')
    browser.wait_for('solved: ')
    given = robot.last['robot_description'].data
    browser.press('Use the result')
    browser.wait_for('published on')
    browser.until(lambda: robot.last['robot_description'].data != given, 'another URDF')
    browser.wait_for('improvement')
    before, after = (robot.com_error(RobotModel(MODEL.config, urdf))
                     for urdf in (MODEL.urdf, robot.last['robot_description'].data))
    assert before > 0.004
    assert after < 0.5 * before


def capture(browser, count):
    """Press the button until the robot stood still, and the page tells of so many captures."""
    def captured():
        browser.press('Capture now')
        browser.until(lambda: f'({count} of ' in browser.text, 'a capture', 3.0)
    retry(captured)


def pose(text):
    """Return the name of the pose that the page tells of, or ''."""
    found = re.search(r'(\S+) of 2, ', text)
    return found[1] if found else ''


def retry(action, times=8):
    """Do something until it does not fail."""
    for _ in range(times - 1):
        with contextlib.suppress(AssertionError):
            return action()
    return action()


@pytest.mark.timeout(1100)
def test_a_step_a_walk_and_a_stop(live):
    browser, robot = live
    retry(lambda: one_step(browser, robot), times=3)
    retry(lambda: two_steps(browser, robot), times=3)
    stopped = retry(lambda: stop(browser, robot), times=3)
    browser.until(lambda: robot.gait() == 'standing', 'a robot that stands', MOTION)
    browser.wait_for('gait_player: standing')
    # Not all ten steps, however late the button was pressed: at most the one under way and the
    # one that brings the feet together.
    assert robot.position() < stopped + 0.12
    assert robot.height() > 0.2


def on_its_feet(browser, robot):
    """Press the button that resets the robot until it has been done, where the robot is now."""
    def done():
        browser.press('Put it on its feet again')
        browser.until(robot.stands_on_level_feet, 'feet side by side', 10.0)
    retry(done)


def begun(browser, robot, button):
    """Press a button that lets the robot walk until it does; once if the planning takes long."""
    def pressed():
        count = len(robot.gaits())
        browser.press(button)
        browser.until(lambda: 'planning' in robot.gaits()[count:], 'a plan', 8.0)
        browser.until(lambda: robot.gait() != 'planning', 'the end of planning', 120.0)
        assert 'walking' in robot.gaits()[count:], browser.text  # it may be refused
    retry(pressed)


def one_step(browser, robot):
    """Let it step once; the monitors stop it where the computer is busy."""
    on_its_feet(browser, robot)
    start = robot.position()
    begun(browser, robot, 'Single step')
    browser.until(lambda: robot.gait() == 'standing', 'the end of a step', MOTION)
    assert start + 0.01 < robot.position() < start + 0.05, browser.text


def two_steps(browser, robot):
    """Let it walk until it has come forward; the monitors stop it where the computer is busy."""
    on_its_feet(browser, robot)
    start = robot.position()
    begun(browser, robot, 'Walk')
    browser.until(lambda: robot.position() > start + 0.05 or robot.gait() == 'standing',
                  'two steps, or a stop', MOTION)
    assert robot.position() > start + 0.05, browser.text
    assert robot.gait() == 'walking'


def stop(browser, robot):
    """Press the button that stops a walk, and return where that is; walk anew if it had ended."""
    if robot.gait() != 'walking':
        two_steps(browser, robot)
    count = len(robot.gaits())
    browser.press('Stop')
    browser.until(lambda: robot.gait() != 'walking', 'a stop', MOTION)
    position = robot.position()
    assert 'stopping' in robot.gaits()[count:], browser.text
    return position


def test_balancing_is_refused_with_the_remedy_and_begins_and_ends_with_it(live):
    browser, robot = live
    retry(lambda: on_its_feet(browser, robot), times=3)

    def refused():
        browser.press('Keep the balance')
        browser.wait_for("set the parameter 'feedback' to true", timeout=30.0)
    retry(refused)
    assert robot.gait() == 'standing' and not browser.button('Stop balancing')
    robot.set_parameter('gait_player', 'feedback', True)
    browser.press('Keep the balance')
    browser.until(lambda: robot.gait() == 'balancing', 'a robot that balances', 60.0)
    browser.wait_for('gait_player: balancing')
    browser.until(lambda: browser.button('Stop balancing'), 'the other label')
    browser.press('Stop balancing')
    browser.until(lambda: robot.gait() == 'standing', 'a robot that only stands')
    browser.until(lambda: browser.button('Keep the balance'), 'the first label')
    robot.set_parameter('gait_player', 'feedback', False)


def test_nothing_is_subscribed_to_without_a_browser(live, stage):
    browser, robot = live
    topic = 'com_estimator/link_coms'
    count = robot.node.count_subscribers(topic)
    assert count  # what is drawn, and the recording of the last minutes
    browser.leave()
    browser.until(lambda: robot.node.count_subscribers(topic) == 0, 'no subscriber')
    browser.visit(stage[3])
    browser.until(lambda: robot.node.count_subscribers(topic) == count, 'the subscribers')
    browser.wait_for('mm to the edge')


def test_nothing_comes_from_anywhere_else(live, stage):
    browser, url = live[0], stage[3]
    browser.close()
    requests = browser.requests_of(url)
    socket = url.replace('http', 'ws')
    assert any(request.startswith(socket) for request in requests)
    assert not [request for request in requests
                if not request.startswith((f'{url}/', socket, 'blob:', 'data:'))]
