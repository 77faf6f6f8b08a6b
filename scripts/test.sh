#!/usr/bin/env bash
# Sets up a virtual environment with everything and passes the tests: the README's second command.
#   bash scripts/test.sh            the fast tests, ruff and mypy
#   bash scripts/test.sh -m slow    further arguments go to pytest
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-$(command -v python3.11 || command -v python3.12 || command -v python3)}
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all,dev]"
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 .venv/bin/python -m pytest -n 2 "$@"
