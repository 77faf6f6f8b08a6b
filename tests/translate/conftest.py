"""Tiny translation checkpoints with random weights, made on the spot."""

from __future__ import annotations

from pathlib import Path

import pytest

LINES = [
    "Hello there, how are you today?",
    "I am fine, thank you very much.",
    "We could meet at the station at seven.",
    "Olá, como você está hoje?",
    "Eu estou bem, muito obrigado.",
    "Podemos nos encontrar na estação às sete.",
    "Wir treffen uns um sieben am Bahnhof.",
    "The quick brown fox jumps over the lazy dog, and runs away.",
]


def make_marian(folder: Path, width: int = 32, layers: int = 1, targets: tuple[str, ...] = ()) -> Path:
    """A MarianMT checkpoint with random weights: SentencePiece models trained on a few lines."""
    import json

    import sentencepiece
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "lines.txt"
    text.write_text("\n".join(LINES * 4), encoding="utf-8")
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(folder / side), vocab_size=120, minloglevel=2, hard_vocab_limit=False
        )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.model"))
    words = ["</s>", "<unk>", *targets]
    words += [
        p for p in (pieces.id_to_piece(i) for i in range(pieces.get_piece_size())) if p not in words and p != "<s>"
    ]
    vocabulary = {word: i for i, word in enumerate([*words, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    tokenizer = MarianTokenizer(
        source_spm=str(folder / "source.model"),
        target_spm=str(folder / "target.model"),
        vocab=str(folder / "vocab.json"),
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=len(vocabulary),
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=2 * width,
        decoder_ffn_dim=2 * width,
        max_position_embeddings=256,
        pad_token_id=vocabulary["<pad>"],
        decoder_start_token_id=vocabulary["<pad>"],
        eos_token_id=0,
        forced_eos_token_id=0,
        max_length=40,
    )
    MarianMTModel(config).eval().save_pretrained(folder)
    for name in ("lines.txt", "source.model", "source.vocab", "target.model", "target.vocab"):
        (folder / name).unlink()
    return folder


@pytest.fixture(scope="session")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Marian checkpoint for one pair of languages."""
    return make_marian(tmp_path_factory.mktemp("marian"))


@pytest.fixture(scope="session")
def marian_many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Marian checkpoint with target tokens."""
    return make_marian(tmp_path_factory.mktemp("marian-many"), targets=(">>por<<", ">>deu<<"))
