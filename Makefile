# `make demo` and `make test` are the two commands to begin with; `make help` lists the others.
PYTHON ?= python3

include .ci/environments.mk
.DEFAULT_GOAL := help

# Tests mostly wait for brokers and workers, so several run at once.
PARALLEL := --numprocesses 3 --dist worksteal
QUICK := -m "not slow and not wired" $(PARALLEL)
# The sample of the soak tests, chosen by the commit's hash; `all` and `none` are possible too.
SOAK ?= $(shell git rev-parse --verify --quiet HEAD || echo none)
# A failed slow test runs once more, alone, and is reported as flaky if it passes then: see CONTRIBUTING.md.
SLOWLY = --second-look --soak=$(SOAK)

.PHONY: help demo test lint quick-tests test-all types coverage test-adapters test-kafka soak test-fresh test-newest \
	test-compiled mutants bench docs pages client hooks wheel update clean

help:  ## This list.
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "%-16s%s\n", $$1, $$2}' Makefile | sort

demo: $(STAMP)  ## Turn sample chats into memories that answer questions, in under a minute.
	$(BIN)/siltstone demo

test: $(STAMP)  ## Lint, types and the quick tests, in parallel: about four minutes.
	@$(MAKE) --no-print-directory --jobs 2 lint quick-tests

lint: $(STAMP)  ## Style, format, and types of the sources.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(addprefix --package ,$(SOURCES) siltstone_client)

quick-tests: $(STAMP)
	$(BIN)/pytest $(QUICK)

test-all: $(STAMP_ALL) $(STAMP_MEM0) test-adapters  ## The slow tests: real models, a browser, crashes, all examples of each property.
	@command -v chromium > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update && apt-get install --yes --no-install-recommends chromium; } > /dev/null 2>&1 \
		|| echo "There is no chromium: the dashboard's tests in a browser are left out; apt-get install chromium"
	ALL_EXAMPLES=1 $(BIN)/pytest -m "slow or wired or hypothesis" $(PARALLEL) $(SLOWLY)
	@$(MAKE) --no-print-directory --jobs 2 types coverage

types: $(STAMP_ALL)  ## Types of tests and benchmarks too, and the client's by a second checker.
	$(BIN)/mypy
	$(BIN)/basedpyright --project pyproject.toml --pythonpath $(BIN)/python

coverage: $(STAMP)  ## Lines and branches that the quick tests run, in build/coverage; fails below the floor of pyproject.toml.
	$(BIN)/pytest $(QUICK) --cov --cov-report=html:build/coverage

test-adapters: $(STAMP) $(STAMP_ADAPTERS)  ## The client's adapters with the agent frameworks' own packages.
	cd client && ../$(VENV_ADAPTERS)/bin/mypy --config-file ../tests/adapters/mypy.ini --package siltstone_client
	$(VENV_ADAPTERS)/bin/mypy --config-file tests/adapters/mypy.ini tests/adapters
	SILTSTONE_COMMAND=$(CURDIR)/$(BIN)/siltstone $(VENV_ADAPTERS)/bin/pytest -c tests/adapters/pytest.ini tests/adapters

test-kafka: $(STAMP)  ## On Apache Kafka, from KAFKA_HOME or Docker's image: see CONTRIBUTING.md.
	@$(BIN)/python -m tests.kafka $(SLOWLY)

soak: SOAK := all
soak: $(STAMP)  ## All repetitions of each fault, also on Apache Kafka if KAFKA_HOME is set; then bare Debians. Hours.
	$(BIN)/pytest -m soak $(PARALLEL) $(SLOWLY) $(ONLY)
	@if [ -n "$(KAFKA_HOME)" ]; then $(BIN)/python -m tests.kafka -msoak $(SLOWLY); fi
	@$(MAKE) --no-print-directory test-fresh

FRESH ?= trixie forky
test-fresh:  ## The README's two commands on bare Debians; needs root and debootstrap.
	tests/fresh/bare_debian.sh $(FRESH)

test-newest:  ## The tests with the newest version of every package.
	rm -f .venv-newest/.installed
	$(MAKE) test VENV=.venv-newest CONSTRAINTS=

test-compiled: $(COMPILED)/.built  ## Compiled rules decide like their sources.
	cd $(COMPILED) && $(abspath $(BIN))/python -m pytest -p no:cacheprovider \
		tests/streams/language tests/streams/intake/test_decided.py

MUTATE ?=
MINUTES ?= 60
mutants: $(STAMP)  ## Changes of the code that no test notices; MUTATE="tables/windows" MINUTES=30: see CONTRIBUTING.md.
	$(INSTALL) --editable ".[embedded,test,mutants]"
	nice -n 19 $(BIN)/python -m tests.mutants --minutes $(MINUTES) $(MUTATE)

bench: $(COMPILED)/.built  ## Speed beside the peers, with compiled rules; see benchmarks/README.md.
	$(INSTALL) --editable ".[embedded,bench]"
	cd $(COMPILED) && $(abspath $(BIN))/python benchmarks/intake.py
	cd $(COMPILED) && $(abspath $(BIN))/python benchmarks/recovery.py

docs: $(STAMP)  ## The documentation as a site in build/site; a broken link fails.
	$(INSTALL) --editable ".[embedded,docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html"

pages: $(STAMP)  ## Rewrite docs/api.md from the API, and docs/cli.md from the commands.
	$(BIN)/python -m docs.site.written

client: $(STAMP)  ## Rewrite the synchronous client from the asynchronous one.
	$(BIN)/python client/synchronous.py

hooks: $(STAMP)  ## Have git run `make lint` before each commit.
	$(INSTALL) "pre-commit>=4,<5"
	$(BIN)/pre-commit install

wheel: $(COMPILED)/.built  ## A wheel with compiled rules, in build/wheels; needs a C compiler.
	SILTSTONE_COMPILE=1 $(PIP) wheel --no-build-isolation --no-deps --wheel-dir build/wheels ./$(COMPILED)

update: $(STAMP)  ## Renew the locked versions of all packages.
	$(PIP) install --quiet "uv>=0.9,<1"
	$(LOCK) pyproject.toml client/pyproject.toml $(addprefix --extra ,$(EXTRAS)) --output-file $(CONSTRAINTS)
	$(LOCK) client/pyproject.toml --extra adapters-test --output-file $(CONSTRAINTS_ADAPTERS)
	$(LOCK) tests/mem0/requirements.in --output-file tests/mem0/requirements.txt

clean:  ## Remove environments, caches and builds.
	rm -rf .venv .venv-newest .venv-mem0 $(VENV_ADAPTERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info client/build client/*.egg-info
	find schemas streams tables client tests benchmarks -name __pycache__ -exec rm -rf {} +
