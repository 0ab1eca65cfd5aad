"""The model of a request: already loaded, or loaded by one rule for library, command line and workers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoTokenizer

from headatlas.atlas import Atlas
from headatlas.core import RequestError
from headatlas.model import Model, load_model
from headatlas.model.load import quiet

__all__ = ["load_for_run", "load_mapped", "mapped_dtype", "mapped_revision"]


def load_for_run(model: Any, **options: Any) -> Model:
    """A `Model` as it is, hashed anew; a transformers model with the tokenizer of its name; or a name, a
    folder or a file, loaded with `options`."""
    if isinstance(model, torch.nn.Module):
        return load_model(model, tokenizer=_find_tokenizer(model))
    if not isinstance(model, Model):
        if not isinstance(model, str | os.PathLike):
            raise RequestError(
                f"{model!r:.60} is not a model; give a name, a folder, a file, what load_model returns, or a "
                "transformers model."
            )
        return load_model(model, **options)
    model.identify_weights()
    return model


def _find_tokenizer(hf: Any) -> Any:
    """The tokenizer of the files that a loaded model came from; None if there are none on this machine."""
    source = getattr(getattr(hf, "config", None), "name_or_path", None)
    if not source:
        return None
    try:
        with quiet():
            return AutoTokenizer.from_pretrained(source, local_files_only=True)
    except Exception:  # each tokenizer fails in a way of its own where files are missing
        return None


def load_mapped(atlas: Atlas, model: Any, dtype: str) -> Model:
    """The model of an atlas: as given, or by the name and the revision that the atlas recorded."""
    where = atlas.spec.name if model is None else model
    return load_for_run(where, dtype=dtype, revision=mapped_revision(atlas, model))


def mapped_revision(atlas: Atlas, model: Any) -> str | None:
    """The recorded revision belongs to the recorded name; a model given otherwise brings its own."""
    return atlas.spec.revision if model is None or str(model) == atlas.spec.name else None


def mapped_dtype(atlas: Atlas, tasks: Sequence[str]) -> str:
    """The dtype that the gates of these tasks were fitted in; refused if there are several."""
    fitted = {task: str(atlas.run(task).settings.get("decides", {}).get("dtype", "fast")) for task in tasks}
    if len(set(fitted.values())) > 1:
        listed = ", ".join(f"{task} in {dtype}" for task, dtype in fitted.items())
        raise RequestError(
            f"these tasks were fitted in different dtypes ({listed}); give tasks of one dtype (--task), or "
            "validate gating alone (--method gating, methods=[]) and give the dtype to measure in (--dtype, "
            "or a loaded model)."
        )
    return next(iter(fitted.values()), "fast")
