"""The ``parse`` section."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from mdialeval.config.section import Section


class ParseConfig(Section):
    """Which parser makes the semantic graphs of the English turns, and its options."""

    parser: str = Field("dependency", description="a parser's name; see `mdialeval list parsers`")
    options: dict[str, Any] = Field(default_factory=dict, description="options of the parser, such as a model folder")
    batch_size: int | None = Field(
        None, ge=1, description="turns a call, as the parser likes where empty; changes speed, never the graphs"
    )
