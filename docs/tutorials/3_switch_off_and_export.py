"""Tutorial 3: switch off the heads that hurt, and keep the model.

    python docs/tutorials/1_map_your_own_task.py --out tutorial
    python docs/tutorials/3_switch_off_and_export.py --out tutorial

Gates become part of the weights: the result is an ordinary checkpoint, which transformers loads without
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
    interference = atlas.always("plural")["interference"]
    hurt = [head for head in atlas.spec if float(interference[head.layer, head.head]) >= 0.5]
    names = ", ".join(map(str, hurt[:8]))
    print(f"{len(hurt)} heads interfere in every seed: {names}{' …' if len(hurt) > 8 else ''}")

    # 2. Try it first: inside the block these heads are off; afterwards the model is unchanged.
    model = headatlas.load_model("smollm2", dtype="float32")
    print(f"plain: {model.next_tokens(PROMPT, k=1)['token'][0]!r}")
    with model.gates(hurt):
        print(f"gated: {model.next_tokens(PROMPT, k=1)['token'][0]!r}")
        gated = model(PROMPT)[0, -1]

    # 3. Keep it. The folder appears once transformers has loaded it and its logits are those of the gated
    #    model.
    folder = out / "smollm2-plural"
    if not folder.exists():
        headatlas.export_model(atlas, "plural", folder, gates="always", model=model)
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
