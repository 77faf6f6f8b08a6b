"""The amrlib adapter on a tiny BART that a fixture overfits on a dozen sentences: no download, the real success path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdialeval.errors import BackendError
from mdialeval.graphs.amrlib import AmrlibParser
from mdialeval.graphs.penman_codec import encode
from mdialeval.graphs.protocol import PARSERS
from mdialeval.registry import create

PAIRS = {
    "The boy wants to go.": "( want-01 :ARG0 ( boy ) :ARG1 ( go-02 :ARG0 boy ) )",
    "I like tea.": "( like-01 :ARG0 ( i ) :ARG1 ( tea ) )",
    "You like milk.": "( like-01 :ARG0 ( you ) :ARG1 ( milk ) )",
    "She sings.": "( sing-01 :ARG0 ( she ) )",
    "He cannot swim.": "( possible-01 :polarity - :ARG1 ( swim-01 :ARG0 ( he ) ) )",
    "Birds fly.": "( fly-01 :ARG1 ( bird ) )",
    "Nonsense out.": "( ( ( ( ( ( ( (",
}
MAX_IN = 12


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BART of a few thousand weights, trained for some seconds to know ``PAIRS`` by heart, in amrlib's layout."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("amrlib")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("amrlib") / "model_parse_tiny"
    words = sorted({word for pair in PAIRS.items() for text in pair for word in text.split()})
    vocabulary = {token: i for i, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # faster for a model this small
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(vocabulary), d_model=48, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=64, dropout=0.0,
        bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2,
        task_specific_params={"parse_amr": {"max_in_len": MAX_IN, "max_out_len": 40, "model_name_or_path": "facebook/bart-base"}},
    )  # fmt: skip
    model = BartForConditionalGeneration(config)
    inputs = fast(list(PAIRS), padding=True, return_tensors="pt")
    labels = fast(list(PAIRS.values()), padding=True, return_tensors="pt")["input_ids"]
    labels[labels == 1] = -100
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(220):
        loss = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_num_threads(threads)
    model.generation_config.no_repeat_ngram_size = 3  # as in released BART configurations
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    meta = {"inference_module": ".parse_xfm.inference", "inference_class": "Inference", "model_fn": "model.safetensors"}
    (folder / "amrlib_meta.json").write_text(json.dumps(meta))
    return folder


@pytest.fixture(scope="module")
def parser(model_folder: Path) -> AmrlibParser:
    return AmrlibParser(model_folder, device="cpu", num_beams=2, batch_size=3)


def test_sentences_come_back_as_the_graphs_it_learnt(parser: AmrlibParser) -> None:
    graphs = parser.parse(["The boy wants to go.", "He cannot swim."])
    assert [graph.status for graph in graphs] == ["ok", "ok"]
    assert encode(graphs[0], indent=None) == "(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))"
    assert ("possible-01", "polarity", "-") in {
        (graphs[1].concepts[s], role, graphs[1].concepts[t]) for s, role, t in graphs[1].edges
    }


def test_repeated_words_are_not_banned(parser: AmrlibParser) -> None:
    """``no_repeat_ngram_size`` of the checkpoint would forbid ``( like-01 :ARG0 (`` and friends."""
    assert parser._stog.model.generation_config.no_repeat_ngram_size == 0


def test_several_sentences_are_parsed_one_by_one_and_joined(parser: AmrlibParser) -> None:
    (graph,) = parser.parse(["I like tea.\nYou like milk."])
    assert graph.concepts[graph.top] == "multi-sentence"
    assert {"tea", "milk", "i", "you"} <= set(graph.concepts)
    assert (graph.top, "snt2", graph.concepts.index("like-01", 3)) in graph.edges


@pytest.mark.parametrize("text", ["", "   ", "😂😂", "?!", "\u200b"])
def test_text_without_words_is_never_sent(parser: AmrlibParser, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser._stog, "parse_sents", lambda *_, **__: pytest.fail("sent to the model"))
    (graph,) = parser.parse([text])
    assert graph.status == "empty"


@pytest.mark.parametrize("output", [None, "()", "( (", "(a / a", "(a / b :ARG0 (a / c))"])
def test_what_is_no_graph_is_a_failure(
    parser: AmrlibParser, output: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser._stog, "parse_sents", lambda sents, **_: [output] * len(sents))
    (graph,) = parser.parse(["I like tea."])
    assert graph.status == "failed"
    assert "not a graph" in graph.detail


def test_degenerate_output_of_the_model_itself_fails(parser: AmrlibParser) -> None:
    graphs = parser.parse(["Nonsense out.", "She sings."])
    assert [graph.status for graph in graphs] == ["failed", "ok"]


def test_one_bad_sentence_never_kills_the_batch(parser: AmrlibParser, monkeypatch: pytest.MonkeyPatch) -> None:
    parse = parser._stog.parse_sents

    def fragile(sents: list[str], **options: object) -> list[str | None]:
        if "Birds fly." in sents:
            raise ValueError("odd blank")
        return parse(sents, **options)

    monkeypatch.setattr(parser._stog, "parse_sents", fragile)
    graphs = parser.parse(["I like tea.", "Birds fly.", "She sings. Birds fly."])
    assert [graph.status for graph in graphs] == ["ok", "failed", "truncated"]
    assert "1 of 2 sentences got no graph" in graphs[2].detail


def test_programmer_errors_pass_through(parser: AmrlibParser, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(sents: list[str], **_: object) -> list[str]:
        raise TypeError("ours")

    monkeypatch.setattr(parser._stog, "parse_sents", broken)
    with pytest.raises(TypeError):
        parser.parse(["I like tea."])


def test_a_clipped_sentence_says_so(parser: AmrlibParser, monkeypatch: pytest.MonkeyPatch) -> None:
    penman = "(l / like-01 :ARG0 (i / i))"
    monkeypatch.setattr(parser._stog, "parse_sents", lambda sents, **_: [penman] * len(sents))
    (graph,) = parser.parse(["I like tea and " * 10 + "tea."])
    assert graph.status == "truncated"
    assert graph.detail == f"43 tokens clipped to {MAX_IN}"


def test_other_languages_are_refused(parser: AmrlibParser) -> None:
    (graph,) = parser.parse(["今天不行"])
    assert graph.status == "failed"
    assert "not English" in graph.detail


def test_order_and_batch_do_not_matter(parser: AmrlibParser) -> None:
    texts = [*PAIRS, "", "今天", "I like tea. She sings."]
    together = parser.parse(texts)
    assert together == [parser.parse([text])[0] for text in texts]
    assert parser.parse(texts[::-1]) == together[::-1]
    assert parser.parse([]) == []


def test_a_folder_without_tokenizer_names_the_fix(model_folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("amrlib_meta.json", "config.json", "model.safetensors"):
        (bare / name).write_bytes((model_folder / name).read_bytes())
    with pytest.raises(BackendError, match=r"holds no tokenizer .*facebook/bart-base.*'tokenizer'"):
        AmrlibParser(bare)
    found = AmrlibParser(bare, tokenizer=model_folder, device="cpu", num_beams=1).parse(["She sings."])
    assert found[0].status == "ok"
    with pytest.raises(BackendError, match="cannot load"):
        AmrlibParser(bare, tokenizer=tmp_path / "nowhere")


def test_a_missing_folder_says_where_models_are(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="amrlib-models"):
        create("graph parser", PARSERS, "amrlib", {"model": str(tmp_path / "none")})
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BackendError, match=r"amrlib_meta\.json"):
        AmrlibParser(tmp_path)
    (tmp_path / "amrlib_meta.json").write_text("{}")
    with pytest.raises(BackendError, match="parse_amr"):
        AmrlibParser(tmp_path)


def test_assets_load_nothing(model_folder: Path, tmp_path: Path) -> None:
    assert all(asset.present for asset in AmrlibParser.assets(model=model_folder))
    missing = AmrlibParser.assets(model=tmp_path / "none")[-1]
    assert not missing.present
    assert "amrlib-models" in missing.fix
    assert not AmrlibParser.assets()[-1].present
