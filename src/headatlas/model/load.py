"""`load_model`: from a name to a model whose heads are found and proved."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from logging import getLogger
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedModel,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)
from transformers.utils import logging

from headatlas.core import (
    GateError,
    HeadatlasError,
    ModelRefusedError,
    ModelSourceError,
    ModelSpec,
    RequestError,
    check_tokenizer,
    first_line,
    is_local_path,
    is_printable,
    require_dtype_name,
    without_local_paths,
)
from headatlas.model.anatomy import Anatomy
from headatlas.model.find import find_heads
from headatlas.model.fingerprint import fingerprint
from headatlas.model.gate_modules import Gating, is_gated
from headatlas.model.gguf import read_gguf, require_all_weights
from headatlas.model.linear import width_out
from headatlas.model.locate import Located, locate
from headatlas.model.model import Model
from headatlas.model.modes import eval_mode
from headatlas.model.proof import SelfCheck, self_check
from headatlas.model.proof_cache import check_key, recall_check, store_check

__all__ = ["as_model", "load_model", "quiet"]

_FORWARD_ERRORS = (
    RuntimeError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    AssertionError,
    ImportError,
)
_INT8 = " In int8 what goes into a product is rounded, too; int4 rounds weights alone."


def load_model(
    source: str | os.PathLike[str] | torch.nn.Module,
    *,
    name: str | None = None,
    tokenizer: Any = None,
    dtype: str | torch.dtype = "auto",
    device: str | torch.device | None = None,
    device_map: Any = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    attn_implementation: str | None = None,
    quantization_config: Any = None,
    check: bool | Literal["cached"] = "cached",
    **options: Any,
) -> Model:
    """Load a causal language model and find, gate and prove its attention heads.

    `source`: a built-in name (`"smollm2"`), a hub name, a folder, a GGUF file, or a transformers
    model that is loaded already (then give its `tokenizer`, and a `name` to tell it from others: by default
    the one that it was loaded from). A loaded model is used as it is and stays in
    train or eval mode as it was; the library measures in eval mode either way.
    `dtype="auto"` keeps the checkpoint's own, `"fast"` takes bfloat16 where the hardware computes in it
    and float32 elsewhere. `"int8"` and `"int4"` round the weights when they are loaded (bitsandbytes), for
    models that fit no other way; `quantization_config` takes any other.
    `device=None` takes an accelerator if there is one, `"auto"` CUDA, else MPS, else the CPU.
    `check="cached"` skips the self-check of a model that was loaded by name and passed it before: the same
    weights, config, dtype and kind of device, with the same versions of headatlas, torch and transformers.
    `check=True` always makes it, `False` never. Further options go to `from_pretrained` as they are.

    Raises `ModelSourceError` if the model cannot be had and `ModelRefusedError` if its heads cannot
    be gated and read faithfully; the latter carries the self-check as `error.check` if it got so far.
    """
    if "torch_dtype" in options:  # its old name
        dtype = options.pop("torch_dtype")
    place = _device(device)
    kind = _dtype(dtype, place)
    if isinstance(dtype, str) and dtype in ("int8", "int4"):
        if quantization_config is not None:
            raise RequestError(f"give dtype {dtype} or a quantization_config, not both.")
        quantization_config = _rounded(dtype, kind)
    if device is not None and device_map is not None:
        raise RequestError("give device or device_map, not both.")
    options |= {
        "device_map": device_map,
        "attn_implementation": attn_implementation,
        "quantization_config": quantization_config,
    }
    options = {key: value for key, value in options.items() if value is not None}
    if isinstance(source, torch.nn.Module):
        given = {"dtype": dtype if dtype != "auto" else None, "device": device, "revision": revision}
        for option in (*(key for key, value in given.items() if value is not None), *options):
            raise RequestError(f"{option} cannot be changed: a model that is loaded is used as it is.")
        hf = getattr(source, "_orig_mod", source)  # what torch.compile wraps
        if not isinstance(hf, PreTrainedModel):
            raise RequestError(f"a {type(hf).__name__} is no transformers model; load_model takes those.")
        name, commit = _require_printable(_checked_name(name) or _name_of(hf)), None
        _refuse_other_kinds(hf.config, name, loaded=True)
    else:
        if not isinstance(source, str | os.PathLike) or not os.fspath(source):
            raise RequestError(f"{source!r} is no model: give a name, a folder, a file or a loaded model.")
        if name is not None:
            raise RequestError(
                f"name is {name!r}, but {os.fspath(source)} keeps its own name, by which an atlas finds it "
                "again; name is for a transformers model that is loaded already."
            )
        with quiet():
            located = locate(source, revision)
        _require_printable(located.name)
        with quiet(bars=located.on_hub and not located.local_only):
            hf, read = _read(located, kind, trust_remote_code, options)
        name, commit = located.name, located.commit()
        tokenizer = tokenizer if tokenizer is not None else read
        if device_map is None and quantization_config is None:
            hf.to(place)
        hf.eval()
    if check == "cached" and isinstance(source, torch.nn.Module):
        check = True  # whoever loaded it may have changed how it computes
    with quiet(), eval_mode(hf):
        return _prove(hf, tokenizer, name, commit, check)


def _require_printable(name: str) -> str:
    """The name, which an atlas of the model will carry."""
    if not is_printable(name):
        raise ModelSourceError(
            f"the model's name {name!r} holds control or invisible characters; rename its folder or file "
            "(of a loaded model, set config.name_or_path)."
        )
    return name


def as_model(model: Any, tokenizer: Any = None) -> Any:
    """A transformers model as a `Model`, with its tokenizer or that of the files that it came from; anything
    else as it is."""
    if isinstance(model, torch.nn.Module):
        return load_model(model, tokenizer=_find_tokenizer(model) if tokenizer is None else tokenizer)
    check_tokenizer(None, tokenizer)
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


def _checked_name(name: str | None) -> str | None:
    if name is not None and not (isinstance(name, str) and name.strip() and name.isprintable()):
        raise RequestError(f"name is {name!r:.60}; allowed is a line of text.")
    return name


def _name_of(hf: Any) -> str:
    """A loaded model knows where it came from: a hub name, or a path, of which the end will do."""
    name = hf.config.name_or_path or type(hf).__name__
    if is_local_path(name):  # of any system: a config may have been written on another
        return str(without_local_paths(name))
    return Path(name).name if Path(name).exists() else name


def _prove(hf: Any, tokenizer: Any, name: str, commit: str | None, check: bool | Literal["cached"]) -> Model:
    outcome: SelfCheck | None = None
    for module in hf.modules():
        if getattr(module, "support_avx512bf16_for_cpu", False):
            # bitsandbytes packs four-bit weights anew for a product that has no slopes
            module.support_avx512bf16_for_cpu = False
    content_hash = fingerprint(hf)  # before the first pass: some quantised modules change what they hold
    try:
        anatomy = find_heads(hf)
        gating = Gating(hf, anatomy)
        if check == "cached":
            outcome = _cached_check(hf, anatomy, gating)
        elif check:
            outcome = self_check(hf, anatomy, gating)
    except ModelRefusedError as error:
        raise ModelRefusedError(f"{name} cannot be mapped: {error}") from error
    except torch.OutOfMemoryError as error:
        raise HeadatlasError(f"no memory left for the self-check of {name}.") from error
    except GateError as error:
        if is_gated(hf):
            raise
        raise ModelRefusedError(f"{name} cannot be mapped: {error}") from error
    except _FORWARD_ERRORS as error:
        reason = first_line(error)
        raise ModelRefusedError(
            f"{name} cannot be mapped: it does not run on plain token ids, or in no way that can be "
            f"followed ({type(error).__name__}: {reason})."
        ) from error
    if outcome is not None and not outcome.passed:
        more = f" (and {len(outcome.failures) - 1} more)" if len(outcome.failures) > 1 else ""
        advice = (
            _INT8 if getattr(getattr(hf.config, "quantization_config", None), "load_in_8bit", False) else ""
        )
        refused = ModelRefusedError(f"{name} fails the self-check: {outcome.failures[0]}{more}{advice}")
        refused.check = outcome
        raise refused
    heads = tuple(found.heads if found else 0 for found in anatomy.attention)
    spec = ModelSpec(
        name=name,
        architecture=type(hf).__name__,
        model_type=hf.config.model_type,
        layers=anatomy.layers,
        heads=heads,
        kv_heads=tuple(found.kv_heads if found else 0 for found in anatomy.attention),
        head_dim=tuple(found.head_dim if found else 0 for found in anatomy.attention),
        hidden=width_out(hf.get_submodule(anatomy.present()[0].output)),
        vocabulary=hf.get_input_embeddings().weight.shape[0],
        parameters=sum(p.numel() for p in hf.parameters()),
        dtype=str(hf.dtype).removeprefix("torch."),
        revision=commit,
        content_hash=content_hash,
    )
    return Model(hf, tokenizer, spec, anatomy, gating, outcome)


def _cached_check(hf: Any, anatomy: Anatomy, gating: Gating) -> SelfCheck:
    """The self-check that the model passed before, or one made now."""
    key = check_key(hf, anatomy)
    outcome = recall_check(key) if key is not None else None
    if outcome is None:
        outcome = self_check(hf, anatomy, gating)
        if key is not None:
            store_check(key, outcome)
    return outcome


def _read(
    located: Located, dtype: torch.dtype | str, trust: bool, options: dict[str, Any]
) -> tuple[Any, Any]:
    if located.gguf_file:
        path = Path(located.path) / located.gguf_file
        for option in options:
            raise RequestError(f"{option} cannot be used with a GGUF file, whose weights are dequantised.")
        return read_gguf(path, torch.float32 if dtype == "auto" else dtype)
    where = {
        "revision": located.revision,
        "local_files_only": located.local_only,
        "trust_remote_code": trust,
    }
    try:
        config = AutoConfig.from_pretrained(located.path, **where)
        _refuse_other_kinds(config, located.name)
        hf, info = AutoModelForCausalLM.from_pretrained(
            located.path, config=config, dtype=dtype, output_loading_info=True, **where, **options
        )
    except RequestError:
        raise
    except Exception as error:  # a broken file can trip any reader in any way
        raise ModelSourceError(_explain(error, located.name, trust)) from error
    require_all_weights(located.name, info["missing_keys"])
    return hf, _tokenizer(located, where)


def _tokenizer(located: Located, where: dict[str, Any]) -> Any:
    """None where the folder has no tokenizer: gating and reading weights need none."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(located.path, **where)
    except Exception:  # absent, or of a kind that needs a package that is not here
        return None
    empty = getattr(tokenizer, "vocab_size", 1) == 0  # what some types make from no files
    return None if empty else tokenizer


