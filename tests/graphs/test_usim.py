"""USim, DAG-F and DistSim: unit examples, conventions, and the golden counts of the published annotations."""

from __future__ import annotations

import functools
import time
from pathlib import Path

import pytest

from mdialeval.graphs.dagf import dag_f
from mdialeval.graphs.distsim import distsim
from mdialeval.graphs.penman_codec import decode
from mdialeval.graphs.ucca_codec import Passage, read_ucca
from mdialeval.graphs.usim import two_sided_f, usim
from mdialeval.graphs.usim_align import align_tokens, common_breaks
from mdialeval.graphs.usim_view import from_amr
from mdialeval.records import Graph

SAME_TEXT = {  # two annotators of one essay: units, matches, USim; the token map is the identity, so these are exact
    1297: (260, 250, 219, 205, 0.8310),
    1298: (280, 262, 242, 223, 0.8577),
    1300: (261, 238, 225, 210, 0.8721),
    1301: (240, 236, 212, 203, 0.8716),
    1197: (286, 266, 214, 211, 0.7701),
    1198: (289, 289, 238, 233, 0.8148),
    1200: (252, 246, 211, 197, 0.8187),
}
CORRECTION = [  # learner essay against its correction: USim within .02 (ties of the token assignment)
    ("amittaic1297", "amittaic1197", 0.7677),
    ("amittaic1298", "amittaic1198", 0.8413),
    ("amittaic1300", "amittaic1200", 0.7778),
    ("amittaic1303", "amittaic1203", 0.8694),
    ("amittaic1305", "amittaic1205", 0.8752),
    ("tree1297", "tree1197", 0.8490),
    ("tree1298", "tree1198", 0.8499),
    ("tree1300", "tree1200", 0.8492),
    ("tree1302", "tree1202", 0.9148),
    ("amittaic1297", "tree1197", 0.7620),
    ("amittaic1298", "tree1198", 0.8233),
    ("amittaic1300", "tree1200", 0.7792),
    ("tree1297", "amittaic1197", 0.7265),
    ("tree1298", "amittaic1198", 0.7718),
    ("tree1300", "amittaic1200", 0.7879),
]
DAG = {  # matches weak_labelled, guessed, reference, matches labelled
    1297: (612, 733, 710, 585),
    1298: (710, 830, 796, 690),
    1300: (647, 786, 751, 629),
    1301: (625, 716, 702, 609),
    1197: (573, 726, 709, 551),
    1198: (679, 833, 812, 640),
    1200: (635, 758, 742, 608),
}


@functools.cache
def annotations(folder: Path) -> dict[str, Passage]:
    return {path.stem: read_ucca(path) for path in sorted(folder.glob("*.xml"))}


@pytest.fixture
def passages(shared_data: Path) -> dict[str, Passage]:
    return annotations(shared_data / "usim")


def test_counts_of_two_annotators_are_exact(passages: dict[str, Passage]) -> None:
    total = 0.0
    for essay, (n1, n2, c1, c2, f1) in SAME_TEXT.items():
        got = usim(passages[f"amittaic{essay}"], passages[f"tree{essay}"])
        counts = (got.source_units, got.target_units, got.source_matched, got.target_matched)
        assert counts == (n1, n2, c1, c2)
        assert len(got.missing) == n1 - c1 and len(got.added) == n2 - c2
        assert got.f1 == pytest.approx(f1, abs=5e-5)
        total += got.f1 or 0.0
    assert total / 7 == pytest.approx(0.8337, abs=5e-5)


def test_corrected_essays_are_within_a_hundredth(passages: dict[str, Passage]) -> None:
    started = time.perf_counter()
    for source, target, f1 in CORRECTION:
        assert usim(passages[source], passages[target]).f1 == pytest.approx(f1, abs=0.01)
    assert (time.perf_counter() - started) / len(CORRECTION) < 1.0  # seconds a pair


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"alignment": "monotone"}, (0.844, 0.888)),
        ({"alignment": "monotone", "all_units": True}, (0.883, 0.919)),
        ({"alignment": "monotone", "all_units": True, "equivalences": False}, (0.864, 0.905)),
    ],
)
def test_variants_come_out_as_documented(
    passages: dict[str, Passage], options: dict[str, object], expected: tuple[float, float]
) -> None:
    for pairs, value in zip((CORRECTION[:5], CORRECTION[5:9]), expected, strict=True):
        scores = [usim(passages[a], passages[b], **options).f1 or 0.0 for a, b, _ in pairs]  # type: ignore[arg-type]
        assert sum(scores) / len(scores) == pytest.approx(value, abs=0.005)


