"""The network: markup, packing, and what is saved is what is loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from mdialeval.errors import BackendError, ConfigError, DataError
from mdialeval.model.batches import Attention, bundles, collate
from mdialeval.model.encoder import Pooling, load_base, weights_hash
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.markup import Markup, Row, encode_pairs
from mdialeval.model.network import Architecture, EvaluatorNetwork
from mdialeval.model.saved import Settings, export, save_folder
from mdialeval.records import Example, Turn

CONTEXT = (Turn("Do you want tea?"), Turn("No."), Turn("Coffee, then? I have just made some."))


def example(response: str = "Yes, please!", context: tuple[Turn, ...] = CONTEXT, name: str = "e") -> Example:
    return Example(name, "en", context, Turn(response))


def examples() -> list[Example]:
    texts = ["Yes, please!", "No.", "我用 iPhone", "Der Zug ist weg, leider." * 3, "Why?", "It is cold in here today."]
    made = [example(t, name=f"a{i}") for i, t in enumerate(texts)]
    made += [example(t, CONTEXT[:1], name=f"b{i}") for i, t in enumerate(texts)]
    return [*made, example("Alone.", (), name="c")]


def network_of(
    encoder: Path, attention: Attention = "shared", pooling: Pooling = "parts"
) -> tuple[EvaluatorNetwork, object]:
    base, tokenizer = load_base(str(encoder))
    torch.manual_seed(5)
    return EvaluatorNetwork(base, Architecture(attention, pooling, hidden=8)).eval(), tokenizer


def saved(encoder: Path, folder: Path, attention: Attention = "shared", pooling: Pooling = "parts") -> Path:
    network, tokenizer = network_of(encoder, attention, pooling)
    base_hash = weights_hash(network.encoder.base)
    with torch.no_grad():  # as if training had changed the top layer
        network.encoder.base.encoder.layer[-1].output.dense.weight.add_(0.05)
    trained = {"encoder.base.encoder.layer.1.output.dense.weight"}
    settings = Settings("sensibleness", str(encoder), base_hash, network.architecture, Markup(64))
    save_folder(folder, network, tokenizer, settings, trained, "# card")
    return folder


def scores(evaluator: Evaluator, items: list[Example]) -> list[float]:
    return [p.score if p.score is not None else float("nan") for p in evaluator.predict(items)]


def test_response_whole_then_newest_turns(tiny_encoder: Path) -> None:
    _, tokenizer = load_base(str(tiny_encoder))
    context = tuple(Turn(f"turn {i}") for i in range(30))
    row = encode_pairs(tokenizer, [example("This is the answer.", context)], Markup(128))[0]
    text = tokenizer.decode([*row.context, *row.response]).replace("▁", "").replace(" ", "")
    assert text.endswith("turn29</s>Thisistheanswer.</s>")
    kept = text.count("turn")
    assert row.n_turns_dropped == 30 - kept > 0
    assert text.startswith(f"turn{30 - kept}")
    assert row.n_tokens == 1 + len(row.context) + len(row.response) <= 128
    assert not row.truncated


def test_long_response_is_cut_and_said(tiny_encoder: Path) -> None:
    _, tokenizer = load_base(str(tiny_encoder))
    row = encode_pairs(tokenizer, [example("word " * 5000)], Markup(32))[0]
    assert row.truncated
    assert row.n_tokens == 32
    assert row.context == ()
    assert row.n_turns_dropped == 3


def test_special_tokens_in_text_are_text(tiny_encoder: Path) -> None:
    _, tokenizer = load_base(str(tiny_encoder))
    row = encode_pairs(tokenizer, [example("hi</s><s>there", ())], Markup(64))[0]
    assert row.response.count(tokenizer.sep_token_id) == 1
    assert tokenizer.cls_token_id not in row.response


def test_speaker_letters_count_back_from_the_response(tiny_encoder: Path) -> None:
    _, tokenizer = load_base(str(tiny_encoder))
    named = (Turn("Hi.", "ann"), Turn("Hello.", "bob"), Turn("So?", "ann"))
    row = encode_pairs(tokenizer, [Example("e", "en", named, Turn("Yes.", "ann"))], Markup(64, speakers="letters"))[0]
    text = tokenizer.decode([*row.context, *row.response]).replace("▁", "").replace(" ", "")
    assert text == "A:Hi.</s>B:Hello.</s>A:So?</s>A:Yes.</s>"


@pytest.mark.parametrize("attention", ["shared", "separate", "joint"])
@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_scores_do_not_depend_on_the_batch(
    make_encoder: Callable[..., Path], tmp_path: Path, kind: str, attention: Attention
) -> None:
    folder = saved(make_encoder(kind), tmp_path / "e", attention)
    items = examples()
    alone = [scores(Evaluator.from_pretrained(folder, batch_size=1), [item])[0] for item in items[:3]]
    together = scores(Evaluator.from_pretrained(folder, batch_size=7), items)
    backwards = scores(Evaluator.from_pretrained(folder, batch_size=64), items[::-1])[::-1]
    assert together == pytest.approx(backwards, abs=1e-6)
    assert together[:3] == pytest.approx(alone, abs=1e-6)
    assert len({round(s, 6) for s in together}) > 5


def test_packing_equals_single_pairs_by_definition(tiny_encoder: Path) -> None:
    """One packed sequence gives what a plain forward pass over each block gives, under ``separate``."""
    network, tokenizer = network_of(tiny_encoder, "separate")
    rows = encode_pairs(tokenizer, [example("Yes."), example("No, thanks.")], Markup(96))
    batch = collate(rows, [[0, 1]], tokenizer.cls_token_id, tokenizer.pad_token_id, "separate")
    pooled = network.encoder.pooled(batch)[:, :, 0]
    for i, row in enumerate(rows):
        for part, ids in ((0, row.context), (1, row.response)):
            states = network.encoder.base(torch.tensor([[tokenizer.cls_token_id, *ids]])).last_hidden_state
            assert torch.allclose(pooled[i, part], states.mean(1)[0], atol=1e-5)


def test_shared_context_does_not_see_the_response(tiny_encoder: Path) -> None:
    network, tokenizer = network_of(tiny_encoder, "shared")
    rows = encode_pairs(tokenizer, [example("Yes."), example("No, thanks.")], Markup(96))
    pooled = [
        network.encoder.pooled(collate(rows, [[i]], tokenizer.cls_token_id, tokenizer.pad_token_id, "shared"))
        for i in (0, 1)
    ]
    assert torch.allclose(pooled[0][0, 0], pooled[1][0, 0], atol=1e-6)
    assert not torch.allclose(pooled[0][0, 1], pooled[1][0, 1], atol=1e-3)


def test_bundles_hold_every_row_once() -> None:
    rows = [Row((i % 3,), (9, i), 4, 0, False) for i in range(20)] + [Row((), (1,), 2, 0, False)] * 2
    found = bundles(rows, range(len(rows)), pack=4)
    assert sorted(i for bundle in found for i in bundle) == list(range(22))
    assert all(len(b) <= 4 and len({rows[i].context for i in b}) == 1 for b in found)


def test_save_load_score_identical(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = saved(tiny_encoder, tmp_path / "e")
    first, second = Evaluator.from_pretrained(folder), Evaluator.from_pretrained(folder)
    assert scores(first, examples()) == scores(second, examples())
    assert first.signature == second.signature
    assert first.score(["Do you want tea?"], "Yes.") == scores(second, [example("Yes.", CONTEXT[:1])])[0]
    untouched = tmp_path / "plain"
    network, tokenizer = network_of(tiny_encoder)
    settings = Settings("sensibleness", str(tiny_encoder), weights_hash(network.encoder.base), network.architecture)
    save_folder(untouched, network, tokenizer, settings, set(), "# card")
    assert scores(Evaluator.from_pretrained(untouched), examples()) != scores(first, examples())


def test_export_stands_alone(make_encoder: Callable[..., Path], tmp_path: Path) -> None:
    encoder = make_encoder("xlm-roberta", 3)
    folder = saved(encoder, tmp_path / "e")
    before = scores(Evaluator.from_pretrained(folder), examples())
    export(folder, tmp_path / "out")
    (encoder / "config.json").rename(encoder / "gone.json")
    try:
        assert scores(Evaluator.from_pretrained(tmp_path / "out"), examples()) == before
        assert AutoModel.from_pretrained(tmp_path / "out").config.hidden_size == 32
        assert len(AutoTokenizer.from_pretrained(tmp_path / "out")) > 100
    finally:
        (encoder / "gone.json").rename(encoder / "config.json")


def test_another_encoder_is_refused(make_encoder: Callable[..., Path], tmp_path: Path) -> None:
    folder = saved(make_encoder("bert"), tmp_path / "e")
    with pytest.raises(BackendError, match=r"trained on the encoder .* but .* holds weights"):
        Evaluator.from_pretrained(folder, encoder=str(make_encoder("bert", seed=9)))


def test_broken_folders_are_named(tiny_encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"evaluator\.json is missing"):
        Evaluator.from_pretrained(tmp_path)
    folder = saved(tiny_encoder, tmp_path / "e")
    settings = json.loads((folder / "evaluator.json").read_text())
    (folder / "evaluator.json").write_text(json.dumps({**settings, "format": 99}))
    with pytest.raises(DataError, match="another version"):
        Evaluator.from_pretrained(folder)
    (folder / "evaluator.json").write_text(json.dumps(settings))
    (folder / "evaluator.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="weights cannot be read"):
        Evaluator.from_pretrained(folder)


def test_statuses(tiny_encoder: Path, tmp_path: Path) -> None:
    evaluator = Evaluator.from_pretrained(saved(tiny_encoder, tmp_path / "e"))
    found = evaluator.predict(
        [example("  "), Example("d", "en", CONTEXT, None), example("word " * 200), example("😂😂"), example("Fine.")]
    )
    assert [p.status for p in found] == ["empty", "unsupported", "truncated", "ok", "ok"]
    assert [p.score is None for p in found] == [True, True, False, False, False]
    assert found[2].detail["n_tokens"] == 64
    assert found[2].detail["n_turns_dropped"] == 3
    assert evaluator.predict([]) == []


def test_doubled_inputs_are_scored_once(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = Evaluator.from_pretrained(saved(tiny_encoder, tmp_path / "e"))
    seen: list[int] = []
    honest = evaluator.score_rows
    monkeypatch.setattr(evaluator, "score_rows", lambda rows, graphs: seen.append(len(rows)) or honest(rows, graphs))
    found = evaluator.predict([example("Yes."), example("No."), example("Yes.", name="other")])
    assert seen == [2]
    assert found[0].score == found[2].score != found[1].score


def test_pooling_start_needs_joint(tiny_encoder: Path) -> None:
    with pytest.raises(ConfigError, match="needs attention: joint"):
        network_of(tiny_encoder, "shared", "start")


def test_many_long_responses_to_one_context_go_beyond_the_number_of_positions(tiny_encoder: Path) -> None:
    """Positions restart with every response, so a packed sequence may be longer than the encoder has positions."""
    base, _ = load_base(str(tiny_encoder))
    network = EvaluatorNetwork(base, Architecture()).eval()
    rows = [Row((5, 2), (*range(6, 60), 7 + i, 2), 60, 0, False) for i in range(8)]
    together = collate(rows, [list(range(8))], 0, 1, "shared")
    assert together.input_ids.shape[1] > base.config.max_position_embeddings
    with torch.inference_mode():
        scores = network(together)
        alone = torch.cat([network(collate(rows, [[i]], 0, 1, "shared")) for i in range(8)])
    assert torch.allclose(scores, alone, atol=1e-5)
