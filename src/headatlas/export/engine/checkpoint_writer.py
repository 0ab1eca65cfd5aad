"""Writes a checkpoint with gates folded in, and shows that it works."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig

from headatlas._version import __version__
from headatlas.atlas import Atlas
from headatlas.atlas.interval import Interval, jackknife, jackknife_spread, spread_interval
from headatlas.atlas.selection import choose_gates
from headatlas.core import (
    AtlasError,
    FitError,
    ModelRefusedError,
    RequestError,
    StoreError,
    first_line,
    staged_folder,
    without_local_paths,
)
from headatlas.export.checkpoint import CheckpointOptions
from headatlas.export.checkpoint_card import Exported, checkpoint_card
from headatlas.export.format import ExportRequest
from headatlas.method.engine.likelihood import Outcome, evaluate
from headatlas.model import Model, eval_mode, load_model
from headatlas.model.fold import fold_gates, require_foldable, without_groups
from headatlas.model.load import quiet
from headatlas.run.prepare import Prepared, read_rows, require_same

__all__ = ["nll_change", "write_checkpoint"]


def write_checkpoint(request: ExportRequest, atlas: Atlas, model: Model) -> Exported:
    """Fold the gates into the model, save it, load it again, compare, and measure it; then rename the folder
    into place. The weights of a model that the caller loaded are put back."""
    options: CheckpointOptions = request.options
    is_callers = request.model.source is None
    task, out = request.definition, request.out
    assert task is not None  # the format needs a model
    values = choose_gates(atlas, request.task, options.gates, options.hard, options.seed, options.threshold)
    _require_plain(model)
    with model.measuring():
        _require_same_model(atlas, model)
        require_foldable(model)
        run = atlas.run(task.name)
        run.require_weights(model.spec.dtype, model.weights_identity)
        ready = read_rows(model, task, run.task_facts.get("max_tokens"), options.items)
        require_same(run, ready)
        before = evaluate(model, ready.held_out)
        ids = _random_ids(model)
        with torch.no_grad(), model.gates(values):
            wanted = model.hf(input_ids=ids, use_cache=False).logits.float().cpu()
    plain_size, original = model.spec.parameters or 0, model.hf
    weights = _output_weights(model) if is_callers else {}
    try:
        with staged_folder(out) as place:
            fold_gates(model, values)
            hf: Any = original
            pruned, speed = None, None
            if options.prune:
                with eval_mode(original):
                    smaller, pruned = without_groups(model, np.nan_to_num(values, nan=1.0) == 0)
                    speed = None if smaller is None else _times_as_quick(original, smaller, ids)
                if smaller is not None:
                    hf = smaller
                else:
                    pruned = f"nothing removed: {pruned}"
            _saved(hf, model.tokenizer, place)
            again, deviation = _again(place, hf.dtype, model.device, ids, wanted)
            after = evaluate(again, ready.held_out)
            names = [str(head) for head in atlas.spec if values[head.layer, head.head] == 0]
            exported = Exported(
                path=out,
                task=task.name,
                gates=options.gates,
                hard=options.hard,
                seed=options.seed,
                threshold=options.threshold if options.gates == "always" else None,
                off=names,
                scaled=int(((values != 0) & (values != 1) & ~np.isnan(values)).sum()),
                before=before.figures(),
                after=after.figures(),
                change=nll_change(before, after, ready),
                accuracy_change=_accuracy_change(before, after, ready),
                items=len(ready.held_out),
                deviation=deviation,
                parameters=(plain_size, again.spec.parameters or 0),
                pruned=pruned,
                speed=speed,
                heads=len(atlas.spec),
            )
            if not options.force:
                _require_harmless(exported)
            _describe(exported, request, atlas, values, place)
    except OSError as error:
        raise StoreError(f"{out} could not be written: {error.strerror or error}") from error
    finally:
        _put_back(original, weights)
    return exported


def _describe(
    exported: Exported, request: ExportRequest, atlas: Atlas, values: np.ndarray, folder: Path
) -> None:
    """Write the card for people and `headatlas.json` for programs: checkpoints are published, so it has no
    local paths."""
    (folder / "README.md").write_text(checkpoint_card(atlas, exported), encoding="utf-8")
    facts = {**exported.to_json(), "path": exported.path.name, "headatlas": __version__}
    facts["model"] = without_local_paths(atlas.spec.name)
    facts["request"] = without_local_paths(request.to_json())
    facts["values"] = [[None if np.isnan(gate) else float(gate) for gate in layer] for layer in values]
    (folder / "headatlas.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _require_harmless(exported: Exported) -> None:
    if exported.harms:
        raise FitError(
            f"these gates harm {exported.task} on {exported.items} held-out items: {exported.effect}. "
            "Nothing was written. Map with more updates and seeds, choose other gates, or write it with "
            "force=True."
        )


def nll_change(before: Outcome, after: Outcome, ready: Prepared) -> Interval:
    """The NLL after less before, paired by item; items of one prompt or group count as one."""
    difference = (after.nll - before.nll).double().numpy()
    return jackknife(len(difference), lambda rows: float(difference[rows].mean()), groups=ready.groups)


def _accuracy_change(before: Outcome, after: Outcome, ready: Prepared) -> Interval:
    """The share of items with a right target after less before, paired by item.

    The interval is symmetric: with a correction for skewness, as that of the NLL has, two lost items of 64
    would already exclude zero, and one in ten harmless changes would be refused.
    """
    difference = ((after.right == 1).double() - (before.right == 1).double()).numpy()
    mean = float(difference.mean())
    spread = jackknife_spread(
        len(difference), lambda rows: float(difference[rows].mean()), groups=ready.groups
    )
    if spread is None:
        return Interval(mean)
    interval = spread_interval(mean, [replace(spread, skewness=0.0)])
    if interval.low is None or interval.high is None:
        return interval
    return Interval(mean, max(interval.low, -1.0), min(interval.high, 1.0))


def _require_plain(model: Model) -> None:
    if getattr(model.hf.config, "auto_map", None):
        raise ModelRefusedError(
            f"{model.spec.name} runs code of its own, which an ordinary checkpoint cannot take along."
        )


def _output_weights(model: Model) -> dict[str, torch.Tensor]:
    names = [found.output for found in model.anatomy.present()]
    weights: dict[str, Any] = {name: model.hf.get_submodule(name).weight for name in names}
    return {name: weight.detach().clone() for name, weight in weights.items()}


@torch.no_grad()
def _put_back(hf: Any, weights: dict[str, torch.Tensor]) -> None:
    for name, weight in weights.items():
        module: Any = hf.get_submodule(name)
        module.weight.copy_(weight)


def _saved(hf: Any, tokenizer: Any, place: Path) -> None:
    """What transformers writes; a hub model may bring settings for generation that it refuses to write."""
    before = hf.generation_config
    try:
        if before is not None and not before.do_sample:
            hf.generation_config = GenerationConfig.from_dict({**before.to_diff_dict(), "do_sample": True})
        with quiet():
            hf.save_pretrained(place)
            tokenizer.save_pretrained(place)
    except (ValueError, TypeError, RuntimeError) as error:
        raise FitError(
            f"transformers cannot save this model ({first_line(error)}); nothing was written."
        ) from error
    finally:
        hf.generation_config = before


def _again(
    place: Path, dtype: torch.dtype, device: torch.device, ids: torch.Tensor, wanted: torch.Tensor
) -> tuple[Model, float]:
    """The checkpoint loaded, and how far its logits are from those of the gated model; refused if too far."""
    again = load_model(place, dtype=dtype, device=device)
    with torch.no_grad():
        found = again.hf(input_ids=ids, use_cache=False).logits.float().cpu()
    deviation = float((found - wanted).abs().max() / wanted.abs().max())
    if not deviation <= (0.1 if dtype.itemsize < 4 else 1e-3):
        raise FitError(
            "the checkpoint, loaded again, is not the gated model (logits differ by "
            f"{deviation:.2g} of their size); nothing was written."
        )
    return again, deviation


def _require_same_model(atlas: Atlas, model: Model) -> None:
    if not atlas.spec.has_same_weights(model.spec):
        raise AtlasError(
            f"{model.spec.name} has other weights than the model of this atlas ({atlas.spec.name}), or "
            "weights that cannot be read; give the one that was mapped."
        )
    if model.tokenizer is None:
        raise RequestError(f"{model.spec.name} has no tokenizer; pass tokenizer=… to load_model.")


def _random_ids(model: Model) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, model.spec.vocabulary, (2, 24), generator=generator).to(model.device)


@torch.no_grad()
def _times_as_quick(before: Any, after: Any, ids: torch.Tensor, rounds: int = 7) -> float:
    """Forward passes in turn, the median of the ratios."""
    works: list[Callable[[], Any]] = [
        lambda: before(input_ids=ids, use_cache=False),
        lambda: after(input_ids=ids, use_cache=False),
    ]
    ratios = []
    for number in range(rounds + 1):
        seconds = []
        for work in works:
            began = time.perf_counter()
            work()
            if ids.device.type == "cuda":
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - began)
        if number:
            ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios)
