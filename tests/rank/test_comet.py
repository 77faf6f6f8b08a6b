"""COMET checkpoints: the same numbers as COMET's own predict, no network, and mistakes explained."""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from mdialeval.errors import BackendError, ConfigError, DataError
from mdialeval.rank.batches import Batches
from mdialeval.rank.comet import Comet, find_checkpoint, load_checkpoint
from mdialeval.records import Translation

Row = Callable[..., Translation]


@pytest.fixture(params=["regression", "unified"])
def checkpoint(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)


def test_scores_equal_comets_own_predict(checkpoint: Path, rows: list[Translation]) -> None:
    model = load_checkpoint(find_checkpoint(checkpoint))
    samples = [{"src": r.source, "mt": r.hypothesis} for r in rows]
    theirs = model.predict(samples, batch_size=4, gpus=0, progress_bar=False, num_workers=0).scores
    ours = Comet(str(checkpoint), device="cpu").estimate(rows)
    assert ours == pytest.approx(theirs, abs=1e-4)
    assert len({round(s, 6) for s in ours}) > 20  # a constant model would prove nothing


def test_order_batch_size_and_repeats_do_not_matter(checkpoint: Path, rows: list[Translation]) -> None:
    one, seven = (Comet(str(checkpoint), device="cpu", batch_size=size) for size in (1, 7))
    expected = one.estimate(rows)
    assert seven.estimate(rows) == pytest.approx(expected, abs=1e-5)
    assert seven.estimate([*reversed(rows), *rows]) == pytest.approx([*reversed(expected), *expected], abs=1e-5)


def test_a_local_path_never_touches_the_network(checkpoint: Path, no_network: None, rows: list[Translation]) -> None:
    for path in (checkpoint, checkpoint / "checkpoints" / "model.ckpt"):
        assert all(map(math.isfinite, Comet(str(path), device="cpu").estimate(rows[:3])))


def test_empty_texts_get_no_number_and_an_empty_list_is_fine(checkpoint: Path, row: Row) -> None:
    comet = Comet(str(checkpoint), device="cpu")
    assert comet.estimate([]) == []
    assert comet.lengths([]) == []
    scores = comet.estimate(
        [row("Hi", ""), row(" \n", "Hallo"), row("Hi", "Hallo", status="failed"), row("Hi", "Hallo")]
    )
    assert [math.isnan(s) for s in scores] == [True, True, True, False]


def test_long_pairs(checkpoint: Path, caplog: pytest.LogCaptureFixture, rows: list[Translation], row: Row) -> None:
    long = row("Where is the station? " * 30, "Wo ist der Bahnhof? " * 30, item="long")
    comets = {how: Comet(str(checkpoint), device="cpu", on_long=how) for how in ("truncate", "window", "skip", "error")}
    assert [n.truncated for n in comets["truncate"].lengths([long, rows[0]])] == [True, False]
    scores = {how: comets[how].estimate([long, rows[0]]) for how in ("truncate", "window", "skip")}
    assert len({round(s[1], 5) for s in scores.values()}) == 1
    assert math.isnan(scores["skip"][0])
    assert math.isfinite(scores["window"][0])
    assert scores["window"][0] != pytest.approx(scores["truncate"][0], abs=1e-7)
    assert "1 of 2 rows are longer than" in caplog.text
    with pytest.raises(DataError, match=r"'long#0' \(de\), has \d+"):
        comets["error"].estimate([long, rows[0]])


def test_out_of_memory_halves_the_batch_and_says_so_once_per_size(caplog: pytest.LogCaptureFixture) -> None:
    def run(rows: list[int]) -> torch.Tensor:
        if len(rows) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return torch.tensor(rows, dtype=torch.float)[:, None]

    with caplog.at_level(logging.WARNING):
        batches = Batches(8)
        assert batches.gather(run, [5] * 20)[:, 0].tolist() == list(range(20))
        assert batches.gather(run, [5] * 20)[:, 0].tolist() == list(range(20))
    assert [r.getMessage().split(";")[1].strip() for r in caplog.records] == [
        "going on with at most 4 rows a batch",
        "going on with at most 2 rows a batch",
    ]
    with pytest.raises(BackendError, match="one row of 9 tokens"):
        Batches(1).gather(lambda rows: (_ for _ in ()).throw(torch.OutOfMemoryError("out of memory")), [9])
    with pytest.raises(RuntimeError, match="shape"):
        Batches(2).gather(lambda rows: (_ for _ in ()).throw(RuntimeError("shape mismatch")), [9])


