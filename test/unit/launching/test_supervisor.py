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
"""The runner with real processes: output, signals, exit codes, and no process left behind."""

import os
import re
import signal
import subprocess
import sys
import time

from biped_com_ros.launching import run
from biped_com_ros.launching.files import LAUNCH_FILES
import pytest
from support.scripted_launch import (
    living, node, PATIENT, SCRIPTED, scripted_command, scripted_file)

pytestmark = pytest.mark.skipif(not sys.platform.startswith('linux'), reason='looks into /proc')


def test_lines_carry_the_name_and_number_of_their_process(start, tmp_path):
    """Processes get the environment, but no terminal; files of parameters are removed."""
    runner = start(node('talks'), node('ends', parameters={'a': 1}), node('environment'))
    assert runner.process.wait(timeout=100) == 0
    log, = (tmp_path / 'log').glob('*/launch.log')
    lines = runner.output.splitlines()
    for line in ('[talks-1] on stdout', '[talks-1] second', '[talks-1] on stderr',
                 '[talks-1] no newline at the end', '[ends-2] done',
                 f'[environment-3] TMPDIR is {runner.directory} tty False',
                 f'[environment-3] logs in {log.parent}'):
        assert line in lines
    assert re.search(r'\[INFO\] \[ends-2\]: process started with pid \[\d+\]', runner.output)
    assert '[INFO] [ends-2]: process has finished cleanly' in runner.output
    assert f'all output is logged to {log}' in runner.output
    assert '\033' not in runner.output  # no colours into a file
    assert list(tmp_path.glob('run_launch_*')) == []


def test_sigint_is_forwarded_once(start):
    runner = start(node('polite', **PATIENT), node('default', **PATIENT))
    runner.wait_for('ready', 2)
    code, duration = runner.end()
    assert code == 0, runner.output
    assert duration < 2.5  # it ends with its processes, not with its patience
    assert runner.output.count('got SIGINT') == 1
    assert 'got SIGTERM' not in runner.output
    assert 'ERROR' not in runner.output
    assert runner.survivors() == []


def test_sigterm_ends_all_the_same_way(start):
    runner = start(node('polite', **PATIENT))
    runner.wait_for('ready')
    assert runner.end(signal.SIGTERM)[0] == 0, runner.output
    assert 'got SIGINT' in runner.output
    assert runner.survivors() == []


@pytest.mark.thorough
def test_a_process_that_ignores_signals_is_killed_within_three_seconds(start):
    durations = []
    while min(durations, default=3.0) >= 3.0:
        assert len(durations) < 3, durations  # a busy machine may take its own time, not always
        runner = start(node('stubborn'), node('stubborn'))
        runner.wait_for('ready', 4)
        code, duration = runner.end()
        durations.append(duration)
    assert code == 128 + signal.SIGKILL
    for signals in ('ignored 2', 'ignored 15', 'sending SIGTERM', 'sending SIGKILL'):
        assert signals in runner.output
    assert 'exit code -9 (SIGKILL)' in runner.output
    assert runner.survivors() == []


def test_ctrl_c_again_is_harder(start):
    runner = start(node('stubborn', **PATIENT))
    runner.wait_for('ready', 2)
    start_time = time.monotonic()
    for sent in ('shutting down', 'ignored 15'):
        runner.process.send_signal(signal.SIGINT)
        runner.wait_for(sent)
    runner.end()
    assert 'still running' not in runner.output  # no timeout had to pass
    assert time.monotonic() - start_time < 1.8, runner.output
    assert runner.survivors() == []


def test_what_a_process_leaves_behind_is_ended(start):
    runner = start(node('leaves_child'))
    assert runner.process.wait(timeout=100) == 0
    assert '[leaves_child-1] ready' in runner.output
    pid = re.search(r'pid \[(\d+)\]', runner.output)
    assert pid is not None
    assert living(lambda command, group: group == int(pid[1])) == []


