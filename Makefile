# `make demo` shows what this is; `make test` says whether it works. Both make their own .venv first,
# with the versions of constraints.txt; all they need is Python 3.11 or later.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?= $(shell for p in python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: help demo test lint types imports pytest bench clean

help:
	@echo "make demo   fit Rosenbrock, draw a million points, judge and time them, write a picture"
	@echo "make test   lint, types, imports and tests"
	@echo "make lint   style only: ruff check and ruff format --check"
	@echo "make bench  speed of draws and of start-up, into results/"
	@echo "make clean  remove .venv and caches; runs/ and results/ stay"

demo: $(STAMP)
	$(BIN)/pushforward demo --out runs/demo

test: lint types imports pytest

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP)
	$(BIN)/basedpyright

imports: $(STAMP)
	$(BIN)/lint-imports

# Whole files go to one worker, so that what a file compiles is compiled once.
pytest: $(STAMP)
	$(BIN)/pytest -n 2 --dist loadfile

bench: $(STAMP)
	$(BIN)/python benchmarks/draws.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/runtime.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .import_linter_cache
	find src reproduce tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml reproduce/pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or later is needed and was not found on the path." \
		"Install it, or name it: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: PYTHON must be 3.11 or later; $(PYTHON) is not."; exit 1; }
	@echo "installing into $(VENV) (a few minutes, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) hatchling editables
	@$(PIP) --no-build-isolation --editable '.[dev]'
	@$(PIP) --no-build-isolation --no-deps --editable reproduce  # in place of the copy that `dev` brings
	@touch $(STAMP)
