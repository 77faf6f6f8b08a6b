"""The command line: a thin skin over the verbs.  It parses, calls, prints, and turns errors into exit codes."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from mdialeval import __version__, api
from mdialeval.config import RunConfig, load, parse
from mdialeval.errors import MdialevalError, MissingExtraError
from mdialeval.tables import write_records

app = typer.Typer(
    name="mdialeval",
    help="Evaluate open-domain dialogue in many languages.",
    epilog="Start with: mdialeval run configs/quickstart.yaml",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Config = Annotated[Path | None, typer.Argument(help="YAML file, such as configs/quickstart.yaml", show_default=False)]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="override one setting, such as train.epochs=2", metavar="KEY=VALUE"),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="also write the rows to this .jsonl, .csv, .tsv or .parquet file")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="stop where a language's quality scores are all equal or one is missing")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress bars")]


_JUDGES = ("mdialeval.llm.asking", "mdialeval.scorers.llm")
"""What they log is progress: replies a second, and in the end tokens and money."""


def main() -> None:
    """Run the command line; a user's mistake prints a message and ends with its own exit code."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.basicConfig(level=os.environ.get("MDIALEVAL_LOG", "WARNING"), format="%(levelname)s %(name)s: %(message)s")
    try:
        app()
    except MdialevalError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="print the version")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def _config(path: Path | None, overrides: list[str] | None) -> RunConfig:
    config = load(path, overrides or ()) if path else parse({}, overrides or ())
    if config.offline:
        os.environ["HF_HUB_OFFLINE"] = "1"
    return config


def _call(
    function: Callable[..., api.Outcome],
    path: Path | None,
    overrides: list[str] | None,
    output: Path | None,
    quiet: bool,
    **options: bool,
) -> None:
    """Run a verb, print what its stages counted, and export its rows where asked for."""
    if not quiet and "MDIALEVAL_LOG" not in os.environ:
        for name in _JUDGES:
            logging.getLogger(name).setLevel(logging.INFO)
    outcome = function(_config(path, overrides), quiet=quiet, **options)
    from mdialeval.verbs.describe import describe_stages

    for line in describe_stages(outcome.stages, outcome.report):
        typer.echo(line)
    if output is not None:
        typer.echo(f"{output}: {api.export(outcome, output):,} rows")


def _verb(name: str, example: str) -> None:
    """Register one verb that takes a configuration and prints what its stages counted."""
    function = getattr(api, name)

    def command(config: Config = None, set_: Set = None, output: Output = None, quiet: Quiet = False) -> None:
        _call(function, config, set_, output, quiet)

    about = (function.__doc__ or "").partition("\n")[0]
    app.command(name, help=f"{about}\n\nExample: {example}")(command)


_verb("translate", "mdialeval translate configs/quickstart.yaml --output translations.jsonl")
_verb("parse", "mdialeval parse configs/quickstart.yaml --output graphs.jsonl")
_verb("correlate", "mdialeval correlate configs/quickstart.yaml --output agreement.csv")
_verb("report", "mdialeval report configs/quickstart.yaml")


@app.command()
def run(
    config: Config = None, set_: Set = None, output: Output = None, quiet: Quiet = False, strict: Strict = False
) -> None:
    """Run the whole line, from the corpus to the report; what is finished is not done again.

    Example: mdialeval run configs/quickstart.yaml
    """
    _call(api.run, config, set_, output, quiet, strict=strict)


@app.command()
def score(
    config: Config = None,
    set_: Set = None,
    output: Output = None,
    quiet: Quiet = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what language models would be asked")] = False,
) -> None:
    """Score the rated data sets with every scorer.

    Example: mdialeval score configs/quickstart.yaml --output predictions.csv
    """
    if dry_run:
        for line in api.estimate_score(_config(config, set_)):
            typer.echo(line)
        return
    _call(api.score, config, set_, output, quiet)


@app.command()
def rank(
    config: Config = None,
    set_: Set = None,
    output: Output = None,
    quiet: Quiet = False,
    strict: Strict = False,
    evaluate: Annotated[
        Path | None,
        typer.Option(help="instead: check the estimator against this file of human scores (MLQE-PE, WMT-QE)"),
    ] = None,
    languages: Annotated[str, typer.Option(help="of that file, such as en-de, where its name does not tell")] = "",
    plot: Annotated[
        Path | None,
        typer.Option(help="with --evaluate: draw kept quality (.png, .svg, .pdf); beside --output where not given"),
    ] = None,
) -> None:
    """Estimate translation quality and keep the top k per cent of every language.

    Example: mdialeval rank configs/quickstart.yaml --set rank.k=20 --output kept.csv
    """
    if evaluate is None:
        _call(api.rank, config, set_, output, quiet, strict=strict)
        return
    from mdialeval.verbs.describe import describe_evaluation

    found = api.evaluate(evaluate, _config(config, set_), languages, output, plot)
    for line in describe_evaluation(found.languages):
        typer.echo(line)
    drawn = plot or (output.with_suffix(".png") if output else None)
    for path in filter(None, (output, drawn)):
        typer.echo(f"{path}: written")


