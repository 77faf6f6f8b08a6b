#!/usr/bin/env bash
# Sets up a virtual environment and runs the main job on the embedded defaults: the README's first command.
#   bash scripts/quickstart.sh                          configs/quickstart.yaml
#   bash scripts/quickstart.sh configs/romance.yaml     another configuration; further arguments go to `mdialeval run`
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-$(command -v python3.11 || command -v python3.12 || command -v python3)}
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[embedded]"
.venv/bin/mdialeval run "${@:-configs/quickstart.yaml}"
