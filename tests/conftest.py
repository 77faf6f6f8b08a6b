"""What all tests share: the real data folder (skipped where absent) and offline model loading."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = Path(os.environ.get("MDIALEVAL_SHARED_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def shared_data() -> Path:
    """The folder of real public data; the test is skipped where it is absent."""
    if not SHARED_DATA.exists():
        pytest.skip(f"real data not found at {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture(scope="session")
def make_encoder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a tiny random encoder folder: ``make_encoder("bert", seed=0)``, a character-level tokenizer inside."""

    def make(kind: str = "bert", seed: int = 0) -> Path:
        import torch
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers
        from transformers import AutoConfig, AutoModelForMaskedLM, PreTrainedTokenizerFast

        characters = [chr(c) for c in (*range(33, 127), *range(0xC0, 0x180), *range(0x3040, 0x3100))]
        vocabulary = {
            t: i
            for i, t in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", "▁", *characters, *"我用的你好吗是不"])
        }
        core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
        core.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(), pre_tokenizers.Split(Regex("."), behavior="isolated")]
        )
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=core,
            cls_token="<s>",
            sep_token="</s>",
            pad_token="<pad>",
            unk_token="<unk>",
            mask_token="<mask>",
        )
        config = AutoConfig.for_model(
            kind,
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=200,
            pad_token_id=1,
        )
        torch.manual_seed(seed)
        folder = tmp_path_factory.mktemp(f"encoder-{kind}-{seed}")
        AutoModelForMaskedLM.from_config(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_encoder(make_encoder: Callable[..., Path]) -> Path:
    """A tiny random BERT."""
    return make_encoder("bert")


@pytest.fixture(scope="session")
def causal(make_encoder: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama with the character tokenizer of the tiny encoders."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(make_encoder("bert"))
    tokenizer.bos_token = "<s>"
    config = AutoConfig.for_model(
        "llama", vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=64, max_position_embeddings=160, bos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("causal")
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8)  # else every token is as likely as any other
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
