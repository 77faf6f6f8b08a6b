"""Evaluate open-domain dialogue in many languages."""

__version__ = "0.1.0"