@app.command()
def benchmark(
    config: Config = None,
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(help="only the first cells", min=1)] = None,
    jobs: Annotated[int | None, typer.Option(help="cells at once, each in its own process", min=1)] = None,
    quiet: Quiet = False,
) -> None:
    """Compare strategies x k x seeds of using translated data, as one table with tested differences.

    Example: mdialeval benchmark configs/benchmark-quickstart.yaml --limit 3
    """
    from mdialeval.verbs.benchmark import describe

    parallel = [f"benchmark.parallel={jobs}"] if jobs else []
    found = api.benchmark(_config(config, [*(set_ or ()), *parallel]), limit=limit, quiet=quiet)
    for line in describe(found):
        typer.echo(line)
    if found.failures:
        raise typer.Exit(found.failures[0].error.exit_code)


@app.command()
def ablation(
    config: Config = None,
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(help="at most this many more cells now", min=1)] = None,
    quiet: Quiet = False,
) -> None:
    """Compare variants of the semantic graph branch, as one table with spread over seeds and tested differences.

    Example: mdialeval ablation configs/ablation-amr.yaml --limit 4
    """
    from mdialeval.verbs.ablation import describe

    for line in describe(api.ablation(_config(config, set_), limit=limit, quiet=quiet)):
        typer.echo(line)


@app.command()
def train(
    config: Config = None,
    set_: Set = None,
    output: Output = None,
    quiet: Quiet = False,
    find_rate: Annotated[
        bool, typer.Option("--find-rate", help="instead: a short sweep that suggests a learning rate a dimension")
    ] = False,
) -> None:
    """Train one evaluator a dimension.

    Example: mdialeval train configs/quickstart.yaml --set train.epochs=2
    """
    if find_rate:
        from mdialeval.verbs.rates import describe
        from mdialeval.verbs.read import run_of

        settings = _config(config, set_)
        for line in describe(api.find_rates(settings, quiet=quiet), run_of(settings).folder):
            typer.echo(line)
        return
    _call(api.train, config, set_, output, quiet)


