# Everything a contributor needs. `make` alone lists the targets.

PYTHON ?= python3
TARGET ?= protein

BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --root-user-action=ignore
INSTALLED := .venv/.installed
INTEROP := .venv/.installed-interop

.DEFAULT_GOAL := help
.PHONY: help install demo test test-interop format figures clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

install: $(INSTALLED) ## create .venv with everything for the demo and the tests

demo: $(INSTALLED) ## find a good configuration with the help of old runs; TARGET=protein|parkinsons|naval|slice
	$(BIN)/jumbo demo --target $(TARGET)

# One BLAS thread: the matrices are small, and two test processes share the cores.
test test-interop: export OMP_NUM_THREADS := 1
test test-interop: export OPENBLAS_NUM_THREADS := 1
test test-interop: export MKL_NUM_THREADS := 1

test: $(INSTALLED) ## lint, types and tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 -m "not interop"

test-interop: $(INTEROP) ## tests against GPyTorch (installs torch)
	$(BIN)/python -m pytest -m interop

format: $(INSTALLED) ## format the code and fix what ruff can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

figures: $(INSTALLED) ## draw the figures of the documentation again
	$(BIN)/python docs/figures/dynamics.py

clean: ## remove .venv and all caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps make a second run fast; a change of pyproject.toml installs again.
$(INSTALLED): pyproject.toml | $(BIN)/python
	@echo "installing jumbo-bo and its tools into .venv (a minute or two)"
	@$(PIP) -e '.[bench,dev]'
	@touch $@

$(INTEROP): $(INSTALLED)
	@echo "installing torch and gpytorch into .venv"
	@$(PIP) -e '.[bench,dev,interop]'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "jumbo-bo needs Python 3.11 or newer, but '$(PYTHON)' is not ($$($(PYTHON) --version 2>&1 | head -n 1));" \
	       "name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get install -y -qq python3-venv >/dev/null 2>&1; } \
	  || { echo "'$(PYTHON)' cannot create virtual environments; run: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }
