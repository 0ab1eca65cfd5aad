"""Tutorial 3: switch off the heads that hurt, and keep the model.

    python docs/tutorials/1_map_your_own_task.py --out tutorial
    python docs/tutorials/3_switch_off_and_export.py --out tutorial

Gates become part of the weights: what comes out is an ordinary checkpoint, which transformers loads without
headatlas. It is measured on items that no fit has seen.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import headatlas

PROMPT = "one dog, two dogs; one fox, two foxes; one city, two"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("tutorial"))
    out = parser.parse_args().out
    atlas = headatlas.open_atlas(out / "atlas")

    # 1. Which heads hurt the task in every seed?
    interference = atlas.scores("plural")["interference"].min("seed")
    hurt = [str(head) for head in atlas.spec if float(interference[head.layer, head.head]) >= 0.5]
    print(f"{len(hurt)} heads interfere in every seed: {', '.join(hurt[:8])}{' …' if len(hurt) > 8 else ''}")

    # 2. Try it first: gates are a context, and the model is as it was when it ends.
    model = headatlas.load_model("smollm2", dtype="float32")
    gates = torch.ones(model.spec.shape)
    for head in (headatlas.Head.parse(name) for name in hurt):
        gates[head.layer, head.head] = 0
    text = model.tokenizer(PROMPT, return_tensors="pt").input_ids
    with torch.no_grad():
        plain = model.hf(text).logits[0, -1]
        with headatlas.gates(model, gates):
            gated = model.hf(text).logits[0, -1]
    for name, logits in (("plain", plain), ("gated", gated)):
        print(f"{name}: {model.tokenizer.decode([int(logits.argmax())])!r}")

    # 3. Keep it. The folder appears when transformers has loaded it again and its logits are those of the
    #    gated model.
    folder = out / "smollm2-plural"
    if not folder.exists():
        headatlas.export_model(out / "atlas", out / "plural.jsonl", folder, gates="always", model=model)
    print((folder / "README.md").read_text(encoding="utf-8"))

    # 4. Anybody can use it: no headatlas from here on.
    again = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    with torch.no_grad():
        logits = again(ids).logits[0, -1]
    print("exported:", repr(tokenizer.decode([int(logits.argmax())])))
    print(f"largest difference from the gates: {float((logits - gated).abs().max()):.1e}")


if __name__ == "__main__":
    main()