def test_dag_f_counts_are_exact(passages: dict[str, Passage]) -> None:
    for essay, (matched, guessed, reference, labelled) in DAG.items():
        got = dag_f([(passages[f"amittaic{essay}"], passages[f"tree{essay}"])])
        weak = got["weak_labelled"]
        assert (weak.matched, weak.guessed, weak.reference) == (matched, guessed, reference)
        assert got["labelled"].matched == labelled
    micro = dag_f((passages[f"amittaic{e}"], passages[f"tree{e}"]) for e in DAG)
    assert micro["weak_labelled"].f1 == pytest.approx(0.8452, abs=5e-5)
    assert micro["labelled"].f1 == pytest.approx(0.8133, abs=5e-5)
    assert micro["unlabelled"].f1 == pytest.approx(0.9185, abs=5e-5)


def test_glued_punctuation_on_one_side_is_said(passages: dict[str, Passage]) -> None:
    assert "19 words of the source carry punctuation" in usim(passages["tree1297"], passages["tree1197"]).reason
    assert "19 words of the target carry punctuation" in usim(passages["tree1197"], passages["tree1297"]).reason
    assert usim(passages["tree1298"], passages["tree1198"]).reason == ""


def test_dag_f_refuses_different_texts(passages: dict[str, Passage]) -> None:
    with pytest.raises(ValueError, match="use USim"):
        dag_f([(passages["amittaic1297"], passages["amittaic1197"])])


def test_distsim_numbers_are_exact(passages: dict[str, Passage]) -> None:
    different = [
        (passages[f"{a}{e}"], passages[f"{b}{e - 100}"])
        for e in (1297, 1298, 1300)
        for a, b in (("amittaic", "tree"), ("tree", "amittaic"))
    ]
    got = {name: value.f1 for name, value in distsim(different).items()}
    assert got == pytest.approx({"H": 0.9319, "A": 0.9722, "D": 0.7407, "A+D": 0.9671}, abs=5e-5)
    same = [(passages[a], passages[b]) for a, b, _ in CORRECTION[:9]]
    assert distsim(same)["H"].f1 == pytest.approx(0.9608, abs=5e-5)
    assert distsim(same)["A+D"].f1 == pytest.approx(0.9703, abs=5e-5)
    itself = distsim([(passages["tree1197"], passages["tree1197"])])
    assert all(value.f1 == 1 and value.mean_difference == 0 for value in itself.values())


def test_a_passage_equals_itself(passages: dict[str, Passage]) -> None:
    for passage in list(passages.values())[::3]:
        got = usim(passage, passage)
        assert (got.f1, got.missing, got.added) == (1.0, (), ())
        assert usim(passage, passage, alignment="monotone", all_units=True).f1 == 1.0


def test_tokens_are_aligned_one_to_one() -> None:
    assert align_tokens(["a", "b", "c"], ["a", "c"]) == (0, -1, 1)
    assert align_tokens(["a", "c"], ["a", "b", "c"]) == (0, 2)
    assert align_tokens(["x", "y"], ["y", "x"]) == (1, 0)
    assert align_tokens(["x", "y"], ["y", "x"], "monotone") in ((-1, 0), (1, -1))
    assert align_tokens(["boys", "sing"], ["boy", "swim"], "lemma") == (0, -1)
    assert align_tokens([], ["a"]) == () and align_tokens(["a"], []) == (-1,)


