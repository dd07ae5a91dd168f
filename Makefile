# Two commands on a fresh machine: `make demo` and `make test`. Everything lives in .venv.
# On Linux without a GPU first make .venv and install PyTorch's CPU build there, see constraints.txt; else pip brings CUDA's.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
BENCH  := .venv-bench
# All extras, and the tools of a developer.
EXTRAS := dev

SITE   := docs/_build/html

.PHONY: demo test torture mutants check docs pictures dist bench format clean

demo: $(STAMP)
	$(BIN)/python examples/fit_textures.py

# In the order of the folders: the short examples of src/ come last and keep both processes busy to the end.
test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -rs

# Damaged files and faults at file operations, thousands of them: see docs/reliability.md. A quarter of an hour of CPU time.
torture: $(STAMP)
	IDARTS_TORTURE=$${IDARTS_TORTURE:-6000} $(BIN)/python -m pytest -n 2 --timeout 0 tests/torture tests/security/test_fuzz.py

# Small faults in the source, of which tests must notice 85 %: see docs/reliability.md. Results are in mutants.jsonl: a
# second call continues, and --again tries survivors once more. About an hour of CPU time.
mutants: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python tests/torture/mutants.py --count 300 --processes 2

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Offline; the tutorials run; a warning is an error.
docs: $(STAMP)
	$(BIN)/python -m sphinx -q -W --keep-going docs $(SITE)
	$(BIN)/python docs/check_links.py $(SITE)

# Those of the README; needs chromium.
pictures: $(STAMP)
	$(BIN)/python docs/pictures.py

# Wheel and sdist in dist/, each tried in clean environments.
dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --quiet
	bash .ci/try_dist dist

# The stamp makes the second call start at once; it is older than what decides the installation only after a change.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	touch $@

# Peers live in a separate environment: their requirements must not touch ours.
$(BENCH)/.installed: pyproject.toml constraints.txt benchmarks/install_peers.sh
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	bash benchmarks/install_peers.sh $(BENCH)/bin/python
	touch $@

bench: $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/hypergradient.py

clean:
	rm -rf $(VENV) $(BENCH) docs/_build docs/learn .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
