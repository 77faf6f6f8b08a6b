"""Translation: this package beside the raw engines.

Parts, each with both sides in turn in one process and several rounds:

- ``firefox``: ``translate_items`` with an empty cache (splitting, masks, checks, cache and all) against the raw
  engine's ``translate_long`` on the same distinct sentences, en-pt, both in processor time (each runs on one
  thread); then a second run from the cache;
- ``apertium``: the persistent pipeline against one ``apertium`` process a sentence, eng-spa;
- ``ctranslate2``: int8 against a padded batch through transformers in float32, on a MarianMT model with random weights
  and the size of an OPUS-MT model (six layers a side, width 512), greedy, both on the same token limit.

    python scripts/benchmarks/translate.py [--parts firefox apertium ctranslate2] [--sentences 200] [--rounds 3]
        [--corpus data/dialogues-en.jsonl] [--threads 2]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@dataclass(frozen=True)
class Result:
    """Medians of sentences a second; ``ratios`` of each round, ours over the peer's."""

    part: str
    ours: float
    peer: float
    ratio: float
    equal: float | None
    extra: dict[str, float]


def main() -> None:
    """Run the parts and print a table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", nargs="+", default=["firefox", "apertium", "ctranslate2"])
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--corpus", type=Path, default=ROOT / "data" / "dialogues-en.jsonl")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))
    sentences = read_sentences(options.corpus, options.sentences)
    runs: dict[str, Callable[[], Result]] = {
        "firefox": lambda: firefox(sentences, options.rounds),
        "apertium": lambda: apertium(sentences, options.rounds),
        "ctranslate2": lambda: ctranslate2(sentences, options.rounds, options.threads),
    }
    results = [runs[part]() for part in options.parts]
    print(f"{'part':<14}{'ours/s':>10}{'peer/s':>10}{'ratio':>9}{'equal':>8}")
    for r in results:
        equal = "-" if r.equal is None else f"{r.equal:.3f}"
        print(f"{r.part:<14}{r.ours:>10.1f}{r.peer:>10.1f}{r.ratio:>9.2f}{equal:>8}  {r.extra or ''}")
    first = results[0]
    summary = {"name": "translate", "ours": first.ours, "peer": first.peer, "unit": "sentences/s", "ratio": first.ratio}
    summary["equal"] = first.equal
    summary["parts"] = {
        r.part: {"ours": r.ours, "peer": r.peer, "ratio": r.ratio, "equal": r.equal, **r.extra} for r in results
    }
    print(json.dumps(summary))


def read_sentences(corpus: Path, count: int) -> list[str]:
    """Distinct sentences as the engines get them: split, detokenised, without masks."""
    from mdialeval.segments import prepare

    found: dict[str, None] = {}
    for line in corpus.read_text(encoding="utf-8").splitlines():
        for turn in json.loads(line)["turns"]:
            text = turn["text"] if isinstance(turn, dict) else turn
            found.update((p.text, None) for p in prepare(text, "en").pieces if p.sent and not p.masks)
            if len(found) >= count:
                return list(found)[:count]
    return list(found)


def firefox(sentences: Sequence[str], rounds: int) -> Result:
    """See the module docstring."""
    import fxtranslate

    from mdialeval.cache import Cache
    from mdialeval.records import Dialogue, Turn
    from mdialeval.translate.firefox import find_models
    from mdialeval.translate.route import make_route
    from mdialeval.translate.turns import translate_items

    files = find_models()["en", "pt"]
    raw = fxtranslate.Translator(
        model=files.model.read_bytes(),
        src_vocab=files.source_vocabulary.read_bytes(),
        trg_vocab=files.target_vocabulary.read_bytes(),
        shortlist=files.shortlist.read_bytes() if files.shortlist else None,
    )
    route = make_route("firefox", "en", "pt")
    items = [Dialogue(f"d{i}", "en", tuple(map(Turn, sentences[i : i + 8]))) for i in range(0, len(sentences), 8)]
    warm = [Dialogue("warm", "en", (Turn("This one only loads the models and the tables of languages."),))]
    translate_items(warm, route, "en", "pt")
    raw.translate_long("Hello there.")
    ours, peer, again, many, equal = [], [], [], [], 0.0
    for _ in range(rounds):
        # the peer before and after ours, since a shared machine's speed drifts
        expected, before = timed(lambda: [raw.translate_long(s).strip() for s in sentences], time.process_time)
        with tempfile.TemporaryDirectory() as folder, Cache(Path(folder) / "cache.sqlite", "bench") as cache:
            made, seconds = timed(lambda c=cache: translate_items(items, route, "en", "pt", cache=c), time.process_time)
            ours.append(len(sentences) / seconds)
            cached, seconds = timed(lambda c=cache: translate_items(items, route, "en", "pt", cache=c))
            again.append(len(sentences) / seconds)
            if cached != made:
                raise SystemExit("the second run from the cache differs from the first")
            # as a corpus has them: many rows, each distinct in the request, all of them in the cache
            copies = [Dialogue(f"{d.id}-{n}", "en", d.turns) for n in range(50) for d in items]
            rows, seconds = timed(lambda c=cache, i=copies: translate_items(i, route, "en", "pt", cache=c))
            many.append(len(rows) / seconds)
        _, after = timed(lambda: [raw.translate_long(s).strip() for s in sentences], time.process_time)
        peer.append(2 * len(sentences) / (before + after))
        equal = sum(a.hypothesis == b for a, b in zip(made, expected, strict=True)) / len(sentences)
    ratio = statistics.median(a / b for a, b in zip(ours, peer, strict=True))
    second = statistics.median(a / b for a, b in zip(again, ours, strict=True))
    extra = {"cached_over_first": round(second, 1), "cached_rows_per_s": round(statistics.median(again))}
    extra["cached_repeated_rows_per_s"] = round(statistics.median(many))
    return Result("firefox", median(ours), median(peer), round(ratio, 3), round(equal, 3), extra)


def apertium(sentences: Sequence[str], rounds: int) -> Result:
    """See the module docstring; pairs that need a fresh pipeline each call pay for it here too."""
    from mdialeval.translate.apertium import Apertium

    if shutil.which("apertium") is None:
        raise SystemExit("apertium is not installed; leave it out of --parts")
    engine = Apertium()
    many = [f"{s} {i}." for i in range(10) for s in sentences]
    few = sentences[:5]
    ours, peer = [], []
    for _ in range(rounds):
        alone = timed(lambda: [_process(text) for text in few])[1]
        peer.append(len(few) / alone)
        _, seconds = timed(lambda: engine.translate(many, "en", "es"))
        ours.append(len(many) / seconds)
    singles = [_process(text) for text in few]
    batch = engine.translate(few, "en", "es")
    equal = sum(" ".join(a.split()) == b for a, b in zip(singles, batch, strict=True)) / len(few)
    ratio = statistics.median(a / b for a, b in zip(ours, peer, strict=True))
    return Result("apertium", median(ours), median(peer), round(ratio, 1), round(equal, 3), {})


def _process(text: str) -> str:
    done = subprocess.run(["apertium", "-u", "eng-spa"], input=text, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def ctranslate2(sentences: Sequence[str], rounds: int, threads: int) -> Result:
    """See the module docstring.  Random weights never end a sentence: both sides write up to the same limit."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    from mdialeval.translate.ctranslate2 import CTranslate2Translator

    torch.set_num_threads(threads)
    sample = list(sentences[:32])
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = random_marian(Path(folder) / "marian", sentences)
        fast = CTranslate2Translator(
            str(checkpoint), beams=1, max_length=24, device="cpu", threads=threads, cache_dir=Path(folder) / "converted"
        )
        tokenizer = AutoTokenizer.from_pretrained(checkpoint, local_files_only=True)
        model = AutoModelForSeq2SeqLM.from_pretrained(checkpoint, local_files_only=True).eval()

        def slow(texts: Sequence[str]) -> list[str]:
            """As the model's page shows it: one padded batch."""
            batch = tokenizer(list(texts), padding=True, return_tensors="pt")
            with torch.inference_mode():
                made = model.generate(**batch, num_beams=1, max_new_tokens=24)
            return list(tokenizer.batch_decode(made, skip_special_tokens=True))

        fast.translate(sample[:2], "en", "pt")
        slow(sample[:2])
        ours, peer = [], []
        for _ in range(rounds):
            peer.append(len(sample) / timed(lambda: slow(sample))[1])
            ours.append(len(sample) / timed(lambda: fast.translate(sample, "en", "pt"))[1])
    ratio = statistics.median(a / b for a, b in zip(ours, peer, strict=True))
    return Result("ctranslate2", median(ours), median(peer), round(ratio, 2), None, {})


