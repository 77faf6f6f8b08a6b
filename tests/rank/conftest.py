"""Tiny COMET checkpoints of both kinds, made offline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from mdialeval.records import Flag, Translation, turn_id

TEXTS = [
    "Where is the station?", "Wo ist der Bahnhof?", "¿Dónde está la estación?", "I would like some tea, please.",
    "Ich hätte gern etwas Tee.", "Quisiera un té, por favor.", "He lost his keys yesterday.", "他昨天丢了钥匙。", "😂 ok",
]  # fmt: skip


def make_row(
    source: str,
    hypothesis: str,
    language: str = "de",
    *,
    item: str = "d0",
    turn: int = 0,
    flags: tuple[str, ...] = (),
    status: Any = "ok",
    back: str | None = None,
) -> Translation:
    """A translation with the usual parts filled in."""
    found = tuple(Flag(name, 1.0) for name in flags)
    return Translation(turn_id(item, turn), item, turn, source, hypothesis, "en", language, "test", status, found, back)


def build_encoder(folder: Path, kind: str) -> Path:
    """A random encoder of two layers with a small Unigram tokenizer; ``kind`` is ``bert`` or ``xlm-roberta``."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()  # BertTokenizerFast, which COMET uses, needs one
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(
        TEXTS, trainers.UnigramTrainer(vocab_size=120, special_tokens=special, unk_token="<unk>")
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos": 0, "cls": 0, "pad": 1, "eos": 2, "sep": 2, "unk": 3, "mask": 4}
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{name}_token": special[i] for name, i in names.items()}
    ).save_pretrained(folder)
    torch.manual_seed(3)
    sizes = {
        "vocab_size": tokenizer.get_vocab_size(), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 32, "max_position_embeddings": 40, "pad_token_id": 1,
    }  # fmt: skip
    model = (
        BertModel(BertConfig(**sizes))
        if kind == "bert"
        else XLMRobertaModel(XLMRobertaConfig(**sizes, type_vocab_size=1))
    )
    model.save_pretrained(folder)
    return folder


def save_checkpoint(model: Any, folder: Path) -> Path:
    """A COMET folder: ``hparams.yaml`` and ``checkpoints/model.ckpt``, as published ones have."""
    import torch

    hparams = {k: v for k, v in dict(model.hparams).items() if isinstance(v, str | int | float | list | type(None))}
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "hparams.yaml").write_text(yaml.safe_dump(hparams), encoding="utf-8")
    torch.save(
        {
            "state_dict": model.state_dict(),
            "hyper_parameters": hparams,
            "pytorch-lightning_version": "2.0.0",
            "epoch": 1,
            "global_step": 1,
        },
        folder / "checkpoints" / "model.ckpt",
    )
    return folder


@pytest.fixture(scope="session")
def regression(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ReferencelessRegression checkpoint over a tiny BERT."""
    import torch
    from comet.models import ReferencelessRegression

    root = tmp_path_factory.mktemp("regression")
    encoder = build_encoder(root / "encoder", "bert")
    torch.manual_seed(5)
    model = ReferencelessRegression(
        encoder_model="BERT",
        pretrained_model=str(encoder),
        local_files_only=True,
        layer="mix",
        hidden_sizes=[24, 8],
        pool="avg",
    )
    return save_checkpoint(model.eval(), root / "comet")


@pytest.fixture(scope="session")
def unified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A UnifiedMetric checkpoint over a tiny XLM-R, as CometKiwi is built."""
    import torch
    from comet.models import UnifiedMetric

    root = tmp_path_factory.mktemp("unified")
    encoder = build_encoder(root / "encoder", "xlm-roberta")
    torch.manual_seed(6)
    model = UnifiedMetric(
        encoder_model="XLM-RoBERTa", pretrained_model=str(encoder), local_files_only=True, sent_layer="mix",
        layer_transformation="softmax", word_layer=2, hidden_sizes=[24, 8], input_segments=["mt", "src"], word_level_training=True,
    )  # fmt: skip
    return save_checkpoint(model.eval(), root / "comet")


@pytest.fixture
def row() -> Callable[..., Translation]:
    """``make_row``."""
    return make_row


@pytest.fixture
def texts() -> list[str]:
    """A few short texts in several scripts."""
    return TEXTS


@pytest.fixture
def rows() -> list[Translation]:
    """Every pair of the texts."""
    return [make_row(a, b, item=f"d{i}") for i, a in enumerate(TEXTS) for b in TEXTS[i:]]


@pytest.fixture
def save_comet() -> Callable[[Any, Path], Path]:
    """``save_checkpoint``."""
    return save_checkpoint
