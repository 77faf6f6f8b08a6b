# The commands people type.  `make quickstart` and `make test` are the README's two commands.
PY := .venv/bin

.PHONY: quickstart test lint types fast slow format benchmarks
quickstart: ; bash scripts/quickstart.sh
test:       ; bash scripts/test.sh
fast:       ; $(PY)/python -m pytest
slow:       ; $(PY)/python -m pytest -m slow
lint:       ; $(PY)/ruff check . && $(PY)/ruff format --check .
format:     ; $(PY)/ruff check --fix . && $(PY)/ruff format .
types:      ; $(PY)/mypy
benchmarks: ; for name in translate rank train smatch usim correlate; do $(PY)/python scripts/benchmarks/$$name.py || exit 1; done
