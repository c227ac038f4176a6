# Two commands do everything: `make demo` and `make test`. Each sets itself up in .venv; the second run is quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
STAMP_ALL := $(VENV)/.installed-all

# Agent frameworks exclude some of the worker's packages: their adapters are tried in an environment of their own.
VENV_ADAPTERS := .venv-adapters
STAMP_ADAPTERS := $(VENV_ADAPTERS)/.installed
CONSTRAINTS_ADAPTERS := client/constraints-adapters.txt

# The versions of all packages, for every Python: what was tried is what is installed. `make update` renews them.
CONSTRAINTS := constraints.txt
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet $(addprefix --constraint ,$(CONSTRAINTS))

# Without its bytecode every process compiles all of this project again, and tests start many.
unexport PYTHONDONTWRITEBYTECODE

# Tests wait for brokers and workers most of the time, so several run at once.
BESIDE := --numprocesses 3 --dist worksteal

# Of the tests that repeat one fault many times: the sample that the commit's hash chooses. Also `all` and `none`.
SOAK ?= $(shell git rev-parse --verify --quiet HEAD || echo none)
# What fails in a slow suite is run once more, alone: CONTRIBUTING.md says what to do with what passes then.
SLOWLY = --second-look --soak=$(SOAK)

# The sources with their rules compiled beside them. Here they stay pure Python, which is what tests run.
COMPILED := build/compiled
SOURCES := schemas tables streams

.PHONY: demo test quick-tests test-all types coverage test-compiled test-adapters test-fresh test-kafka soak test-newest lint docs mutants wheel bench update clean

# An installation that was interrupted leaves no stamp, and is started over.
$(STAMP): pyproject.toml client/pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(if $(wildcard $(STAMP)),,--clear) $(VENV)
	@rm -f $(STAMP) $(STAMP_ALL)
	$(PIP) install --quiet --upgrade "pip>=25,<27"
	$(INSTALL) --editable ".[embedded,test]" --editable "./client[kafka]"
	@touch $@

# torch and a real transformer: over a gigabyte, which only the slow tests need.
$(STAMP_ALL): $(STAMP)
	$(INSTALL) --editable ".[embedded,test,test-all]"
	@touch $@

$(STAMP_ADAPTERS): client/pyproject.toml $(CONSTRAINTS_ADAPTERS)
	$(PYTHON) -m venv $(if $(wildcard $(STAMP_ADAPTERS)),,--clear) $(VENV_ADAPTERS)
	@rm -f $(STAMP_ADAPTERS)
	$(VENV_ADAPTERS)/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint $(CONSTRAINTS_ADAPTERS) --editable "./client[adapters-test]"
	@touch $@

# mem0's own client excludes packages of the worker: it asks from an environment of its own.
MEM0 := .venv-mem0
STAMP_MEM0 := $(MEM0)/.installed
$(STAMP_MEM0): tests/mem0/requirements.txt
	$(PYTHON) -m venv --clear $(MEM0)
	$(MEM0)/bin/python -m pip --disable-pip-version-check install --quiet --requirement $<
	@touch $@

demo: $(STAMP)  ## Chats become memories that answer questions, in under a minute.
	$(BIN)/siltstone demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(addprefix --package ,$(SOURCES) siltstone_client)

types: $(STAMP)  ## Types of tests and benchmarks as well.
	$(BIN)/mypy

quick-tests: $(STAMP)
	$(BIN)/pytest -m "not slow and not wired" $(BESIDE)

test: $(STAMP)  ## Lint, types and the quick tests, beside each other: three minutes.
	@$(MAKE) --no-print-directory --jobs 2 lint quick-tests

test-all: $(STAMP_ALL) $(STAMP_MEM0) test-adapters  ## What takes longer: real models, crash tests, and properties on all of their examples.
	@command -v chromium > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update && apt-get install --yes --no-install-recommends chromium; } > /dev/null 2>&1 \
		|| echo "There is no chromium: the dashboard's tests in a browser are left out; apt-get install chromium"
	ALL_EXAMPLES=1 $(BIN)/pytest -m "slow or wired or hypothesis" $(BESIDE) $(SLOWLY)
	@$(MAKE) --no-print-directory --jobs 2 types coverage

coverage: $(STAMP)  ## Which lines and branches the quick tests run, in build/coverage; fails under the floor of pyproject.toml.
	$(BIN)/pytest -m "not slow and not wired" $(BESIDE) --cov --cov-report=html:build/coverage

