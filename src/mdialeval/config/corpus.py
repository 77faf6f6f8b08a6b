"""The ``corpus`` section and every other place where a data set is named."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from mdialeval.config.section import InputPath, Section


class Source(Section):
    """A data set: a reader, its files and how to read them."""

    name: str = Field("", description="what reports call it; the file's stem where empty")
    reader: str = Field("jsonl", description="an entry of `mdialeval list readers`")
    path: list[InputPath] = Field(description="one file or several")
    options: dict[str, Any] = Field(default_factory=dict, description="the reader's own options, such as columns")
    limit: int | None = Field(None, ge=1, description="read only the first rows")

    @field_validator("path", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return value if isinstance(value, list) else [value]

    @property
    def title(self) -> str:
        """What reports call it."""
        return self.name or self.path[0].name.partition(".")[0]
