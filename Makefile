# One command per wish. `make demo` and `make test` need only Python >= 3.11, make and the package registries.

PYTHON ?= python3
BIN := .venv/bin
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false

.DEFAULT_GOAL := help
.PHONY: help setup demo up test lint format bench lock clean

help: ## Say what each target does.
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/complete ## Make .venv with everything pinned by hash (the other targets call this).

.venv/complete: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Thalweg needs Python 3.11 or newer; run make PYTHON=python3.12 setup")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.txt > .venv/uv.txt
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes -r .venv/uv.txt
	@echo "Installing the pinned packages into .venv (about 6 GB, most of it torch) ..."
	@VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip sync --quiet --require-hashes requirements.txt
	@VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -c 'import query_api.app, streams.app'  # bytecode
	@touch $@

demo: setup ## Publish a real stream of documents and watch it become searchable.
	@$(BIN)/python deploy/demo.py

up: setup ## Run everything for one machine: Kafka, topics, worker, query service.
	@$(BIN)/thalweg up

test: setup ## All tests: unit, integration (real Kafka, real stores), acceptance (both processes).
	@$(BIN)/python -m pytest

lint: setup ## Formatting, rules, types, and which layer may import which.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## Format and mend what can be mended.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## Measure; the last line is one JSON object. CORPUS=DIR takes a BEIR-style folder instead of the sample.
	@$(BIN)/python -m tests.bench.bench $(if $(CORPUS),--corpus $(CORPUS))

lock: ## Renew requirements.txt from pyproject.toml.
	$(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--quiet pyproject.toml --group dev -o requirements.txt

clean: ## Remove what the targets made (not the Kafka jars in the user's cache).
	rm -rf .venv thalweg-data dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
