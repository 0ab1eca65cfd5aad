"""`export_model`: the gates of a task, folded into an ordinary checkpoint that was seen to work."""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig

from headatlas._version import __version__
from headatlas.atlas import Atlas, open_atlas
from headatlas.core import (
    AtlasError,
    FitError,
    ModelRefusedError,
    RequestError,
    StoreError,
    UnknownNameError,
    as_others_are,
)
from headatlas.method import evaluate
from headatlas.model import Model, load_model
from headatlas.model.fold import fold_gates, require_foldable, without_groups
from headatlas.model.load import quiet
from headatlas.run.prepare import read_rows
from headatlas.run.requests import require_same
from headatlas.task import Task, load_task

__all__ = ["GATES", "Exported", "choose_gates", "export_model", "require_export"]

#: which gates are folded in
GATES = ("always", "retain", "remove")
HELD_OUT = 64


@dataclass(frozen=True, slots=True)
class Exported:
    """What became of a model. `before` and `after` are on held-out items; `deviation` is how far the logits
    of the checkpoint, loaded by transformers alone, are from those of the gated model, against their size."""

    path: Path
    task: str
    gates: str
    hard: float | None
    seed: int | None
    threshold: float | None
    off: list[str]
    scaled: int
    before: dict[str, float]
    after: dict[str, float]
    items: int
    deviation: float
    parameters: tuple[int, int]
    pruned: str | None
    speed: float | None

    @property
    def faithful(self) -> str:
        """How near the checkpoint is to the gated model, in words."""
        if not self.deviation:
            return "its logits are those of the gated model, bit for bit"
        return f"its logits differ from the gated model's by at most {self.deviation:.1g} of their size"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "path": str(self.path)}


