"""Train the model of tests/hand/induction: two layers of attention that continue repeated segments.

python scripts/train_induction.py      writes tests/hand/induction, in three to five minutes on one core
python scripts/train_induction.py --seed 1 --out elsewhere

Random words, a segment of them twice, the distance between drawn anew for every row; the loss is on the
second occurrence from its second word on. The MLPs write nothing and the norms stay as they are, so that
attention does it all. A penalty on the value and output weights of each head as a group (a group lasso) is
weak while the circuit forms, then strong to the end, so that heads that are not needed fade (they come back
when it is made weak again).
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # distances and rows live with the tests

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM

from support.induction import (
    FOLDER,
    LEFT_OUT,
    LONGER,
    SEEN,
    WORDS,
    accuracy,
    head_patterns,
    induction_rows,
)

SEED = 0
LAYERS, HEADS, WIDTH, HIDDEN = 2, 4, 16, 64
UPDATES, BATCH, LENGTH, RATE = 3200, 64, 64, 3e-3
SHORTEST, LONGEST = 4, 12
#: (update, weight of the penalty): straight lines between these
PENALTY = ((0, 1e-3), (1000, 1e-3), (2000, 1e-2), (UPDATES, 1e-2))
WARM_UP, COOL_DOWN = 50, 400


def new_model() -> Any:
    config = LlamaConfig(
        vocab_size=WORDS + 1,
        hidden_size=HIDDEN,
        head_dim=WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        num_hidden_layers=LAYERS,
        intermediate_size=8,
        max_position_embeddings=256,
        initializer_range=0.1,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
        attn_implementation="sdpa",
    )
    hf = LlamaForCausalLM(config)
    for name, weight in hf.named_parameters():
        weight.requires_grad_("mlp" not in name and "norm" not in name)
        if "down_proj" in name:
            torch.nn.init.zeros_(weight)
    return hf


def texts(draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """(ids [row, place], places [row, target] whose next word is to be foretold)"""
    segment = int(torch.randint(SHORTEST, LONGEST + 1, (1,), generator=draw))
    words = torch.rand(BATCH, WORDS, generator=draw).argsort(1)
    repeated, others = words[:, :segment], words[:, segment:]
    ids = others.gather(1, torch.randint(WORDS - segment, (BATCH, LENGTH), generator=draw))
    able = torch.tensor([distance for distance in SEEN if distance >= segment])
    distance = able[torch.randint(len(able), (BATCH,), generator=draw)]
    first = (torch.rand(BATCH, generator=draw) * (LENGTH - distance - segment + 1)).long()
    along = torch.arange(segment)
    ids.scatter_(1, first[:, None] + along, repeated)
    ids.scatter_(1, (first + distance)[:, None] + along, repeated)
    return ids, (first + distance)[:, None] + along[:-1]


def head_sizes(hf: Any) -> Tensor:
    """[layer, head]: the norms of value and output weights."""
    sizes = []
    for block in hf.model.layers:
        value = block.self_attn.v_proj.weight.view(HEADS, WIDTH, HIDDEN)
        output = block.self_attn.o_proj.weight.view(HIDDEN, HEADS, WIDTH).transpose(0, 1)
        sizes.append(value.flatten(1).norm(dim=1) + output.flatten(1).norm(dim=1))
    return torch.stack(sizes)


def penalty_at(update: int) -> float:
    for (begin, low), (end, high) in pairwise(PENALTY):
        if update <= end:
            return low + (high - low) * (update - begin) / (end - begin)
    raise ValueError(update)


def train(seed: int) -> Any:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)
    draw = torch.Generator().manual_seed(seed)
    hf = new_model()
    weights = [weight for weight in hf.parameters() if weight.requires_grad]
    adam = torch.optim.Adam(weights, lr=RATE, betas=(0.9, 0.98))
    for update in range(UPDATES):
        slow = min(1.0, (update + 1) / WARM_UP, (UPDATES - update) / COOL_DOWN)
        adam.param_groups[0]["lr"] = RATE * slow
        ids, places = texts(draw)
        logits = hf(input_ids=ids).logits
        logits = logits.gather(1, places[..., None].expand(-1, -1, logits.shape[-1]))
        nll = cross_entropy(logits.flatten(0, 1), ids.gather(1, places + 1).flatten())
        loss = nll + penalty_at(update) * head_sizes(hf).sum()
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        adam.step()
        if (update + 1) % 300 == 0:
            sizes = " ".join(f"{size:.1f}" for size in head_sizes(hf).flatten().tolist())
            print(f"{update + 1:5d}  nll {nll.item():.4f}  heads {sizes}", flush=True)
    return hf.eval()


def readme(hf: Any, seed: int, size: int) -> str:
    """What was made, with what was measured of it."""
    spans = {
        f"seen ({SEEN[0]}–{SEEN[-1]} without those left out)": SEEN,
        f"left out ({', '.join(map(str, LEFT_OUT))})": LEFT_OUT,
        f"longer ({LONGER[0]}–{LONGER[-1]})": LONGER,
        **{f"{distance}": (distance,) for distance in (70, 80, 100, 150)},
    }
    shares = {name: accuracy(hf, induction_rows(span, 400, seed=1000)) for name, span in spans.items()}
    shares["30, after 70 more words"] = accuracy(hf, induction_rows([30], 400, seed=1000, more=70))
    hf.set_attn_implementation("eager")
    patterns = head_patterns(hf, induction_rows(SEEN, 200, seed=1000))
    sizes = head_sizes(hf)
    heads = [
        f"| {layer}.{head} | {patterns['previous'][layer, head]:.2f} "
        f"| {patterns['induction'][layer, head]:.2f} | {sizes[layer, head].item():.2f} |"
        for layer in range(LAYERS)
        for head in range(HEADS)
    ]
    return "\n".join(
        [
            "# A model that continues repeated segments",
            "",
            f"A Llama of {LAYERS} layers, {HEADS} heads of {WIDTH} channels each, hidden size {HIDDEN}, "
            f"{WORDS} words and one for all others,",
            f"no MLP (its output weights are zero), embeddings not tied. float32, {size:,} bytes. "
            "Licence: Apache-2.0.",
            "",
            f"Made by `python scripts/train_induction.py --seed {seed}`: {UPDATES} updates of {BATCH} random "
            f"texts of {LENGTH} words, on one",
            "core in three to five minutes; nothing but random words went into it. The same seed gives the "
            "same weights on the",
            "same machine with the same PyTorch; elsewhere rounding differs.",
            "",
            "A segment of distinct words, found nowhere else in the text, comes twice; the second time it is",
            "continued from its first word. Share of the words after that which are the model's first choice "
            "(400 rows each,",
            "chance 0.02), by the distance between the two:",
            "",
            "| distance | accuracy |",
            "|---|---|",
            *(f"| {name} | {share:.3f} |" for name, share in shares.items()),
            "",
            f"Training had texts of {LENGTH} words. The last line is a distance that it used, in a longer "
            "text: the length",
            "of a text alone brings a fall of the size seen at long distances.",
            "",
            "Mean attention to the word before (previous) and from a repeated word to the one after its "
            "first occurrence",
            "(induction), and the size of the head's value and output weights (a head of size 0 writes "
            "nothing, wherever it looks):",
            "",
            "| head | previous | induction | size |",
            "|---|---|---|---|",
            *heads,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=FOLDER)
    asked = parser.parse_args()
    hf = train(asked.seed)
    asked.out.mkdir(parents=True, exist_ok=True)
    weights = asked.out / "model.safetensors"
    save_file(
        {name: weight.contiguous() for name, weight in hf.state_dict().items()}, weights, {"format": "pt"}
    )
    hf.config.architectures = ["LlamaForCausalLM"]
    hf.config.to_json_file(asked.out / "config.json")
    text = readme(hf, asked.seed, weights.stat().st_size)
    (asked.out / "README.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
