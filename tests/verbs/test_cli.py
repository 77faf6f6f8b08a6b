"""The command line: every verb called once, every exit code, every shipped configuration, every README command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mdialeval.cli import app
from mdialeval.config import load

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
Small = Callable[..., dict[str, Any]]
CommandLine = Callable[..., tuple[int, str]]


@pytest.fixture
def yaml(small_run: Small, tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    with path.open("w", encoding="utf-8") as stream:
        YAML().dump(json.loads(json.dumps(small_run())), stream)
    return path


def test_every_verb_runs_from_the_command_line(yaml: Path, tmp_path: Path, command_line: CommandLine) -> None:
    for verb in ("translate", "rank", "train", "score", "correlate", "report", "run"):
        code, text = command_line(verb, str(yaml), "--quiet")
        assert code == 0, text
        assert "runs" in text
    for verb in ("translate", "rank", "score", "correlate"):
        out = tmp_path / f"{verb}.csv"
        code, text = command_line(verb, str(yaml), "--quiet", "--output", str(out))
        assert code == 0, text
        assert out.stat().st_size > 0
    code, text = command_line("show", str(tmp_path / "runs" / "small"))
    assert code == 0
    assert "translate-" in text


def test_mistakes_end_with_their_exit_code_and_no_traceback(
    yaml: Path, tmp_path: Path, command_line: CommandLine
) -> None:
    cases = [
        (2, "unknown key", ("run", str(yaml), "--set", "corpse=1")),
        (2, "unknown translation engine 'fierfox'", ("run", str(yaml), "--set", "translate.routes.pt=fierfox")),
        (2, "no such configuration file", ("run", "nowhere.yaml")),
        (2, "unknown kind 'engine'", ("list", "engine")),
        (3, "no such file", ("translate", str(yaml), "--set", "corpus.path=/nowhere.jsonl")),
        (3, "no such file", ("show", str(tmp_path / "nothing"))),
    ]
    for expected, message, arguments in cases:
        code, text = command_line(*arguments)
        assert (code, message in text, "Traceback" in text) == (expected, True, False), text


def test_check_lists_assets_and_fails_where_one_is_missing(yaml: Path, command_line: CommandLine) -> None:
    code, text = command_line("check", str(yaml))
    assert code == 0, text
    assert "ok      read" in text
    code, text = command_line("check", str(yaml), "--set", "score.sets.0.path=/nowhere.jsonl")
    assert code == 4
    assert "MISSING score" in text


def test_wrong_names_of_all_sections_are_told_before_anything_runs(
    yaml: Path, tmp_path: Path, command_line: CommandLine
) -> None:
    wrong = ("rank.estimator=commet", "train.dimensions={sensibleness: {task: foo}}", "score.scorers=[{scorer: cosin}]")
    settings = [part for setting in wrong for part in ("--set", setting)]
    for verb in ("check", "run"):
        code, text = command_line(verb, str(yaml), *settings)
        assert code == 2, text
        assert "3 problems" in text
        for part in ("did you mean 'comet'", "unknown task 'foo'", "did you mean 'cosine'"):
            assert part in text


def test_a_run_is_refused_before_work_where_a_file_is_missing(yaml: Path, command_line: CommandLine) -> None:
    code, text = command_line("run", str(yaml), "--set", "score.sets.0.path=/nowhere.jsonl")
    assert code == 3
    assert "/nowhere.jsonl" in text


def test_list_names_back_ends_without_loading_them(command_line: CommandLine) -> None:
    code, text = command_line("list")
    assert code == 0
    for name in ("firefox", "xdial", "sensibleness", "embedded", "copied_source"):
        assert name in text
    code, text = command_line("list", "engines")
    assert "apertium" in text
    assert "xdial" not in text


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.name)
def test_every_shipped_configuration_is_valid(path: Path) -> None:
    config = load(path)
    assert config.run == path.stem or config.run


def test_help_has_an_example_for_every_verb() -> None:
    for name in ("translate", "rank", "train", "score", "correlate", "report", "run", "check", "list", "show"):
        code = "from mdialeval.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code, name, "--help"], capture_output=True, text=True, check=True)
        assert "Example: mdialeval" in done.stdout, name


def test_readme_commands_name_what_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in re.findall(r"(?:configs|scripts|docs|data)/[\w./-]+\.(?:yaml|sh|py|md|jsonl)", text):
        assert (ROOT / path).exists(), path
    verbs = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    blocks = "\n".join(re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    called = re.findall(r"^mdialeval ([a-z]+)", blocks, re.MULTILINE)
    assert len(called) > 5
    assert set(called) <= verbs


def test_a_dry_run_says_what_would_be_asked(small_run: Small, tmp_path: Path, command_line: CommandLine) -> None:
    config = small_run()
    judge = {"scorer": "llm", "options": {"backend": "dummy", "criteria": ["sensibleness"]}}
    config["score"]["scorers"] = [judge]
    path = tmp_path / "judge.yaml"
    with path.open("w", encoding="utf-8") as stream:
        YAML().dump(json.loads(json.dumps(config)), stream)
    code, text = command_line("score", str(path), "--dry-run")
    assert code == 0, text
    assert "llm on rated: " in text
    assert not list((tmp_path / "runs" / "small").glob("score-*"))


def test_languages_data_and_audit_print_their_tables(tmp_path: Path, command_line: CommandLine) -> None:
    code, text = command_line("languages", "PT-br", "zho_Hans")
    assert code == 0
    assert "por_Latn" in text
    assert "Simplified" in text
    code, text = command_line("languages", "ge")
    assert code == 2
    assert "de (German)" in text
    code, text = command_line("data", "maia")
    assert code == 0
    assert "understandability 0 to 1" in text
    rows = ["We met at the old harbour before the storm came.", "Never again in winter, my friend."]
    for name, language in (("one", "en"), ("two", "fr")):
        line = json.dumps({"id": f"{name}-1", "language": language, "turns": rows})
        (tmp_path / f"{name}.jsonl").write_text(line + "\n", encoding="utf-8")
    code, text = command_line("audit", str(tmp_path / "one.jsonl"), str(tmp_path / "two.jsonl"))
    assert code == 0
    assert "overlap: 1 exact (100.0% of the first)" in text
