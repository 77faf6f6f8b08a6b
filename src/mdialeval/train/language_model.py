"""Language adapters of MAD-X: masked language modelling on plain text of one language, everything else frozen.

The head is the checkpoint's own where it has one and a fresh one elsewhere (the embedded encoder has none); it learns
beside the adapter and is thrown away: a layer, the inverse of the invertible adapter, and the word embeddings of the
tokens that the texts hold.  Everything random is a function of (seed, step), so a killed training goes on to the
same bytes.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM

from mdialeval import assets
from mdialeval.config.train import TrainConfig
from mdialeval.devices import choose_device
from mdialeval.errors import ConfigError, DataError
from mdialeval.model.adapters import Tuning, equip, language_adapter, language_weights
from mdialeval.model.encoder import load_base, weights_hash
from mdialeval.model.markup import clean
from mdialeval.model.precision import choose_dtype
from mdialeval.signature import fingerprint
from mdialeval.tasks.draws import draw
from mdialeval.train.checkpoint import CHECKPOINT, Progress, load_checkpoint, save_checkpoint, write_tensors
from mdialeval.train.loop import CHECKPOINT_SECONDS, rate_factor
from mdialeval.train.passes import not_finite

log = logging.getLogger(__name__)

ADAPTER = "adapter.safetensors"
_HEAD_RATE, _HELD_OUT, _POOL = 1e-3, 256, 16

_HEADS = (
    ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"),
    ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
)
"""Names of a head's layer, its norm and its bias in checkpoints: BERT's and RoBERTa's."""


class LanguageSummary(NamedTuple):
    """What a language adapter was learned from, and how well it predicts held-out text.

    Attributes:
        n_texts, n_held_out: distinct texts that were learned from, and others.
        vocabulary: distinct tokens that can be predicted.
        loss: mean negative log-likelihood (nats) of a masked token of the held-out texts; lower is better.
        unigram_loss: the same of the tokens' frequencies alone; an adapter that is no better has learned nothing.
        own_head: whether the checkpoint brought its head for masked tokens.
        seconds: of the training; not part of the result.
    """

    language: str
    n_texts: int
    n_held_out: int
    vocabulary: int
    loss: float
    unigram_loss: float
    own_head: bool
    seconds: float


class MaskedModel(nn.Module):
    """The encoder with one active language adapter, and the head that predicts masked tokens.

    Args:
        base: with the adapter inside; see ``model.adapters``.
        vocabulary: (V,) token ids that can be predicted.
    """

    def __init__(self, base: Any, vocabulary: Tensor) -> None:
        super().__init__()
        words, eps = base.get_input_embeddings().weight, getattr(base.config, "layer_norm_eps", 1e-5)
        self.base = base
        self.layer = nn.Sequential(
            nn.Linear(base.config.hidden_size, words.shape[1]), nn.GELU(), nn.LayerNorm(words.shape[1], eps)
        )
        self.bias = nn.Parameter(torch.zeros(len(vocabulary)))
        self.register_buffer("words", words[vocabulary].detach().clone(), persistent=False)  # (V, W)

    @torch.no_grad()
    def take_head(self, where: str, vocabulary: Sequence[int]) -> bool:
        """Start from the head of the checkpoint; whether it has one of this shape (BERT, RoBERTa, XLM-R ...)."""
        full, info = AutoModelForMaskedLM.from_pretrained(where, output_loading_info=True)
        state = {k: v for k, v in full.state_dict().items() if k not in info["missing_keys"]}
        for dense, norm, bias in _HEADS:
            if f"{dense}.weight" in state and bias in state:
                self.layer[0].load_state_dict({k: state[f"{dense}.{k}"] for k in ("weight", "bias")})
                self.layer[2].load_state_dict({k: state[f"{norm}.{k}"] for k in ("weight", "bias")})
                self.bias.copy_(state[bias][list(vocabulary)])
                return True
        return False

    def forward(self, ids: Tensor, attention: Tensor, masked: Tensor) -> Tensor:
        """Logits (M, V) of the M masked places; all arguments are (B, T)."""
        hidden = self.base(input_ids=ids, attention_mask=attention).last_hidden_state
        vectors = self.layer(hidden[masked])  # (M, W)
        if (invertible := self.base.get_invertible_adapter()) is not None:
            vectors = invertible(vectors.unsqueeze(0), rev=True).squeeze(0)  # it wants (B, T, W)
        return vectors @ self.words.T + self.bias  # type: ignore[operator,no-any-return]


