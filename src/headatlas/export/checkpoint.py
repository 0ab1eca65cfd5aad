"""The gates of a task folded into the weights: an ordinary checkpoint that transformers loads as it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headatlas.atlas import Atlas, atlas_folder
from headatlas.atlas.selection import choose_gates
from headatlas.core import (
    THRESHOLD,
    Options,
    Progress,
    RequestError,
    UnknownNameError,
    check_tokenizer,
    given_load_options,
    progress_of,
    require_share,
    require_whole,
)
from headatlas.export.checkpoint_card import Exported
from headatlas.export.format import ExportFormat, ExportRequest
from headatlas.task import TaskSource

__all__ = ["GATES", "PROVIDES", "CheckpointOptions", "export_model"]

#: which gates are folded in
GATES = ("always", "retain", "remove")


@dataclass(frozen=True)
class CheckpointOptions(Options):
    """`gates`: "always" switches off the heads that interfere in every seed (with a score of `threshold` or
    more); "retain" and "remove" take the gates of G+ or G-, the mean over the seeds or those of one `seed`.
    `hard` makes them 0 below that value and 1 from it on. `prune` removes key/value groups of which all heads
    are off. The checkpoint is measured on `items` held-out items; one that harms its task needs `force`."""

    gates: str = "always"
    hard: float | None = None
    seed: int | None = None
    threshold: float = THRESHOLD
    prune: bool = False
    items: int = 64
    force: bool = False

    def __post_init__(self) -> None:
        if self.gates not in GATES:
            raise UnknownNameError("gates", self.gates, GATES)
        if self.hard is not None:
            require_share("hard", self.hard)
        if self.hard is not None and self.gates == "always":
            raise RequestError(
                "'always' switches heads off altogether; hard is for the gates of retain and remove."
            )
        require_whole("items", self.items, 2, 10_000)
        require_share("threshold", self.threshold)


def _check(atlas: Atlas, task: str, options: CheckpointOptions) -> None:
    seeds, seed = atlas.seeds(task), options.seed
    if seed is not None and (options.gates == "always" or seed not in seeds):
        where = (
            "'always' is over all seeds"
            if options.gates == "always"
            else f"there are {', '.join(map(str, seeds))}"
        )
        raise RequestError(f"seed {seed} cannot be taken: {where}.")
    choose_gates(atlas, task, options.gates, options.hard, seed, options.threshold)


def _write(request: ExportRequest, atlas: Atlas, model: Any) -> Exported:
    from headatlas.export.engine.checkpoint_writer import write_checkpoint

    return write_checkpoint(request, atlas, model)


PROVIDES = [
    ExportFormat(
        "checkpoint",
        "an ordinary checkpoint with the gates folded into the weights",
        CheckpointOptions,
        _write,
        _check,
        needs_model=True,
    )
]


def export_model(
    atlas: Atlas | str | Path,
    task: TaskSource | None,
    out: str | Path,
    *,
    model: Any = None,
    tokenizer: Any = None,
    progress: bool | Progress = True,
    dtype: Any = None,
    device: Any = None,
    device_map: Any = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    **options: Any,
) -> Exported:
    """Fold the gates of a task into W_O and write an ordinary checkpoint with its tokenizer and a card.

    `options` are those of `CheckpointOptions`. The folder appears when the checkpoint has been loaded again
    and compared. A checkpoint that harms its task is refused: on held-out items the NLL rises or the accuracy
    falls, and the 95 % interval of that change does not reach zero. `force` writes it all the same, and its
    card says so. The atlas remembers its model and its task files; give `model` (a transformers
    model with its `tokenizer`) or the file of the task if they have moved. `progress`, `dtype` and the like
    as in `map_heads`; by default the model is loaded in the dtype of its weights.
    """
    check_tokenizer(model, tokenizer)
    is_name = model is None or isinstance(model, str | Path)
    load = given_load_options(
        model, dtype=dtype, device=device, device_map=device_map, revision=revision,
        trust_remote_code=trust_remote_code,
    )  # fmt: skip
    with atlas_folder(atlas) as folder, progress_of(progress) as report:
        request = ExportRequest.of(folder, task, out, model=model, load=load, **options)
        exported: Exported = request.write(None if is_name else model, tokenizer, report)
    return exported
