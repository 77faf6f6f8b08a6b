"""The command line: a thin skin over the verbs.  It parses, calls, prints, and turns errors into exit codes."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mdialeval import __version__, api
from mdialeval.config import RunConfig, load, parse
from mdialeval.errors import MdialevalError

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
    list[str] | None, typer.Option("--set", "-s", help="override one setting, such as train.epochs=2", metavar="KEY=VALUE")
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
    """Register one verb that takes a configuration and prints its summary."""

    def command(config: Config = None, set_: Set = None, output: Output = None, quiet: Quiet = False) -> None:
        result = getattr(api, name)(_config(config, set_), quiet=quiet)
        _show(result, output)

    verb = getattr(api, name)
    command.__doc__ = f"{(verb.__doc__ or '').partition(chr(10))[0]}\n\nExample: {example}"
    app.command(name)(command)


def _show(result: Any, output: Path | None) -> None:
    for line in api.describe(result):
        typer.echo(line)
    if output is not None:
        rows = api.export(result, output)
        typer.echo(f"{output}: {rows:,} rows")