def train_language_adapter(
    texts: Sequence[str],
    language: str,
    config: TrainConfig,
    folder: Path,
    on_step: Callable[[int], None] | None = None,
) -> LanguageSummary:
    """Learn the adapter of a language and write it to ``folder``; an unfinished training there is continued.

    Args:
        texts: in that language; each distinct one is taken once.
        language: its code.
        config: the encoder and the section ``tuning``.
        folder: where ``adapter.safetensors`` goes.
        on_step: called after every step with the number of steps done.

    Raises:
        ConfigError: the encoder's tokenizer has no mask token.
        DataError: too few distinct texts.
        BackendError: the loss is not finite.
    """
    section = config.tuning.language_model
    seed, started = section.seed, time.monotonic()
    distinct = list(dict.fromkeys(t for text in texts if (t := clean(text))))
    if len(distinct) < 2:
        raise DataError(
            f"{len(distinct)} distinct texts in {language}: an adapter needs one to learn from and one to check: "
            "name more under train.tuning.language_model.texts"
        )
    draw(seed, "texts", language).shuffle(distinct)
    distinct = distinct[: section.max_texts]
    where = str(assets.resolve_encoder(config.encoder))
    base, tokenizer = load_base(where)
    if tokenizer.mask_token_id is None:
        raise ConfigError(f"encoder {config.encoder!r}: its tokenizer has no mask token, which madx needs")
    identity = weights_hash(base)
    rows = _rows(distinct, tokenizer, section.max_tokens)
    n_held = min(_HELD_OUT, max(1, len(rows) // 20))
    held, learned = rows[:n_held], rows[n_held:]
    counts = Counter(token for row in learned for token in row[1:-1])
    vocabulary = sorted(counts.keys() | {token for row in held for token in row[1:-1]})

    torch.manual_seed(draw(seed, "language model", language).getrandbits(62))
    equip(base, Tuning("madx", language_reduction=section.reduction, languages=(language,), home=language))
    base.set_active_adapters(language_adapter(language))
    for name, parameter in base.named_parameters():
        parameter.requires_grad_(f".{language_adapter(language)}." in name)
    device = choose_device(config.device)
    model = MaskedModel(base, torch.tensor(vocabulary))
    own_head = model.take_head(where, vocabulary)
    model.to(device)
    masks = _Masks(tokenizer, vocabulary, section.mask, seed, device)
    half = choose_dtype(config.precision, device, base.config.model_type)
    half = torch.bfloat16 if half == torch.bfloat16 else torch.float32  # fp16 would need a scaled loss
    recipe = {
        "language": language, "texts": fingerprint(distinct), "encoder": identity,
        "config": section.content("texts"),
    }  # fmt: skip
    _learn(model, learned, masks, section, folder, recipe, half, on_step)
    with torch.inference_mode(), torch.autocast(device.type, half, enabled=half != torch.float32):
        model.eval()
        losses = torch.cat([_losses(model, masks.batch(part, "held", k)) for k, part in enumerate(_batches(held, 64))])
    total = sum(counts.values()) + len(vocabulary)
    unigram = [-math.log((counts[vocabulary[t]] + 1) / total) for t in masks.seen]
    summary = LanguageSummary(
        language, len(learned), len(held), len(vocabulary), float(losses.mean()), sum(unigram) / len(unigram),
        own_head,
        time.monotonic() - started,
    )  # fmt: skip
    if summary.loss >= summary.unigram_loss:
        log.warning(
            "language adapter %s: masked tokens are predicted no better (%.2f nats) than by their frequency (%.2f); "
            "give more texts or steps",
            *(language, summary.loss, summary.unigram_loss),
        )
    write_tensors(folder / ADAPTER, language_weights(base, language), {"language": language, "encoder": identity})
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return summary


def _learn(
    model: MaskedModel,
    rows: Sequence[Sequence[int]],
    masks: _Masks,
    section: Any,
    folder: Path,
    recipe: dict[str, Any],
    half: torch.dtype,
    on_step: Callable[[int], None] | None,
) -> None:
    """All steps, from the last checkpoint on."""
    names: dict[Tensor, str] = {p: n for n, p in model.named_parameters() if p.requires_grad}
    inside = [p for p, n in names.items() if n.startswith("base.")]
    groups = [
        {"params": inside, "lr": section.learning_rate, "initial_lr": section.learning_rate},
        {"params": [p for p, n in names.items() if not n.startswith("base.")], "lr": _HEAD_RATE,
         "initial_lr": _HEAD_RATE},
    ]  # fmt: skip
    optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
    folder.mkdir(parents=True, exist_ok=True)
    progress = load_checkpoint(folder, model, optimizer, names, recipe) or Progress(0, [], None, 0)
    saved, per_epoch = time.monotonic(), math.ceil(len(rows) / section.batch_size)
    epoch, batches = -1, list[list[Sequence[int]]]()
    for step in range(progress.step, section.steps):
        if step // per_epoch != epoch:
            epoch = step // per_epoch
            batches = _epoch(rows, section.batch_size, section.seed, epoch)
        torch.manual_seed(draw(section.seed, "dropout", step).getrandbits(62))
        model.train()
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * rate_factor(step, section.steps, 0.1)
        with torch.autocast(masks.device.type, half, enabled=half != torch.float32):
            loss = _losses(model, masks.batch(batches[step % per_epoch], "step", step)).mean()
        if not bool(torch.isfinite(loss)):
            raise not_finite(f"the loss of step {step + 1} of the language adapter is {float(loss)}")
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(list(names), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            log.info("language adapter %s: step %d, loss %.3f", recipe["language"], step + 1, float(loss.detach()))
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            save_checkpoint(folder, model, optimizer, names, recipe, Progress(step + 1, [], None, 0))
            saved = time.monotonic()
        if on_step is not None:
            on_step(step + 1)


def _losses(model: MaskedModel, batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    """The negative log-likelihood of each masked token, (M,)."""
    ids, attention, masked, targets = batch
    return nn.functional.cross_entropy(model(ids, attention, masked).float(), targets, reduction="none")


def _rows(texts: Sequence[str], tokenizer: Any, limit: int) -> list[list[int]]:
    coded = tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
    return [[tokenizer.cls_token_id, *ids[: limit - 2], tokenizer.sep_token_id] for ids in coded if ids]


def _epoch(rows: Sequence[Sequence[int]], size: int, seed: int, epoch: int) -> list[list[Sequence[int]]]:
    """The batches of an epoch: every row once, rows of like length together inside pools of some batches."""
    order, rng = list(range(len(rows))), draw(seed, "order", epoch)
    rng.shuffle(order)
    pools = [order[start : start + _POOL * size] for start in range(0, len(order), _POOL * size)]
    batches = [b for pool in pools for b in _batches(sorted((rows[i] for i in pool), key=len), size)]
    rng.shuffle(batches)
    return batches


def _batches(rows: Sequence[Sequence[int]], size: int) -> Iterator[list[Sequence[int]]]:
    for start in range(0, len(rows), size):
        yield list(rows[start : start + size])


class _Masks:
    """Batches with masked tokens: 80 % of them the mask, 10 % another token, 10 % as they are (Devlin et al., 2019)."""

    def __init__(
        self, tokenizer: Any, vocabulary: Sequence[int], share: float, seed: int, device: torch.device
    ) -> None:
        self._pad, self._mask, self._share, self._seed = tokenizer.pad_token_id, tokenizer.mask_token_id, share, seed
        self._vocabulary, self._index = vocabulary, {token: i for i, token in enumerate(vocabulary)}
        self.device = device
        self.seen: list[int] = []  # targets of held-out batches

    def batch(self, rows: Sequence[Sequence[int]], kind: str, number: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Token ids, attention and masked places, each (B, T), and the targets (M,) as indices into the vocabulary."""
        rng, longest = draw(self._seed, "mask", kind, number), max(map(len, rows))
        ids, attention, masked, targets = [], [], [], list[int]()
        for row in rows:
            inner = range(1, len(row) - 1)
            chosen = {i for i in inner if rng.random() < self._share} or {rng.choice(inner)}
            line = list(row)
            for i in sorted(chosen):
                targets.append(self._index[row[i]])
                kept = rng.random()
                line[i] = self._mask if kept < 0.8 else rng.choice(self._vocabulary) if kept < 0.9 else row[i]
            rest = longest - len(row)
            ids.append(line + [self._pad] * rest)
            attention.append([1] * len(row) + [0] * rest)
            masked.append([i in chosen for i in range(longest)])
        if kind == "held":
            self.seen += targets
        parts = (torch.tensor(ids), torch.tensor(attention), torch.tensor(masked), torch.tensor(targets))
        return tuple(part.to(self.device) for part in parts)  # type: ignore[return-value]