def test_gated_and_missing_checkpoints_give_one_message() -> None:
    with pytest.raises(BackendError) as caught:
        Comet("wmt22-cometkiwi-da")
    text = str(caught.value)
    for part in (
        "https://huggingface.co/Unbabel/wmt22-cometkiwi-da",
        "HF_TOKEN",
        "CC BY-NC-SA 4.0",
        "wmt20-comet-qe-da",
        "embedded",
    ):
        assert part in text, part
    with pytest.raises(BackendError, match="huggingface-cli download Unbabel/wmt20-comet-qe-da"):
        Comet()


def test_gated_answer_of_the_hub_never_prints_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import GatedRepoError

    def refuse(*_: object, **__: object) -> str:
        request = type("R", (), {"headers": {}, "status_code": 403, "text": "", "request": None, "url": ""})()
        raise GatedRepoError("403 hf_secret", response=request)

    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(BackendError, match="is gated") as caught:
        Comet("Unbabel/wmt23-cometkiwi-da-xl", offline=False)
    assert "hf_secret" not in str(caught.value)


def test_wrong_paths_and_models(tmp_path: Path, regression: Path) -> None:
    with pytest.raises(ConfigError, match="no COMET checkpoint"):
        Comet("./nowhere.ckpt")
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(ConfigError, match="found none"):
        Comet(str(tmp_path))
    (tmp_path / "checkpoints" / "model.ckpt").write_bytes(b"half a file")
    with pytest.raises(ConfigError, match=r"hparams\.yaml is missing"):
        Comet(str(tmp_path))
    (tmp_path / "hparams.yaml").write_bytes((regression / "hparams.yaml").read_bytes())
    with pytest.raises(BackendError, match="not a readable checkpoint"):
        Comet(str(tmp_path), device="cpu")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no GPU"):
            Comet(str(regression), device="cuda")


def test_a_model_that_needs_references_is_refused(
    tmp_path: Path, regression: Path, save_comet: Callable[..., Path]
) -> None:
    from comet.models import RegressionMetric

    encoder = str(regression.parent / "encoder")
    model = RegressionMetric(encoder_model="BERT", pretrained_model=encoder, local_files_only=True, hidden_sizes=[8])
    with pytest.raises(ConfigError, match="scores against references"):
        Comet(str(save_comet(model, tmp_path / "m")), device="cpu")


def test_encoder_that_is_not_here(tmp_path: Path, regression: Path) -> None:
    import yaml

    folder = tmp_path / "comet"
    (folder / "checkpoints").mkdir(parents=True)
    hparams = yaml.safe_load((regression / "hparams.yaml").read_text())
    hparams["pretrained_model"] = "nobody/no-such-encoder"
    (folder / "hparams.yaml").write_text(yaml.safe_dump(hparams))
    state = torch.load(regression / "checkpoints" / "model.ckpt", weights_only=True)
    state["hyper_parameters"] = hparams
    torch.save(state, folder / "checkpoints" / "model.ckpt")
    with pytest.raises(BackendError, match=r"built on 'nobody/no-such-encoder'.*huggingface-cli download"):
        Comet(str(folder), device="cpu")


def test_assets_without_loading(regression: Path) -> None:
    assert all(asset.present for asset in Comet.assets(str(regression)))
    absent = Comet.assets("wmt22-cometkiwi-da")[1]
    assert not absent.present
    assert absent.licence == "CC BY-NC-SA 4.0"
    assert "accepting the licence" in absent.fix
