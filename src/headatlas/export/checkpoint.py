"""`export_model`: the gates of a task, folded into an ordinary checkpoint that was seen to work."""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, PreTrainedModel

from headatlas._version import __version__
from headatlas.atlas import Atlas, choose_gates, open_atlas
from headatlas.atlas.interval import Interval, jackknife, jackknife_spread, spread_interval
from headatlas.core import (
    THRESHOLD,
    AtlasError,
    FitError,
    ModelRefusedError,
    RequestError,
    StoreError,
    UnknownNameError,
    as_others_are,
    require_share,
    require_whole,
)
from headatlas.export.checkpoint_card import Exported, checkpoint_card
from headatlas.method import Outcome, evaluate
from headatlas.model import Model, eval_mode, load_model
from headatlas.model.fold import fold_gates, require_foldable, without_groups
from headatlas.model.load import quiet
from headatlas.run.loading import load_mapped
from headatlas.run.prepare import Prepared, read_rows
from headatlas.run.requests import require_same
from headatlas.task import Task, load_task

__all__ = ["GATES", "export_model", "require_export"]

#: which gates are folded in
GATES = ("always", "retain", "remove")
HELD_OUT = 64


def export_model(
    folder: str | Path,
    task: str | Path | Task,
    out: str | Path,
    *,
    gates: str = "always",
    hard: float | None = None,
    seed: int | None = None,
    prune: bool = False,
    threshold: float = THRESHOLD,
    model: Model | str | Path | PreTrainedModel | None = None,
    items: int = HELD_OUT,
    force: bool = False,
) -> Exported:
    """Fold the gates of a task into W_O and write an ordinary checkpoint with its tokeniser and a card.

    `gates`: "always" switches off the heads that interfere in every seed (with a score of `threshold` or
    more); "retain" and "remove" take the gates of G+ or G-, the mean over the seeds or those of one `seed`.
    `hard` makes them 0 below that value and 1 from it on. `prune` removes key/value groups of which all heads
    are off.

    The folder appears when the checkpoint has been loaded again and compared. A checkpoint that harms its
    task is refused: on held-out items the NLL rises or the accuracy falls, and the 95 % interval of that
    change does not reach zero. `force` writes it all the same, and its card says so. A task that is not built
    in is given as its file.
    """
    atlas = open_atlas(folder)
    chosen = require_export(atlas, task, out, gates, hard, seed, items, threshold)
    values = choose_gates(atlas, chosen.name, gates, hard, seed, threshold)
    loaded = _loaded(atlas, model)
    with loaded.measuring():
        _require_same_model(atlas, loaded)
        require_foldable(loaded)
        run = atlas.run(chosen.name)
        ready = read_rows(loaded, chosen, run.task_facts.get("max_tokens"), items)
        require_same(run, ready)
        before = evaluate(loaded, ready.held_out)
        ids = _random_ids(loaded)
        with torch.no_grad(), loaded.gates(values):
            wanted = loaded.hf(input_ids=ids, use_cache=False).logits.float().cpu()
    plain_size, hf = loaded.spec.parameters or 0, loaded.hf
    weights = _output_weights(loaded) if isinstance(model, Model | PreTrainedModel) else {}
    out = Path(out)
    place = Path(mkdtemp(prefix=f".{out.name}.", dir=_made(out.parent)))
    try:
        fold_gates(loaded, values)
        pruned, speed = None, None
        if prune:
            with eval_mode(loaded.hf):
                smaller, pruned = without_groups(loaded, np.nan_to_num(values, nan=1.0) == 0)
                speed = None if smaller is None else _times_as_quick(hf, smaller, ids)
            if smaller is not None:
                hf = smaller
            else:
                pruned = f"nothing removed: {pruned}"
        dtype, tokenizer, device = hf.dtype, loaded.tokenizer, loaded.device
        _saved(hf, tokenizer, place)
        del hf, loaded
        again, deviation = _again(place, dtype, device, ids, wanted)
        after = evaluate(again, ready.held_out)
        names = [str(head) for head in atlas.spec if values[head.layer, head.head] == 0]
        exported = Exported(
            path=out,
            task=chosen.name,
            gates=gates,
            hard=hard,
            seed=seed,
            threshold=threshold if gates == "always" else None,
            off=names,
            scaled=int(((values != 0) & (values != 1) & ~np.isnan(values)).sum()),
            before=before.figures(),
            after=after.figures(),
            change=_nll_change(before, after, ready),
            accuracy_change=_accuracy_change(before, after, ready),
            items=len(ready.held_out),
            deviation=deviation,
            parameters=(plain_size, again.spec.parameters or 0),
            pruned=pruned,
            speed=speed,
        )
        if not force:
            _require_harmless(exported)
        _describe(exported, atlas, values, place)
        as_others_are(place)
        place.rename(out)
    except OSError as error:
        raise StoreError(f"{out} could not be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
        _put_back(model.hf if isinstance(model, Model) else model, weights)
    return exported


def _describe(exported: Exported, atlas: Atlas, values: np.ndarray, folder: Path) -> None:
    """Write the card for people and `headatlas.json` for programs."""
    (folder / "README.md").write_text(checkpoint_card(atlas, exported), encoding="utf-8")
    facts = {**exported.to_json(), "path": exported.path.name, "headatlas": __version__}
    facts["model"] = atlas.spec.name
    facts["values"] = [[None if np.isnan(gate) else float(gate) for gate in layer] for layer in values]
    (folder / "headatlas.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _require_harmless(exported: Exported) -> None:
    if exported.harms:
        raise FitError(
            f"these gates harm {exported.task} on {exported.items} held-out items: {exported.effect}. "
            "Nothing was written. Map with more updates and seeds, choose other gates, or write it with "
            "--force (force=True)."
        )


def _nll_change(before: Outcome, after: Outcome, ready: Prepared) -> Interval:
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


def _loaded(atlas: Atlas, model: Any) -> Model:
    found = load_mapped(atlas, model, "auto")
    if getattr(found.hf.config, "auto_map", None):
        raise ModelRefusedError(
            f"{found.spec.name} runs code of its own, which an ordinary checkpoint cannot take along."
        )
    return found


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
        said = str(error).splitlines()[0][:200]
        raise FitError(f"transformers cannot save this model ({said}); nothing was written.") from error
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


def _no_such_task(atlas: Atlas, task: str) -> RequestError:
    if task in atlas.tasks:
        return RequestError(f"{task!r} is a task of your own: give --task the file that it was mapped from.")
    return UnknownNameError("gated task in this atlas", task, atlas.tasks)


def require_export(
    atlas: Atlas,
    task: str | Path | Task,
    out: str | Path,
    gates: str,
    hard: float | None,
    seed: int | None,
    items: int = HELD_OUT,
    threshold: float = THRESHOLD,
) -> Task:
    """The task; what can be said before a model is loaded."""
    if gates not in GATES:
        raise UnknownNameError("gates", gates, GATES)
    if hard is not None:
        require_share("hard", hard)
    if hard is not None and gates == "always":
        raise RequestError(
            "'always' switches heads off altogether; hard is for the gates of retain and remove."
        )
    require_whole("items", items, 2, 10_000)
    require_share("threshold", threshold)
    name = task.name if isinstance(task, Task) else str(task)
    if name in atlas.imported and name not in atlas.tasks:
        raise AtlasError(f"{name!r} is an imported score: it has no gates to export.")
    if not atlas.tasks:
        raise AtlasError(f"{atlas.path} has no task that was gated to the end; 'headatlas map' makes one.")
    if isinstance(task, str) and task in atlas.tasks and "imported_from" in atlas.run(task).task_facts:
        raise AtlasError(f"{task!r} was imported: there are no items to measure the checkpoint on.")
    try:
        chosen = load_task(task)
    except UnknownNameError:
        raise _no_such_task(atlas, str(task)) from None
    if chosen.name not in atlas.tasks:
        raise UnknownNameError("gated task in this atlas", chosen.name, atlas.tasks)
    seeds = atlas.seeds(chosen.name)
    if seed is not None and (gates == "always" or seed not in seeds):
        where = (
            "'always' is over all seeds" if gates == "always" else f"there are {', '.join(map(str, seeds))}"
        )
        raise RequestError(f"seed {seed} cannot be taken: {where}.")
    place = Path(out)
    if place.exists() or place.is_symlink():
        raise RequestError(f"{place} is there already; give a folder that is not.")
    return chosen


def _require_same_model(atlas: Atlas, model: Model) -> None:
    if not atlas.spec.has_same_weights(model.spec):
        raise AtlasError(
            f"{model.spec.name} has other weights than the model of this atlas ({atlas.spec.name}), or "
            "weights that cannot be read; give the one that was mapped."
        )
    if model.tokenizer is None:
        raise RequestError(f"{model.spec.name} was loaded without a tokeniser; a checkpoint needs one.")


def _random_ids(model: Model) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, model.spec.vocabulary, (2, 24), generator=generator).to(model.device)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} could not be made: {error.strerror or error}") from error
    return folder


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
