"""The command line: a thin skin over the verbs.  It parses, calls, prints, and turns errors into exit codes."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from mdialeval import __version__, api
from mdialeval.config import RunConfig, load, parse
from mdialeval.errors import MdialevalError, MissingExtraError

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
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress bars")]


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


def _verb(name: str, example: str) -> None:
    """Register one verb that takes a configuration and prints what its stages counted."""
    function = getattr(api, name)

    def command(config: Config = None, set_: Set = None, output: Output = None, quiet: Quiet = False) -> None:
        outcome = function(_config(config, set_), quiet=quiet)
        for line in api.describe(outcome):
            typer.echo(line)
        if output is not None:
            typer.echo(f"{output}: {api.export(outcome, output):,} rows")

    about = (function.__doc__ or "").partition("\n")[0]
    app.command(name, help=f"{about}\n\nExample: {example}")(command)


_verb("translate", "mdialeval translate configs/quickstart.yaml --output translations.jsonl")
_verb("rank", "mdialeval rank configs/quickstart.yaml --set rank.k=20 --output kept.csv")
_verb("train", "mdialeval train configs/quickstart.yaml --set train.epochs=2")
_verb("score", "mdialeval score configs/quickstart.yaml --output predictions.csv")
_verb("correlate", "mdialeval correlate configs/quickstart.yaml --output agreement.csv")
_verb("report", "mdialeval report configs/quickstart.yaml")
_verb("run", "mdialeval run configs/quickstart.yaml")


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
    kind: Annotated[str | None, typer.Argument(help="readers, engines, estimators, tasks, scorers ...")] = None,
) -> None:
    """List the names that a configuration can use.

    Example: mdialeval list engines
    """
    for name, entries in api.catalogue(kind).items():
        typer.echo(name)
        for entry, about in entries:
            typer.echo(f"  {entry:<20} {about}")


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
