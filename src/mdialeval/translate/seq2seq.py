"""What the families of translation checkpoints want: language tokens, prefixes, and which checkpoint serves a pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from mdialeval.errors import BackendError, ConfigError, nearest
from mdialeval.languages import pair
from mdialeval.translate.spellings import m2m100, madlad, marian, nllb

Family = Literal["marian", "m2m100", "nllb", "madlad"]
_TYPES: Mapping[str, Family] = {"marian": "marian", "m2m_100": "m2m100", "t5": "madlad", "bart": "marian"}


class LanguageTokens(NamedTuple):
    """How a pair of languages is told to a model.

    Attributes:
        prefix: text before every source sentence, empty where the model needs none.
        source: the tokenizer's ``src_lang``, or None.
        target: the token of the target language, or None.
        forced: its id, which generation starts with, or None.
    """

    prefix: str
    source: str | None
    target: str | None
    forced: int | None


def family_of(model_type: str) -> Family:
    """The family behind ``config.model_type``.

    Raises:
        BackendError: a type that this project cannot drive.
    """
    family = _TYPES.get(model_type)
    if family is None:
        problem = f"model type {model_type!r} is not a known translation model"
        raise BackendError("transformers", problem, hint=nearest(model_type, _TYPES))
    return family


def model_name(model: str | Mapping[str, str], source: str, target: str) -> str:
    """The checkpoint for a pair; see ``TransformersTranslator``.

    >>> model_name("Helsinki-NLP/opus-mt-{source}-{target}", "en", "de")
    'Helsinki-NLP/opus-mt-en-de'
    >>> model_name({"en_pt": "a", "en-de": "b"}, "en", "de")
    'b'
    """
    if isinstance(model, str):
        return model.replace("{source}", source).replace("{target}", target)
    names = {pair(key): name for key, name in model.items()}
    if (source, target) not in names:
        known = ", ".join(f"{s}-{t}" for s, t in sorted(names))
        raise ConfigError(f"no model for {source}-{target} among those given: {known}")
    return names[source, target]


def target_tokens(family: Family, tokenizer: Any, source: str, target: str) -> LanguageTokens:
    """The language tokens of a pair, looked up in the tokenizer's vocabulary.

    Raises:
        ConfigError: the checkpoint does not know one of the languages (its token is the unknown token).
    """
    if family == "marian":
        # Multilingual OPUS-MT models want a token such as >>por<<; models of one target language have none.
        vocabulary = tokenizer.get_vocab()
        offered = [token for token in vocabulary if token.startswith(">>") and token.endswith("<<")]
        if not offered:
            return LanguageTokens("", None, None, None)
        known = next((token for token in marian(target) if token in vocabulary), None)
        if known is None:
            near = nearest(marian(target)[0], offered)
            raise ConfigError(f"this checkpoint does not translate into {target!r}: {near}")
        return LanguageTokens(f"{known} ", None, None, None)
    if family == "madlad":
        _known(tokenizer, madlad(target), target)
        return LanguageTokens(f"{madlad(target)} ", None, None, None)
    if _is_nllb(tokenizer):
        _known(tokenizer, nllb(source), source)
        return LanguageTokens("", nllb(source), nllb(target), _known(tokenizer, nllb(target), target))
    _known(tokenizer, f"__{m2m100(source)}__", source)
    token = f"__{m2m100(target)}__"
    return LanguageTokens("", m2m100(source), token, _known(tokenizer, token, target))


def _is_nllb(tokenizer: Any) -> bool:
    """NLLB checkpoints have M2M100's model type; their language tokens tell them apart."""
    return bool(tokenizer.convert_tokens_to_ids("eng_Latn") not in (None, tokenizer.unk_token_id))


def _known(tokenizer: Any, token: str, language: str) -> int:
    found = tokenizer.convert_tokens_to_ids(token)
    if found is None or found == tokenizer.unk_token_id:
        problem = f"this checkpoint does not know {language!r} (it has no token {token!r}): choose another model"
        raise ConfigError(problem)
    return int(found)
