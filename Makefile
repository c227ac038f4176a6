# Two commands do everything: `make demo` and `make test`. Each sets itself up in .venv; the second run is quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
STAMP_ALL := $(VENV)/.installed-all

# One BLAS/OpenMP thread each: the libraries of a small machine fight for cores otherwise.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

# Without its bytecode every process compiles all of this project anew, and tests start many.
unexport PYTHONDONTWRITEBYTECODE

# Tests wait for brokers and workers most of the time, so several run at once.
BESIDE := --numprocesses 4 --dist worksteal

.PHONY: demo test test-all lint bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[embedded,test]"
	touch $@

# torch and a real transformer: over a gigabyte, which only the slow tests need.
$(STAMP_ALL): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[embedded,test,test-all]"
	touch $@

demo: $(STAMP)  ## Chats become memories that answer questions, in under a minute.
	$(BIN)/siltstone demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint  ## Lint, types and the tests: under three minutes.
	$(BIN)/pytest -m "not slow" $(BESIDE)

test-all: $(STAMP_ALL)  ## What takes longer: real models, crash tests, and properties on all of their examples.
	ALL_EXAMPLES=1 $(BIN)/pytest -m "slow or hypothesis" --numprocesses 2 --dist worksteal

bench: $(STAMP)  ## Speed beside the peers; see benchmarks/README.md.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[embedded,bench]"
	$(BIN)/python benchmarks/intake.py
	$(BIN)/python benchmarks/recovery.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
	find schemas streams tables tests benchmarks -name __pycache__ -exec rm -rf {} +
