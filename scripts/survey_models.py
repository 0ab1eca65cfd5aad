"""The survey: every causal-LM type of the installed transformers, built tiny, loaded, self-checked.

make models            writes docs/models.md
python scripts/survey_models.py --only llama gpt2
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the tiny models live with the tests

import torch
import transformers

from headatlas import HeadatlasError, Model, load_model
from support.tiny import CannotBuildError, build_tiny, causal_types

PASS, REFUSED, NOT_BUILT = "pass", "refused", "not built"


@dataclass(frozen=True)
class Verdict:
    model_type: str
    verdict: str
    reason: str = ""
    architecture: str = ""
    kinds: str = ""
    worst: float = 0.0
    holes: int = 0
    first_mlp: bool = False


def examine(model_type: str) -> Verdict:
    """Build, load and check one type."""
    try:
        tiny = build_tiny(model_type)
    except CannotBuildError as error:
        return Verdict(model_type, NOT_BUILT, str(error))
    name = type(tiny).__name__
    try:
        model = load_model(tiny)
    except HeadatlasError as error:
        reason = str(error).removeprefix(f"{name} cannot be mapped: ").removeprefix(f"{name} ")
        return Verdict(model_type, REFUSED, reason, name)
    assert model.check is not None
    layers = [layer for layer in model.check.layers if layer is not None]
    worst = max(max(layer.gate, layer.pattern, layer.rebuild) for layer in layers)
    kinds = "; ".join(dict.fromkeys(layer.kind for layer in layers))
    holes = model.check.layers.count(None)
    return Verdict(model_type, PASS, "", name, kinds, worst, holes, _has_first_mlp(model))


def _has_first_mlp(model: Model) -> bool:
    try:
        return bool(torch.isfinite(model.source_vectors([5, 6, 7])).all())
    except HeadatlasError:
        return False


def _bound(deviation: float) -> str:
    """The next power of ten above, so that rounding does not rewrite the page at every run."""
    return f"< 1e{math.floor(math.log10(deviation)) + 1}" if deviation else "0"


def report(verdicts: list[Verdict]) -> str:
    """docs/models.md"""
    by = {kind: [v for v in verdicts if v.verdict == kind] for kind in (PASS, REFUSED, NOT_BUILT)}
    built = len(by[PASS]) + len(by[REFUSED])
    lines = [
        "# Which models can be mapped",
        "",
        "Made by `make models`; not edited by hand. Every causal-LM type that transformers "
        f"{transformers.__version__} knows ({len(verdicts)}) is built tiny with random weights, loaded, and "
        "put through the self-check that every model passes at load (see [ARCHITECTURE](ARCHITECTURE.md)).",
        "",
        f"**{len(by[PASS])} of the {built} types that can be built pass.** {len(by[REFUSED])} are refused, "
        f"each with its reason; {len(by[NOT_BUILT])} cannot be built here.",
        "",
        "The verdict is about a tiny model of the type. A checkpoint is checked again, itself, whenever it "
        "is loaded: `headatlas check MODEL`.",
        "",
        "## Refused",
        "",
        "| type | architecture | why |",
        "|---|---|---|",
        *(f"| {v.model_type} | {v.architecture} | {v.reason} |" for v in by[REFUSED]),
        "",
        "## Not built",
        "",
        "| type | why |",
        "|---|---|",
        *(f"| {v.model_type} | {v.reason} |" for v in by[NOT_BUILT]),
        "",
        "## Pass",
        "",
        "*values*: how the values of the heads are laid out (separate, fused or latent projection; grouped "
        "or multi-query; `normed`: a norm on the values; `scaled`: the model multiplies head outputs itself; "
        "`inner norm`: a norm over all heads before the output projection; `of layer n`: values taken over "
        "from a lower layer). *deviation*: the largest of the self-check, relative. *holes*: layers without "
        "softmax attention, of all layers of the tiny model. *first MLP*: whether there are source vectors "
        "of that kind; where not, embeddings serve.",
        "",
        "| type | architecture | values | deviation | holes | first MLP |",
        "|---|---|---|---|---|---|",
        *(
            f"| {v.model_type} | {v.architecture} | {v.kinds} | {_bound(v.worst)} | {v.holes or ''} "
            f"| {'yes' if v.first_mlp else 'no'} |"
            for v in by[PASS]
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="TYPE", help="these types only")
    parser.add_argument("--out", type=Path, help="write the report here")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    verdicts = []
    for model_type in arguments.only or causal_types():
        verdict = examine(model_type)
        verdicts.append(verdict)
        print(f"{verdict.model_type:28} {verdict.verdict:10} {verdict.kinds or verdict.reason}", flush=True)
    passed = sum(verdict.verdict == PASS for verdict in verdicts)
    print(f"\n{passed} of {len(verdicts)} types pass")
    if arguments.out:
        arguments.out.write_text(report(verdicts), encoding="utf-8")
        print(f"wrote {arguments.out}")
    return 0 if arguments.only or passed >= 140 else 1


if __name__ == "__main__":
    raise SystemExit(main())
