"""The self-check: does what we found, gate and read agree with what the model computes?

Four statements are put to the test on a few random tokens, layer by layer:

*gate*     A head let through alone adds its slice of W_O times its output, for every head. Gating
           a layer's heads off equals taking their slices out of W_O; what enters their block then
           stays the same, what leaves it changes.
*pattern*  Where one position alone has a value of one, each head's output is that head's attention
           weight for the position, in every component. So the slices at the gate point are heads,
           and they are in the order of the attention patterns.
*rebuild*  The head's attention pattern, mixing the values made with the weights that we read,
           gives the head outputs that the model computed.
*ones*     With all gates at one the logits are the same, bit for bit.

Two more make sure that this is the right thing to test: no head attends to a later position and a
later token does not change earlier logits (*causal*), and the plain attention code, whose patterns
can be seen, computes the same logits as the code that the model was loaded with (*kernels*).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from transformers import PreTrainedModel

from headatlas.model.anatomy import Anatomy, Attention
from headatlas.model.gate_modules import Gating, ungated
from headatlas.model.linear import exact
from headatlas.model.probe import POSITIONS, eager, random_ids, rows_first
from headatlas.model.trace import Trace, first_tensor, hooks, logits_of, run_until, trace
from headatlas.model.weights import head_values, output_slice

__all__ = ["LayerCheck", "SelfCheck", "self_check"]


_SHORT = 3  # positions of the text on which gating is tested; its rows are many


@dataclass(frozen=True)
class LayerCheck:
    """Deviations of one layer, relative to the size of what is compared."""

    layer: int
    heads: int
    kv_heads: int
    head_dim: int
    kind: str
    gate_point: str
    gate: float
    pattern: float
    rebuild: float


@dataclass(frozen=True)
class SelfCheck:
    """The outcome of the self-check; `failures` is empty exactly if the model can be trusted."""

    layers: tuple[LayerCheck | None, ...]
    ones_identical: bool
    causal: float
    kernels: float
    tolerance: float
    seconds: float
    failures: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        return not self.failures

    def to_json(self) -> dict[str, Any]:
        """Plain JSON has no NaN and no infinity: a deviation that is no number becomes null."""
        found = {"passed": self.passed, **asdict(self)}
        for row in (found, *(layer for layer in found["layers"] if layer)):
            for key, value in row.items():
                if isinstance(value, float) and not math.isfinite(value):
                    row[key] = None
        return found


def self_check(hf: PreTrainedModel, anatomy: Anatomy, gating: Gating) -> SelfCheck:
    """Put the anatomy to the test. Never raises for a wrong anatomy: the failures say what is wrong."""
    start = time.perf_counter()
    tolerance = _tolerance(hf)
    ids = random_ids(hf, 1, POSITIONS)
    failures: list[str] = []

    plain = logits_of(hf, ids)
    if not torch.isfinite(plain).all():
        failures.append("the logits for ordinary tokens are not finite.")
    ones_identical = _ones_identical(hf, anatomy, gating, ids, plain)
    if not ones_identical and torch.equal(logits_of(hf, ids), plain):  # some kernels never repeat themselves
        failures.append("gates of one change the logits.")

    with eager(hf):
        clean = trace(hf, ids)
        response = _responses(hf, anatomy, clean, ids)
    causal = _causal_deviation(hf, anatomy, clean, ids, plain)
    if not causal <= tolerance / 5:  # the same sums with the same numbers: little but rounding is allowed
        failures.append(
            f"later tokens are seen by earlier ones (by {causal:.2g}): this is no causal language model."
        )
    kernels = _ratio(clean.logits - plain, plain)  # type: ignore[operator]
    if not kernels <= tolerance:
        failures.append(
            f"the plain and the chosen attention code give different logits (by {kernels:.2g}); "
            "try attn_implementation='eager'."
        )

    alone = _alone_deviations(hf, anatomy, gating, clean)
    taken = _taken_deviations(hf, anatomy, gating, floor=max(tolerance, 0.01))
    checks: list[LayerCheck | None] = [None] * anatomy.layers
    for found in anatomy.present():
        pattern, rebuild = _attention_deviations(hf, found, clean, response[found.layer])
        check = LayerCheck(
            layer=found.layer,
            heads=found.heads,
            kv_heads=found.kv_heads,
            head_dim=found.head_dim,
            kind=found.kind,
            gate_point=found.output,
            gate=max(alone[found.layer], taken[found.layer]),
            pattern=pattern,
            rebuild=rebuild,
        )
        checks[found.layer] = check
        failures += _complaints(check, tolerance)
    seconds = time.perf_counter() - start
    return SelfCheck(tuple(checks), ones_identical, causal, kernels, tolerance, seconds, tuple(failures))


def _ones_identical(
    hf: PreTrainedModel,
    anatomy: Anatomy,
    gating: Gating,
    ids: Int[Tensor, "row position"],
    plain: Float[Tensor, "row position vocabulary"],
) -> bool:
    with gating(torch.ones(anatomy.shape)):
        return torch.equal(logits_of(hf, ids), plain)


def _complaints(check: LayerCheck, tolerance: float) -> list[str]:
    means = {
        "gate": "gating a head does not equal taking its slice out of W_O, or acts in another block",
        "pattern": "the slices at the gate point do not follow the attention patterns of the heads",
        "rebuild": "the value weights that were read do not rebuild the head outputs",
    }
    return [
        f"layer {check.layer}: {meaning} (deviation {getattr(check, name):.2g}, allowed {tolerance:.2g})."
        for name, meaning in means.items()
        if not getattr(check, name) <= tolerance  # NaN fails too
    ]


def _tolerance(hf: PreTrainedModel) -> float:
    quantised = getattr(hf.config, "quantization_config", None) is not None
    half = any(p.is_floating_point() and p.dtype.itemsize <= 2 for p in hf.parameters())
    return 0.1 if half or quantised else 1e-3


def _rms(tensor: Tensor) -> float:
    return float(exact(tensor).square().mean().sqrt())


def _ratio(error: Tensor, size: Tensor, floor: float = 0.0) -> float:
    """Root mean square of the error over that of the size; zero where both are nothing.

    What is no number counts as infinite: NaN would slip through every comparison.
    """
    wrong, right = _rms(error), _rms(size) + floor
    if wrong == 0:
        return 0.0
    return wrong / right if right and math.isfinite(wrong / right) else math.inf


def _causal_deviation(
    hf: PreTrainedModel,
    anatomy: Anatomy,
    clean: Trace,
    ids: Int[Tensor, "row position"],
    plain: Float[Tensor, "row position vocabulary"],
) -> float:
    """The largest attention to a later position, or what another last token does to earlier logits."""
    owners = {found.module for found in anatomy.present()}
    patterns = [event.pattern for event in clean.events if event.owner in owners]
    ahead = max(float(pattern[..., :POSITIONS].triu(1).max()) for pattern in patterns)
    if ahead:
        return max(ahead, 1.0)
    other = ids.clone()
    others = ids[ids != ids[0, -1]]
    other[:, -1] = others[0] if len(others) else ids[0, -1]
    changed = logits_of(hf, other)
    return _ratio(changed[:, :-1] - plain[:, :-1], plain[:, :-1])


# --- gate -------------------------------------------------------------------------------------


@torch.no_grad()
def _alone_deviations(
    hf: PreTrainedModel, anatomy: Anatomy, gating: Gating, clean: Trace
) -> dict[int, float]:
    """Row h lets head h of every layer through, the last row none: what each head alone adds."""
    layers, most = anatomy.shape
    values = torch.zeros(most + 1, layers, most)
    for head in range(most):
        values[head, :, head] = 1
    deviations = {}
    with gating(values):
        for found in anatomy.present():
            z = clean.last(found.output).input
            assert z is not None
            added = hf.get_submodule(found.output)(z.expand(most + 1, -1, -1))
            added, heads = exact(added[:-1] - added[-1:]), exact(z[0]).unflatten(-1, (found.heads, -1))
            least = 1e-2 * _rms(added)
            deviations[found.layer] = max(
                _ratio(added[head] - expected, expected, least)
                for head in range(found.heads)
                for expected in [heads[:, head] @ exact(output_slice(hf, found, head)).to(heads.device)]
            )
    return deviations


def _taken_deviations(
    hf: PreTrainedModel, anatomy: Anatomy, gating: Gating, floor: float
) -> dict[int, float]:
    """Row r has all heads of the r-th attention layer off; the last row is plain."""
    present = anatomy.present()
    rows = len(present) + 1
    values = torch.ones(rows, *anatomy.shape)
    for row, found in enumerate(present):
        values[row, found.layer] = 0
    ids = random_ids(hf, 1, _SHORT).expand(rows, -1).contiguous()

    with gating(values):
        by_gate = _kept_rows(hf, anatomy, ids)
    takers = [
        hf.get_submodule(found.output).register_forward_hook(_take_out(hf, found, values))
        for found in present
    ]
    with hooks(*takers):
        by_weight = _kept_rows(hf, anatomy, ids)

    deviations = {}
    for found in present:
        gated, taken = by_gate[found.layer], by_weight[found.layer]
        effect, least = taken.output[0] - taken.output[1], floor * _rms(taken.output[1])
        worst = _ratio(gated.output[0] - taken.output[0], effect, least)
        before, before_plain = gated.before
        after, after_plain = gated.after
        change = after - after_plain
        worst = max(worst, _ratio(before - before_plain, change, floor * _rms(before_plain)))
        smallest = 8 * torch.finfo(after.dtype).eps * _rms(after_plain)  # that the stream can show
        if _rms(effect) > max(0.01 * _rms(taken.output[1]), smallest) and not _rms(change):
            worst = math.inf  # the heads are switched off, yet their block does not notice
        deviations[found.layer] = worst
    return deviations


def _take_out(
    hf: PreTrainedModel, found: Attention, values: Float[Tensor, "row layer head"]
) -> Callable[..., Tensor]:
    def hook(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        z = exact(args[0]).unflatten(-1, (found.heads, -1))
        off = 1 - values[:, found.layer, : found.heads].to(z)
        total = torch.zeros_like(exact(output))
        for head in range(found.heads):
            part = z[:, :, head] @ exact(output_slice(hf, found, head)).to(z.device)
            total += off[:, head, None, None] * part
        return output - total.to(output)

    return hook


@dataclass
class _Kept:
    """Two rows: this layer's, and the plain one."""

    output: Shaped[Tensor, "2 ..."]  # after the output projection
    before: Shaped[Tensor, "2 ..."]  # entering the block
    after: Shaped[Tensor, "2 ..."]  # leaving the block


