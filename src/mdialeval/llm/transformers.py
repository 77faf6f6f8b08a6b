"""A local causal language model through transformers, batched with padding on the left."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from jinja2 import TemplateError

from mdialeval.devices import choose_device
from mdialeval.errors import BackendError, ConfigError
from mdialeval.llm.protocol import Completion, Finish, Prompt
from mdialeval.llm.tokens import Token, label_probabilities, score_labels, score_probabilities
from mdialeval.registry import Asset
from mdialeval.signature import fingerprint, folder_hash, version

log = logging.getLogger(__name__)

_TOP = 64


class TransformersChat:
    """Runs an ``AutoModelForCausalLM``.

    Args:
        model: a local folder or a name on the hub (with ``HF_HUB_OFFLINE=1``: in the local cache).
        prompt_format: ``chat`` fills the tokenizer's chat template, ``base`` continues a form that ends in the label of
            the score; ``auto`` is chat where there is a template.
        temperature: 0 takes the likeliest token; above, each prompt is sampled from a seed of its own.
        max_tokens: longest reply.
        seed: of the sampling.
        batch_size: prompts at a time, those of like length together.
        device: ``auto``, ``cpu``, ``cuda`` ...
        dtype: of the weights; ``auto`` is what the checkpoint says.
    """

    joined = False

    def __init__(
        self,
        model: str,
        prompt_format: Literal["auto", "chat", "base"] = "auto",
        temperature: float = 0.0,
        max_tokens: int = 64,
        seed: int = 13,
        batch_size: int = 8,
        device: str = "auto",
        dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto",
    ) -> None:
        if prompt_format not in ("auto", "chat", "base"):
            raise ConfigError(
                f"chat back end 'transformers': prompt_format is auto, chat or base, not {prompt_format!r}"
            )
        self._name, self._format = model, prompt_format
        self._temperature, self._max_tokens, self._seed = temperature, max_tokens, seed
        self._batch_size, self._device, self._dtype = max(1, batch_size), device, dtype
        weights = folder_hash(model) if Path(model).is_dir() else model
        self.identity = (
            f"backend:transformers|model:{weights}|transformers:{version('transformers')}|format:{prompt_format}|"
            f"temperature:{temperature:g}|max_tokens:{max_tokens}|seed:{seed}|dtype:{dtype}"
        )
        self._model: Any = None
        self._tokenizer: Any = None

    @staticmethod
    def assets(model: str = "", **_: Any) -> list[Asset]:
        """The model, where it lies on this machine; nothing is loaded or asked for."""
        if Path(model).expanduser().is_dir():
            return [Asset(f"model {model}", "model", True, str(Path(model).expanduser().resolve()))]
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError

        try:
            found = try_to_load_from_cache(model, "config.json")
        except HFValidationError:
            return [Asset(f"model {model}", "model", False, fix="name a folder that exists or a model as owner/name")]
        there = isinstance(found, str)
        fix = "" if there else f"huggingface-cli download {model}"
        return [Asset(f"model {model}", "model", there, str(Path(str(found)).parent) if there else "", fix)]

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """One completion a prompt.

        Raises:
            BackendError: the model cannot be loaded.
        """
        if self._model is None:
            self._load()
        coded = [self._encode(prompt) for prompt in prompts]
        found: dict[int, Completion] = {}
        room = self._window() - self._max_tokens
        for i, ids in enumerate(coded):
            if len(ids) > room:
                problem = f"the prompt has {len(ids)} tokens, the model's window leaves room for {room}"
                found[i] = Completion(None, error=problem, prompt_tokens=len(ids), finish="too_long")
        fitting = sorted((i for i in range(len(prompts)) if i not in found), key=lambda i: (len(coded[i]), i))
        size = self._batch_size if self._temperature == 0 else 1  # a row's draw must not depend on its neighbours
        for start in range(0, len(fitting), size):
            part = fitting[start : start + size]
            made = self._generate([coded[i] for i in part], [prompts[i] for i in part])
            found.update(zip(part, made, strict=True))
        return [found[i] for i in range(len(prompts))]

    def _load(self) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        device = choose_device(self._device)
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(  # type: ignore[no-untyped-call]
                self._name, padding_side="left"
            )
            self._model = AutoModelForCausalLM.from_pretrained(self._name, torch_dtype=self._dtype)
        except (OSError, ValueError) as error:
            raise BackendError(
                "transformers",
                f"cannot load {self._name}: {error}",
                hint="name a local folder, or fetch the model first",
            ) from error
        self._model.to(device).eval()
        if self._format == "chat" and not self._tokenizer.chat_template:
            raise ConfigError(f"{self._name} has no chat template: use prompt_format: base")
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token

    def _is_chat(self) -> bool:
        return self._format == "chat" or (self._format == "auto" and bool(self._tokenizer.chat_template))

    def _window(self) -> int:
        return int(getattr(self._model.config, "max_position_embeddings", None) or 4096)

    def _encode(self, prompt: Prompt) -> list[int]:
        if not self._is_chat():
            text = f"{prompt.system}\n\n{prompt.user}\n{self._start(prompt.answer)}"
            return list(self._tokenizer(text)["input_ids"])
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        try:
            coded = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        except TemplateError:
            joined = [{"role": "user", "content": f"{prompt.system}\n\n{prompt.user}"}]  # a template without system
            coded = self._tokenizer.apply_chat_template(joined, add_generation_prompt=True)
        return list(coded)

    def _start(self, answer: str) -> str:
        """The answer's beginning, with a blank at its end where the model's digits are tokens without one."""
        last = self._tokenizer(f"{answer} 5", add_special_tokens=False)["input_ids"][-1]
        return f"{answer} " if self._tokenizer.convert_ids_to_tokens(last) == "5" else answer

    @torch.inference_mode()
    def _generate(self, rows: Sequence[list[int]], prompts: Sequence[Prompt]) -> list[Completion]:
        batch = self._tokenizer.pad({"input_ids": list(rows)}, return_tensors="pt").to(self._model.device)  # (B, T)
        fixed = not self._is_chat() and all(prompt.probabilities for prompt in prompts)
        sampling: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        if self._temperature > 0:
            sampling = {"do_sample": True, "temperature": self._temperature, "top_p": 1.0, "top_k": 0}
        draw = int(fingerprint([prompts[0].request(), self._seed], 8), 16)
        with torch.random.fork_rng():
            torch.manual_seed(draw)
            made = self._model.generate(
                **batch,
                **sampling,
                max_new_tokens=1 if fixed else self._max_tokens,
                return_dict_in_generate=True,
                output_logits=any(prompt.probabilities for prompt in prompts),
                pad_token_id=self._tokenizer.pad_token_id,
            )
        new = made.sequences[:, batch["input_ids"].shape[1] :]  # (B, N)
        return [
            self._completion(prompt, len(row), new[b].tolist(), [step[b] for step in made.logits or ()], fixed)
            for b, (prompt, row) in enumerate(zip(prompts, rows, strict=True))
        ]

    def _completion(
        self, prompt: Prompt, n_prompt: int, ids: list[int], logits: Sequence[torch.Tensor], fixed: bool
    ) -> Completion:
        """``ids`` (N), and logits of N steps, each (V,)."""
        ends = {self._tokenizer.eos_token_id, self._tokenizer.pad_token_id}
        length = next((n for n, token in enumerate(ids) if token in ends), len(ids))
        text = self._tokenizer.decode(ids[:length], skip_special_tokens=True)
        if not self._is_chat() and not fixed:
            text = text.strip().partition("\n")[0]  # the form goes on, the answer does not
        finish: Finish = "length" if length == len(ids) and not fixed else "stop"
        if not prompt.probabilities:
            return Completion(text, None, "", n_prompt, length, finish)
        tokens = [Token(self._tokenizer.decode(ids[n]), self._likeliest(logits[n])) for n in range(max(length, 1))]
        if fixed:
            found: dict[str, float] | None = label_probabilities(tokens[0].alternatives, score_labels(prompt.scale))
        else:
            found = score_probabilities(text, tokens, prompt.scale)
        return Completion(text, found, "", n_prompt, length, finish)

    def _likeliest(self, logits: torch.Tensor) -> dict[str, float]:
        probabilities = torch.softmax(logits.float(), dim=-1)  # (V,)
        values, places = probabilities.topk(min(_TOP, len(probabilities)))
        found: dict[str, float] = {}
        for value, place in zip(values.tolist(), places.tolist(), strict=True):
            token = self._tokenizer.decode(place)
            found[token] = found.get(token, 0.0) + value  # several ids may decode to one text
        return found
