"""Evaluators as ordinary Hugging Face folders: ``AutoModel`` loads the encoder, a few lines in the card do the rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mdialeval.model.equality import Equality, compare, write_card
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.markup import Markup
from mdialeval.model.network import EvaluatorNetwork
from mdialeval.model.saved import export, read_settings
from mdialeval.model.stack import refuse_stack
from mdialeval.records import Example


def export_standalone(folder: str | Path, target: str | Path, examples: Sequence[Example]) -> Equality:
    """Write a saved evaluator as a folder that stands alone, and compare its scores with the original's.

    Args:
        folder: written by ``train``.
        target: where it goes.
        examples: what both score, in float32.

    Raises:
        ConfigError: the evaluator also reads a language model.
        DataError: there is nothing to compare.
        BackendError: a score differs by more than ``equality.TOLERANCE``.
    """
    folder, target = Path(folder), Path(target)
    refuse_stack(read_settings(folder).stack, str(folder))
    expected = Evaluator.from_pretrained(folder, device="cpu", precision="fp32").predict(examples)
    export(folder, target)
    exported = Evaluator.from_pretrained(target, device="cpu", precision="fp32")
    equality = compare("huggingface", expected, exported.predict(examples))
    write_card(folder, target, _about(exported.network, exported.settings.markup, equality))
    return equality


def _about(network: EvaluatorNetwork, markup: Markup, equality: Equality) -> str:
    head = f"\n## Use without mdialeval\n\n`AutoModel` and `AutoTokenizer` load this folder. {equality.sentence}\n"
    architecture = network.architecture
    if architecture.graph is not None or architecture.tuning is not None:
        more = "a semantic graph branch" if architecture.graph is not None else "adapters inside the encoder"
        return f"{head}The evaluator has {more}, which mdialeval alone puts in.\n"
    return f"{head}\n```python\n{usage(network, markup)}```\n"


def usage(network: EvaluatorNetwork, markup: Markup) -> str:
    """Python code that scores with torch, transformers and safetensors alone.

    Args:
        network: without a graph branch and without adapters.
        markup: how inputs are written.
    """
    parts = [_OPENING, _tokens(markup), _layout(network), _layers(network), _pooling(network), _head(network)]
    return "".join(parts)


_OPENING = """\
import unicodedata

import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

folder = "."  # this folder
tokenizer = AutoTokenizer.from_pretrained(folder)
encoder = AutoModel.from_pretrained(folder).float().eval()
weights = load_file(f"{folder}/evaluator.safetensors")
start, end = tokenizer.cls_token_id, tokenizer.sep_token_id


def ids(text):
    return tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]


"""


def _tokens(markup: Markup) -> str:
    """Context and response as token ids: the response whole, then the newest turns that fit."""
    lettered = markup.speakers == "letters"
    turns = "    texts = [' '.join(unicodedata.normalize('NFC', t).split()) for t in [*context, response]]\n"
    if lettered:
        turns += "    texts = [f'{\"AB\"[(len(texts) - 1 - i) % 2]}: {t}' for i, t in enumerate(texts)]\n"
    limit = "" if markup.max_turns is None else f"[{-markup.max_turns}:]" if markup.max_turns else "[:0]"
    return (
        "def tokens(context, response):\n"
        + turns
        + f"    *context, response = [ids(t) for t in texts]\n    room = {markup.max_tokens} - 2\n"
        "    response = response[:room]\n    room -= len(response)\n    kept = []\n"
        f"    for turn in reversed(context{limit}):\n"
        "        if len(turn) >= room:\n"
        "            if not kept and room > 8:\n"
        "                kept = [turn[len(turn) - room + 1 :] + [end]]\n"
        "            break\n"
        "        kept.append(turn + [end])\n"
        "        room -= len(turn) + 1\n"
        "    return [t for turn in reversed(kept) for t in turn], response + [end]\n\n\n"
    )


def _layout(network: EvaluatorNetwork) -> str:
    """One sequence, and who sees whom in it."""
    attention, first = network.architecture.attention, network.text_encoder.first_position
    alone = "[start, *response]" if attention == "separate" else "([] if context else [start]) + response"
    text = (
        "@torch.inference_mode()\ndef score(context, response):\n"
        "    context, response = tokens(context, response)\n"
        "    context = [start, *context] if context else []\n"
        f"    response = {alone}\n"
        "    given = {'input_ids': torch.tensor([context + response])}\n"
    )
    if attention == "joint":
        return text + "    given['attention_mask'] = torch.ones_like(given['input_ids'])\n"
    text += "    owner = torch.tensor([0] * len(context) + [1] * len(response))\n"
    seen = "owner[:, None] >= owner[None, :]" if attention == "shared" else "owner[:, None] == owner[None, :]"
    places = "range(len(context)), *range(len(response))" if attention == "separate" else "range(len(owner))"
    return (
        text + f"    given['attention_mask'] = ({seen}).long()[None]\n"
        f"    given['position_ids'] = torch.tensor([[*{places}]]) + {first}\n"
    )


def _layers(network: EvaluatorNetwork) -> str:
    """The token vectors, (layers, tokens, width)."""
    if network.architecture.layers == "last":
        return "    states = encoder(**given).last_hidden_state\n"
    taken = "    states = torch.cat(encoder(**given, output_hidden_states=True).hidden_states)\n"
    if network.architecture.layers == "several":
        return f"{taken}    states = states[{network.text_encoder.chosen}]\n"
    return taken + "    mixture = weights['encoder.mixture'].softmax(0)\n"


def _pooling(network: EvaluatorNetwork) -> str:
    """One vector of the pair."""
    mixed = network.architecture.layers == "mix"
    flat = "(mixture @ {})" if mixed else "{}.flatten()"
    pooling = network.architecture.pooling
    if pooling == "parts":
        answer = flat.format("states[:, len(context) :].mean(1)")
        before = flat.format("states[:, : len(context)].sum(1)")
        return (
            f"    c, r = {before} / max(1, len(context)), {answer}\n"
            "    vector = torch.cat([c, r, c * r, (c - r).abs()])\n"
        )
    piece = {"mean": "states.mean(1)", "start": "states[:, 0]", "response": "states[:, len(context) :].mean(1)"}
    return f"    vector = {flat.format(piece[pooling])}\n"


def _head(network: EvaluatorNetwork) -> str:
    """From the vector to the score."""
    name = "weights['head.layers.{}.{}']"
    first = f"{name.format(1, 'weight')} @ vector + {name.format(1, 'bias')}"
    text = f"    vector = (vector - weights['head.mean']) / weights['head.spread']\n    output = {first}\n"
    if network.architecture.hidden:
        text += f"    output = {name.format(4, 'weight')} @ output.tanh() + {name.format(4, 'bias')}\n"
    last = "output.sigmoid()" if network.architecture.loss == "bce" else "output"
    return text + f"    return float({last})\n\n\nprint(score(['Do you want tea?'], 'Yes, please!'))\n"