def _kept_rows(hf: PreTrainedModel, anatomy: Anatomy, ids: Int[Tensor, "row position"]) -> dict[int, _Kept]:
    """Run, keeping only the rows that will be compared (a large model has many layers)."""
    rows = len(ids)
    outputs: dict[int, Tensor] = {}
    befores: dict[int, Tensor] = {}
    afters: dict[int, Tensor] = {}

    def pick(values: Any, picks: list[int]) -> Tensor:
        tensor = first_tensor(values)
        assert tensor is not None
        places = [axis for axis in range(tensor.ndim - 1) if tensor.shape[axis : axis + 2] == (rows, _SHORT)]
        if not places:  # rows and positions in one, or the other way round
            tensor, places = rows_first(tensor, rows, _SHORT), [0]
        axis = places[0]
        return tensor.index_select(axis, torch.tensor(picks, device=tensor.device)).movedim(axis, 0)

    def keep(store: dict[int, Tensor], layer: int, picks: list[int]) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            store[layer] = pick(output, picks)

        return hook

    def keep_before(layer: int, picks: list[int]) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            befores[layer] = pick((args, kwargs), picks)

        return hook

    handles = []
    for row, found in enumerate(anatomy.present()):
        inner, block = ungated(hf, found.output), hf.get_submodule(anatomy.block(found.layer))
        layer, pair = found.layer, [row, rows - 1]
        handles += [
            inner.register_forward_hook(keep(outputs, layer, pair)),
            block.register_forward_pre_hook(keep_before(layer, pair), with_kwargs=True),
            block.register_forward_hook(keep(afters, layer, pair)),
        ]
    with hooks(*handles):
        run_until(hf, ids, anatomy.block(anatomy.present()[-1].layer))
    return {layer: _Kept(outputs[layer], befores[layer], afters[layer]) for layer in outputs}


