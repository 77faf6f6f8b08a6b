"""Data sets through the Hugging Face ``datasets`` library: a saved folder, a data file, or a name on the hub."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError
from pydantic.dataclasses import dataclass
from requests.exceptions import RequestException

from mdialeval.errors import BackendError, DataError, nearest
from mdialeval.readers.columns import Columns
from mdialeval.readers.opening import counted
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Dialogue, Example

logger = logging.getLogger(__name__)
_OWN = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".json": "jsonl", ".parquet": "parquet"}


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class HuggingFace(Columns):
    """Reads one split of a data set.

    Attributes:
        hub: its name on the hub, such as ``owner/name``; None where a folder is given.
        config: the configuration of that name, where it has several.
        split: needed where there are several splits.
        revision: branch, tag or commit on the hub; name one for repeatable results.
    """

    hub: str | None = None
    config: str | None = None
    split: str | None = None
    revision: str | None = None

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue | Example]:
        """Stream the records; see ``Columns.items``.

        Raises:
            DataError: no such folder, split or column, or a file that another reader reads more safely.
            BackendError: the hub cannot be reached, or is switched off and the data set is not in the local cache.
        """
        if self.hub is not None:
            yield from self._records(Path(self.hub), self._from_hub(self.hub))
        for path in paths:
            yield from self._records(path, self._from_disk(path))

    def _records(self, path: Path, loaded: Any) -> Iterator[Dialogue | Example]:
        rows = self._one_split(path, loaded)
        yield from self.items(path, counted(path, enumerate(rows, start=1)))

    def _from_disk(self, path: Path) -> Any:
        if not path.exists():
            raise DataError("no such folder; a data set on the hub is named by the option hub", path)
        if path.is_file():
            own = _OWN.get(path.suffix)
            hint = f"use the reader {own}" if own else "give the folder"
            raise DataError(
                f"is a file: {hint} (load_dataset turns words such as None and NA into missing values)", path
            )
        try:
            return datasets.load_from_disk(str(path))
        except FileNotFoundError:
            hint = (
                "a folder written by save_to_disk is expected; for data files use the reader jsonl, csv, tsv or parquet"
            )
            raise DataError(hint, path) from None

    def _from_hub(self, name: str) -> Any:
        where: dict[str, Any] = {"name": self.config, "revision": self.revision}
        try:
            if constants.HF_HUB_OFFLINE:  # only what is cached; load_dataset finds it without asking the hub
                return datasets.load_dataset(name, **where)
            builder = datasets.load_dataset_builder(name, **where)
            if hasattr(builder.config, "keep_default_na"):  # a CSV data set: its words None and NA stay text
                where |= {"keep_default_na": False, "na_values": [""]}
            return datasets.load_dataset(name, **where)
        except (ConnectionError, RequestException, HfHubHTTPError, datasets.exceptions.DatasetsError, OSError) as error:
            first = str(error).partition("\n")[0]
            if constants.HF_HUB_OFFLINE:
                hint = "download it once with the hub switched on (offline: false, no HF_HUB_OFFLINE), or give a folder"
                problem = f"{name!r} is not in the local cache, and the hub is switched off"
                raise BackendError("huggingface", f"{problem} ({first})", hint=hint) from None
            hint = "check the name, the access rights and the connection"
            raise BackendError("huggingface", f"{name!r}: {first}", retryable=True, hint=hint) from None
        except ValueError as error:  # an unknown configuration name
            raise DataError(str(error).partition("\n")[0], name, field="config") from None

    def _one_split(self, path: Path, loaded: Any) -> Any:
        if not isinstance(loaded, dict):
            return loaded
        if self.split is None and len(loaded) == 1:
            return next(iter(loaded.values()))
        if self.split not in loaded:
            problem = "name a split" if self.split is None else f"no split {self.split!r}"
            raise DataError(f"{problem}: {nearest(self.split or '', loaded)}", path, field="split")
        return loaded[self.split]
