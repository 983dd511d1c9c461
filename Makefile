# Every target sets up .venv by itself when needed: Python 3.11 or newer, pip and the system's libraries are enough.

# The first of these that runs and is new enough (a pyenv shim may exist and yet not run).
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
READY := .venv/gcspy-installed
# Seed of the long tests: `make soak SEED=7` repeats what a run printed.
SEED ?= 1
# How many seconds of processor each decoder is fuzzed for, and which one.
TIME ?= 60
DECODER ?= all
# How often the soak kills somebody.
KILLS ?= 2500
DISTURBANCES ?= 500
# How many tests run at the same time: many of them wait for processes.
WORKERS ?= 4

.DEFAULT_GOAL := help
.PHONY: help demo test check bench paper programs soak fuzz mutants screenshots constraints audit clean qt-libraries

help:
	@echo "make demo         watch a Python program that ships with this: its heap, live (without a display: a picture)"
	@echo "make test         the tests, without a screen"
	@echo "make check        style, types, and who may import whom"
	@echo "make bench        the numbers that matter, as ratios in one run"
	@echo "make programs     record programs of the pyperformance suite: the paper's table 3; needs a package index"
	@echo "make paper        the paper's evaluation again: tables, recordings and pictures of docs/paper.md"
	@echo "make fuzz         inputs that nobody meant, for each decoder: TIME=$(TIME) seconds each, SEED=$(SEED), DECODER=$(DECODER)"
	@echo "make soak         the long tests, all versions of the others, and many examples of each property, SEED=$(SEED)"
	@echo "make mutants      plant small faults, SEED=$(SEED), and name those that no test finds"
	@echo "make screenshots  draw the pictures of the documents again"
	@echo "make constraints  resolve the dependencies anew and pin them in constraints.txt and constraints.lock"
	@echo "make audit        look the pinned packages up in advisory databases, where one can be reached"
	@echo "make clean        remove .venv and everything else that was made here"

$(READY): pyproject.toml constraints.txt .ci/install.py hatch_build.py $(shell find drivers gcspy gcspy_compiled objects protocol -name '*.[ch]') .ci/lock.py constraints.lock
	@test -n "$(PYTHON)" || { echo "gcspy: no Python 3.11 or newer found; on Debian or Ubuntu: apt-get install python3 python3-pip"; exit 1; }
	@$(PYTHON) .ci/install.py

qt-libraries: $(READY)
	@$(BIN)/python -P gcspy_client/system_check.py

# Only the demo needs a screen, and even that is not a must.
test bench paper programs soak fuzz mutants screenshots: export QT_QPA_PLATFORM := offscreen

demo: qt-libraries
	$(BIN)/gcspy demo

# Four at a time on two cores: they are used by nine tenths; with three, for a third of the time one waits.
test: qt-libraries
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

check: $(READY)
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check --quiet .
	$(BIN)/mypy --cache-dir=.venv/mypy-cache --num-workers auto
	$(BIN)/lint-imports --no-cache

bench: qt-libraries
	$(BIN)/python -m benchmarks

paper: qt-libraries
	$(BIN)/python -m benchmarks paper

programs: $(READY)
	$(BIN)/python -m benchmarks.cpython.programs

soak: qt-libraries
	GCSPY_SOAK_SEED=$(SEED) GCSPY_SOAK_KILLS=$(KILLS) GCSPY_SOAK_DISTURBANCES=$(DISTURBANCES) $(BIN)/python -m pytest -m soak --timeout=0 -o faulthandler_timeout=0
	$(BIN)/python -m pytest -n $(WORKERS) -m "matrix and not soak" --timeout=0 -o faulthandler_timeout=0
	$(BIN)/python -m pytest -n $(WORKERS) -m "hypothesis and not soak" --hypothesis-profile=soak --hypothesis-seed=$(SEED) --timeout=0 -o faulthandler_timeout=0

fuzz: qt-libraries
	$(BIN)/python -m tests.fuzz --time $(TIME) --seed $(SEED) --decoder $(DECODER) --found fuzz-found

mutants: qt-libraries
	$(BIN)/python -m tests.mutation --seed $(SEED)

screenshots: qt-libraries
	$(BIN)/python screenshots/make.py

constraints:
	$(PYTHON) .ci/install.py --renew

audit:
	@$(PYTHON) .ci/audit.py

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
