"""The table of replies: what a judge wrote, and the one score that it means on 1 to 5 (or why there is none)."""

from __future__ import annotations

import pytest

from mdialeval.llm.reply import parse_reply

OK = [
    ("4", 4), ("4.", 4), (" 4\n", 4), ("4.5", 4.5), ("4,5", 4.5), ("Score: 4", 4), ("score = 3", 3), ("**Score:** 2", 2),
    ("4/5", 4), ("4 / 5", 4), ("4 out of 5", 4), ("4.5/5", 4.5), ("Rating: 3/5", 3), ("I would rate this a 4.", 4),
    ("On a scale of 1-5 I'd say 2", 2), ("On a scale from 1 to 5, this is a 3.", 3), ("4 stars", 4), ("Four", 4),
    ("I'd give it a three.", 3), ("Score: 4. It has 2 flaws.", 4), ("Score: 2\nAfter thought:\nScore: 4", 4),
    ("It repeats 3 words, so the final score: 1", 1), ('{"score": 4}', 4), ('{"reason": "2 errors", "score": 3.5}', 3.5),
    ('```json\n{"rating": "4"}\n```', 4), ('{"score": 4, "reason": "the answer is', 4), ("1", 1), ("5", 5), ("5.0", 5),
    ("Bewertung: 4", 4), ("Ich gebe 3 von 5 Punkten.", 3), ("Auf einer Skala von 1 bis 5: 2", 2), ("Note: 4,5", 4.5),
    ("vier", 4), ("Note : 4", 4), ("Je donne 3 sur 5.", 3), ("Sur une échelle de 1 à 5, je dirais 2", 2), ("quatre", 4),
    ("Puntuación: 4", 4), ("Le doy un 3 sobre 5", 3), ("En una escala de 1 a 5, diría 2", 2), ("cuatro", 4),
    ("Pontuação: 4", 4), ("Nota: 3,5", 3.5), ("Numa escala de 1 a 5, eu diria 2", 2), ("quatro", 4), ("Dou 3 de 5.", 3),
    ("４", 4), ("四", 4), ("分数：4", 4), ("评分：四分", 4), ("我给3分", 3), ("4分", 4), ("从1到5，我给2", 2), ("五", 5),
    ("評価：4", 4), ("スコア：４", 4), ("4点", 4), ("1から5の範囲で、3です", 3), ("٤", 4), ("三分", 3), ("4 - good", 4),
]  # fmt: skip

NOT = [
    ("", "empty"), ("  \n", "empty"), (None, "empty"), ("10", "out_of_range"), ("0", "out_of_range"), ("8/10", "out_of_range"),
    ("0.8", "out_of_range"), ("45", "out_of_range"), ("-3", "out_of_range"), ('{"score": 7}', "out_of_range"),
    ("I can't rate this.", "refused"), ("I cannot help with that.", "refused"), ("Das kann ich nicht bewerten.", "refused"),
    ("Je ne peux pas noter.", "refused"), ("No puedo evaluarlo.", "refused"), ("Não posso avaliar.", "refused"),
    ("我无法评分", "refused"), ("評価できません", "refused"), ("Good response!", "unparsed"), ("2 or 4", "unparsed"),
    ('{"reason": "fine"}', "unparsed"), ("Between 2 and 3", "unparsed"),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "score"), OK)
def test_replies_with_a_score(reply: str, score: float) -> None:
    assert parse_reply(reply) == (score, "ok")


@pytest.mark.parametrize(("reply", "status"), NOT)
def test_replies_without_a_score(reply: str | None, status: str) -> None:
    assert parse_reply(reply) == (None, status)


def test_the_declared_scale_decides() -> None:
    assert parse_reply("8/10", 1, 10) == (8.0, "ok")
    assert parse_reply("0.8", 0, 1) == (0.8, "ok")
    assert parse_reply("85", 0, 100) == (85.0, "ok")
    assert parse_reply("十", 1, 10) == (10.0, "ok")
