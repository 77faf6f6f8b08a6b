"""The embedded parser: spaCy's small English model, and rules from the dependency tree to AMR."""

from mdialeval.graphs.dependency.parser import DependencyParser

__all__ = ["DependencyParser"]
