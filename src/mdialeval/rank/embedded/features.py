"""What the head sees of a pair: sentence vectors of all layers, word alignment in some, and counts of the texts.

Nothing here is trained or knows a language, so that pairs of languages never trained on are described as well.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ALIGNED_LAYERS = (0, 2, 4, 6, 8, 10, 12)
"""Layers (0: input embeddings) whose tokens are aligned; neighbouring layers add nothing."""

_SPECIAL = (0, 1, 2, 4)  # <s>, <pad>, </s>, and the comma, which aligns with anything
_DIGITS = re.compile(r"\d+")
N_ALIGNMENT = 24


def is_content(ids: Tensor) -> Tensor:
    """(...) bool, which tokens take part in the alignment."""
    return ~torch.isin(ids, torch.tensor(_SPECIAL, device=ids.device))


def pool(hidden: Tensor, mask: Tensor) -> Tensor:
    """(B, L, D) means of hidden states (B, L, T, D) over the tokens of a mask (B, T)."""
    weight = mask[:, None, :, None].to(hidden.dtype)
    return (hidden * weight).sum(2) / weight.sum(2)


def alignment(
    source: Tensor, source_mask: Tensor, hypothesis: Tensor, hypothesis_mask: Tensor, centre: Tensor
) -> Tensor:
    """(B, L, 24) how well the tokens of two texts find each other, in the manner of BERTScore (Zhang et al. 2020).

    Twelve numbers on the hidden states as they are, twelve after taking off each layer's mean vector: of the best
    cosine of every source token its mean, standard deviation, minimum and the mean of the lowest quarter; the same of
    every hypothesis token; the share of source and of hypothesis tokens in mutual best pairs; the mean cosine of these
    pairs; and the correlation of their positions.

    Args:
        source: (B, L, S, D).
        source_mask: (B, S) content tokens.
        hypothesis: (B, L, T, D).
        hypothesis_mask: (B, T) content tokens.
        centre: (L, D).
    """
    found: list[Tensor] = []
    for shift in (torch.zeros_like(centre), centre):
        one = torch.nn.functional.normalize(source - shift[:, None], dim=-1)
        other = torch.nn.functional.normalize(hypothesis - shift[:, None], dim=-1)
        cosine = one @ other.transpose(-1, -2)  # (B, L, S, T)
        both = source_mask[:, None, :, None] & hypothesis_mask[:, None, None, :]
        cosine = cosine.masked_fill(~both, -2.0)
        forward, forward_at = cosine.max(-1)  # (B, L, S)
        backward, backward_at = cosine.max(-2)  # (B, L, T)
        found += _summary(forward.clamp(min=-1), source_mask) + _summary(backward.clamp(min=-1), hypothesis_mask)
        places = torch.arange(cosine.shape[2], device=cosine.device)
        mutual = (torch.gather(backward_at, 2, forward_at) == places) & source_mask[:, None]  # (B, L, S)
        found += _mutual(mutual.to(cosine.dtype), forward, forward_at, places, source_mask, hypothesis_mask)
    return torch.stack(found, -1)


def _summary(best: Tensor, mask: Tensor) -> list[Tensor]:
    weight = mask[:, None].to(best.dtype)
    n = weight.sum(-1).clamp(min=1)  # (B, 1)
    mean = (best * weight).sum(-1) / n
    spread = (((best - mean[..., None]) ** 2 * weight).sum(-1) / n).sqrt()
    ordered = best.masked_fill(~mask[:, None], 9.0).sort(-1).values
    quarter = (n / 4).ceil()
    low = torch.arange(best.shape[-1], device=best.device) < quarter[..., None]  # (B, 1, T)
    return [mean, spread, ordered[..., 0].clamp(max=1), (ordered * low).sum(-1) / quarter]


def _mutual(
    mutual: Tensor, best: Tensor, at: Tensor, places: Tensor, source_mask: Tensor, hypothesis_mask: Tensor
) -> list[Tensor]:
    pairs = mutual.sum(-1)
    n = pairs.clamp(min=1)
    here, there = places.to(mutual.dtype).expand_as(mutual), at.to(mutual.dtype)
    here = here - ((here * mutual).sum(-1) / n)[..., None]
    there = there - ((there * mutual).sum(-1) / n)[..., None]
    variance = (here**2 * mutual).sum(-1) * (there**2 * mutual).sum(-1)
    return [
        pairs / source_mask.sum(-1).clamp(min=1)[:, None],
        pairs / hypothesis_mask.sum(-1).clamp(min=1)[:, None],
        (best * mutual).sum(-1) / n,
        (here * there * mutual).sum(-1) / variance.clamp(min=1e-3).sqrt(),
    ]


def text_features(
    source: str, hypothesis: str, source_ids: Sequence[int], hypothesis_ids: Sequence[int], unigram: NDArray[np.float64]
) -> list[float]:
    """23 counts: lengths and their ratios, rarity of the pieces, shared pieces, repetition, numbers, letter classes.

    Args:
        source: not empty.
        hypothesis: not empty.
        source_ids: its pieces, no special tokens.
        hypothesis_ids: likewise.
        unigram: (V,) log-probability of every piece in the tokenizer's unigram model.
    """
    one, other = list(source_ids) or [3], list(hypothesis_ids) or [3]
    rare, other_rare = np.sort(unigram[one]), np.sort(unigram[other])
    shared = len(set(one) & set(other))
    numbers, other_numbers = _DIGITS.findall(source), _DIGITS.findall(hypothesis)
    return [
        math.log(len(one)),
        math.log(len(other)),
        math.log(len(other) / len(one)),
        math.log(len(hypothesis) / len(source)),
        float(rare.mean()),
        float(rare[0]),
        float(other_rare.mean()),
        float(other_rare[0]),
        float(rare[: max(1, len(rare) // 4)].mean()),
        float(other_rare[: max(1, len(other_rare) // 4)].mean()),
        shared / len(set(other)),
        shared / len(set(one)),
        len(set(other)) / len(other),
        len(set(one)) / len(one),
        float(len(set(numbers) ^ set(other_numbers))),
        float(sorted(numbers) != sorted(other_numbers)),
        len(source) / len(one),
        len(hypothesis) / len(other),
        sum(map(str.isupper, source)) / len(source),
        _punctuation(source),
        _punctuation(hypothesis),
        float('"' in source or "“" in source),
        sum(c.isascii() and c.isalpha() for c in hypothesis) / len(hypothesis),
    ]


def _punctuation(text: str) -> float:
    return sum(unicodedata.category(c)[0] == "P" for c in text) / len(text)
