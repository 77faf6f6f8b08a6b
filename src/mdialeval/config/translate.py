"""The ``translate`` section."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from mdialeval.config.section import LanguageCode, Section


class TranslateConfig(Section):
    """Which languages, by which route, and what happens to flagged rows."""

    source: LanguageCode = Field("en", description="language of the corpus")
    routes: dict[LanguageCode, str] = Field(
        default_factory=dict,
        description="target language -> engine, or a chain such as 'firefox:en-pt > apertium:pt-es'",
    )
    options: dict[str, dict[str, Any]] = Field(default_factory=dict, description="engine -> its options")
    back: bool = Field(False, description="also translate back into the source language")
    on_flag: dict[str, Literal["keep", "drop", "retry"]] = Field(
        default_factory=dict, description="flag -> what happens; see `mdialeval list flags` for the defaults"
    )
    batch_size: int = Field(64, ge=1)
