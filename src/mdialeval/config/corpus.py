"""The ``corpus`` section and every other place where a data set is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from mdialeval.config.section import InputPath, Section

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


class Source(Section):
    """A data set: a reader, its files and how to read them."""

    name: str = Field("", description="what reports call it; the file's stem where empty")
    reader: str = Field("jsonl", description="an entry of `mdialeval list readers`")
    path: list[InputPath] = Field(description="one file or several; for the reader huggingface a folder or a hub name")
    options: dict[str, Any] = Field(default_factory=dict, description="the reader's own options, such as columns")
    limit: int | None = Field(None, ge=1, description="read only the first items")
    labels: Literal["human", "construction"] = Field(
        "human", description="whether people gave the ratings or the way the texts were made; reports say which"
    )

    @model_validator(mode="before")
    @classmethod
    def _hub_name(cls, values: Any, info: ValidationInfo) -> Any:
        """A data set on the hub is no file: its name given as the path becomes the option ``hub``."""
        if not isinstance(values, dict) or values.get("reader") != "huggingface":
            return values
        options = values.get("options") or {}
        if "path" not in values and isinstance(options, dict) and options.get("hub"):
            return {**values, "path": []}
        name = values.get("path")
        folder = Path((info.context or {}).get("folder", "."))
        if (
            isinstance(name, str)
            and _HUB_NAME.fullmatch(name)
            and not ((folder / name).exists() or Path(name).exists())
        ):
            return {**values, "path": [], "options": {"hub": name, **options}}
        return values

    @field_validator("path", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return value if isinstance(value, list) else [value]

    @model_validator(mode="after")
    def _has_files(self) -> Source:
        if not self.path and not self.options.get("hub"):
            raise ValueError("path: name at least one file")
        return self

    @property
    def where(self) -> str:
        """Its first file or its hub name, for messages."""
        return str(self.path[0] if self.path else self.options["hub"])

    @property
    def title(self) -> str:
        """What reports call it."""
        return self.name or (self.path[0].name.partition(".")[0] if self.path else self.where)
