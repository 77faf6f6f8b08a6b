"""The ``train`` section."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from mdialeval.assets import causal_name
from mdialeval.config.corpus import Source
from mdialeval.config.section import InputPath, LanguageCode, Section

SHARED = frozenset({"dimensions", "data", "languages", "leakage", "device", "graph", "tuning", "siamese"})
"""Settings of ``train`` that no dimension has of its own."""

ONE_ENCODER = "madx learns its language adapters on train.encoder, so that no dimension has an encoder of its own"


class DimensionConfig(Section):
    """One evaluator: what it learns, and which translations it learns from."""

    task: str = Field("", description="an entry of `mdialeval list tasks`; the dimension's name where empty")
    options: dict[str, Any] = Field(default_factory=dict, description="the task's own options")
    top_k: float | None = Field(None, gt=0, le=100, description="per cent by QE; rank.k where not given")
    recipe: dict[str, Any] = Field(
        default_factory=dict, description="settings of train that are this evaluator's own, such as {epochs: 3}"
    )


class GraphConfig(Section):
    """The branch over semantic graphs; every part is a switch."""

    use: Literal["none", "joint", "separate"] = Field(
        "none", description="no graphs, one graph of the whole dialogue, or context and response apart (as published)"
    )
    only: bool = Field(False, description="graphs alone: the text is not read")
    width: int = Field(64, ge=4, description="of the nodes' vectors, a multiple of heads")
    layers: int = Field(2, ge=1, description="of the graph transformer")
    heads: int = Field(4, ge=1)
    fusion: Literal["gate", "concat", "residual"] = Field(
        "residual", description="g*S+(1-g)*A (the paper), [g*S;(1-g)*A] (its code), or S+g*s*A with a small s at first"
    )
    gate: Literal["vector", "scalar", "none"] = Field("vector", description="a gate a feature, one gate, or no gate")
    contrastive: Literal["none", "paper", "infonce"] = Field("none", description="loss that aligns graph and sentence")
    weight: float = Field(0.1, ge=0, description="of the contrastive loss")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of the pairs that train without their graph")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is no multiple of heads {self.heads}: use a width such as 128")
        if self.only and self.use == "none":
            raise ValueError("only: true needs graphs: set use: joint or separate")
        if self.only and self.contrastive != "none":
            raise ValueError("contrastive aligns graph and sentence, and only: true reads no sentence: set it to none")
        return self


class LanguageModelConfig(Section):
    """How the language adapters of ``madx`` are learned: masked language modelling on plain text of a language."""

    texts: list[Source] = Field(
        default_factory=list, description="texts beside the run's English corpus and its translations, in any language"
    )
    reduction: float = Field(2.0, ge=1, description="width of the encoder divided by that of a language adapter")
    steps: int = Field(400, ge=1)
    batch_size: int = Field(32, ge=1, description="texts a step")
    max_tokens: int = Field(64, ge=8, description="longer texts are cut")
    max_texts: int = Field(20_000, ge=20, description="at most this many distinct texts a language")
    mask: float = Field(0.15, gt=0, lt=1, description="share of the tokens to predict")
    learning_rate: float = Field(5e-4, gt=0)
    seed: int = Field(13, ge=0, description="apart from the run's, so that all its seeds share the language adapters")

    @classmethod
    def speed(cls) -> frozenset[str]:
        """Nothing: every setting is part of what is learned."""
        return frozenset()


class TuningConfig(Section):
    """Which weights of the encoder learn: its own, or small ones put into it."""

    kind: Literal["full", "lora", "adapter", "madx"] = Field(
        "full",
        description="full = the encoder's own; lora = low-rank updates (peft); adapter = a bottleneck a layer; madx = "
        "the same on English, on top of language adapters that are swapped when scoring",
    )
    rank: int = Field(8, ge=1, description="of LoRA")
    alpha: float = Field(16.0, gt=0, description="LoRA's update is scaled by alpha / rank")
    dropout: float = Field(0.0, ge=0, lt=1, description="before LoRA's update")
    targets: list[str] = Field(
        default_factory=list,
        description="linear layers that LoRA changes, such as [query, value], or [all-linear]; empty = as peft",
    )
    reduction: float = Field(16.0, ge=1, description="width of the encoder divided by that of the task adapter")
    learning_rate: float = Field(5e-4, gt=0, description="in place of train.learning_rate where kind is not full")
    language_model: LanguageModelConfig = Field(default_factory=LanguageModelConfig, description="of madx")


class SiameseConfig(Section):
    """Paraphrases that learn the same label as their originals and are drawn towards them."""

    use: Literal["none", "translations", "file"] = Field(
        "none", description="translations = the same turn in another language; file = other responses, from a file"
    )
    path: InputPath | None = Field(
        None, description="of use: file; .csv, .tsv or .jsonl, one text and paraphrase a row"
    )
    text: str = Field("text", description="the file's column of responses as the training data have them")
    paraphrase: str = Field("paraphrase", description="the file's column of paraphrases; `language` holds the language")
    term: Literal["scores", "vectors", "both"] = Field(
        "both", description="squared difference of the scores, one minus the cosine of the vectors, or their sum"
    )
    weight: float = Field(1.0, ge=0, description="of that term")


class TrainConfig(Section):
    """The evaluators, their encoder and the training loop."""

    dimensions: dict[str, DimensionConfig] = Field(
        default_factory=lambda: {
            "understandability": DimensionConfig(top_k=5.0),
            "sensibleness": DimensionConfig(top_k=75.0),
        },
        description="dimension -> its recipe",
    )
    data: list[Source] = Field(
        default_factory=list, description="more training data, as it is (already labelled or not)"
    )
    languages: list[LanguageCode] = Field(default_factory=list, description="train on these; all where empty")
    max_pairs: int | None = Field(None, ge=2, description="at most this many training pairs a dimension")
    leakage: Literal["refuse", "drop", "allow"] = Field(
        "refuse", description="training items that also occur in a rated set: an error, left out, or trained on"
    )
    dev_share: float = Field(0.1, gt=0, lt=0.5, description="share of the dialogue groups held out for selection")

    encoder: str = Field(
        "embedded",
        description="'embedded', a hub name or a local folder; 'likelihood' or 'likelihood:MODEL' reads how probable a "
        "causal language model finds the response, and nothing else",
    )
    likelihood: str = Field(
        "",
        description="a causal language model that is read beside the encoder: 'embedded', a file, folder or hub name; "
        "held-out pairs say how much its likelihoods count. Not read where empty",
    )
    attention: Literal["auto", "shared", "joint", "separate"] = Field(
        "auto", description="who sees whom in a pair; auto = shared where the encoder has absolute positions"
    )
    pooling: Literal["auto", "parts", "mean", "start", "response"] = Field(
        "auto", description="token vectors to one; auto = parts with a context, response without"
    )
    layers: Literal["last", "mix", "several"] = Field(
        "several", description="the encoder's last layer, a learned mixture of all, or three of the upper half"
    )
    hidden: int = Field(256, ge=0, description="width of the head's hidden layer; 0 = linear")
    dropout: float = Field(0.1, ge=0, lt=1, description="in the head")
    encoder_dropout: float = Field(0.0, ge=0, lt=1, description="inside the encoder while it learns")
    trainable_layers: int | None = Field(
        None, ge=0, description="top layers that learn; all where empty; 0 = frozen encoder, encoded once"
    )
    train_embeddings: bool = Field(False, description="word embeddings learn too")
    max_tokens: int = Field(96, ge=8, description="length limit; oldest turns are dropped first, the response never")
    max_turns: int | None = Field(None, ge=0, description="at most this many context turns, the newest")
    speakers: Literal["none", "letters"] = "none"

    siamese: SiameseConfig = Field(default_factory=SiameseConfig, description="training with paraphrases")
    tuning: TuningConfig = Field(default_factory=TuningConfig, description="which weights of the encoder learn")
    graph: GraphConfig = Field(default_factory=GraphConfig, description="the branch over semantic graphs")

    loss: Literal["bce", "mse"] = Field("bce", description="bce = classification, mse = regression")
    ranking: float = Field(0.0, ge=0, description="weight of the pairwise loss between responses to one context")
    balance: bool = Field(True, description="weight the classes so that both count the same")
    batch_size: int = Field(32, ge=1, description="pairs a step")
    pack: int = Field(8, ge=1, description="at most this many responses to one context in a sequence")
    accumulate: int = Field(1, ge=1, description="batches a step")
    learning_rate: float = Field(5e-5, gt=0, description="of the encoder")
    head_learning_rate: float = Field(1e-3, gt=0, description="of the head")
    weight_decay: float = Field(0.01, ge=0)
    warmup: float = Field(0.1, ge=0, lt=1, description="share of the steps in which the rate rises")
    epochs: float = Field(1.0, gt=0)
    checks: int = Field(4, ge=1, description="dev evaluations, evenly over the training")
    patience: int = Field(3, ge=1, description="checks without a better dev figure before training stops")
    clip: float = Field(1.0, gt=0, description="limit of the gradient's norm")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    gradient_checkpointing: bool = Field(
        False, description="compute the encoder's layers again on the way back: less memory, one forward pass more"
    )
    tensorboard: bool = Field(False, description="also log for TensorBoard, beside the JSONL log")
    device: str = "auto"

    @model_validator(mode="after")
    def _paraphrased(self) -> Self:
        if self.siamese.use == "file" and self.siamese.path is None:
            raise ValueError("siamese.path: use: file needs a file of texts and paraphrases")
        if self.siamese.use != "none" and self.graph.only:
            raise ValueError("siamese training compares texts, and graph.only reads none: leave one of them out")
        return self

    @model_validator(mode="after")
    def _tuned(self) -> Self:
        if self.tuning.kind == "full":
            return self
        kind = f"tuning.kind: {self.tuning.kind}"
        if self.trainable_layers == 0:
            raise ValueError(f"trainable_layers: 0 freezes the encoder, and {kind} tunes it: leave one of them out")
        if self.train_embeddings:
            raise ValueError(f"train_embeddings needs tuning.kind: full; {kind} leaves the encoder's weights alone")
        if self.graph.only:
            raise ValueError(f"graph.only reads no text, and {kind} tunes the text encoder: leave one of them out")
        return self

    @model_validator(mode="after")
    def _likelihood(self) -> Self:
        if causal_name(self.encoder) is None:
            return self
        if self.likelihood:
            raise ValueError(f"encoder: {self.encoder} reads likelihoods already: leave likelihood out")
        if self.graph.use != "none" or self.tuning.kind != "full" or self.siamese.use != "none":
            raise ValueError(
                f"encoder: {self.encoder} reads no words, so that graphs, tuning and siamese training have nothing to "
                "work on: leave them out, or give that dimension's recipe another encoder"
            )
        return self

    @model_validator(mode="after")
    def _recipes(self) -> Self:
        problems = [
            f"dimensions.{name}.recipe: {key!r} is "
            + ("set once for all dimensions" if key in SHARED else "no setting of train")
            for name, dimension in self.dimensions.items()
            for key in dimension.recipe
            if key in SHARED or key not in type(self).model_fields
        ]
        if self.tuning.kind == "madx":
            problems += [
                f"dimensions.{n}.recipe: {ONE_ENCODER}" for n, d in self.dimensions.items() if "encoder" in d.recipe
            ]
        if problems:
            raise ValueError("; ".join(problems))
        for name, dimension in self.dimensions.items():
            try:
                self._merged(dimension.recipe)
            except ValidationError as error:
                found = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
                raise ValueError(f"dimensions.{name}.recipe: {found}") from None
        return self

    def of(self, dimension: str) -> TrainConfig:
        """The settings that one dimension's evaluator is trained with: these, and those of its own recipe."""
        return self._merged(self.dimensions[dimension].recipe)

    def _merged(self, recipe: dict[str, Any]) -> TrainConfig:
        own = {name: getattr(self, name) for name in type(self).model_fields if name not in ("dimensions", *recipe)}
        return type(self).model_validate({**own, "dimensions": {}, **recipe})

    def content(self, *without: str) -> dict[str, Any]:
        """See ``Section``; how language adapters are learned is part of the stages that learn them."""
        found = super().content(*without)
        if not found.get("likelihood", True):
            found.pop("likelihood")  # without a model the evaluator is the one that it was before there was the key
        if "tuning" in found:
            found["tuning"].pop("language_model")
        return found

    @classmethod
    def speed(cls) -> frozenset[str]:
        """Where and how it is computed and logged: the batch size is part of what is learned."""
        return frozenset({"device", "gradient_checkpointing", "tensorboard"})
