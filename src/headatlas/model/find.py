"""Finds the heads of any decoder, by shape and by experiment; knows no architecture by name.

1. Watch one forward pass. Each softmax over keys is an attention layer; the first linear module
   that runs after it on something new is the output projection, and its input is the gate point.
2. Where do the values come from? On a one-token sequence a head attends to itself alone, so the
   gate point simply shows the value vectors. Feed random numbers through one candidate module
   after the other and look which of its channels turn up where: this reads off fused, grouped,
   interleaved and latent layouts alike, heads that share a value head included.

What is found here is only a claim. `proof` tests it against the model's own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from headatlas.core import GateError, ModelRefusedError
from headatlas.model.anatomy import Anatomy, Attention, ValuePath
from headatlas.model.gate_modules import is_gated
from headatlas.model.linear import is_linear
from headatlas.model.probe import POSITIONS, eager, random_ids, rows_first
from headatlas.model.trace import AttentionEvent, Call, Trace, first_tensor, hooks, trace

__all__ = ["find_heads"]

_ROWS = 64  # random vectors per candidate; channels whose signs agree on all of them are the same


@dataclass(eq=False)
class _Site:
    """An attention layer while it is being examined."""

    event: AttentionEvent
    layer: int
    output: Call
    inner_norm: str | None
    candidates: list[Call]
    scaled: bool = False


def find_heads(hf: PreTrainedModel) -> Anatomy:
    """The anatomy of a decoder, or a `ModelRefusedError` with the reason."""
    if not isinstance(hf.get_input_embeddings(), nn.Embedding):
        raise ModelRefusedError("the model does not read one stream of tokens.")
    if is_gated(hf):
        raise GateError("this model is gated; load it outside the gates block.")
    with eager(hf):
        clean = trace(hf, random_ids(hf, 1, POSITIONS))
        if clean.logits is None or not torch.isfinite(clean.logits).all():
            raise ModelRefusedError("the logits for ordinary tokens are not finite.")
        blocks, sites = _sites(hf, clean)
        paths = _value_paths(hf, clean, sites)
    count = len(hf.get_submodule(blocks))
    attention: list[Attention | None] = [None] * count
    for site in sites:
        attention[site.layer] = _describe(site, paths[site.layer], clean)
    return Anatomy(blocks, tuple(attention))


def _sites(hf: PreTrainedModel, clean: Trace) -> tuple[str, list[_Site]]:
    if not clean.events:
        raise ModelRefusedError("no layer of this model computes softmax attention.")
    sites: dict[int, _Site] = {}
    stacks: set[str] = set()
    for number, event in enumerate(clean.events):
        where = _place(hf, event.owner)
        if where is None:
            raise ModelRefusedError(f"attention in {event.owner or 'the model itself'} lies in no layer.")
        stack, layer = where
        stacks.add(stack)
        if len(stacks) > 1:
            raise ModelRefusedError(f"attention in several stacks of layers: {', '.join(sorted(stacks))}.")
        until = next(
            (e.time for e in clean.events[number + 1 :] if e.owner != event.owner), clean.calls[0].end
        )
        if layer in sites:
            known = sites[layer].event.owner
            again = "more than once in one pass" if known == event.owner else "in two modules"
            raise ModelRefusedError(f"layer {layer} ({known}) computes attention {again}.")
        output = _output_projection(clean, event, until)
        sites[layer] = _Site(
            event, layer, output, _inner_norm(clean, event, output), _candidates(clean, event)
        )
    outputs = [id(site.output.module) for site in sites.values()]
    if len(set(outputs)) < len(outputs):
        raise ModelRefusedError("several layers share one output projection.")
    return stacks.pop(), list(sites.values())


def _place(hf: PreTrainedModel, name: str) -> tuple[str, int] | None:
    """(list, index) of the outermost list of layers that a module lies in."""
    parts = name.split(".")
    for depth, part in enumerate(parts):
        prefix = ".".join(parts[:depth])
        if part.isdigit() and isinstance(hf.get_submodule(prefix), nn.ModuleList):
            return prefix, int(part)
    return None


def _output_projection(clean: Trace, event: AttentionEvent, until: int) -> Call:
    """The first linear after the softmax whose input is new: the model's own gates read old ones."""
    old = {id(c.input) for c in clean.calls if c.start < event.time}
    old |= {id(c.output) for c in clean.calls if c.end < event.time}
    for call in clean.calls:
        if not event.time < call.start < until or not is_linear(call.module) or id(call.input) in old:
            continue
        if call.input is None or call.input.shape[-1] % event.heads:
            break
        if call.input.shape[:-1] != (1, POSITIONS):
            raise ModelRefusedError(
                f"{event.owner}: no output projection takes up the heads as [row, position, channel] "
                f"(the next linear, {call.name}, is called on {list(call.input.shape)})."
            )
        return call
    raise ModelRefusedError(f"{event.owner}: no linear output projection takes up the heads.")