@app.command()
def export(
    evaluator: Annotated[Path, typer.Argument(help="the folder of a trained evaluator")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the folder to write")],
    to: Annotated[str, typer.Option(help="onnx (for onnxruntime) or huggingface (for AutoModel)")] = "onnx",
    rows: Annotated[
        Path | None, typer.Option(help="rated examples to compare scores on; lines in nine languages where not given")
    ] = None,
    reader: Annotated[str, typer.Option(help="of that file, an entry of `mdialeval list readers`")] = "jsonl",
) -> None:
    """Write a trained evaluator for other tools, and check that its scores stay the same.

    Example: mdialeval export runs/quickstart/train-.../evaluator --to onnx --output exported
    """
    found = api.export_evaluator(evaluator, output, to, rows, reader)
    typer.echo(f"{found.folder}: {found.size / 1e6:,.1f} MB")
    typer.echo(
        f"largest difference of a score: {found.largest:.1e} on {found.rows} rows ({', '.join(found.languages)})"
    )


@app.command()
def faithfulness(
    pairs: Annotated[Path, typer.Argument(help="sentence pairs (.jsonl, .csv, .tsv), or graphs (PENMAN, UCCA .xml)")],
    target: Annotated[Path | None, typer.Argument(help="the other file, where the first holds graphs")] = None,
    measure: Annotated[str, typer.Option(help="smatch, usim or triples")] = "smatch",
    source_column: Annotated[str, typer.Option(help="the column of the sources")] = "source",
    rewrite_column: Annotated[str, typer.Option(help="the column of the rewrites")] = "rewrite",
    parser: Annotated[str, typer.Option(help="an entry of `mdialeval list parsers`")] = "dependency",
    output: Output = None,
) -> None:
    """Compare the meaning of rewrites with their sources by semantic graphs; missing and added edges explain.

    Example: mdialeval faithfulness data/contrast/rewrites.jsonl --output faithfulness.csv
    """
    options = {} if target else {"source_column": source_column, "rewrite_column": rewrite_column, "parser": parser}
    rows = api.faithfulness(pairs, target, measure, **options)
    from mdialeval.verbs.describe import describe_faithfulness

    for line in describe_faithfulness(rows):
        typer.echo(line)
    if output is not None:
        typer.echo(f"{output}: {write_records(output, rows, type(rows[0])):,} rows")


@app.command()
def check(config: Config = None, set_: Set = None) -> None:
    """Validate a configuration and list every asset that it needs and whether it is there; loads nothing.

    Example: mdialeval check configs/quickstart.yaml
    """
    needs = api.check(_config(config, set_))
    for need in needs:
        asset = need.asset
        mark = "ok     " if asset.present else "MISSING"
        licence = f"  [{asset.licence}]" if asset.licence else ""
        typer.echo(f"{mark} {need.verb:<10} {asset.kind:<8} {asset.name}  {asset.where}{licence}")
        if not asset.present and asset.fix:
            typer.echo(f"        -> {asset.fix}")
    missing = sum(not need.asset.present for need in needs)
    typer.echo(f"{len(needs) - missing} of {len(needs)} assets are there")
    if missing:
        raise typer.Exit(MissingExtraError.exit_code)


@app.command("list")
def list_(
    kind: Annotated[str | None, typer.Argument(help="readers, engines, estimators, scorers, settings ...")] = None,
) -> None:
    """List the names that a configuration can use.

    Example: mdialeval list engines
    """
    for name, entries in api.catalogue(kind).items():
        typer.echo(name)
        for entry, about in entries:
            typer.echo(f"  {entry:<28} {about}")


@app.command()
def show(
    path: Annotated[Path, typer.Argument(help="a run folder, a stage folder or a Parquet file")],
    rows: Annotated[int, typer.Option(help="rows of a table to show")] = 5,
) -> None:
    """Show what lies in a run folder, a stage folder or a table.

    Example: mdialeval show runs/quickstart
    """
    for line in api.show(path, rows):
        typer.echo(line)


@app.command()
def languages(codes: Annotated[list[str] | None, typer.Argument(help="only these, in any spelling")] = None) -> None:
    """Print every language's codes, who covers it, and who translates English into it on this machine.

    Example: mdialeval languages pt_BR zho_Hans
    """
    typer.echo(f"{'code':<8} {'name':<22} {'script':<6} {'NLLB':<9} {'M2M100':<7} {'Marian':<9} XLM-R  from English")
    for row in api.languages(codes or ()):
        engines = ", ".join(row.from_english) or "-"
        names = f"{row.code:<8} {row.name:<22} {row.script:<6} {row.nllb:<9} {row.m2m100:<7} {row.marian:<9}"
        typer.echo(f"{names} {'yes' if row.covered else 'no':<6} {engines}{'  ' + row.note if row.note else ''}")


@app.command()
def data(name: Annotated[str | None, typer.Argument(help="one of them, in full")] = None) -> None:
    """List the corpora that the readers know: scale, size, licence and where to get them.

    Example: mdialeval data xdial-dailydialog-zhao
    """
    for entry in api.datasets(name):
        typer.echo(f"{entry.name:<28} {entry.rows}  [{entry.licence}]")
        if name:
            scales = ", ".join(f"{key} {low:g} to {high:g}" for key, (low, high) in entry.scales.items())
            typer.echo(f"  {entry.what}\n  languages: {' '.join(entry.languages)}\n  ratings: {scales or 'none'}")
            typer.echo(f"  reader: {entry.reader} {dict(entry.options) or ''}\n  {entry.where}")


@app.command()
def audit(
    one: Annotated[Path, typer.Argument(help="training data")],
    other: Annotated[Path, typer.Argument(help="test data")],
    reader: Annotated[str, typer.Option(help="of the first file")] = "jsonl",
    other_reader: Annotated[str, typer.Option(help="of the second file; the same where not given")] = "",
    threshold: Annotated[float, typer.Option(help="least similarity of near duplicates")] = 0.8,
) -> None:
    """Report exact and near overlap between two data sets, across languages.

    Example: mdialeval audit dev.json dailydialog-zhao.csv --reader dailydialogpp --other-reader xdial
    """
    found = api.audit(one, other, reader, other_reader, threshold)
    counts = ", ".join(f"{n} {kind}" for kind, n in sorted(found.kinds.items())) or "none"
    typer.echo(f"{found.one_items} and {found.other_items} items; overlap: {counts} ({found.share:.1%} of the first)")
    for overlap in found.overlaps[:20]:
        where = f"{overlap.one} ({overlap.one_language}) ~ {overlap.other} ({overlap.other_language})"
        typer.echo(f"  {overlap.kind:<5} {overlap.similarity:.2f} {where}: {overlap.text}")