def test_alignment_stays_inside_shared_sentences() -> None:
    first, second = ["go", ".", "stay", "now", "."], ["go", "now", ".", "stay", "."]
    assert align_tokens(first, second)[3] == 1
    assert align_tokens(first, second, "published", (1, 4), (2, 4))[3] == 1  # 'go' and 'now' differ: no shared break
    same = ["go", "now", ".", "stay", "now", "."]
    breaks = common_breaks(same, ["go", "now", ".", "so", "stay", "now", "."], (2, 5), (2, 6))
    assert breaks == [(2, 2), (5, 6)]
    assert common_breaks(list("abcd"), list("abcd"), (0, 1), (1,)) == [(1, 1), (3, 3)]


def test_f_of_two_sides() -> None:
    assert two_sided_f(3, 4, 5, 6) == pytest.approx(0.63158, abs=5e-6)
    assert two_sided_f(0, 4, 5, 6) == 0.0


def test_amr_role_swap_is_seen_and_explained() -> None:
    source = decode("(b / bite-01 :ARG0 (m / man) :ARG1 (d / dog :mod (o / old)))")
    target = decode("(b / bite-01 :ARG0 (d / dog :mod (o / old)) :ARG1 (m / man))")
    got = usim(source, target)
    assert got.f1 == pytest.approx(0.5)  # bite and old are kept, man and dog changed places
    assert {(e.labels, e.text) for e in got.missing} == {(("ARG0",), "bite-01 man"), (("ARG1",), "bite-01 dog")}
    assert {(e.labels, e.text) for e in got.added} == {(("ARG1",), "bite-01 man"), (("ARG0",), "bite-01 dog")}


def test_amr_negation_replacement_and_single_nodes() -> None:
    source = decode("(s / sing-01 :ARG0 (b / boy))")
    negated = usim(source, decode("(s / sing-01 :polarity - :ARG0 (b / boy))"))
    assert [e.labels for e in negated.added] == [("polarity",)] and negated.missing == ()
    assert negated.recall == 1.0 and negated.precision == pytest.approx(2 / 3)
    assert [e.text for e in usim(source, decode("(s / sing-01 :ARG0 (g / girl))")).missing] == ["sing-01 boy"]
    assert usim(decode("(y / yes)"), decode("(y / yes)")).f1 == 1.0
    assert usim(decode("(y / yes)"), decode("(n / no)")).f1 == 0.0


def test_amr_reentrancies_are_labels_and_not_part_of_the_yield() -> None:
    source = decode("(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))")
    target = decode("(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG1 b))")
    view = from_amr(source)
    assert view.tokens == ("want", "boy", "go")
    assert view.yields == (frozenset({0, 1, 2}), frozenset({1}), frozenset({2}))
    assert view.labels == (frozenset({"top"}), frozenset({"ARG0"}), frozenset({"ARG1"}))
    assert from_amr(target).labels[1] == frozenset({"ARG0", "ARG1"})
    assert usim(source, target).f1 == 1.0  # labels still share ARG0
    inverse = from_amr(decode("(b / boy :ARG0-of (s / sing-01 :op1 (l / loud)))"))
    assert inverse.labels == (frozenset({"top"}), frozenset({"ARG0-of"}), frozenset({"op"}))
    assert from_amr(source, all_units=False).names == ("want-01",)


def test_empty_sides_follow_the_convention_and_broken_ones_have_no_score() -> None:
    full, empty = decode("(b / boy)"), decode("(a / amr-empty)")
    assert (usim(empty, empty).f1, usim(empty, empty).status) == (1.0, "empty")
    assert (usim(empty, full).f1, usim(full, empty).f1) == (0.0, 0.0)
    broken = usim(full, decode("(a / a"))
    assert broken.f1 is None and broken.status == "invalid" and "target graph" in broken.reason
    failed = usim(Graph("", -1, (), (), status="failed", detail="no beam"), full)
    assert failed.f1 is None and failed.reason == "source graph: no beam"


def test_gold_amr_equals_itself(shared_data: Path) -> None:
    from mdialeval.graphs.penman_codec import read_penman

    graphs = [entry.graph for entry in read_penman(shared_data / "amr" / "lpp-v1.6-dev.txt")]
    assert {usim(g, g).f1 for g in graphs} == {1.0}
