"""Where the heads of a model are: plain data, made by `find`, used by gates, weights and proof."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

__all__ = ["Anatomy", "Attention", "ValuePath"]


@dataclass(frozen=True, eq=False)
class ValuePath:
    """How a head's values come about: linear → [norm → linear] → [norm] → one slice per head.

    `channels[head, d]` is the output channel of the last linear of the chain that becomes
    component d of the head's value. Grouped queries show as heads with equal rows.
    """

    layer: int  # the layer whose input the values are made from (a lower one where layers share)
    linear: str  # the linear that reads the hidden state
    channels: Int[Tensor, "head value_dim"]
    latent_norm: str | None = None  # latent attention: linear[latent] → latent_norm → expand
    latent: Int[Tensor, " latent"] | None = None  # the channels of `linear` that are the latent
    expand: str | None = None
    norm: str | None = None  # a norm over each value head, after the last linear

    @property
    def last_linear(self) -> str:
        return self.expand or self.linear

    @property
    def probe(self) -> str:
        """The module whose output is, channel by channel, what the attention pattern mixes."""
        return self.norm or self.last_linear


@dataclass(frozen=True, eq=False)
class Attention:
    """The heads of one layer. The gate point is the input of module `output`."""

    layer: int
    heads: int
    kv_heads: int
    head_dim: int
    module: str
    output: str
    value: ValuePath
    fused: bool = False  # the module that makes the values makes something else as well
    inner_norm: str | None = None  # a norm over all heads together, between attention and `output`
    scaled: bool = False  # the model itself multiplies each head's output (gated attention, sinks)

    @property
    def kind(self) -> str:
        """How the values are laid out, in words, for tables."""
        words = ["latent" if self.value.expand else "fused" if self.fused else "separate"]
        if self.kv_heads < self.heads:
            words.append("multi-query" if self.kv_heads == 1 else "grouped")
        if self.value.norm:
            words.append("normed")
        if self.value.layer != self.layer:
            words.append(f"of layer {self.value.layer}")
        if self.scaled:
            words.append("scaled")
        if self.inner_norm:
            words.append("inner norm")
        return ", ".join(words)


@dataclass(frozen=True, eq=False)
class Anatomy:
    """All layers of a model; `attention[layer]` is None where a layer has no softmax attention."""

    blocks: str  # the name of the list that holds the layers
    attention: tuple[Attention | None, ...]

    @property
    def layers(self) -> int:
        return len(self.attention)

    @property
    def shape(self) -> tuple[int, int]:
        """(layers, most heads in a layer)"""
        return self.layers, max(found.heads for found in self.present())

    def present(self) -> list[Attention]:
        return [found for found in self.attention if found is not None]

    def block(self, layer: int) -> str:
        return f"{self.blocks}.{layer}"
