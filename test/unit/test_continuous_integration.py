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

"""Workflows, container and issue forms are well-formed, and call what there is."""

import json
from pathlib import Path
import re
import shlex

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / '.github' / 'workflows').glob('*.yml'))
MAKEFILE = (ROOT / 'Makefile').read_text()
GOALS = set(re.search(r'^\.PHONY: (.*)$', MAKEFILE, re.MULTILINE)[1].split())
README = (ROOT / 'README.md').read_text()


def commands(path):
    """Return the commands of a workflow's steps, line by line, by the name of the job."""
    jobs = yaml.safe_load(path.read_text())['jobs']
    return {name: [line for step in job['steps'] for line in step.get('run', '').splitlines()]
            for name, job in jobs.items()}


def without_comments(path):
    """Return the lines of a Dockerfile that build, continued ones as one."""
    return [line for line in re.sub(r'\s*\\\n\s*', ' ', path.read_text()).splitlines()
            if line and not line.startswith('#')]


@pytest.mark.parametrize('path', WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_goals_of_the_makefile_and_files_that_exist(path):
    called = [shlex.split(line) for lines in commands(path).values() for line in lines]
    goals = {words[0] for command in called if command[0] == '.ci/run'
             for words in map(str.split, command[1:])}
    assert {'lint', 'docs', 'test'} <= goals <= GOALS
    tests = [word.partition('=')[2] for command in called for argument in command
             for word in argument.split() if word.startswith('ARGS=')]
    assert tests and all((ROOT / test).exists() for test in tests)


def test_goals_of_the_complete_run_exist():
    goals = re.findall(r'^ *check ([a-z]\S*)', (ROOT / '.ci' / 'run').read_text(), re.MULTILINE)
    assert len(goals) > 8 and set(goals) <= GOALS
    assert all(re.search(rf'^{goal}:', MAKEFILE, re.MULTILINE) for goal in GOALS)


def test_each_distribution_of_the_workflow_is_one_that_is_supported():
    job = yaml.safe_load((ROOT / '.github/workflows/ci.yml').read_text())['jobs']['colcon']
    assert job['container'] == 'ros:${{ matrix.distribution }}'
    for name in job['strategy']['matrix']['distribution']:
        assert (ROOT / 'requirements' / f'{name}.txt').is_file()


def test_the_image_is_built_as_the_readme_builds_a_workspace():
    recipe = '\n'.join(without_comments(ROOT / 'Dockerfile'))
    shown = re.search(r'## With ROS 2 installed\n.*?```sh\n(.*?)```', README, re.DOTALL)[1]
    for pattern in (r'rosdep install [^&\n]*?(?= *$| &&)', r'pip install .*mujoco.*'):
        built, stated = (re.search(pattern, text, re.MULTILINE)[0].replace('--user ', '')
                         for text in (recipe, shown))
        assert built == stated
    assert 'colcon build' in recipe and 'ros2 launch biped_com_ros demo.launch.py' in recipe
    assert len(without_comments(ROOT / 'Dockerfile')) <= len(shown.splitlines()) + 3


def test_the_development_container_builds_that_image_around_the_checkout():
    container = json.loads((ROOT / '.devcontainer' / 'devcontainer.json').read_text())
    dockerfile = ROOT / '.devcontainer' / container['build']['dockerfile']
    assert dockerfile.resolve() == ROOT / 'Dockerfile'
    assert f'target={container["workspaceFolder"]},' in container['workspaceMount']
    workdir, copied = (re.search(rf'^{word} .*?(\S+)$', dockerfile.read_text(), re.MULTILINE)[1]
                       for word in ('WORKDIR', 'COPY'))
    assert f'{workdir}/{copied}' == container['workspaceFolder']


@pytest.mark.parametrize('path', sorted((ROOT / '.github/ISSUE_TEMPLATE').glob('[!c]*.yml')),
                         ids=lambda path: path.name)
def test_issues_request_the_check_of_the_robot(path):
    form = yaml.safe_load(path.read_text())
    assert form['name'] and form['description']
    fields = {field['id']: field for field in form['body']}
    assert len(fields) == len(form['body'])
    assert all(field['attributes']['label'] for field in fields.values())
    goal = re.search(r'`make (\w+)', fields['check']['attributes']['label'])[1]
    assert goal == 'check' and goal in GOALS and fields['check']['validations']['required']


def test_one_version_is_stated_everywhere_and_no_invented_address():
    manifest = (ROOT / 'package.xml').read_text()
    version = re.search(r'<version>(.*)</version>', manifest)[1]
    assert f"version='{version}'" in (ROOT / 'setup.py').read_text()
    assert f'\nversion: {version}\n' in (ROOT / 'CITATION.cff').read_text()
    assert '<url' not in re.sub(r'<!--.*?-->', '', manifest, flags=re.DOTALL)
