"""The graph branch: invariances, fusion, losses, and rows that line up with packed sequences."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from mdialeval.errors import BackendError, ConfigError, DataError
from mdialeval.graphs.turns import PairGraphs, read_graphs
from mdialeval.model.attention import attention_maps
from mdialeval.model.encoder import load_base, weights_hash
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.fusion import Contrast, Fusion, FusionKind, GateKind, contrastive_loss
from mdialeval.model.graph_input import GraphBatch, Join, collate_graphs, encode_graphs
from mdialeval.model.graph_transformer import GraphTransformer, RelationAttention
from mdialeval.model.markup import Markup
from mdialeval.model.network import Architecture, EvaluatorNetwork, GraphBranch
from mdialeval.model.saved import Settings, export, load_folder, save_folder
from mdialeval.records import Example, Graph, Turn, turn_id
from mdialeval.report.attention import draw_attention
from mdialeval.scorers.evaluator import EvaluatorScorer

KINDS: list[FusionKind] = ["gate", "concat", "residual"]
GATES: list[GateKind] = ["vector", "scalar", "none"]


def random_graph(seed: int, n: int) -> Graph:
    """A random connected graph with some re-entrancies."""
    rng = random.Random(seed)
    roles = ["ARG0", "ARG1", "mod", "op1", "time", "location"]
    edges = [(rng.randrange(i), rng.choice(roles), i) for i in range(1, n)]
    edges += [(a, rng.choice(roles), b) for a, b in [rng.sample(range(n), 2) for _ in range(n // 4)]]
    return Graph("", 0, tuple(f"{rng.choice('abcdefgh')}{rng.randrange(30)}" for _ in range(n)), tuple(edges))


def shuffled(graph: Graph, seed: int) -> Graph:
    """The same graph, its nodes and edges in another order."""
    rng = random.Random(seed)
    place = list(range(len(graph.concepts)))
    rng.shuffle(place)
    concepts = [""] * len(place)
    for old, new in enumerate(place):
        concepts[new] = graph.concepts[old]
    edges = [(place[a], role, place[b]) for a, role, b in graph.edges]
    rng.shuffle(edges)
    return Graph("", place[graph.top], tuple(concepts), tuple(edges))


def pairs_of(n: int) -> list[PairGraphs]:
    sizes = [(3, 9), (20, 4), (5, 40), (60, 7), (1, 1), (30, 30)]
    return [
        PairGraphs((random_graph(i, sizes[i % 6][0]), None), random_graph(i + 50, sizes[i % 6][1])) for i in range(n)
    ]


@pytest.fixture(scope="module")
def base_and_tokenizer(tiny_encoder: Path) -> tuple[Any, Any]:
    return load_base(str(tiny_encoder))


@pytest.fixture(scope="module")
def transformer() -> GraphTransformer:
    torch.manual_seed(1)
    return GraphTransformer(32, 16, layers=2, heads=4).eval()


def batch_of(tokenizer: Any, pairs: list[PairGraphs], join: Join = "joint") -> GraphBatch:
    return collate_graphs(encode_graphs(tokenizer, pairs, join), tokenizer.pad_token_id)


@pytest.mark.parametrize("join", ["joint", "separate"])
@torch.no_grad()
def test_padding_changes_nothing(
    base_and_tokenizer: tuple[Any, Any], transformer: GraphTransformer, join: Join
) -> None:
    base, tokenizer = base_and_tokenizer
    rows = encode_graphs(tokenizer, pairs_of(6), join)
    embeddings = base.get_input_embeddings()
    together = transformer(collate_graphs(rows, 1), embeddings)
    for i, row in enumerate(rows):
        batch = collate_graphs([row], 1)
        alone = transformer(batch, embeddings)
        assert torch.equal(alone[0], transformer(collate_graphs([row, row, row], 1), embeddings)[1])
        torch.testing.assert_close(alone[0], together[i], atol=1e-6, rtol=0)
        n = len(row.segment)
        dirty = batch._replace(ids=batch.ids.clone(), turn=batch.turn.clone())
        dirty.ids[:, n:], dirty.turn[:, n:] = 7, 3
        assert torch.equal(transformer(dirty, embeddings), alone)  # what lies in the padding is never looked at


@torch.no_grad()
def test_wider_padding_is_exact(base_and_tokenizer: tuple[Any, Any], transformer: GraphTransformer) -> None:
    base, tokenizer = base_and_tokenizer
    small, large = PairGraphs((random_graph(3, 9),), random_graph(4, 8)), PairGraphs((), random_graph(5, 60))
    embeddings = base.get_input_embeddings()
    alone, beside = batch_of(tokenizer, [small]), batch_of(tokenizer, [small, large])
    assert beside.mask.shape[1] > alone.mask.shape[1]
    wide = transformer.pool(transformer.nodes(beside, embeddings)[0], beside)[0]
    narrow = transformer.pool(transformer.nodes(alone, embeddings)[0], alone)[0]
    torch.testing.assert_close(wide, narrow, atol=1e-6, rtol=0)
    assert torch.equal(transformer(beside, embeddings)[0], transformer(alone, embeddings)[0])


@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_node_order_changes_nothing(
    base_and_tokenizer: tuple[Any, Any], transformer: GraphTransformer, seed: int
) -> None:
    base, tokenizer = base_and_tokenizer
    pair = PairGraphs((random_graph(seed, 25), random_graph(seed + 9, 12)), random_graph(seed + 20, 18))
    other = PairGraphs(
        tuple(shuffled(g, seed + 1) for g in pair.context if g),
        shuffled(pair.response, seed) if pair.response else None,
    )
    embeddings = base.get_input_embeddings()
    one, two = (transformer(batch_of(tokenizer, [p]), embeddings) for p in (pair, other))
    torch.testing.assert_close(one, two, atol=1e-6, rtol=0)
    changed = PairGraphs(pair.context, random_graph(seed + 21, 18))
    assert (transformer(batch_of(tokenizer, [changed]), embeddings) - one).abs().max() > 1e-3


@torch.no_grad()
def test_attention_equals_the_plain_formula() -> None:
    torch.manual_seed(0)
    layer, nodes = RelationAttention(8, 2), torch.randn(2, 5, 8)
    relations = torch.randint(2, 40, (2, 5, 5))
    relations[0, :, 4] = 0
    found, attention = layer(nodes, relations)
    query, key, value = layer.inputs(nodes).view(2, 5, 3, 2, 4).unbind(2)  # (P, N, H, d)
    keys, values = layer.relation_keys[relations], layer.relation_values[relations]  # (P, N, N, d)
    full_keys = key.unsqueeze(1) + keys.unsqueeze(3)  # (P, N, N, H, d)
    scores = torch.einsum("pihd,pijhd->phij", query, full_keys) / 2
    weights = scores.masked_fill(relations.unsqueeze(1) < 2, -1e9).softmax(3)
    mixed = torch.einsum("phij,pijhd->pihd", weights, value.unsqueeze(1) + values.unsqueeze(3)).reshape(2, 5, 8)
    torch.testing.assert_close(attention, weights)
    torch.testing.assert_close(found, layer.output(mixed))
    assert float(attention[0, :, :4, 4].max()) == 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gate", GATES)
def test_every_fusion_learns_from_both_sides(kind: FusionKind, gate: GateKind) -> None:
    torch.manual_seed(0)
    fusion = Fusion(6, 4, kind, gate)
    if fusion.scale is not None:
        torch.nn.init.normal_(fusion.scale)
    sentence, pooled = torch.randn(3, 6, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    has_graph = torch.tensor([True, True, False])
    fused = fusion(sentence, fusion.graph_vectors(pooled, has_graph), has_graph)
    assert fused.shape == (3, fusion.width)
    fused.pow(2).sum().backward()
    assert sentence.grad is not None
    assert pooled.grad is not None
    assert bool((sentence.grad.abs().sum(1) > 0).all())
    assert (pooled.grad.abs().sum(1) > 0).tolist() == [True, True, False]
    if kind == "residual":
        assert torch.equal(fused[2], sentence[2])
    else:
        assert fusion.no_graph is not None
        assert fusion.no_graph.grad is not None
        assert float(fusion.no_graph.grad.abs().sum()) > 0


def test_gate_as_in_the_paper_and_concatenation_as_in_its_code() -> None:
    torch.manual_seed(0)
    sentence, graph, has = torch.randn(2, 6), torch.randn(2, 6), torch.ones(2, dtype=torch.bool)
    paper, code = Fusion(6, 4, "gate", "vector"), Fusion(6, 4, "concat", "scalar")
    assert paper.gate is not None
    assert code.gate is not None
    g = paper.gate(sentence).sigmoid()
    torch.testing.assert_close(paper(sentence, graph, has), g * sentence + (1 - g) * graph)
    g = code.gate(sentence).sigmoid()
    assert g.shape == (2, 1)
    torch.testing.assert_close(code(sentence, graph, has), torch.cat([g * sentence, (1 - g) * graph], 1))


@pytest.mark.parametrize("form", ["paper", "infonce"])
def test_contrastive_loss(form: Contrast) -> None:
    similarity = torch.tensor([0.9, 0.2, -0.3, 0.5], requires_grad=True)
    positive, has = torch.tensor([True, False, True, False]), torch.tensor([True, True, True, False])
    loss = contrastive_loss(similarity, positive, has, form)
    e = similarity.detach().exp() if form == "paper" else (similarity.detach() / 0.1).exp()
    if form == "paper":
        expected = -(e[0] / e[1] + e[2] / e[1]) / 4
    else:
        expected = -((e[0] / (e[0] + e[1])).log() + (e[2] / (e[2] + e[1])).log()) / 2
    torch.testing.assert_close(loss, expected)
    loss.backward()  # type: ignore[no-untyped-call]
    assert similarity.grad is not None
    assert (similarity.grad.sign() == torch.tensor([-1.0, 1.0, -1.0, 0.0])).all()  # positives together, negatives apart
    for one_class in (torch.ones(4, dtype=torch.bool), torch.zeros(4, dtype=torch.bool)):
        nothing = contrastive_loss(similarity, one_class, has, form)
        assert float(nothing.detach()) == 0.0
        nothing.backward()  # type: ignore[no-untyped-call]


# --- whole evaluators -------------------------------------------------------------------------------------------------


def examples() -> list[Example]:
    contexts = [("Do you want tea?", "No."), ("Where is he?",), ("Do you want tea?", "No.", "Why?")]
    responses = ["I like coffee.", "He is at home.", "Because.", "No."]
    return [
        Example(f"{c}-{r}", "en", tuple(Turn(t) for t in context), Turn(response))
        for c, context in enumerate(contexts)
        for r, response in enumerate(responses)
    ]


def graphs_for(items: list[Example]) -> dict[str, Graph]:
    """A graph for every turn of every second example."""
    names = [turn_id(e.id, i) for e in items[::2] for i in range(len(e.context) + 1)]
    return {name: random_graph(i, 3 + i % 7) for i, name in enumerate(names)}


def saved(encoder: Path, folder: Path, branch: GraphBranch | None) -> Path:
    base, tokenizer = load_base(str(encoder))
    torch.manual_seed(5)
    network = EvaluatorNetwork(base, Architecture(hidden=8, graph=branch)).eval()
    with torch.no_grad():
        if network.fusion is not None and network.fusion.scale is not None:
            network.fusion.scale.normal_()
        torch.manual_seed(6)
        for parameter in network.head.parameters():
            parameter.normal_(0, 0.1)
        network.head.spread.fill_(0.5)
    settings = Settings("sensibleness", str(encoder), weights_hash(base), network.architecture, Markup(64))
    save_folder(folder, network, tokenizer, settings, set(), "# card")
    return folder


def scores(evaluator: Evaluator, items: list[Example], graphs: dict[str, Graph] | None = None) -> list[float]:
    return [p.score if p.score is not None else float("nan") for p in evaluator.predict(items, graphs=graphs)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("join", ["joint", "separate"])
def test_rows_line_up_in_packed_batches(tiny_encoder: Path, tmp_path: Path, kind: FusionKind, join: Join) -> None:
    folder = saved(tiny_encoder, tmp_path, GraphBranch(join, width=16, fusion=kind))
    evaluator = Evaluator.from_pretrained(folder, precision="fp32")
    items = examples()
    graphs = graphs_for(items)
    together = scores(evaluator, items, graphs)
    alone = [scores(evaluator, [item], graphs)[0] for item in items]
    assert together == pytest.approx(alone, abs=1e-5)
    small = Evaluator.from_pretrained(folder, precision="fp32", batch_size=2)
    assert scores(small, list(reversed(items)), graphs)[::-1] == pytest.approx(together, abs=1e-5)
    changed = [abs(a - b) > 1e-6 for a, b in zip(together, scores(evaluator, items), strict=True)]
    assert changed == [i % 2 == 0 for i in range(len(items))]  # only rows with graphs move


def test_residual_without_graphs_is_the_text_only_score_bit_for_bit(tiny_encoder: Path, tmp_path: Path) -> None:
    plain = Evaluator.from_pretrained(saved(tiny_encoder, tmp_path / "a", None), precision="fp32")
    fused = Evaluator.from_pretrained(saved(tiny_encoder, tmp_path / "b", GraphBranch(width=16)), precision="fp32")
    items = examples()
    assert scores(fused, items) == scores(plain, items)
    assert scores(fused, items, {}) == scores(plain, items)
    graphs = graphs_for(items)
    mixture, text = scores(fused, items, graphs), scores(plain, items)
    assert mixture[1::2] == text[1::2]
    assert all(a != b for a, b in zip(mixture[::2], text[::2], strict=True))


def test_predictions_say_how_many_turns_had_a_graph(tiny_encoder: Path, tmp_path: Path) -> None:
    evaluator = Evaluator.from_pretrained(saved(tiny_encoder, tmp_path, GraphBranch(width=16)), precision="fp32")
    items = examples()[:2]
    first, second = evaluator.predict(items, graphs=graphs_for(items))
    assert (first.detail["n_graphs"], first.detail["n_turns"]) == (3, 3)
    assert (second.detail["n_graphs"], second.detail["n_turns"]) == (0, 3)
    assert first.status == second.status == "ok"
    assert "joint-residual" in evaluator.signature


@pytest.mark.parametrize("branch", [GraphBranch("separate", 16, 1, 2, "concat", "scalar"), GraphBranch(only=True)])
def test_saved_loaded_exported(tiny_encoder: Path, tmp_path: Path, branch: GraphBranch) -> None:
    folder = saved(tiny_encoder, tmp_path / "a", branch)
    assert load_folder(folder)[2].architecture.graph == branch
    items = examples()
    graphs = graphs_for(items)
    expected = scores(Evaluator.from_pretrained(folder, precision="fp32"), items, graphs)
    export(folder, tmp_path / "b")
    assert scores(Evaluator.from_pretrained(tmp_path / "b", precision="fp32"), items, graphs) == expected
    if branch.only:
        assert len(set(expected[1::2])) == 1  # nothing but graphs is read
        assert len(set(expected[::2])) > 1


def test_attention_maps_of_sentence_and_graph(tiny_encoder: Path, tmp_path: Path) -> None:
    evaluator = Evaluator.from_pretrained(saved(tiny_encoder, tmp_path / "e", GraphBranch(width=16)), precision="fp32")
    items = examples()
    graphs = graphs_for(items)
    before = scores(evaluator, items[:1], graphs)
    maps = attention_maps(evaluator, items[0], graphs)
    assert maps.sentence.shape == (len(maps.tokens),) * 2
    assert maps.graph.shape == (len(maps.nodes),) * 2
    assert "dialog" in maps.nodes[0].replace(" ", "")
    for matrix in (maps.sentence, maps.graph):
        assert matrix.sum(1) == pytest.approx(1.0, abs=1e-5)
    context = maps.tokens.index("</s>")
    assert maps.sentence[: context + 1, -2:].max() == 0.0  # the context does not see the response
    assert scores(evaluator, items[:1], graphs) == before
    draw_attention(maps, tmp_path / "a.svg", "one example")
    draw_attention(maps, tmp_path / "b.svg", "one example")
    drawing = (tmp_path / "a.svg").read_bytes()
    assert drawing == (tmp_path / "b.svg").read_bytes()
    draw_attention(maps, tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match="unknown ending"):
        draw_attention(maps, tmp_path / "c.jpeg")
    assert all(word in drawing for word in (b"<svg", b"one example", b"sentence", b"graph"))
    with pytest.raises(DataError, match="none of the turns"):
        attention_maps(evaluator, items[1], graphs)
    plain = Evaluator.from_pretrained(saved(tiny_encoder, tmp_path / "p", None), precision="fp32")
    with pytest.raises(ConfigError, match="graph branch"):
        attention_maps(plain, items[0], graphs)


def test_half_precision_stays_close(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = saved(tiny_encoder, tmp_path, GraphBranch(width=16, fusion="gate"))
    items = examples()
    full = scores(Evaluator.from_pretrained(folder, precision="fp32"), items, graphs_for(items))
    half = scores(Evaluator.from_pretrained(folder, precision="bf16"), items, graphs_for(items))
    assert half == pytest.approx(full, abs=0.05)


def test_graphs_with_other_ids_are_noticed(
    tiny_encoder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = saved(tiny_encoder, tmp_path / "a", GraphBranch(width=16))
    path, items = tmp_path / "graphs.txt", examples()[:2]
    path.write_text("# ::id other#0\n(w / want-01)\n", encoding="utf-8")
    found = EvaluatorScorer(folder, graphs=path, precision="fp32").score(items)
    assert [p.detail["n_graphs"] for p in found] == [0, 0]
    wanted = f"{items[0].id}#{len(items[0].context)}"
    assert f"looked for ids such as '{wanted}'; known: other#0" in caplog.text
    caplog.clear()
    path.write_text(f"# ::id {wanted}\n(w / want-01)\n", encoding="utf-8")
    assert EvaluatorScorer(folder, graphs=path).score(items)[0].detail["n_graphs"] == 1
    assert "looked for ids" not in caplog.text


def test_graph_files_need_an_id_of_its_own_for_every_graph(tmp_path: Path) -> None:
    path = tmp_path / "graphs.txt"
    path.write_text("# ::id a#0\n(w / want-01)\n\n(g / go-02)\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"graphs\.txt:4.*without `# ::id`"):
        read_graphs(path)
    path.write_text("# ::id a#0\n(w / want-01)\n\n# ::id a#0\n(g / go-02)\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"graphs\.txt:4 \[::id\]: the id 'a#0' occurs twice"):
        read_graphs(path)


def test_an_exported_folder_without_tokenizer_names_the_fix(tiny_encoder: Path, tmp_path: Path) -> None:
    export(saved(tiny_encoder, tmp_path / "a", GraphBranch(width=16)), tmp_path / "b")
    for path in (tmp_path / "b").iterdir():
        if path.name.startswith(("tokenizer", "special_tokens", "vocab", "sentencepiece")):
            path.unlink()
    with pytest.raises((BackendError, DataError), match=r"(?i)tokenizer"):
        Evaluator.from_pretrained(tmp_path / "b")
