"""The contrast set is what its README says."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path


def test_the_rows_are_what_the_readme_says(root: Path) -> None:
    folder = root / "data" / "contrast"
    rows = [json.loads(line) for line in (folder / "rewrites.jsonl").read_text(encoding="utf-8").splitlines()]
    kinds = Counter(row["kind"] for row in rows)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert len(rows) >= 60 and f"{len(rows)} rewrites of {len({r['group'] for r in rows})}" in readme
    assert set(kinds) == {"role_swap", "negation", "tense", "voice", "paraphrase"}
    for kind, n in kinds.items():
        assert f"`{kind}` ({n})" in readme
    assert len({row["id"] for row in rows}) == len({(row["source"], row["rewrite"]) for row in rows}) == len(rows)
    for row in rows:
        assert row["source"] != row["rewrite"]
        assert row["same_meaning"] == (row["kind"] in ("voice", "paraphrase"))
