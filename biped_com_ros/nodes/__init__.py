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
The executables: each package has a `node.py`, which wires messages to ``core`` and back.

Beside it is what that node alone uses; what several nodes use is in ``ros``.
"""

from __future__ import annotations

import gc
import os
import sys

from biped_com_ros.interrupts import end_quietly

# Default number of OpenBLAS threads: the matrices of a robot are small, and more threads only take
# cores from other nodes, and 10 ms of each start. NumPy reads it when it is imported, which all
# executables do after this package.
if 'numpy' not in sys.modules:
    os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
    # Imported objects are permanent; collecting every 700 objects takes 4 ms of each start.
    gc.set_threshold(10_000, *gc.get_threshold()[1:])

end_quietly()

#: Classes of the nodes that `suite` can compose, as 'module:class'.
NODES = {
    'com_calibrator': 'biped_com_ros.nodes.com_calibrator.node:ComCalibrator',
    'com_estimator': 'biped_com_ros.nodes.com_estimator.node:ComEstimator',
    'gait_player': 'biped_com_ros.nodes.gait_player.node:GaitPlayer',
    'gravity_compensation': 'biped_com_ros.nodes.gravity_compensation.node:GravityCompensation',
    'payload_estimator': 'biped_com_ros.nodes.payload_estimator.node:PayloadEstimation',
    'simulator': 'biped_com_ros.nodes.simulator.node:Simulator',
    'torso_controller': 'biped_com_ros.nodes.torso_controller.node:TorsoController',
    'wrench_aggregator': 'biped_com_ros.nodes.wrench_aggregator.node:WrenchAggregator',
    'zmp_monitor': 'biped_com_ros.nodes.zmp_monitor.node:ZmpMonitor',
}