def test_processes_end_even_if_the_runner_is_killed(start):
    runner = start(node('polite'), node('default'))
    runner.wait_for('ready', 2)
    runner.end(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while runner.survivors():
        assert time.monotonic() < deadline, runner.survivors()
        time.sleep(0.02)


@pytest.mark.parametrize(('script', 'code', 'text'), [
    ('fails', 7, r'process has died \[pid \d+, exit code 7, cmd'),
    ('crashes', 128 + signal.SIGSEGV, r'exit code -11 \(SIGSEGV\)')])
def test_a_failure_is_reported_and_the_others_run_on(start, script, code, text):
    runner = start(node('polite', **PATIENT), node(script))
    runner.wait_for('ready')
    runner.wait_for(text)
    assert runner.process.poll() is None
    assert runner.end()[0] == code


@pytest.mark.parametrize(('exits', 'printed', 'code', 'text', 'absent'), [
    (9, '', 9, 'exit code 9', 'finished cleanly'),
    (3, 'Traceback (most recent call last):|  File "x", line 1|ValueError: the reason', 3,
     '(?s)Traceback.*ValueError: the reason.*has died', 'finished cleanly'),
    # Python that is interrupted before it is set up ends with 1, not by the signal.
    (1, 'Traceback (most recent call last):|KeyboardInterrupt|ImportError: initialization failed',
     0, 'has finished cleanly', 'has died|Traceback')])
def test_an_error_at_the_end_is_an_error_unless_it_is_the_interrupt(
        start, exits, printed, code, text, absent):
    runner = start(node('ends_with', arguments=(str(exits), printed), **PATIENT))
    runner.wait_for('ready')
    assert runner.end()[0] == code
    assert re.search(text, runner.output) and not re.search(absent, runner.output)
    assert ('KeyboardInterrupt' in runner.log) == (code == 0)


@pytest.mark.parametrize('delay', [
    0.0, *[pytest.param(delay, marks=pytest.mark.thorough) for delay in (0.05, 0.1, 0.4)], 0.2])
def test_ctrl_c_while_the_runner_starts_prints_nothing(delay):
    """As ``make`` starts it, with SIGINT blocked until Python itself has started."""
    runner = subprocess.Popen(
        [sys.executable, '-m', 'biped_com_ros.launching.run', '--dry-run',
         'demo.launch.py'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}))
    time.sleep(delay)
    runner.send_signal(signal.SIGINT)
    _, errors = runner.communicate(timeout=100)
    assert errors == ''
    # Where the computer is fast, it has ended before.
    assert runner.returncode in ((-signal.SIGINT, 0) if delay else (-signal.SIGINT,))


def test_ctrl_c_before_anything_runs_leaves_no_files(start, tmp_path):
    """As in the second in which `make demo` decides what to start."""
    sleep = f'sleep 60.{os.getpid()}'
    runner = start(node('ends'), slow=sleep)
    end = time.monotonic() + 20.0
    while not living(lambda command, group: command.startswith(sleep)):
        assert time.monotonic() < end, runner.output
        time.sleep(0.02)
    assert list(tmp_path.glob('run_launch_*'))
    runner.process.send_signal(signal.SIGINT)
    assert runner.process.wait(timeout=100) == -signal.SIGINT
    assert list(tmp_path.glob('run_launch_*')) == []
    assert runner.output == ''


@pytest.mark.parametrize(('script', 'code'), [('ends', 0), ('fails', 7)])
def test_on_exit_shutdown_ends_the_others(start, script, code):
    runner = start(node('default'), node(script, ends_launch=True))
    assert runner.process.wait(timeout=100) == code
    assert f'shutting down: {script}-2 has ended' in runner.output
    assert runner.survivors() == []


def test_an_executable_that_cannot_be_started_is_an_error(start, package):
    broken = package / 'lib' / 'fake' / 'broken'
    broken.write_text('#!/no/such/program\n')
    broken.chmod(0o755)
    runner = start(node('broken'), node('ends'))
    assert runner.process.wait(timeout=100) == 127
    assert '[ERROR] [broken-1]: cannot be started' in runner.output
    assert '[ends-2] done' in runner.output


def test_the_foreground_process_gets_the_terminal(start):
    runner = start(node('talks'), node('environment'), '--foreground', 'environment')
    assert runner.process.wait(timeout=100) == 0
    assert runner.output.startswith('[INFO] [launch]: all output is logged to')
    assert 'TMPDIR is' in runner.output
    assert '[environment' not in runner.output and '[talks' not in runner.output
    assert '[talks-1] on stdout\n' in runner.log


def test_what_the_foreground_process_logs_does_not_break_its_table(start, tmp_path):
    runner = start(node('logs'), '--foreground', 'logs')
    assert runner.process.wait(timeout=100) == 0
    assert 'the table' in runner.output and 'break it' not in runner.output
    log, = (tmp_path / 'log').glob('*/launch.log')
    assert '[logs-1] [INFO] a line that would break it\n' in log.read_text()


