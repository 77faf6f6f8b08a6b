"""Turns to sentences and back."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdialeval.segments import clean, detokenise, join, masks_of, prepare, restore, split_sentences


@pytest.mark.parametrize(
    ("tokenised", "plain"),
    [
        ("Gosh , you", "Gosh, you"),
        ("I ' m afraid I can ' t .", "I'm afraid I can't."),
        ("I ´ m here , aren ' t I ?", "I'm here, aren't I?"),
        ("Do n't you think he 's right ?", "Don't you think he's right?"),
        ("It ’ s ten o ' clock .", "It’s ten o'clock."),
        ("Is it 10 : 30 or 1 , 000 ?", "Is it 10:30 or 1,000?"),
        ("It costs $ 5 , or 50 % less . . .", "It costs $5, or 50% less..."),
        ('He said , " Come here . "', 'He said, "Come here."'),
        ("( really ? )", "(really?)"),
        ("It's all fine already. :) Yes?", "It's all fine already. :) Yes?"),
    ],
)
def test_detokenises(tokenised: str, plain: str) -> None:
    assert detokenise(tokenised) == plain
    assert detokenise(plain) == plain


def test_french_keeps_its_blanks() -> None:
    assert detokenise("Tu viens ? Oui , merci !", "fr") == "Tu viens ? Oui, merci !"


@pytest.mark.parametrize("token", ["__eou__", "<speaker1>", "</s><s>", "[SEP]", "<|im_end|>", "<pad>"])
def test_control_tokens_never_stay(token: str) -> None:
    assert clean(f"{token} Hi there. {token}", "en") == "Hi there."
    assert all(token not in piece.text for piece in prepare(f"Hi. {token} Bye.", "en").pieces)


def test_nfc_and_control_characters() -> None:
    assert clean("Ole\u0301\u0007 \x00 ok\r\nyes", "es") == "Olé ok\nyes"


@pytest.mark.parametrize(
    "text", ["4417-0032", "7", "😂😂", "?!", "", "   ", "#NAME#", "https://example.com", "👩‍👩‍👧 🇵🇹"]
)
def test_texts_without_letters_are_not_sent(text: str) -> None:
    prepared = prepare(text, "en")
    assert prepared.sentences == 0
    assert join(prepared, [], "en", "pt") == text.strip()


def test_masks_are_protected_and_restored() -> None:
    (piece,) = prepare("Hi #NAME#, write to joe@example.com or <b>see</b> https://a.io/x?y=1, it is ¥400!", "en").pieces
    assert piece.masks == ("#NAME#", "joe@example.com", "<b>", "</b>", "https://a.io/x?y=1", "¥400")
    assert piece.protected == "Hi XQ1X, write to XQ2X or XQ3XseeXQ4X XQ5X, it is XQ6X!"
    assert restore(piece.protected, piece.masks) == piece.text
    assert restore(piece.protected.replace("XQ2X", ""), piece.masks) is None
    assert restore(piece.protected + " XQ1X", piece.masks) is None


def test_emoji_at_the_edges_are_copied_and_inside_protected() -> None:
    prepared = prepare("😂 Really 😂 good! 👍🏽👍🏽 Yes :)", "en")
    assert [p.protected for p in prepared.pieces if p.sent] == ["Really XQ1X good!", "Yes"]
    assert join(prepared, ["Muito XQ1X bom!", "Sim"], "en", "pt").startswith("😂 Muito XQ1X bom! 👍🏽👍🏽 Sim")


def test_numbers_alone_are_no_masks() -> None:
    assert masks_of("I have 2 cats and 15 dogs, I <3 them") == []


@pytest.mark.parametrize(
    ("text", "language", "count"),
    [
        ("The lost parcel is at your place? The whole street is looking for it.", "en", 2),
        ("Dr. Hill met Mr. Gray at 5 p.m. on Monday. They talked.", "en", 2),
        ("今日は。元気？はい、元気です。", "ja", 3),
        ("你好！你去哪里？我回家。", "zh", 3),
        ("Está bem. Vou já! E você?", "pt", 3),
        ("¿Qué tal? ¡Muy bien! Gracias.", "es", 3),
        ("inhouse sw\nhi pls add file (attached).", "en", 2),
        ("No terminator here", "en", 1),
    ],
)
def test_splits(text: str, language: str, count: int) -> None:
    sentences = split_sentences(text, language)
    assert len(sentences) == count
    assert "".join(sentences) == text


def test_joins_without_blanks_where_the_target_has_none() -> None:
    assert join(prepare("Yes. No.", "en"), ["はい。", "いいえ。"], "en", "ja") == "はい。いいえ。"
    assert join(prepare("はい。いいえ。", "ja"), ["Yes.", "No."], "ja", "en") == "Yes. No."
    assert join(prepare("One.\nTwo.", "en"), ["Um.", "Dois."], "en", "pt") == "Um.\nDois."


@pytest.mark.parametrize(
    "text", ["word " * 5000, "I went there. " * 1700, "今天不行" * 1500, "a" * 30000, "I went, " * 2500]
)
def test_five_thousand_words(text: str) -> None:
    start = time.perf_counter()
    prepared = prepare(text, "zh" if "今" in text else "en")
    assert time.perf_counter() - start < 5
    assert "".join(p.before + p.text for p in prepared.pieces) == prepared.text
    assert max(len(p.text.split()) for p in prepared.pieces) <= 80


@given(st.text(max_size=200), st.sampled_from(["en", "zh", "pt", "ja"]))
def test_pieces_always_make_the_turn(text: str, language: str) -> None:
    prepared = prepare(text, language)
    assert "".join(p.before + p.text for p in prepared.pieces) == prepared.text
    assert all(restore(p.protected, p.masks) == p.text for p in prepared.pieces if p.masks)
