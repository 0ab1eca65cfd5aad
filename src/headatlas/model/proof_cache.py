"""Self-checks that models passed before, kept in the cache folder.

A stored self-check counts only for the same weights (an exact hash), the same config, dtype, kind of device
and heads as found now, and the same versions of headatlas, torch and transformers. Models with code of their
own, with weights that are quantized or offloaded, and models that failed, are always checked anew.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headatlas._version import __version__
from headatlas.core import HeadatlasError
from headatlas.core.files import write_whole
from headatlas.model.embedded import cache_folder

if TYPE_CHECKING:
    from headatlas.model.anatomy import Anatomy
    from headatlas.model.proof import SelfCheck

__all__ = ["check_key", "checks_folder", "recall_check", "store_check"]

#: packages whose modules behave the same in the same version
_PACKAGES = ("torch", "transformers")


def checks_folder() -> Path:
    return cache_folder() / "checks"


def check_key(hf: Any, anatomy: Anatomy) -> str | None:
    """A hash of all that the self-check depends on; None if that cannot be known."""
    import torch

    from headatlas.model.fingerprint import fingerprint

    modules = list(hf.modules())
    roots = {type(module).__module__.partition(".")[0] for module in modules}
    if not roots <= set(_PACKAGES) or any(hasattr(module, "_hf_hook") for module in modules):
        return None
    weights = fingerprint(hf, exact=True)
    if weights is None:
        return None
    facts = {
        "weights": weights,
        "model": type(hf).__qualname__,
        "config": hf.config.to_json_string(use_diff=False),
        "attention": str(getattr(hf.config, "_attn_implementation", None)),
        "dtype": str(hf.dtype),
        "device": sorted({weight.device.type for weight in hf.parameters()}),
        "precision": torch.get_float32_matmul_precision(),
        "anatomy": repr(anatomy),
        "versions": {"headatlas": __version__, **{name: version(name) for name in _PACKAGES}},
        "code": _code_hash(),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def recall_check(key: str) -> SelfCheck | None:
    """The self-check that was passed under this key, if there is a sound record of it."""
    from headatlas.model.proof import LayerCheck, SelfCheck

    try:
        stored = json.loads((checks_folder() / f"{key}.json").read_text(encoding="utf-8"))
        if stored.pop("key") != key or stored.pop("passed") is not True or stored["failures"]:
            return None
        layers = tuple(None if layer is None else LayerCheck(**layer) for layer in stored.pop("layers"))
        return SelfCheck(layers=layers, **{**stored, "failures": ()})
    except (HeadatlasError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def store_check(key: str, check: SelfCheck) -> None:
    """Keep a self-check that was passed. A cache that cannot be written costs time, nothing else."""
    if not check.passed:
        return
    try:
        write_whole(checks_folder() / f"{key}.json", json.dumps({"key": key, **check.to_json()}))
    except (HeadatlasError, OSError):
        pass


@cache
def _code_hash() -> str:
    """A hash of the code that finds and proves heads: versions alone do not tell between releases."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
