"""The text encoder: any Hugging Face ``AutoModel``, its attention over packed pairs, and pooling to H_S.

Attention (who sees whom inside a pair):

- ``shared``: the response sees the context, the context does not see the response.  One pass over a context then
  serves all its responses, which is several times cheaper where a context has many.
- ``joint``: both see each other, as in a cross-encoder.  No packing.
- ``separate``: neither sees the other, as in a bi-encoder.
"""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

from mdialeval.errors import BackendError, ConfigError
from mdialeval.model.batches import Attention, Batch
from mdialeval.signature import fingerprint

Pooling = Literal["parts", "mean", "start", "response"]
Layers = Literal["last", "mix", "several"]

_TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model",
    "spm.model",
)  # fmt: skip


_NAMES = frozenset({"_name_or_path", "transformers_version", "architectures", "torch_dtype", "dtype"})
"""Parts of a configuration that say where it comes from, not what is computed."""


def _check_tokenizer(folder: Path) -> None:
    """Refuse a local model without a tokenizer, on which the library stumbles somewhere inside."""
    if (folder / "config.json").exists() and not any((folder / name).exists() for name in _TOKENIZER_FILES):
        raise BackendError(
            f"encoder {folder}",
            f"the folder holds no tokenizer (none of {', '.join(_TOKENIZER_FILES)})",
            hint="copy the tokenizer's files of the original model beside config.json",
        )


def load_base(where: str, dropout: float | None = None) -> tuple[Any, Any]:
    """The encoder and tokenizer at a folder or hub name, in fp32.

    Args:
        where: what ``from_pretrained`` takes.
        dropout: inside the encoder while it learns; None = as its configuration says.

    Raises:
        BackendError: they cannot be loaded; the message says what to do.
    """
    _check_tokenizer(Path(where))
    try:
        config = AutoConfig.from_pretrained(where)
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if dropout is not None and hasattr(config, name):
                setattr(config, name, dropout)
        model, info = AutoModel.from_pretrained(where, config=config, output_loading_info=True)
        tokenizer = AutoTokenizer.from_pretrained(where)
    except (OSError, ValueError) as error:
        raise BackendError(
            f"encoder {where}",
            str(error).splitlines()[0],
            hint="name a local folder with config.json, or set offline: false",
        ) from error
    if lacking := [name for name in info["missing_keys"] if not name.startswith("pooler.")]:
        raise BackendError(f"encoder {where}", f"the checkpoint lacks weights, such as {lacking[0]}")
    if hasattr(model, "pooler"):
        model.pooler = None  # not on the way to H_S, and random where the checkpoint lacks it
    model = model.float()
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    for role in ("cls_token_id", "sep_token_id", "pad_token_id"):
        if getattr(tokenizer, role) is None:
            raise ConfigError(f"encoder {where}: its tokenizer has no {role[:3]} token; choose a BERT-like encoder")
    return model.eval(), tokenizer


