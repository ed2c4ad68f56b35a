# Everything a newcomer runs. The first target that needs it builds .venv from the pins in requirements/;
# after that nothing is installed again until a pin or pyproject.toml changes.

SEEDS ?= 1000
MINUTES ?= 10
NETWORK ?= $(shell unshare -r -n nft list tables >/dev/null 2>&1 && echo --network)
SECONDS ?= 60
SAMPLE ?= 600
JOBS ?= 2

# The Python that .venv is made from: python3 when it is new enough, else a newer one by its full name.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
    $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

BIN := .venv/bin
RUN := $(BIN)/python -m
# Twice quiet: errors only. pip builds what has no wheel with the pinned backend, never with a fetched one.
PIP_INSTALL := $(RUN) pip --disable-pip-version-check install -qq --no-build-isolation --use-pep517

PURE := tests/unit tests/properties tests/fuzz tests/sim
PARALLEL := -q -n $(JOBS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help install demo quick test coverage style types check swarm bench soak fuzz protections mutants docs dist
.DELETE_ON_ERROR:
unexport PYTHONPATH PYTHONHOME

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | \
	  while IFS='|' read -r name what; do printf '%-20s %s\n' "$$name" "$$what"; done

install: .venv/ringcast.stamp ## Build .venv with the pinned packages and Ringcast itself

demo: install ## The main job, end to end: a real group under faults, recorded, audited by Spark
	$(BIN)/ringcast demo

quick: install ## Run the pure tests on JOBS processes (2): no sockets between processes, no Spark
	$(RUN) pytest $(PARALLEL) -m "not slow" $(PURE) tests/test_*.py

test: install ## Run all tests: the pure ones in parallel, then those with sockets or Spark
	$(RUN) tools.run_tests

coverage: install ## Print the branch coverage of core, layers and control; fails below 90 %
	$(RUN) pytest $(PARALLEL) -m "not slow" --cov --cov-report=term $(PURE)

style: install ## Lint, and check the format
	$(RUN) ruff check .
	$(RUN) ruff format --check .

types: install ## Check the types of src, bench and tests, strictly
	$(RUN) mypy --strict src bench tests

check: style types ## Style, types, and the tidiness of the tree
	$(RUN) pytest tests/test_tidy.py

swarm: install ## Simulate SEEDS seeds (1000) with random faults and check every guarantee
	$(BIN)/ringcast swarm --seeds $(SEEDS)

bench: install .venv/bench.stamp ## Throughput and latency beside the raw socket and other systems
	$(BIN)/ringcast bench

soak: install ## Run a real group for MINUTES minutes (10) and watch its memory and its guarantees
	$(BIN)/ringcast soak --minutes $(MINUTES) $(NETWORK)

fuzz: install .venv/fuzz.stamp ## Fuzz every parser and a whole stack for SECONDS seconds (60), led by coverage
	$(RUN) tests.fuzz $(SECONDS)

protections: install ## Break each protection on purpose and see that a test notices
	$(BIN)/python tests/protections.py

mutants: install ## Break windows, codec, multicast and membership in SAMPLE small ways (600); fails below 85 % noticed
	$(RUN) tools.mutants --sample $(SAMPLE)

docs: install .venv/docs.stamp ## Build the documentation as a site that works without a network: build/site
	NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict

dist: install .venv/dist.stamp ## Build the wheel and the sdist in build/dist, check them, try them in fresh environments
	$(RUN) tools.try_dist

# pip comes last when an environment is made, so its presence means that .venv is whole.
$(BIN)/pip:
	@test -n "$(PYTHON)" || { echo "Ringcast needs Python 3.11 or newer: install one, or name it with 'make PYTHON=/path/to/python3'." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Ringcast needs Python 3.11 or newer, and '$(PYTHON)' is not: name another with 'make PYTHON=/path/to/python3'." >&2; exit 1; }
	@$(PYTHON) -m venv .venv || \
	  { echo "'$(PYTHON)' cannot make virtual environments: install its venv package (on Debian, python3-venv)." >&2; exit 1; }

.venv/packages.stamp: requirements/build.txt requirements/dev.txt | $(BIN)/pip
	@echo "Installing the pinned packages into .venv (about half a gigabyte the first time) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/build.txt
	@$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

.venv/ringcast.stamp: pyproject.toml bench/pyproject.toml .venv/packages.stamp
	@$(PIP_INSTALL) --no-deps -e . -e bench
	@touch $@

.venv/bench.stamp: requirements/bench.txt .venv/packages.stamp
	@echo "Installing the peers of the benchmark into .venv ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/bench.txt
	@touch $@

.venv/fuzz.stamp: requirements/fuzz.txt .venv/packages.stamp
	@echo "Installing the fuzzer into .venv ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/fuzz.txt
	@touch $@

.venv/docs.stamp: requirements/docs.txt .venv/packages.stamp
	@echo "Installing the tools of the documentation into .venv ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/docs.txt
	@touch $@

.venv/dist.stamp: requirements/dist.txt .venv/packages.stamp
	@echo "Installing the tools of a release into .venv ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/dist.txt
	@touch $@
