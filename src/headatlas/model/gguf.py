"""Reading a GGUF file into an ordinary transformers model and tokenizer."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from headatlas.core import ModelSourceError, first_line

__all__ = ["read_gguf", "require_all_weights"]


def read_gguf(path: Path, dtype: Any = torch.float32) -> tuple[Any, Any]:
    """(model, tokenizer). The weights are dequantised; the model has no trace of GGUF left."""
    if importlib.util.find_spec("gguf") is None:
        raise ModelSourceError(
            f"reading {path.name!r} needs the package gguf (extra 'gguf'): pip install gguf."
        )
    where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    try:
        with _no_bar():
            read, info = AutoModelForCausalLM.from_pretrained(**where, dtype=dtype, output_loading_info=True)
            tokenizer = AutoTokenizer.from_pretrained(**where)
    except ModelSourceError:
        raise
    except Exception as error:  # the readers below raise whatever a broken file happens to trip
        reason = first_line(error)
        raise ModelSourceError(f"{path.name!r} cannot be read as a GGUF model: {reason}") from error
    require_all_weights(path.name, info["missing_keys"])
    return _plain(read), tokenizer


@contextmanager
def _no_bar() -> Iterator[None]:
    """transformers shows a bar while it reads GGUF, whatever it was told about bars."""
    import transformers.modeling_gguf_pytorch_utils as reader

    bar = getattr(reader, "tqdm", None)
    reader.tqdm = lambda items, **_: items
    try:
        yield
    finally:
        reader.tqdm = bar


def _plain(read: Any) -> Any:
    """A model that was read from GGUF calls itself quantised, though its weights are not, and then
    refuses to be converted or saved. The same weights in a model built without that word."""
    config = copy.deepcopy(read.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.name_or_path = ""
    with torch.device("meta"):
        plain = AutoModelForCausalLM.from_config(config, dtype=read.dtype)
    plain.load_state_dict(read.state_dict(), assign=True)
    plain.tie_weights()
    _copy_buffers(read, plain)
    plain.generation_config = read.generation_config
    return plain.eval()


def _copy_buffers(read: Any, plain: Any) -> None:
    """Buffers that are not saved (rotary frequencies) are on no state dict."""
    for name, buffer in read.named_buffers():
        parent, _, leaf = name.rpartition(".")
        plain.get_submodule(parent)._buffers[leaf] = buffer


def require_all_weights(name: str, missing: Any) -> None:
    """transformers fills missing weights with random numbers and goes on; nothing here does."""
    if missing := sorted(missing):
        some = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise ModelSourceError(f"the checkpoint of {name} lacks weights: {some}.")
