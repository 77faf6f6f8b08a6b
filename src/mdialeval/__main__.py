"""``python -m mdialeval`` and ``accelerate launch -m mdialeval``."""

from mdialeval.cli import main

main()