def _inner_norm(clean: Trace, event: AttentionEvent, output: Call) -> str | None:
    for call in clean.calls:
        if event.time < call.start < output.start and call.output is output.input:
            return None if call.input is call.output else call.name
    return None


def _candidates(clean: Trace, event: AttentionEvent) -> list[Call]:
    """Linears and leaf modules of the attention module that ran before its softmax, latest first."""
    inside = [
        call
        for call in clean.calls
        if call.name.startswith(event.owner + ".")
        and call.end < event.time
        and call.single
        and (is_linear(call.module) or not any(call.module.children()))
        and call.output is not None
        and call.output.numel() % POSITIONS == 0
    ]
    return sorted(inside, key=lambda call: -call.end)


def _value_paths(hf: PreTrainedModel, clean: Trace, sites: list[_Site]) -> dict[int, ValuePath]:
    found: dict[int, ValuePath] = {}
    tried: set[str] = set()
    # candidates of the same rank in their layers are probed together, one forward pass for all
    for rank in range(max(len(site.candidates) for site in sites)):
        probe = {
            site.candidates[rank].name: site
            for site in sites
            if site.layer not in found and rank < len(site.candidates)
        }
        if not probe:
            break
        tried |= set(probe)
        shown, sent = _show_values(hf, sites, list(probe))
        for name, site in probe.items():
            channels = _match(shown[site.layer], sent[name], site.event.heads)
            if channels is not None:
                found[site.layer] = _chain(clean, site, name, channels)
                site.scaled = not torch.equal(shown[site.layer], sent[name][:, channels.flatten()])
    for site in sites:
        if site.layer not in found:
            found[site.layer] = _borrowed(hf, sites, site, found)
    return found


def _borrowed(hf: PreTrainedModel, sites: list[_Site], site: _Site, found: dict[int, ValuePath]) -> ValuePath:
    """Layers that attend over the values of a lower layer."""
    for layer in sorted((layer for layer in found if layer < site.layer), reverse=True):
        path = found[layer]
        if path.layer != layer:
            continue
        shown, sent = _show_values(hf, sites, [path.probe])
        channels = _match(shown[site.layer], sent[path.probe], site.event.heads)
        if channels is not None:
            return ValuePath(
                path.layer, path.linear, channels, path.latent_norm, path.latent, path.expand, path.norm
            )
    raise ModelRefusedError(
        f"layer {site.layer} ({site.event.owner}): the heads' outputs are not slices of any "
        "projection's output, so the value weights of a head cannot be told."
    )


