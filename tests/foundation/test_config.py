"""Configurations: strict, YAML 1.2, every problem at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdialeval.config import load, parse
from mdialeval.errors import ConfigError


def _write(folder: Path, text: str) -> Path:
    path = folder / "c.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_five_mistakes_are_all_listed(tmp_path: Path) -> None:
    path = _write(
        tmp_path,
        "corpse: 1\ncorpus: {path: a.jsonl, raeder: x}\ntranslate: {routes: {ge: firefox}}\n"
        "rank: {k: 150}\ntrain: {epochs: no}\n",
    )
    with pytest.raises(ConfigError) as caught:
        load(path)
    text = str(caught.value)
    assert len(caught.value.problems) == 5
    for part in (
        "corpse: unknown key, did you mean 'corpus'",
        "corpus.raeder: unknown key, did you mean 'reader'?",
        "unknown language 'ge': did you mean de (German)",
        "rank.k.0: Input should be less than or equal to 100 (found 150)",
        "train.epochs: Input should be a valid number",
    ):
        assert part in text


def test_yaml_is_version_1_2(tmp_path: Path) -> None:
    config = load(_write(tmp_path, "translate: {routes: {no: dummy}}\ntrain: {learning_rate: 1e-5}\n"))
    assert config.translate.routes == {"no": "dummy"}
    assert config.train.learning_rate == 1e-5


def test_a_byte_order_mark_and_an_empty_file_are_fine(tmp_path: Path) -> None:
    assert load(_write(tmp_path, "\ufeffrun: x\n")).run == "x"
    assert load(_write(tmp_path, "")).run == "default"


@pytest.mark.parametrize("k", ["0", "-1", "150", ".nan"])
def test_k_outside_of_its_range_is_refused(tmp_path: Path, k: str) -> None:
    with pytest.raises(ConfigError, match=r"rank\.k"):
        load(_write(tmp_path, f"rank: {{k: {k}}}\n"))


def test_a_repeated_key_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"line 2, column 1: found duplicate key"):
        load(_write(tmp_path, "seed: 1\nseed: 2\n"))


def test_overrides_reach_nested_keys_and_report_their_faults() -> None:
    values = {"corpus": {"path": "a.jsonl"}, "score": {"sets": [{"path": "b.jsonl"}]}}
    config = parse(values, ["rank.k=20", "score.sets.0.name=mine", "train.encoder=x/y"])
    assert (config.rank.k, config.score.sets[0].title, config.train.encoder) == ((20.0,), "mine", "x/y")
    with pytest.raises(ConfigError, match="3 problems"):
        parse(values, ["rank.kk=1", "nothing", "score.sets.7.name=x"])


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("")
    config = load(_write(tmp_path, "corpus: {path: d.jsonl}\n"))
    assert config.corpus is not None
    assert config.corpus.path == [(tmp_path / "d.jsonl").resolve()]


def test_speed_settings_and_paths_stay_out_of_fingerprints() -> None:
    one = parse({"rank": {"batch_size": 1, "device": "cpu"}, "corpus": {"path": "a"}})
    two = parse({"rank": {"batch_size": 9}, "corpus": {"path": "b"}})
    assert one.rank.content() == two.rank.content()
    assert one.corpus is not None and two.corpus is not None
    assert one.corpus.content() == two.corpus.content()


def test_a_missing_file_says_where_it_looked() -> None:
    with pytest.raises(ConfigError, match="no such configuration file"):
        load("nowhere.yaml")


def test_a_dimension_may_have_settings_of_its_own() -> None:
    config = parse(
        {"train": {"epochs": 2, "dimensions": {"sensibleness": {"recipe": {"epochs": 3}}, "understandability": {}}}}, []
    )
    assert config.train.of("sensibleness").epochs == 3
    assert config.train.of("understandability").epochs == 2


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ({"epoch": 1}, "'epoch' is no setting of train"),
        ({"data": []}, "'data' is set once for all dimensions"),
        ({"epochs": -1}, "epochs: Input should be greater than 0"),
    ],
)
def test_a_wrong_recipe_names_dimension_and_key(recipe: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=r"dimensions\.sensibleness\.recipe") as error:
        parse({"train": {"dimensions": {"sensibleness": {"recipe": recipe}}}}, [])
    assert says in str(error.value)
