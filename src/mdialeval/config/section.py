"""What every section of a configuration shares: strictness and paths relative to the file that names them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo

from mdialeval.errors import ConfigError
from mdialeval.languages import canonical


class Section(BaseModel):
    """Frozen, and an unknown key is an error.

    ``content()`` holds what changes the result and goes into fingerprints; a section names the settings that only
    change how fast the result comes in ``_speed``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, validate_default=True)

    def content(self, *without: str) -> dict[str, Any]:
        """The settings that change the content, as JSON values.

        Paths are left out: what a stage reads enters its fingerprint by content (``Stage.inputs``).
        """
        values = self.model_dump(mode="python", exclude=set(without) | set(self.speed()))
        return {str(key): _without_paths(value) for key, value in values.items() if not isinstance(value, Path)}

    @classmethod
    def speed(cls) -> frozenset[str]:
        """Names of the settings that change only speed."""
        return frozenset({"batch_size", "device", "workers"})


def _without_paths(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _without_paths(v) for k, v in value.items() if not isinstance(v, Path)}
    if isinstance(value, (list, tuple)):
        return [_without_paths(v) for v in value if not isinstance(v, Path)]
    return value


def _resolve(path: Path, info: ValidationInfo) -> Path:
    """Relative to the YAML file's folder where it exists there, else to the working folder."""
    path = Path(os.path.expandvars(path)).expanduser()
    base = Path((info.context or {}).get("folder", "."))
    if path.is_absolute() or (base / path).exists() or not path.exists():
        return (base / path).resolve()
    return path.resolve()


def _language(code: str) -> str:
    try:
        return canonical(code)
    except ConfigError as error:
        raise ValueError(str(error)) from None


InputPath = Annotated[Path, AfterValidator(_resolve)]
"""A path to read: relative to the YAML file's folder, or else to the working folder."""

LanguageCode = Annotated[str, AfterValidator(_language)]
"""Any spelling of a language; canonical BCP-47 after validation."""
