# Every target sets up what it needs in .venv and is quick the second time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MAKEFLAGS += --no-print-directory
# Two at a time, a file never split, because files share servers.
PYTEST := --numprocesses=2 --dist=loadfile --quiet
# Tiers that start processes and kill them, or drive foreign clients.
HEAVY := tests/reef tests/clients tests/ray tests/kubernetes tests/packaging tests/packaging_wheel tests/kubereef/durability \
	tests/kubereef/hostile tests/kubereef/node tests/sim
# What the controllers do, shown on a real control plane as well.
SCENARIOS := -p tests.kubernetes.scenarios
ALL_KINDS := $(foreach kind,raycluster rayjob rayservice raycronjob,tests/eagleray/$(kind))

.DEFAULT_GOAL := help
.PHONY: help run test test-quick test-kubernetes test-hostile test-kills check fix generate lock bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements/dev.lock pyproject.toml scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup $(VENV)

run: $(READY) ## run a RayJob with real Ray on this machine (as root)
	@$(BIN)/eagleray run examples/hello.yaml

# The Kubernetes tier has the machine for itself: its planes would only slow down what else runs for real.
test: check ## all checks, then all tests; of what a real control plane can show, a part (with Go)
	@$(BIN)/python -m pytest --quiet tests/kubernetes
	@$(BIN)/python -m pytest $(PYTEST) --ignore=tests/kubernetes

test-quick: check ## the checks and the tests without the heavy tiers
	@$(BIN)/python -m pytest $(PYTEST) -m "not heavy" $(HEAVY:%=--ignore=%)

test-kubernetes: $(READY) ## everything that a real control plane can show, in about 40 minutes; it is built if need be (with Go)
	@$(BIN)/python -m pytest --quiet tests/kubernetes
	@$(BIN)/python -m pytest $(PYTEST) $(SCENARIOS) $(ALL_KINDS)

test-hostile: $(READY) ## 10,000 hostile requests, others every day
	@$(BIN)/python -m tests.kubereef.hostile --requests 10000

test-kills: $(READY) ## kill the API server 1,000 times under load
	@$(BIN)/python -m tests.kubereef.durability --kills 1000

check: $(READY) ## lint, types, import contracts, generated files, acceptance cases
	@$(BIN)/ruff format --check --quiet . || { echo "formatting differs: make fix"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m scripts.generate --check
	@$(BIN)/python -m scripts.cases

fix: $(READY) ## repair what a tool can repair, and write the generated files anew
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .
	@$(BIN)/python -m scripts.generate

generate: $(READY) ## write the generated files: CRDs and API reference
	@$(BIN)/python -m scripts.generate

bench: $(READY) ## print the benchmarks, as ratios
	@$(BIN)/python -m bench

lock: $(READY) ## choose newer versions of the development dependencies
	@scripts/lock $(VENV)

clean: ## remove the environment and all caches
	@rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
