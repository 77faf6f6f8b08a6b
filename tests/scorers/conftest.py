"""A tiny causal language model for all tests of scorers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer


@pytest.fixture(scope="session")
def causal(make_encoder: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama with the character tokenizer of the tiny encoders."""
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
