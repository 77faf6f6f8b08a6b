"""The model card beside every evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mdialeval.model.network import Architecture
from mdialeval.model.saved import Settings
from mdialeval.model.stack import Stack


def _reads(architecture: Architecture) -> str:
    if architecture.reads == "likelihood":
        return "reads likelihoods of the response, no words"
    return f"attention {architecture.attention}, pooling {architecture.pooling}, layers {architecture.layers}"


def _likelihoods(stack: Stack, weighed: Mapping[str, Any]) -> str:
    together, alone = ("undefined" if (v := weighed[k]) is None else f"{v:.3f}" for k in ("together", "alone"))
    return (
        f"| likelihoods | also reads {stack.model} (weights {stack.model_hash}); {weighed['statistic']} {together} on "
        f"{weighed['pairs']} held-out pairs, cross-validated, {alone} without |"
    )


def model_card(settings: Settings) -> str:
    """A README in Markdown: what the evaluator measures, what it learned from, how good it is, and its licence."""
    notes, architecture, markup = settings.training, settings.architecture, settings.markup
    dev = notes.get("dev", {})
    scale = "in [0, 1]" if architecture.loss == "bce" or settings.stack else "about [0, 1], not clipped"
    counted = {key: ", ".join(f"{k} {v}" for k, v in notes.get(key, {}).items()) for key in ("languages", "kinds")}
    figure = "undefined" if dev.get("value") is None else f"{dev['value']:.3f}"
    graphs, branch, graphs_line = notes.get("graphs"), architecture.graph, ""
    if branch is not None and graphs:
        graphs_line = (
            f"| semantic graphs | {branch.join}, fusion {'graph only' if branch.only else branch.fusion}; "
            f"{graphs['with_graph']} of {graphs['pairs']} pairs with a graph, "
            f"{graphs['turns_with_graph']} of {graphs['turns']} turns |"
        )
    weighed, stack = notes.get("likelihood"), settings.stack
    lines = [
        f"# Evaluator of {settings.dimension}",
        "",
        f"Scores a response {'in its context ' if architecture.pooling != 'response' else ''}for "
        f"{settings.dimension}; higher is better, {scale}. Made with mdialeval.",
        "",
        "| | |",
        "|---|---|",
        f"| base encoder | {settings.encoder} (weights {settings.encoder_hash}) |",
        f"| architecture | {_reads(architecture)}, hidden {architecture.hidden}, loss {architecture.loss} |",
        *([f"| tuning | {architecture.tuning.label} |"] if architecture.tuning else []),
        f"| input limit | {markup.max_tokens} tokens; oldest turns are dropped first, the response never |",
        f"| data | {notes.get('data') or 'not stated'} |",
        f"| licence of the data | {notes.get('licence') or 'not stated'} |",
        f"| training pairs | {notes.get('n_train')} ({counted['languages']}) |",
        f"| kinds | {counted['kinds']} |",
        f"| cut | {notes.get('n_truncated')} pairs cut inside, {notes.get('n_turns_dropped')} context turns dropped |",
        *([graphs_line] if graphs_line else []),
        *([f"| siamese | {n} pairs with a paraphrase |"] if (n := notes.get("n_paraphrases")) else []),
        f"| dev pairs (other dialogues) | {notes.get('n_dev')} |",
        f"| dev {dev.get('statistic')} | {figure} |",
        f"| dev loss | {dev.get('loss', float('nan')):.4f} (mean predictor {dev.get('mean_loss', float('nan')):.4f}) |",
        *([_likelihoods(stack, weighed)] if stack and weighed else []),
        f"| seed | {notes.get('seed')} |",
        "",
        "The dev figures tell constructed negatives from true responses; they are not agreement with people.",
    ]
    lines += [f"Note: {warning}." for warning in notes.get("warnings", [])]
    return "\n".join(lines) + "\n"
