"""``parse`` and ``faithfulness``: graphs of the English side with coverage, and what a rewrite loses or adds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mdialeval import api
from mdialeval.cache import Cache
from mdialeval.errors import ConfigError, DataError
from mdialeval.graphs.dummy import DummyParser
from mdialeval.records import Graph, RankedTranslation
from mdialeval.store import Run, Stage
from mdialeval.verbs.describe import describe_stages

Small = Callable[..., dict[str, Any]]


def test_every_english_turn_gets_a_graph_with_its_id(small_run: Small) -> None:
    stage = api.parse(small_run(parse={"parser": "dummy"})).stages[0]
    graphs = list(stage.read(Graph))
    assert [g.id for g in graphs] == [f"d{i}#{t}" for i in range(12) for t in range(5)]
    assert stage.summary()["coverage"] == "60 of 60"


def test_coverage_counts_failures_and_graphs_that_lack_a_part(
    small_run: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = DummyParser.parse

    def parsed(self: DummyParser, texts: Sequence[str]) -> list[Graph]:
        return [
            replace(graph, status="failed", detail="no beam")
            if "number 3" in text
            else replace(graph, detail="content words alone" if "number 5" in text else "")
            for text, graph in zip(texts, parse(self, texts), strict=True)
        ]

    monkeypatch.setattr(DummyParser, "parse", parsed)
    outcome = api.parse(small_run(parse={"parser": "dummy"}))
    summary = outcome.stages[0].summary()
    assert summary["statuses"] == {"failed": 5, "ok": 55}
    assert summary["coverage"] == "55 of 60"
    assert summary["partial"] == {"content words alone": 5}
    shown = describe_stages(outcome.stages)
    assert "  statuses: 5 failed, 55 ok" in shown
    assert "  partial: 5 content words alone" in shown


def test_given_graphs_whose_ids_do_not_match_are_refused(small_run: Small, tmp_path: Path) -> None:
    path = tmp_path / "graphs.txt"
    path.write_text("# ::id e0#0\n(w / want-01)\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"graphs\.txt.*none of the 25 ids is in the file: asked for 'd0#0'"):
        api.parse(small_run(parse={"parser": "given", "options": {"path": str(path)}}))


def test_a_corpus_that_is_not_english_is_refused(small_run: Small, tmp_path: Path) -> None:
    path = tmp_path / "pt.jsonl"
    path.write_text(json.dumps({"id": "p", "language": "pt", "turns": ["Olá.", "Oi."]}), encoding="utf-8")
    with pytest.raises(DataError, match=r"English side.*corpus is in pt"):
        api.parse(small_run(corpus={"path": str(path)}, parse={"parser": "dummy"}))


def test_a_role_swap_costs_and_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "id\tsource\trewrite\nsame\tThe dog chased the cat.\tThe dog chased the cat.\n"
        "swap\tThe dog chased the cat.\tThe cat chased the dog.\n",
        encoding="utf-8",
    )
    same, swap = api.faithfulness(path)
    assert (same.f1, same.missing, same.added) == (1.0, (), ())
    assert swap.f1 < 1
    assert any("dog" in edge for edge in swap.missing)


def test_faulty_pairs_name_the_row_and_the_column(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("source,rewritten\nA,B\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"rewrite\].*did you mean 'rewritten'"):
        api.faithfulness(path)
    with pytest.raises(ConfigError, match="unknown measure 'smach': did you mean 'smatch'"):
        api.faithfulness(tmp_path / "x.amr", tmp_path / "y.amr", measure="smach")


def test_given_graphs_must_be_the_same_sentences(tmp_path: Path) -> None:
    one, two = tmp_path / "one.amr", tmp_path / "two.amr"
    one.write_text("# ::id s1\n(w / want-01 :ARG0 (i / i))\n", encoding="utf-8")
    two.write_text("# ::id s2\n(w / want-01 :ARG0 (i / i))\n", encoding="utf-8")
    with pytest.raises(DataError, match="'s1' meets 's2'"):
        api.faithfulness(one, two)
    two.write_text("# ::id s1\n(w / want-01 :ARG0 (y / you))\n", encoding="utf-8")
    (found,) = api.faithfulness(one, two)
    assert 0 < found.f1 < 1


def test_graphs_are_parsed_and_found_for_training_and_scoring(small_run: Small, tmp_path: Path) -> None:
    values = small_run(parse={"parser": "dummy"})
    values["train"] |= {"graph": {"use": "joint", "width": 8, "heads": 2, "layers": 1}, "max_pairs": 60}
    options = {"sensibleness": {"broken": 1.0}, "understandability": {}}
    values["train"]["dimensions"] = {name: {"options": options[name]} for name in options}
    foreign = tmp_path / "foreign.jsonl"
    foreign.write_text(
        "\n".join(
            json.dumps(
                {"id": f"f{i}", "language": "pt", "context": ["Olá."], "response": "Tudo bem?", "group": f"g{i}"}
            )
            for i in range(3)
        )
    )
    values["score"]["sets"].append({"name": "foreign", "path": str(foreign)})
    outcome = api.score(values)
    trained = {s.summary()["dimension"]: s.summary() for s in _stages(outcome.run, "train")}
    for summary in trained.values():
        counts = summary["graphs"]
        assert counts["pairs"] == summary["train_pairs"]
        assert counts["with_graph"] == counts["pairs"]  # translations have the graphs of their English turns
    assert trained["understandability"]["graphs"]["turns_with_graph"] == trained["understandability"]["graphs"]["turns"]
    told = [s.summary() for s in outcome.stages if s.summary()["scorer"] == "evaluator"]
    assert [t["graphs"] for t in told] == [{"en": "24 of 24", "pt": "24 of 24"}, {"pt": "0 of 6"}]
    assert {"evaluator", "length", "dummy"} == {s.summary()["scorer"] for s in outcome.stages}
    assert "graphs" not in next(s.summary() for s in outcome.stages if s.summary()["scorer"] == "length")


def test_graphs_of_back_translations_rank_through_the_cache_of_parse(small_run: Small) -> None:
    rank = {"estimator": "graph_back", "options": {"parser": "dummy"}, "k": 60}
    values = small_run(translate={"routes": {"pt": "dummy"}, "back": True}, rank=rank, parse={"parser": "dummy"})
    stage = api.rank(values).stages[0]
    rows = list(stage.read(RankedTranslation))
    assert stage.summary()["unscored"] == {}
    ranked = [row for row in rows if row.rank is not None]
    assert len(ranked) > 20
    assert all(row.score is not None and 0 <= row.score <= 1 for row in ranked)
    assert all(row.reason in ("kept", "below_cut") for row in ranked)
    with Cache(Path(values["runs"]) / "parse.sqlite", DummyParser().identity) as cache:
        assert cache.get([rows[0].translation.source])[0] is not None
    with pytest.raises(ConfigError, match=r"needs translate\.back: true"):
        api.rank(small_run(translate={"routes": {"pt": "dummy"}}, rank=rank))


def _stages(run: Path, verb: str) -> list[Stage]:
    return Run(run).finished(verb)
