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
How Sphinx builds the documentation: ``make docs``; rosdoc2 finds this file by itself.

Nothing is fetched from the network, and of what the package imports only NumPy has to be there.
"""

import base64
import importlib.util
from pathlib import Path
import re
import sys

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

project = 'biped_com_ros'
author = 'biped_com_ros contributors'
project_copyright = f'2026, {author}'
release = version = re.search(r'<version>(.*)</version>',
                              (ROOT / 'package.xml').read_text())[1]

# The last one writes .nojekyll: a static host has to serve directories that begin with _, too.
extensions = ['sphinx.ext.autodoc', 'sphinx.ext.autosummary', 'sphinx.ext.napoleon',
              'sphinx.ext.githubpages']
templates_path = ['_templates']
exclude_patterns = ['_templates', '_static']
nitpicky = False
highlight_language = 'sh'

# The modules of the API pages. What is not installed is mocked: the build farm that runs
# rosdoc2 has neither MuJoCo nor Pinocchio.
autosummary_generate = True
autodoc_member_order = 'bysource'
autodoc_typehints = 'signature'
autodoc_default_options = {'members': True, 'show-inheritance': True}
autodoc_mock_imports = [name for name in (
    'mujoco', 'numpy', 'pinocchio', 'proxsuite', 'rclpy', 'rich', 'rosbags', 'scipy',
    'viser', 'websockets', 'xacro', 'yaml', 'builtin_interfaces', 'diagnostic_msgs',
    'geometry_msgs', 'lifecycle_msgs', 'nav_msgs', 'rcl_interfaces', 'sensor_msgs', 'std_msgs',
    'std_srvs', 'tf2_msgs', 'trajectory_msgs', 'visualization_msgs')
    if importlib.util.find_spec(name) is None]
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
# Attributes of the same name (mass, com) in several classes: no reference is meant.
suppress_warnings = ['ref.python']

html_theme = 'sphinx_rtd_theme'
html_title = f'{project} {release}'
html_static_path = ['_static']
html_css_files = ['pages.css']
html_show_sourcelink = False
html_theme_options = {'navigation_depth': 3}


# The recorded scene needs the client that viser brings; without viser there is no such page.
VISER = importlib.util.find_spec('viser')
if VISER is not None:
    tags.add('recording')  # noqa: F821


# Pages of modules that are gone would be built, too, and packages would list such modules.
for page in (ROOT / 'doc' / 'api').glob('*.rst'):
    module = ROOT.joinpath(*page.stem.split('.'))
    if not module.with_suffix('.py').is_file():
        page.unlink()


def formulas_as_code(app, what, name, obj, options, lines):
    """Show the indented formulas in the docstrings of modules as they were typed."""
    if what != 'module':
        return
    for number in range(len(lines) - 1, 1, -1):
        begins = lines[number].startswith('    ') and not lines[number - 1]
        before = lines[number - 2]
        if begins and before and not before.startswith(' ') and not before.endswith('::'):
            lines[number - 1:number] = ['', '.. code-block:: text', '']


def write_recording(app, exception=None):
    """Write recording.html: viser's client with the recorded scene in it, for any host or none."""
    if VISER is None or app.builder.format != 'html' or exception:
        return
    scene = base64.b64encode((ROOT / 'doc' / 'pictures' / 'calibration.viser').read_bytes())
    client = (Path(VISER.origin).parent / 'client' / 'build' / 'index.html').read_text()
    head, end = client.split('</head>', 1)
    (Path(app.outdir) / 'recording.html').write_text(
        f'{head}<script>window.__VISER_EMBED_DATA__="{scene.decode()}";'
        f'window.__VISER_EMBED_CONFIG__={{darkMode:false}};</script></head>{end}')


def setup(app):
    """Connect what Sphinx calls back."""
    app.connect('build-finished', write_recording)
    app.connect('autodoc-process-docstring', formulas_as_code)
