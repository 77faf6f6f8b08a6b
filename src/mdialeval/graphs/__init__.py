"""Semantic graphs: codecs, parsers, and the measures that compare them (Smatch, USim, triples)."""
