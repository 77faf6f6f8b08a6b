"""One strict pydantic model a verb, read from one YAML 1.2 file; ``load`` lists every problem at once."""

from mdialeval.config.load import load, parse
from mdialeval.config.run import RunConfig

__all__ = ["RunConfig", "load", "parse"]
