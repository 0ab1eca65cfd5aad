"""The options of `load_model` that functions with a `model=` take: one rule for all of them."""

from __future__ import annotations

import os
from typing import Any

from headatlas.core.errors import RequestError

__all__ = ["check_tokenizer", "given_load_options"]


def given_load_options(
    model: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    device_map: Any = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> dict[str, Any]:
    """Return the options of `load_model` that were given.

    A loaded model is used as it is: options that would change it are refused. device="auto" is the default
    and `trust_remote_code` a permission, so both pass. `model` None is the model that an atlas remembers.
    """
    options = {"dtype": dtype, "device": device, "device_map": device_map, "revision": revision}
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(device, str) and device == "auto":
        del options["device"]  # the default
    if model is None or isinstance(model, str | os.PathLike):
        return options | ({"trust_remote_code": True} if trust_remote_code else {})
    for name in options:
        raise RequestError(f"{name} cannot be changed: a model that is loaded is used as it is.")
    return {}


def check_tokenizer(model: Any, tokenizer: Any) -> None:
    """Refuse a tokenizer for a model that is given by name, or not given."""
    if tokenizer is not None and (model is None or isinstance(model, str | os.PathLike)):
        raise RequestError(
            "tokenizer is for a transformers model; a name or a Model brings its own, and "
            "load_model(…, tokenizer=…) changes it."
        )
