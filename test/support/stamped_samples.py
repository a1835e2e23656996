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
"""Stamped samples for a state estimator, in the sequence in which they arrive."""

MS = 1_000_000
START = 1_000 * MS

AUXILIARY = {'probabilities': 'contact probabilities', 'feet': 'covariance',
             'hands': 'hand covariance'}
"""What comes beside wrenches, by key; other keys are 'joints', 'base' and numbers of feet."""


def feed(estimator, found):
    """Add samples (key, stamp, arguments); return the located states."""
    config, located = estimator.model.config, []
    frames = [config.sole_frame(foot) for foot in config.feet]
    for key, ns, arguments in found:
        if isinstance(key, int):
            located += estimator.add_wrench(key, ns, *arguments, frames[key])
        elif key in AUXILIARY:
            located += estimator.add_auxiliary(AUXILIARY[key], ns, *arguments)
        else:
            located += getattr(estimator, f'add_{key}')(ns, *arguments)
    return located


def delayed(found, delays, unit_ns):
    """Return samples in the sequence in which they arrive, some keys some units late."""
    return sorted(found, key=lambda sample: sample[1] + unit_ns * delays.get(sample[0], 0))