def weights_hash(model: nn.Module, length: int = 16) -> str:
    """A short SHA-256 over the names, shapes and values of all weights: the identity of a base encoder."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name}{tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:length]


def setup_hash(model: Any, tokenizer: Any, length: int = 16) -> str:
    """What a model computes by besides its weights: its configuration, and the tokens that open and divide a text."""
    values = {k: v for k, v in model.config.to_dict().items() if k not in _NAMES}
    return fingerprint([values, tokenizer.cls_token_id, tokenizer.sep_token_id], length)


def packs(model: Any) -> bool:
    """Whether a model takes explicit absolute positions and a mask of its own for every token, which packing needs."""
    if "deberta" in model.config.model_type:
        return False  # its embeddings are multiplied by the mask, which must then be one number a token
    absolute = getattr(model.config, "position_embedding_type", "absolute") == "absolute"
    embeddings = getattr(model, "embeddings", None)
    takes = "position_ids" in inspect.signature(model.forward).parameters
    return absolute and takes and hasattr(embeddings, "position_embeddings")


def attention_mask(owners: Tensor, attention: Attention) -> Tensor:
    """Who may look at whom, from the owners of the tokens.

    Args:
        owners: (S, T); 0 context, k the k-th response, -1 padding.

    Returns:
        (S, T, T) of 0 and 1; ``[s, i, j]`` is 1 where token i sees token j.
    """
    query, key = owners.unsqueeze(2), owners.unsqueeze(1)
    seen = query == key  # padding sees padding, so that no row of the softmax is empty
    if attention == "shared":
        seen = seen | ((key == 0) & (query >= 0))
    return seen.long()


class TextEncoder(nn.Module):
    """Token ids to one sentence vector H_S a pair.

    Args:
        base: the ``AutoModel``.
        attention: see the module docstring.
        pooling: ``parts`` = [c, r, c*r, abs(c-r)] of the mean context vector c and mean response vector r;
            ``mean`` over all tokens; ``start`` the first token; ``response`` the mean over the response alone.
        layers: ``last`` takes the last layer, ``mix`` a learned mixture of all, ``several`` puts three of the upper
            half side by side (of twelve: 8, 10 and 12), which keeps what the last one has lost.
    """

    def __init__(self, base: Any, attention: Attention, pooling: Pooling, layers: Layers) -> None:
        super().__init__()
        if attention != "joint" and not packs(base):
            raise ConfigError(
                f"attention {attention!r} needs an encoder with absolute positions; use attention: joint "
                f"with {base.config.model_type}"
            )
        if pooling == "start" and attention != "joint":
            raise ConfigError("pooling 'start' needs attention: joint: elsewhere the first token sees one side only")
        self.base, self.attention, self.pooling, self.layers = base, attention, pooling, layers
        self.mixture = nn.Parameter(torch.zeros(base.config.num_hidden_layers + 1)) if layers == "mix" else None
        depth = int(base.config.num_hidden_layers)
        self.chosen = sorted({max(1, round(depth * share)) for share in (2 / 3, 5 / 6, 1)})  # by ``several``
        padding = getattr(getattr(base, "embeddings", None), "position_embeddings", None)
        index = getattr(padding, "padding_idx", None)
        self.first_position = 0 if index is None else index + 1  # RoBERTa counts positions from its padding index

    @property
    def width(self) -> int:
        """D, the size of H_S."""
        side_by_side = len(self.chosen) if self.layers == "several" else 1
        return int(self.base.config.hidden_size) * side_by_side * (4 if self.pooling == "parts" else 1)

    def freeze(self, trainable_layers: int | None, train_embeddings: bool) -> None:
        """Let gradients reach only the top layers (None = all), and the embeddings only where asked for."""
        for parameter in self.base.parameters():
            parameter.requires_grad_(trainable_layers is None)
        if trainable_layers:
            for layer in self.base.encoder.layer[-trainable_layers:]:
                layer.requires_grad_(True)
        embeddings = self.base.get_input_embeddings() if trainable_layers is None else None
        if embeddings is not None and not train_embeddings:
            module = getattr(self.base, "embeddings", embeddings)
            module.requires_grad_(False)

    def checkpoint_gradients(self) -> None:
        """Keep one state a layer instead of all that its gradients need, and compute the rest again on the way back.

        Raises:
            ConfigError: the model type cannot.
        """
        if not getattr(self.base, "supports_gradient_checkpointing", False):
            raise ConfigError(
                f"train.gradient_checkpointing: {self.base.config.model_type} encoders have none; use a smaller "
                "batch_size with a larger accumulate"
            )
        self.base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def forward(self, batch: Batch) -> Tensor:
        """H_S of a batch: (P, D)."""
        return self.combine(self.pooled(batch))

    def pooled(self, batch: Batch, slots: int | None = None) -> Tensor:
        """Mean vectors by layer, before layers are put together: (P, parts, L, width of the base).

        ``parts`` is (context, response) for pooling ``parts`` and one vector otherwise; L is the number of layers used.

        Args:
            batch: some pairs.
            slots: above every owner number, where it must not depend on the batch (in an exported graph).
        """
        slots = slots or int(batch.owners.max()) + 1
        output = self.base(**self.inputs(batch), output_hidden_states=self.layers != "last")
        states = (output.last_hidden_state,) if self.layers == "last" else output.hidden_states
        if self.layers == "several":
            states = tuple(states[layer] for layer in self.chosen)
        return torch.stack([self._pool(state, batch, slots) for state in states], dim=2)  # (P, parts, L, W)

    def inputs(self, batch: Batch) -> dict[str, Tensor]:
        """What the base takes."""
        if self.attention == "joint":
            return {"input_ids": batch.input_ids, "attention_mask": (batch.owners >= 0).long()}
        found = {
            "input_ids": batch.input_ids,
            "attention_mask": attention_mask(batch.owners, self.attention),
            "position_ids": batch.positions + self.first_position,
        }
        if hasattr(self.base.embeddings, "token_type_embeddings"):
            # Given, since the encoder's own zeros end at its number of positions, and packed responses go beyond.
            found["token_type_ids"] = torch.zeros_like(batch.input_ids)
        return found

    def combine(self, pooled: Tensor) -> Tensor:
        """From ``pooled`` to H_S: put the layers together, then the parts: (P, D)."""
        if self.mixture is not None:
            pooled = torch.einsum("l,pklw->pkw", self.mixture.softmax(0), pooled)
        else:
            pooled = pooled.flatten(2)
        if self.pooling != "parts":
            return pooled[:, 0]
        context, response = pooled[:, 0], pooled[:, 1]
        return torch.cat([context, response, context * response, (context - response).abs()], dim=1)

    def _pool(self, state: Tensor, batch: Batch, slots: int) -> Tensor:
        """(S, T, W) to (P, parts, W)."""
        if self.pooling == "start":
            return state[batch.sequence, 0].unsqueeze(1)
        sums, counts = _sums(state, batch.owners, slots)  # (S, slots, W), (S, slots, 1)
        response = sums[batch.sequence, batch.slot] / counts[batch.sequence, batch.slot]
        if self.pooling == "response":
            return response.unsqueeze(1)
        of_context = sums[batch.sequence, 0], counts[batch.sequence, 0]
        if self.pooling == "mean":
            both = of_context[0] + sums[batch.sequence, batch.slot]
            return (both / (of_context[1] + counts[batch.sequence, batch.slot])).unsqueeze(1)
        # A pair without context is compared with nothing: its context vector is zero.
        return torch.stack([of_context[0] / of_context[1].clamp(min=1), response], dim=1)


def _sums(state: Tensor, owners: Tensor, slots: int) -> tuple[Tensor, Tensor]:
    """Sums of the token vectors of each owner, and how many there are."""
    member = torch.nn.functional.one_hot(owners + 1, slots + 1)[:, :, 1:].to(state.dtype)  # (S, T, slots)
    return member.transpose(1, 2) @ state, member.sum(1).unsqueeze(2)
