# The environments of the Makefile's targets. Each is set up once, and again when the files change that it comes from.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
STAMP_ALL := $(VENV)/.installed-all

# The tested versions of all packages, for every Python. `make update` renews them.
CONSTRAINTS := constraints.txt
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet $(addprefix --constraint ,$(CONSTRAINTS))
# All extras of pyproject.toml, and the client's without the adapters.
EXTRAS := embedded embedded-e5 japanese sentence-transformers plot otel test test-all mutants docs bench kafka
LOCK := $(BIN)/uv pip compile --universal --python-version 3.11 --upgrade --quiet --no-annotate \
	--custom-compile-command "make update"

# Without bytecode every process compiles the whole project again, and tests start many.
unexport PYTHONDONTWRITEBYTECODE

# An interrupted installation leaves no stamp, and is started over.
$(STAMP): pyproject.toml client/pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(if $(wildcard $(STAMP)),,--clear) $(VENV)
	@rm -f $(STAMP) $(STAMP_ALL)
	$(PIP) install --quiet --upgrade "pip>=25,<27"
	$(INSTALL) --editable ".[embedded,test]" --editable "./client[kafka]"
	@touch $@

# torch and a real transformer: over a gigabyte, for the slow tests only.
$(STAMP_ALL): $(STAMP)
	$(INSTALL) --editable ".[embedded,test,test-all]"
	@touch $@

# Agent frameworks exclude some of the worker's packages, so the adapters' tests have an environment of their own.
VENV_ADAPTERS := .venv-adapters
STAMP_ADAPTERS := $(VENV_ADAPTERS)/.installed
CONSTRAINTS_ADAPTERS := client/constraints-adapters.txt
$(STAMP_ADAPTERS): client/pyproject.toml $(CONSTRAINTS_ADAPTERS)
	$(PYTHON) -m venv $(if $(wildcard $(STAMP_ADAPTERS)),,--clear) $(VENV_ADAPTERS)
	@rm -f $(STAMP_ADAPTERS)
	$(VENV_ADAPTERS)/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint $(CONSTRAINTS_ADAPTERS) --editable "./client[adapters-test]"
	@touch $@

# So does mem0's own client.
MEM0 := .venv-mem0
STAMP_MEM0 := $(MEM0)/.installed
$(STAMP_MEM0): tests/mem0/requirements.txt
	$(PYTHON) -m venv --clear $(MEM0)
	$(MEM0)/bin/python -m pip --disable-pip-version-check install --quiet --requirement $<
	@touch $@

# The sources with their rules compiled. In the repository they stay pure Python, which is what tests run.
SOURCES := schemas tables streams
COMPILED := build/compiled
$(COMPILED)/.built: $(STAMP) setup.py pyproject.toml $(shell find $(SOURCES) benchmarks tests -name '*.py')
	$(INSTALL) --editable ".[embedded,compile]"
	rm -rf $(COMPILED)
	mkdir -p $(COMPILED)
	cp -R setup.py pyproject.toml README.md $(SOURCES) benchmarks tests client $(COMPILED)/
	cd $(COMPILED) && SILTSTONE_COMPILE=1 $(abspath $(BIN))/python setup.py --quiet build_ext --inplace
	@touch $@