test-adapters: $(STAMP) $(STAMP_ADAPTERS)  ## Adapters beside the agent frameworks' own packages, and a worker of $(VENV).
	cd client && ../$(VENV_ADAPTERS)/bin/mypy --config-file ../tests/adapters/mypy.ini --package siltstone_client
	$(VENV_ADAPTERS)/bin/mypy --config-file tests/adapters/mypy.ini tests/adapters
	SILTSTONE_COMMAND=$(CURDIR)/$(BIN)/siltstone $(VENV_ADAPTERS)/bin/pytest -c tests/adapters/pytest.ini tests/adapters

FRESH ?= trixie forky
test-fresh:  ## The README's two commands on bare Debians; needs root and debootstrap.
	tests/fresh/bare_debian.sh $(FRESH)

test-kafka: $(STAMP)  ## On Apache Kafka, of a distribution in KAFKA_HOME or of Docker's image: see CONTRIBUTING.md.
	@$(BIN)/python -m tests.kafka $(SLOWLY)

soak: SOAK := all
soak: $(STAMP)  ## Everything that repeats one fault many times, on Apache Kafka too where KAFKA_HOME is; then bare Debians. Hours.
	$(BIN)/pytest -m soak $(BESIDE) $(SLOWLY) $(ONLY)
	@if [ -n "$(KAFKA_HOME)" ]; then $(BIN)/python -m tests.kafka -msoak $(SLOWLY); fi
	@$(MAKE) --no-print-directory test-fresh

test-newest:  ## The tests with the newest of every package: what will come.
	rm -f .venv-newest/.installed
	$(MAKE) test VENV=.venv-newest CONSTRAINTS=

docs: $(STAMP)  ## The documentation as a site in build/site; a link that leads nowhere fails.
	$(INSTALL) --editable ".[embedded,docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html"

MUTATE ?=
MINUTES ?= 60
mutants: $(STAMP)  ## Which changes of the code no test notices; MUTATE="tables/windows" MINUTES=30: see CONTRIBUTING.md.
	$(INSTALL) --editable ".[embedded,test,mutants]"
	nice -n 19 $(BIN)/python -m tests.mutants --minutes $(MINUTES) $(MUTATE)

$(COMPILED)/.built: $(STAMP) setup.py pyproject.toml $(shell find $(SOURCES) benchmarks tests -name '*.py')
	$(INSTALL) --editable ".[embedded,compile]"
	rm -rf $(COMPILED)
	mkdir -p $(COMPILED)
	cp -R setup.py pyproject.toml README.md $(SOURCES) benchmarks tests client $(COMPILED)/
	cd $(COMPILED) && SILTSTONE_COMPILE=1 $(abspath $(BIN))/python setup.py --quiet build_ext --inplace
	@touch $@

wheel: $(COMPILED)/.built  ## A wheel with compiled rules, in build/wheels; needs a C compiler.
	SILTSTONE_COMPILE=1 $(PIP) wheel --no-build-isolation --no-deps --wheel-dir build/wheels ./$(COMPILED)

test-compiled: $(COMPILED)/.built  ## Compiled rules decide as the sources do.
	cd $(COMPILED) && $(abspath $(BIN))/python -m pytest -p no:cacheprovider \
		tests/streams/language tests/streams/intake/test_decided.py

bench: $(COMPILED)/.built  ## Speed beside the peers, with compiled rules; see benchmarks/README.md.
	$(INSTALL) --editable ".[embedded,bench]"
	cd $(COMPILED) && $(abspath $(BIN))/python benchmarks/intake.py
	cd $(COMPILED) && $(abspath $(BIN))/python benchmarks/recovery.py

# All of pyproject.toml's, and the client's without the adapters'.
EXTRAS := embedded sentence-transformers plot otel test test-all mutants docs bench kafka
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --upgrade --quiet --no-annotate \
	--custom-compile-command "make update"
update: $(STAMP)  ## Renew the versions of all packages.
	$(PIP) install --quiet "uv>=0.9,<1"
	$(COMPILE) pyproject.toml client/pyproject.toml $(addprefix --extra ,$(EXTRAS)) --output-file $(CONSTRAINTS)
	$(COMPILE) client/pyproject.toml --extra adapters-test --output-file $(CONSTRAINTS_ADAPTERS)
	$(COMPILE) tests/mem0/requirements.in --output-file tests/mem0/requirements.txt

clean:
	rm -rf .venv .venv-newest .venv-mem0 $(VENV_ADAPTERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info client/build client/*.egg-info
	find schemas streams tables client tests benchmarks -name __pycache__ -exec rm -rf {} +