def _explain(error: Exception, name: str, trust: bool) -> str:
    text = str(error).strip() or type(error).__name__
    if "trust_remote_code" in text and not trust:
        return (
            f"{name} needs code of its own to load; if you trust that code, allow it with "
            "trust_remote_code=True."
        )
    kind = type(error).__name__
    if kind == "SafetensorError" or ("safetensors" in text.lower() and "header" in text.lower()):
        return f"a weight file of {name} is truncated or corrupt ({first_line(error, 120)})."
    if "ignore_mismatched_sizes" in text or "size mismatch" in text:
        return f"{name} cannot be loaded: weights in its files have other shapes than its config says."
    first, *rest = text.splitlines()
    reason = f"{first} {rest[0].strip()}" if rest and first.endswith(":") else first
    return f"{name} cannot be loaded: {reason[:240]}"


def _refuse_other_kinds(config: Any, name: str, loaded: bool = False) -> None:
    if getattr(config, "is_encoder_decoder", False):
        raise ModelRefusedError(
            f"{name} is a sequence-to-sequence model ({config.model_type}); headatlas maps decoders only."
        )
    kind = config.model_type
    own_code = "AutoModelForCausalLM" in (getattr(config, "auto_map", None) or {})
    if kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not own_code:
        if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or not getattr(config, "is_decoder", True):
            raise ModelRefusedError(
                f"{name} is an encoder-only model ({kind}); headatlas maps decoders only."
            )
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not own_code and not loaded:
        raise ModelRefusedError(f"{name} is no causal language model (its type is {kind!r}).")


