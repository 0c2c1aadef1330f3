# One front door. Needs only Python 3.11+ and make; everything else is installed into .venv and a user cache.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
ARGS ?=
ONLY ?=

.PHONY: help setup run test test-slow fmt lint types unit contract cluster bench lock clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

setup: $(STAMP)  ## install the locked dependencies and this project into .venv

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: $(STAMP)  ## a day with the real service on a real control plane, live; ARGS=--once asserts every scene
	@$(PY) -m devcluster demo $(ARGS)

test: $(STAMP)  ## everything CI checks
	@$(PY) -m tests.stages

test-slow: $(STAMP)  ## everything, with large generated worlds and whole benchmarks
	@HYPOTHESIS_PROFILE=slow $(PY) -m tests.stages --slow

fmt: $(STAMP)  ## format the code
	$(VENV)/bin/ruff format . && $(VENV)/bin/ruff check --fix .

lint: $(STAMP)  ## style, dependencies, import contracts
	$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/deptry . && $(VENV)/bin/lint-imports --no-cache

types: $(STAMP)  ## mypy, strict
	$(VENV)/bin/mypy

unit: $(STAMP)  ## pure tests
	$(PY) -m pytest -n 2 tests/unit $(ARGS)

contract: $(STAMP)  ## tests on real sockets
	$(PY) -m pytest -n 2 tests/contract $(ARGS)

cluster: $(STAMP)  ## tests on the devcluster
	$(PY) -m pytest tests/cluster $(ARGS)

bench: $(STAMP)  ## the bars, one JSON line each; ONLY=B1,B2 runs some
	@$(PY) -m benchmarks $(if $(ONLY),--only $(ONLY)) $(ARGS)

lock: $(STAMP)  ## resolve the dependencies anew
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements/runtime.txt
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group dev pyproject.toml -o requirements/dev.txt
	printf 'hatchling>=1.27\n' | $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate -c requirements/dev.txt - -o requirements/build.txt

clean:  ## remove the virtual environment and caches of this folder
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