def export_model(
    folder: str | Path,
    task: str | Path | Task,
    out: str | Path,
    *,
    gates: str = "always",
    hard: float | None = None,
    seed: int | None = None,
    prune: bool = False,
    threshold: float = 0.5,
    model: Model | str | None = None,
    items: int = HELD_OUT,
) -> Exported:
    """Fold the gates of a task into W_O and write an ordinary checkpoint with its tokeniser and a card.

    `gates`: "always" switches off the heads that interfere in every seed (with a score of `threshold` or
    more); "retain" and "remove" take the gates of G+ or G-, the mean over the seeds or those of one `seed`.
    `hard` makes them 0 below that value and 1 from it on. `prune` removes key/value groups of which all heads
    are off.

    The folder appears when the checkpoint has been loaded again and compared. A task that is not built in is
    given as its file.
    """
    atlas = open_atlas(folder)
    chosen = require_export(atlas, task, out, gates, hard, seed, items, threshold)
    values = choose_gates(atlas, chosen.name, gates, hard, seed, threshold)
    loaded = _loaded(atlas, model)
    _require_same_model(atlas, loaded)
    require_foldable(loaded)
    run = atlas.run(chosen.name)
    ready = read_rows(loaded, chosen, run.task_facts.get("max_tokens"), items)
    require_same(run, ready)
    before = evaluate(loaded, ready.held_out).figures()
    ids = _random_ids(loaded)
    with torch.no_grad(), loaded.gates(values):
        wanted = loaded.hf(input_ids=ids, use_cache=False).logits.float().cpu()
    plain_size, hf = loaded.spec.parameters, loaded.hf
    weights = _output_weights(loaded) if isinstance(model, Model) else {}
    out = Path(out)
    place = Path(mkdtemp(prefix=f".{out.name}.", dir=_made(out.parent)))
    try:
        fold_gates(loaded, values)
        pruned, speed = None, None
        if prune:
            smaller, pruned = without_groups(loaded, np.nan_to_num(values, nan=1.0) == 0)
            if smaller is not None:
                speed = _times_as_quick(hf, smaller, ids)
                hf = smaller
            else:
                pruned = f"nothing removed: {pruned}"
        dtype, tokenizer, device = hf.dtype, loaded.tokenizer, loaded.device
        _saved(hf, tokenizer, place)
        del hf, loaded
        again, deviation = _again(place, dtype, device, ids, wanted)
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
            before=before,
            after=evaluate(again, ready.held_out).figures(),
            items=len(ready.held_out),
            deviation=deviation,
            parameters=(plain_size, again.spec.parameters),
            pruned=pruned,
            speed=speed,
        )
        (place / "README.md").write_text(_card(atlas, exported), encoding="utf-8")
        facts = {**exported.to_json(), "path": out.name, "headatlas": __version__, "model": atlas.spec.name}
        facts["values"] = [[None if np.isnan(g) else float(g) for g in row] for row in values]
        (place / "headatlas.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        as_others_are(place)
        place.rename(out)
    except OSError as error:
        raise StoreError(f"{out} could not be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(model, Model):
            _put_back(model, weights)
    return exported


def _loaded(atlas: Atlas, model: Model | str | None) -> Model:
    if isinstance(model, Model):
        found = model
    else:
        found = load_model(model or atlas.spec.name, revision=None if model else atlas.spec.revision)
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
def _put_back(model: Model, weights: dict[str, torch.Tensor]) -> None:
    for name, weight in weights.items():
        module: Any = model.hf.get_submodule(name)
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
    threshold: float = 0.5,
) -> Task:
    """The task; what can be said before a model is loaded."""
    if gates not in GATES:
        raise UnknownNameError("gates", gates, GATES)
    if hard is not None and not 0 < hard <= 1:
        raise RequestError(f"hard is {hard}; it lies between 0 and 1.")
    if hard is not None and gates == "always":
        raise RequestError(
            "'always' switches heads off altogether; hard is for the gates of retain and remove."
        )
    if items < 2:
        raise RequestError(f"items is {items}; at least 2 are needed.")
    if not 0 < threshold <= 1:
        raise RequestError(f"threshold is {threshold}; it lies between 0 and 1.")
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


def choose_gates(
    atlas: Atlas,
    task: str,
    gates: str = "always",
    hard: float | None = None,
    seed: int | None = None,
    threshold: float = 0.5,
) -> np.ndarray:
    """[layer, head]: what is folded in; NaN where there is no head."""
    if gates == "always":
        interferes = atlas.always(task)["interference"].values
        if not (interferes >= threshold).any():
            raise AtlasError(
                f"{task}: no head interferes in every seed (threshold {threshold}); --gates retain folds in "
                "what the fit found best."
            )
        values: np.ndarray = np.where(np.isnan(interferes), np.nan, interferes < threshold)
        return values
    found = atlas.gates(task).sel(fit=gates)
    values = (found.mean("seed") if seed is None else found.sel(seed=seed)).values.astype(np.float64)
    return values if hard is None else np.where(np.isnan(values), np.nan, values >= hard)


def _require_same_model(atlas: Atlas, model: Model) -> None:
    if None not in (atlas.spec.content_hash, model.spec.content_hash):
        if (atlas.spec.content_hash, atlas.spec.shape) != (model.spec.content_hash, model.spec.shape):
            raise AtlasError(
                f"{model.spec.name} has other weights than the model of this atlas ({atlas.spec.name}); give "
                "the one that was mapped."
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


def _card(atlas: Atlas, made: Exported) -> str:
    """The checkpoint in words."""
    which = {
        "always": "heads that interfere with the task in every seed (with a score of "
        f"{made.threshold or 0:g} or more) are switched off",
        "retain": "gates of the fit that keeps what it can (G+)",
        "remove": "gates of the fit that keeps only what it must (G-)",
    }[made.gates]
    if made.gates != "always":
        which += ", the mean over the seeds" if made.seed is None else f", seed {made.seed}"
    if made.hard is not None:
        which += f", off below {made.hard:g} and on from there"
    lines = [
        "---",
        "library_name: transformers",
        *([f"base_model: {atlas.spec.name}"] if "/" in atlas.spec.name else []),
        "tags: [headatlas, attention-head-gating]",
        "---",
        "",
        f"# {atlas.spec.name} with attention heads gated for {made.task}",
        "",
        f"{atlas.spec.name} with the outputs of attention heads multiplied by gates that were found by "
        f"causal head gating on the task *{made.task}*: {which}. The gates are part of the output "
        "projections; it is an ordinary checkpoint that transformers loads as it is. The licence is that of "
        "the original model.",
        "",
        f"On {made.items} items of {made.task} that no fit has seen:",
        "",
        "| | before | after |",
        "| --- | --- | --- |",
        f"| negative log-likelihood per target token, nats | {made.before['nll']:.3f} | "
        f"{made.after['nll']:.3f} |",
        f"| items with every target token right | {made.before['accuracy']:.3f} | "
        f"{made.after['accuracy']:.3f} |",
        f"| target tokens right | {made.before['token_accuracy']:.3f} | {made.after['token_accuracy']:.3f} |",
        "",
        "Nothing is said about other tasks: measure those that matter to you before you use it.",
        "",
        f"Off ({len(made.off)} of {len(atlas.spec)} heads): {', '.join(made.off) or 'none'}."
        + (f" {made.scaled} others are scaled down." if made.scaled else ""),
    ]
    if made.pruned:
        speed = (
            f"; a forward pass of two short texts is {made.speed:.2f} times as quick" if made.speed else ""
        )
        lines += [
            "",
            f"Pruning: {made.pruned}; {made.parameters[0]:,} parameters before, {made.parameters[1]:,} "
            f"after{speed}.",
        ]
    lines += [
        "",
        f"Made by headatlas {__version__}. Loaded by transformers alone, {made.faithful}. `headatlas.json` "
        "has the gates.",
        "",
    ]
    return "\n".join(lines)