# --- pattern and rebuild ----------------------------------------------------------------------


@dataclass
class _Response:
    """What a layer does where one position alone has values, all of them one."""

    heads: Float[Tensor, "head query key head_dim"]  # head outputs, the key being that position
    pattern: Float[Tensor, "softmax_head query key"]  # the attention weight for it


def _responses(
    hf: PreTrainedModel, anatomy: Anatomy, clean: Trace, ids: Int[Tensor, "1 position"]
) -> dict[int, _Response]:
    """Each output projection answers as in the clean run, so one pass serves all layers."""
    rows = POSITIONS + 2  # one per position; the other two keep rows and positions distinguishable
    shown: dict[int, Tensor] = {}
    channels: dict[str, set[int]] = {}
    for found in anatomy.present():
        channels.setdefault(found.value.probe, set()).update(found.value.channels.flatten().tolist())
    normed = {found.value.norm for found in anatomy.present()}

    def send(name: str) -> Callable[..., Tensor]:
        def hook(module: nn.Module, args: Any, output: Tensor) -> Tensor:
            changed = output.clone()
            view = rows_first(changed, rows, POSITIONS)
            if name in normed:  # a norm over value heads puts out values and nothing else
                index = torch.arange(view.shape[-1], device=view.device)
            else:
                index = torch.tensor(sorted(channels[name]), device=view.device)
            one_at = torch.eye(rows, POSITIONS, device=view.device, dtype=view.dtype)
            view = view.clone()
            view[..., index] = one_at.unsqueeze(-1)
            return _restore(view, output)

        return hook

    def show(found: Attention) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any) -> None:
            z = rows_first(first_tensor(args), rows, POSITIONS)[:POSITIONS]  # type: ignore[arg-type]
            shown[found.layer] = z.unflatten(-1, (found.heads, -1)).permute(2, 1, 0, 3)

        return hook

    def calm(name: str) -> Callable[..., Tensor]:
        def hook(module: nn.Module, args: Any, output: Tensor) -> Tensor:
            as_clean = rows_first(clean.last(name).output, 1, POSITIONS)  # type: ignore[arg-type]
            return _restore(as_clean.expand(rows, -1, -1), output)

        return hook

    handles = [hf.get_submodule(name).register_forward_hook(send(name)) for name in channels]
    for found in anatomy.present():
        watched = hf.get_submodule(found.inner_norm or found.output)
        handles.append(watched.register_forward_pre_hook(show(found)))
        handles.append(hf.get_submodule(found.output).register_forward_hook(calm(found.output)))
    with hooks(*handles):
        seen = trace(hf, ids.expand(rows, -1).contiguous(), anatomy.block(anatomy.present()[-1].layer))
    patterns = {
        event.owner: event.pattern[:POSITIONS, :, :, :POSITIONS].diagonal(dim1=0, dim2=3)
        for event in seen.events
    }
    return {found.layer: _Response(shown[found.layer], patterns[found.module]) for found in anatomy.present()}