@pytest.mark.parametrize('foreground', [(), ('--foreground', 'refuses')])
def test_a_logged_reason_is_not_followed_by_a_long_command(start, foreground):
    runner = start(node('refuses'), *foreground)
    assert runner.process.wait(timeout=100) == 1
    assert "[refuses-1] unknown robot 'x'\n" in runner.output
    assert 'process has died' in runner.output and ', cmd' not in runner.output
    assert re.search(r"process has died, cmd '.*lib/fake/refuses", runner.log)


def test_a_common_reason_is_printed_once(start):
    runner = start(*3 * [node('fatal')], node('environment'), '--foreground', 'environment')
    assert runner.process.wait(timeout=100) == 1
    assert runner.output.count("]: unknown robot 'x'\n") == 1
    assert runner.output.count('process has died') == 1
    assert runner.log.count("unknown robot 'x'") == 3


def test_a_failure_in_the_background_shows_the_last_lines(start):
    runner = start(node('fails'), node('environment'), '--foreground', 'environment')
    assert runner.process.wait(timeout=100) == 7
    assert re.search(r'\[fails-1\] about to fail\n\[ERROR\] \[fails-1\]: process has died',
                     runner.output)


def test_the_runner_goes_on_after_its_output_is_closed(tmp_path, package):
    runner = piped(tmp_path, node('polite'))
    assert runner.stdout is not None
    runner.stdout.readline()
    runner.stdout.close()
    while not any('ready' in log.read_text() for log in tmp_path.glob('log/*/launch.log')):
        assert runner.poll() is None
        time.sleep(0.02)
    runner.send_signal(signal.SIGINT)
    assert runner.wait(timeout=100) == 0


def test_the_output_of_show_args_may_be_cut_off(tmp_path):
    runner = piped(tmp_path, '-s')
    assert runner.stdout is not None and runner.stderr is not None
    assert runner.stdout.readline().startswith('Arguments')
    runner.stdout.close()
    assert runner.wait(timeout=100) == 0
    assert runner.stderr.read() == ''
    runner.stderr.close()


def piped(tmp_path, *words):
    """Start a launch file whose output goes through pipes."""
    command, environment = scripted_command(words)
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**environment, 'AMENT_PREFIX_PATH': str(tmp_path / 'prefix'),
             'ROS_LOG_DIR': str(tmp_path / 'log')})


@pytest.fixture
def main(tmp_path, package, monkeypatch, capfd):
    """Return a function that runs the command in this process; it starts nothing."""
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(package))
    monkeypatch.setenv('ROS_LOG_DIR', str(tmp_path / 'log'))

    def call(*words):
        command, environment = scripted_command(words)
        monkeypatch.setenv(SCRIPTED, environment[SCRIPTED])
        monkeypatch.setitem(LAUNCH_FILES, 'x', scripted_file())
        try:
            code = run.main(command[3:])
        except SystemExit as error:
            code = int(error.code or 0)
        return code, ''.join(capfd.readouterr())
    return call


@pytest.mark.parametrize(('options', 'text'), [
    (['robott:=x'], "unknown argument 'robott' in x.launch.py; did you mean 'robot'?"),
    (['--foreground', 'nobody'], "unknown executable 'nobody' in --foreground.*valid: ends"),
    (['robot:='], "malformed launch argument 'robot:=', expected NAME:=VALUE; leave it out"),
    ([':=biped'], "malformed launch argument ':=biped'"),
    (['composed:=yes'], "unknown value of argument 'composed' 'yes'.*valid: false, true"),
    (['hidden=none'], "'hidden=none' is no launch argument: write hidden:=none"),
    (['robot:=a', 'b'], "'b' is neither a launch file nor an argument NAME:=VALUE"),
    (['other'], "'other' is neither a launch file nor an argument NAME:=VALUE"),
    (['robot:=nobody'], "unknown robot 'nobody'")])
def test_bad_use_is_refused_before_anything_starts(main, options, text):
    code, output = main(node('ends'), *options)
    assert code == 2 and re.search(text, output)
    assert 'process started' not in output and 'Traceback' not in output


def test_what_is_shown_without_a_start(main, package):
    code, output = main('--show-args')
    assert code == 0 and 'robot\n      Name of a robot' in output
    assert "one process per node\n      (default: 'true'; one of: true, false)" in output
    code, output = main(node('ends', arguments=('x y',), parameters={'a': 1}), '--dry-run')
    assert code == 0 and f"[ends-1] {package}/lib/fake/ends 'x y' --ros-args --params-f" in output
    code, output = main({'package': 'none', 'executable': 'ends'}, '--dry-run')
    assert code == 2 and "package 'none' is not installed" in output
