# Everything from a bare clone: each target makes the virtual environment it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TRACES ?= $(FAIROPT_TRACES)
WITH := $(if $(TRACES),--traces $(TRACES)) $(if $(STORE),--store $(STORE))
JOBS ?= 1
# Tests wait for processes that they kill, and for loops that others compile: one worker more than cores.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

# The environment is made once. Loops are compiled as they are come to; `make warmup` compiles all.
.PHONY: tables figures claims readme docs test test-long lint types unit guard bench warmup clean

# Seconds: what is not yet stored of the single clusters is computed; means come of what sweeps have stored.
tables: $(VENV)/run-ready
	$(BIN)/fairopt sweep --for tables $(WITH)
	$(BIN)/fairopt tables $(WITH)
	$(BIN)/fairopt claims --out results

# Many minutes where nothing is stored, and it may be interrupted: the same command goes on. The estimate comes first.
figures: $(VENV)/run-ready
	$(BIN)/fairopt sweep --for figures --dry-run $(WITH)
	$(BIN)/fairopt sweep --for figures --jobs $(JOBS) $(WITH)
	$(BIN)/fairopt figures $(WITH)

warmup: $(VENV)/run-ready
	$(BIN)/fairopt warmup

claims: $(VENV)/run-ready
	$(BIN)/fairopt claims

# What README.md shows, fairopt/__init__.pyi and the signatures in tests/public.txt, from the code; tests check all three.
readme: $(VENV)/dev-ready
	$(BIN)/python tools/readme.py

# The site, in build/site: four minutes the first time, in which loops are compiled and notebooks run, and a minute
# later. A warning is an error, and so is a link that leads nowhere. Formulas need no network where npm can get MathJax. `fairopt docs` opens it.
docs: $(VENV)/docs-ready
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/build_site.py

# At the same time: type checkers have one thread, and so does the end of the tests.
test: $(VENV)/dev-ready
	@$(MAKE) --no-print-directory --jobs=3 lint types unit
	@$(MAKE) --no-print-directory guard

lint: $(VENV)/dev-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/dev-ready
	$(BIN)/mypy

# One thread per process: the tests run in parallel themselves. Bytecode is kept whatever the shell says: a hundred of them
# start Python, and without it NumPy, pandas and Matplotlib are compiled each time, four seconds. One process makes it
# first, beside the type checker, in a fresh clone: workers that begin together would each make all of it.
unit: $(VENV)/dev-ready
	-@[ -d tests/__pycache__ ] || PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --collect-only -qq > /dev/null 2>&1
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 RAYON_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal

# A minute or two: how seconds and memory grow with the cluster, in one table; an error where they grow too fast.
guard: $(VENV)/dev-ready
	$(BIN)/python tools/guard.py

# Hours: errors of all mechanisms on all families against exact answers; it may be interrupted, and goes on. With traces
# (TRACES=DIR) also on snapshots of Bitbrains and Google. Then minutes: the package is broken in several ways, and every
# one must make a test fail; tests marked `long` run, the laws on many more clusters, and the rooms of answers once as
# on processors of other vector functions and with data off in the last places.
COUNT ?= 300
ANSWERS := tests/game tests/core tests/mechanisms tests/engines tests/laws
test-long: $(VENV)/dev-ready
	$(BIN)/pip install --quiet --editable .[browser]
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/errors_table.py --count $(COUNT) $(if $(TRACES),--traces $(TRACES))
	$(BIN)/python tools/mutate.py
	$(BIN)/python tools/first_minutes.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 RAYON_NUM_THREADS=1 $(BIN)/pytest -m long -n $(WORKERS) --dist worksteal
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 FAIROPT_LAW_CLUSTERS=500 FAIROPT_MANY_CLUSTERS=10000 $(BIN)/pytest tests/laws tests/many -n auto --dist worksteal
	for features in "X86_V4 AVX512_ICL AVX512_SPR" "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"; do \
		OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NPY_DISABLE_CPU_FEATURES="$$features" $(BIN)/pytest $(ANSWERS) -n auto --dist worksteal || exit 1; done
	for seed in 1 2 3; do \
		OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest $(ANSWERS) --jitter $$seed -n auto --dist worksteal || exit 1; done

# fairopt beside other solvers, ten minutes: the table of docs/peers.md.
bench: $(VENV)/dev-ready
	$(BIN)/python -m benchmarks.peers

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("fairopt needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/run-ready: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[sweep]'
	touch $@

# CVXPY imports diffcp, whose source has an escape sequence that is an error where warnings are, unless it is compiled.
$(VENV)/dev-ready: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -W ignore -c 'import diffcp'
	touch $@

$(VENV)/docs-ready: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

# What was computed (results) stays: it may have taken days. Compiled loops go.
clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find fairopt \( -name '*.nb[ic]' -o -name '*.claim' \) -delete