def _restore(
    view: Shaped[Tensor, "row position channel"], like: Shaped[Tensor, "*shape"]
) -> Shaped[Tensor, "*shape"]:
    """Undo `rows_first`."""
    rows, positions = view.shape[:2]
    if like.ndim == 4 and like.shape[1] != positions:
        return view.reshape(rows, positions, like.shape[1], -1).transpose(1, 2)
    if like.ndim == 3 and like.shape[0] == positions and like.shape[1] == rows:
        return view.transpose(0, 1)
    return view.reshape(like.shape)


def _attention_deviations(
    hf: PreTrainedModel, found: Attention, clean: Trace, response: _Response
) -> tuple[float, float]:
    measured, weights = exact(response.heads), exact(response.pattern)
    if len(measured) != len(weights):
        return math.inf, math.inf  # not as many heads as attention patterns
    # a model may scale head outputs itself; whatever the factor, it cannot depend on the key
    factor = measured.sum(2) / weights.sum(-1, keepdim=True)  # [head, query, head_dim]
    if (factor < 0).any():
        return math.inf, math.inf  # what is read as W_V would have the wrong sign
    expected = weights.unsqueeze(-1) * factor.unsqueeze(2)
    pattern_deviation = max(
        _ratio(measured[head] - expected[head], measured[head]) for head in range(found.heads)
    )

    event = next(e for e in clean.events if e.owner == found.module)
    pattern = exact(event.pattern[0, :, :, :POSITIONS])
    x = clean.last(found.value.linear).input
    z = clean.last(found.inner_norm or found.output).input
    assert x is not None and z is not None
    x = rows_first(x, 1, POSITIONS)[0]
    heads = exact(rows_first(z, 1, POSITIONS)[0]).unflatten(-1, (found.heads, -1))
    rebuild_deviation = 0.0
    floor = 1e-2 * _rms(heads)
    for head in range(found.heads):
        values = exact(head_values(hf, found, head, x)).to(heads.device)
        rebuilt = (pattern[head] @ values) * factor[head]
        rebuild_deviation = max(rebuild_deviation, _ratio(rebuilt - heads[:, head], heads[:, head], floor))
    return pattern_deviation, rebuild_deviation
