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
Write the parameter files from the parameters of the nodes: config/*.yaml and doc/parameters.rst.

Each parameter is declared once, in the settings of `core` or in a dataclass of its node, with its
default, description, unit and range. Run this after changing one; a test compares::

    make setup && tools/python tools/environment.py -- python tools/parameter_files.py
"""

from __future__ import annotations

import importlib
from pathlib import Path
import re
import sys
import textwrap
from typing import Any

from biped_com_ros.core.identification.captures.capture import SensorNoise
from biped_com_ros.core.settings import setting_fields
from biped_com_ros.sim.interface import ErrorSettings

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 99
IN_CONFIG = {
    'com_calibrator': 'ComCalibratorParameters', 'com_estimator': 'ComEstimatorParameters',
    'gait_player': 'GaitPlayerParameters',
    'gravity_compensation': 'GravityCompensationParameters',
    'lowstate_bridge': 'LowstateBridgeParameters',
    'payload_estimator': 'PayloadEstimatorParameters', 'simulator': 'SimulatorParameters',
    'torso_controller': 'TorsoControllerParameters', 'viewer': 'ViewerParameters',
    'wrench_aggregator': 'WrenchAggregatorParameters', 'zmp_monitor': 'ZmpMonitorParameters'}
#: Settings whose names and values are the elements of a list.
ELEMENTS = {('com_calibrator', 'noise'): SensorNoise, ('simulator', 'errors'): ErrorSettings}
#: Parameters that a user of a new robot looks at first, and those of what it measures; the others
#: are for experts. A name is in one group in all files.
MAIN = re.findall(r'\w+', """
    robot urdf frame_prefix autostart directory posture base_source fused_com contacts support
    distribution groups gain_joints gains command_joints controller effort_clamp
    effort_rate default_effort_limit poses hoisted lift_feet move automatic trajectory_topic
    joint_speed
    joints steps step_length first_foot pattern lift crouch feedback shift_foot shift_holding
    recording rate host port controls record seed hidden_errors tendons real_time_factor
    tilt_unstable tilt_fallen margin_warning weight_tolerance load_link offsets_file
    max_speed co_contraction min_tension max_tension tendon_stiffness tendon_pretension
    least_mass largest_mass""")
SENSORS = re.findall(r'\w+', """
    lower_imu upper_imu hand_topics wrench_topics hand_wrench_topics payload_topic
    filter_odometry_topic filter_odometry_deviation filter_odometry_delay base_timeout imu_timeout
    joy_timeout input_timeout sensor_timeout state_timeout
    max_stamp_age monitor monitor_timeout feedback_timeout gravity low_pass_cutoff
    wrench_delay align_wrenches contact_engage contact_release tare_duration
    tare_max_force_deviation tare_max_joint_speed bias_tracking bias_force
    max_missing_weight hoist_service motor_joints motor_constants noise
    noise_at_mass still_duration still_force_deviation offsets_topic joy_forward_axis joy_left_axis
    check_crc instrument_errors wrench_faults errors
    errors_at_mass fixed_base world_frame""")
GROUPS = {'Main': MAIN, 'Sensors and other inputs': SENSORS,
          'Expert: the defaults suit most robots': ()}
IN_DOCUMENT = {'demo': 'DemoParameters', 'torso_teleop': 'TorsoTeleopParameters',
               'suite': 'SuiteParameters'}


def parameters_of(node: str, cls: str) -> list[tuple[str, str, str]]:
    """Return (name, default as YAML, description) of each parameter of a node."""
    kind = getattr(importlib.import_module(f'biped_com_ros.nodes.{node}.node'), cls)
    return [(name, to_yaml(default), info.text())
            for name, (_, default, info) in setting_fields(kind).items()]


def group_of(name: str) -> str:
    """Return the heading under which a parameter stands."""
    return next((heading for heading, names in GROUPS.items() if name in names), list(GROUPS)[-1])


def to_yaml(value: Any) -> str:
    """Return a value as it stands in a YAML file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f'[{", ".join(map(to_yaml, value))}]'
    if isinstance(value, float) and abs(value) < 1e-4 and value:
        return f'{value:.10f}'.rstrip('0')  # YAML 1.1 reads 1e-05 as a string
    return repr(value)


def comment(text: str, indent: str = '') -> list[str]:
    """Return a text as comment lines of a parameter."""
    return textwrap.wrap(text, WIDTH, initial_indent='    # ',
                         subsequent_indent=f'    # {indent}', break_long_words=False,
                         break_on_hyphens=False)


def config_file(node: str, cls: str, old: str) -> str:
    """Return the text of config/<node>.yaml; its head and the order within a group stay."""
    lines = [old[:old.index('/**/')] + f'/**/{node}:', '  ros__parameters:']
    order = re.findall(r'^    (\w+):', old, re.MULTILINE)
    last_group = ''
    for name, default, text in sorted(
            parameters_of(node, cls),
            key=lambda row: (list(GROUPS).index(group_of(row[0])),
                             order.index(row[0]) if row[0] in order else len(order))):
        if group_of(name) != last_group:
            last_group = group_of(name)
            lines += ['', f'    # ------ {last_group} ------']
        lines += comment(text)
        if (node, name) in ELEMENTS:
            for element, (_, value, info) in setting_fields(ELEMENTS[node, name]).items():
                lines += comment(f'- {element} {to_yaml(value)}: {info.text()}', '  ')
        lines.append(f'    {name}: {default}')
    return '\n'.join(lines) + '\n'


def document(old: str) -> str:
    """Return the text of doc/parameters.rst with the tables of nodes without a file."""
    for node, cls in IN_DOCUMENT.items():
        rows = []
        for name, default, text in parameters_of(node, cls):
            rows += [f'   * - ``{name}``', f'     - ``{default}``',
                     *textwrap.wrap(text, WIDTH, initial_indent='     - ',
                                    subsequent_indent='       ', break_long_words=False,
                                    break_on_hyphens=False)]
        table = re.compile(rf'(^{node}\n-+\n.*?:widths:[^\n]*\n\n)   \* - .*?(?=\n\n|\Z)',
                           re.MULTILINE | re.DOTALL)
        old = table.sub(lambda found, rows=rows: found[1] + '\n'.join(rows), old)  # type: ignore
    return old.rstrip('\n') + '\n'


def texts() -> dict[Path, str]:
    """Return what the files have to be."""
    files = {}
    for node, cls in IN_CONFIG.items():
        path = ROOT / 'config' / f'{node}.yaml'
        files[path] = config_file(node, cls, path.read_text())
    path = ROOT / 'doc' / 'parameters.rst'
    files[path] = document(path.read_text())
    return files


def main() -> int:
    """Write the files that are out of date, and name them."""
    for path, text in texts().items():
        if path.read_text() != text:
            path.write_text(text)
            print(f'wrote {path.relative_to(ROOT)}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
