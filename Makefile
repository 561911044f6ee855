# make demo and make test each set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
BASE := build/base
PIP_INSTALL := -m pip install --quiet --constraint constraints.txt --editable

.PHONY: setup demo docs test test-base nightly stress lint format bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) '.[dev]'
	$(BIN)/fairsieve data fetch compas adult german
	touch $@

# The demo needs neither torch nor the developers' tools.
$(VENV)/.demo: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) '.[plot]'
	touch $@

demo: $(VENV)/.demo
	$(BIN)/fairsieve demo --out demo

test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# The site; tutorials that have not changed since the last build are not run again.
$(VENV)/.docs: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) '.[docs]'
	touch $@

docs: $(VENV)/.docs
	rm -rf docs/reference/generated # pages of names that are gone
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -W --keep-going --quiet -d build/doctrees docs build/site
	$(BIN)/python docs/_extensions/check_links.py build/site

# The tests that need no torch, in an environment that has none.
$(BASE)/.ready: pyproject.toml constraints.txt
	test -x $(BASE)/bin/python || $(PYTHON) -m venv $(BASE)
	$(BASE)/bin/python $(PIP_INSTALL) '.[test]'
	touch $@

test-base: $(BASE)/.ready
	OMP_NUM_THREADS=1 $(BASE)/bin/python -m pytest --numprocesses 2 --dist worksteal

nightly: setup # other examples of the laws than make test, and many more
	OMP_NUM_THREADS=1 HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest --numprocesses 2 --timeout 3600 \
		$$(grep -rl "^from hypothesis" tests --include="test_*.py")

stress: setup # kills, signals, full disks, soak: a quarter of an hour
	$(BIN)/python -m tests.stress

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/figures.py

lowest: setup
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/python .ci/lowest.py

licences: setup
	$(BIN)/python -m tests.support.dependencies

audit: setup # asks an advisory service on the network
	$(BIN)/python -m pip check
	test -x build/tools/bin/python || $(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install --quiet pip-audit
	build/tools/bin/pip-audit --strict --disable-pip --no-deps --requirement constraints.txt

release-check: setup
	.ci/release-check

clean:
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist demo \
		docs/tutorials docs/reference/generated docs/reference/command-line.md docs/_static/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