def _dtype(dtype: str | torch.dtype, device: torch.device) -> str | torch.dtype:
    if isinstance(dtype, torch.dtype) or dtype == "auto":
        return dtype
    if dtype in ("fast", "int8", "int4"):
        return torch.bfloat16 if _computes_in_bfloat16(device) else torch.float32
    found: torch.dtype = getattr(torch, require_dtype_name(dtype))
    return found


def _rounded(dtype: str, compute: str | torch.dtype) -> BitsAndBytesConfig:
    if importlib.util.find_spec("bitsandbytes") is None:
        raise RequestError(
            f"dtype {dtype} needs the package bitsandbytes (extra 'quantised'): pip install "
            "'headatlas[quantised]'."
        )
    if dtype == "int8":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=compute)


def _computes_in_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":  # any CPU can emulate it, slowly
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return False


def _device(device: str | torch.device | None) -> torch.device:
    if device is None:
        found = torch.accelerator.current_accelerator(check_available=True)
        return found if found is not None else torch.device("cpu")
    if device == "auto":
        has_mps = torch.backends.mps.is_available()
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu")
    try:
        return torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError, ImportError) as error:
        raise RequestError(f"device {str(device)!r} is not available here.") from error


@contextmanager
def quiet(bars: bool = False) -> Iterator[None]:
    """Notes of transformers off (what matters of them becomes an error here); bars for downloads only."""
    level, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    bitsandbytes = getLogger("bitsandbytes")  # a line for every product in eight bits
    bitsandbytes_level = bitsandbytes.level
    bitsandbytes.setLevel("ERROR")
    if not bars or not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        bitsandbytes.setLevel(bitsandbytes_level)
        if had_bars:
            logging.enable_progress_bar()
