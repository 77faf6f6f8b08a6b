"""From examples to predictions, whatever computes the scores: every distinct input once, a status on every row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mdialeval.errors import BackendError
from mdialeval.model.graph_input import GraphRow
from mdialeval.model.markup import Row, encode_pairs
from mdialeval.model.saved import Settings
from mdialeval.records import Example, Prediction, PredictionStatus, Scalar

ScoreRows = Callable[[Sequence[Row], Sequence[GraphRow] | None], list[float]]
"""Scores of encoded pairs in their order, from the texts and, where there is a graph branch, their graphs."""


def predict(
    examples: Sequence[Example],
    scorer: str,
    settings: Settings,
    tokenizer: Any,
    score_rows: ScoreRows,
    draw_graphs: Callable[[Sequence[Example]], list[GraphRow] | None] = lambda _: None,
) -> list[Prediction]:
    """Predictions in the order of the examples.

    Args:
        examples: what to score.
        scorer: the predictions' scorer.
        settings: dimension and markup.
        tokenizer: of the evaluator's encoder.
        score_rows: computes the scores.
        draw_graphs: the graphs of some examples, or None where no graph branch looks at them.

    Raises:
        BackendError: a score is not a finite number; the message names the example.
    """
    usable = [i for i, e in enumerate(examples) if _status(e) == "ok"]
    coded = encode_pairs(tokenizer, [examples[i] for i in usable], settings.markup)
    rows = dict(zip(usable, coded, strict=True))
    drawn = draw_graphs([examples[i] for i in usable])
    graph_rows = dict(zip(usable, drawn, strict=True)) if drawn else dict.fromkeys(usable)
    places = {i: (row.context, row.response, graph_rows[i]) for i, row in rows.items()}
    distinct = list(dict.fromkeys(places.values()))
    texts = [Row(context, response, 0, 0, False) for context, response, _ in distinct]
    values = dict(zip(distinct, score_rows(texts, [g for *_, g in distinct if g] or None), strict=True))
    predictions = []
    for i, example in enumerate(examples):
        row = rows.get(i)
        if row is None:
            head = (example.id, example.language, scorer, settings.dimension)
            predictions.append(Prediction(*head, None, _status(example)))
            continue
        value = values[places[i]]
        if not math.isfinite(value):
            raise BackendError(
                f"evaluator {settings.dimension}", f"the score of example {example.id!r} is {value}", hint="use fp32"
            )
        predictions.append(_prediction(example, row, graph_rows[i], value, scorer, settings.dimension))
    return predictions


def _prediction(
    example: Example, row: Row, graph: GraphRow | None, value: float, scorer: str, dimension: str
) -> Prediction:
    detail: dict[str, Scalar] = {"n_tokens": row.n_tokens, "n_turns_dropped": row.n_turns_dropped}
    if graph is not None:
        detail |= {"n_graphs": graph.n_graphs, "n_turns": graph.n_turns, "graph_cut": graph.cut}
    status: PredictionStatus = "truncated" if row.truncated else "ok"
    return Prediction(example.id, example.language, scorer, dimension, value, status, detail)


def _status(example: Example) -> PredictionStatus:
    if example.response is None:
        return "unsupported"
    return "ok" if example.response.text.strip() else "empty"