def random_marian(folder: Path, sentences: Sequence[str]) -> Path:
    """A MarianMT checkpoint of an OPUS-MT model's size with random weights and a vocabulary padded to 58,000."""
    import sentencepiece
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder.mkdir(parents=True)
    text = folder / "lines.txt"
    text.write_text("\n".join(sentences), encoding="utf-8")
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(folder / side), vocab_size=600, minloglevel=2, hard_vocab_limit=False
        )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.model"))
    words = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    words = ["</s>", "<unk>", *(w for w in words if w not in ("<s>", "</s>", "<unk>"))]
    words += [f"▁filler{i}" for i in range(58_000 - len(words))]
    vocabulary = {word: i for i, word in enumerate([*words, "<pad>"])}
    (folder / "words.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    MarianTokenizer(
        source_spm=str(folder / "source.model"),
        target_spm=str(folder / "target.model"),
        vocab=str(folder / "words.json"),
    ).save_pretrained(folder)
    torch.manual_seed(0)
    size: dict[str, Any] = {f"{side}_layers": 6 for side in ("encoder", "decoder")}
    size |= {f"{side}_attention_heads": 8 for side in ("encoder", "decoder")}
    size |= {f"{side}_ffn_dim": 2048 for side in ("encoder", "decoder")}
    pad = vocabulary["<pad>"]
    config = MarianConfig(
        vocab_size=len(vocabulary), d_model=512, pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=0, **size
    )
    MarianMTModel(config).eval().save_pretrained(folder)
    return folder


def timed(run: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> tuple[Any, float]:
    """The result and the seconds it took on a clock."""
    start = clock()
    result = run()
    return result, clock() - start


def median(values: Sequence[float]) -> float:
    """Rounded for the table."""
    return round(statistics.median(values), 1)


if __name__ == "__main__":
    sys.exit(main())