def _show_values(
    hf: PreTrainedModel, sites: list[_Site], names: list[str]
) -> tuple[dict[int, Float[Tensor, "row channel"]], dict[str, Float[Tensor, "row sent_channel"]]]:
    """Send random numbers out of `names`; see what arrives at every gate point.

    Every row is the same single token, and every output projection answers as for row 0, so that
    all layers can be probed in one pass without disturbing each other.
    """
    generator = torch.Generator().manual_seed(1)
    sent: dict[str, Tensor] = {}
    shown: dict[int, Tensor] = {}

    def send(name: str) -> Any:
        def hook(module: nn.Module, args: Any, output: Tensor) -> Tensor:
            noise = torch.randn(output.shape, generator=generator).to(output)
            sent[name] = noise.reshape(_ROWS, -1).float().cpu()
            return noise

        return hook

    def show(layer: int) -> Any:
        def hook(module: nn.Module, args: Any) -> None:
            shown[layer] = first_tensor(args).reshape(_ROWS, -1).float().cpu()  # type: ignore[union-attr]

        return hook

    def calm(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        return output[:1].expand_as(output)

    handles = [hf.get_submodule(name).register_forward_hook(send(name)) for name in names]
    for site in sites:
        watched = hf.get_submodule(site.inner_norm) if site.inner_norm else site.output.module
        handles.append(watched.register_forward_pre_hook(show(site.layer)))
        handles.append(site.output.module.register_forward_hook(calm))
    ids = random_ids(hf, 1, 1).expand(_ROWS, 1)
    with hooks(*handles), torch.no_grad():
        hf(input_ids=ids, use_cache=False)
    return shown, sent


def _match(
    shown: Float[Tensor, "row channel"], sent: Float[Tensor, "row sent_channel"], heads: int
) -> Int[Tensor, "head value_dim"] | None:
    """The sent channel that each gate-point channel shows, if each shows one.

    Compared by sign over the rows: a model may scale what it shows (its own gates, sinks, norms),
    by a positive number that differs from row to row or by a fixed one of either sign.
    """
    if (shown == 0).any():
        return None
    rows, signs = len(sent), sent.sign()
    picks = []
    for block in shown.sign().split(512, dim=1):
        best, index = (block.T @ signs).abs().max(dim=1)
        if (best < rows).any():
            return None
        picks.append(index)
    return torch.cat(picks).reshape(heads, -1)


def _chain(clean: Trace, site: _Site, name: str, channels: Int[Tensor, "head value_dim"]) -> ValuePath:
    """From the module whose output the heads show, back to the linear that reads the stream."""
    call = clean.last(name)
    norm = None
    if not is_linear(call.module):
        norm = name
        call, channels = _behind(clean, site, call, channels)
    before = next((c for c in site.candidates if _feeds(c, call)), None)
    if before is None:
        return ValuePath(site.layer, call.name, channels, norm=norm)
    source, latent = _behind(clean, site, before, None)
    return ValuePath(site.layer, source.name, channels, before.name, latent.reshape(-1), call.name, norm)


def _feeds(norm: Call, linear: Call) -> bool:
    """Does the linear read just what the norm gave, in whatever view?"""
    if is_linear(norm.module) or norm.end > linear.start:
        return False
    assert norm.output is not None and linear.input is not None
    return norm.output.numel() == linear.input.numel() and torch.equal(
        rows_first(norm.output, 1, POSITIONS), rows_first(linear.input, 1, POSITIONS)
    )


def _behind(
    clean: Trace, site: _Site, call: Call, channels: Int[Tensor, "head value_dim"] | None
) -> tuple[Call, Int[Tensor, "*shape"]]:
    """The linear whose output channels a norm's input is made of, and which channels those are."""
    assert call.input is not None
    wanted = _signatures(call.input)
    for other in site.candidates:
        if other.end < call.start and is_linear(other.module) and other.output is not None:
            given = {signature: index for index, signature in enumerate(_signatures(other.output))}
            if all(signature in given for signature in wanted):
                index = torch.tensor([given[signature] for signature in wanted])
                return other, index if channels is None else index[channels]
    raise ModelRefusedError(f"layer {site.layer}: what {call.name} normalises comes from no linear.")


def _signatures(tensor: Tensor) -> list[bytes]:
    """The exact numbers of each channel over the probe text."""
    channels = rows_first(tensor, 1, POSITIONS)[0].T.float().cpu().contiguous().numpy()
    return [channel.tobytes() for channel in channels]


def _describe(site: _Site, path: ValuePath, clean: Trace) -> Attention:
    rows = [tuple(row.tolist()) for row in path.channels]
    groups = set(rows)
    used = [channel for row in groups for channel in row]
    if len(set(used)) < len(used):
        raise ModelRefusedError(f"layer {site.layer}: the value slices of different heads overlap.")
    output = clean.last(path.last_linear).output
    reads, writes = clean.last(path.linear).input, site.output.output
    assert output is not None and reads is not None and writes is not None
    if reads.shape[-1] != writes.shape[-1]:
        raise ModelRefusedError(
            f"layer {site.layer}: the values are made from {reads.shape[-1]} channels, but the heads "
            f"write to a stream of {writes.shape[-1]}."
        )
    return Attention(
        layer=site.layer,
        heads=site.event.heads,
        kv_heads=len(groups),
        head_dim=path.channels.shape[1],
        module=site.event.owner,
        output=site.output.name,
        value=path,
        fused=output.shape[-1] > len(used),
        inner_norm=site.inner_norm,
        scaled=site.scaled,
    )
