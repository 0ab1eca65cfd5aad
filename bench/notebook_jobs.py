"""Ten everyday jobs with attention heads, in headatlas and in TransformerLens, on SmolLM2 in float32.

python bench/notebook_jobs.py [--out docs/notebook-jobs.md]

Each job is a snippet of code for either tool. Lines are counted. Seconds are those of the second of two
runs (of the only one for long jobs), the two tools in turn. Where both give a number, the largest
difference is given. TransformerLens learns no gates and has no relations and no atlas: such jobs have no
second column.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from textwrap import dedent
from typing import Any

import torch

PAIRS = [
    (f"The capital of {country} is", f" {city}")
    for country, city in (
        ("France", "Paris"), ("Spain", "Madrid"), ("Italy", "Rome"), ("Germany", "Berlin"),
        ("Japan", "Tokyo"), ("China", "Beijing"), ("Russia", "Moscow"), ("Egypt", "Cairo"),
        ("Greece", "Athens"), ("Cuba", "Havana"),
    )
]  # fmt: skip
TEXT = "When Mary and John went to the store, John gave a drink to"

#: job, headatlas, TransformerLens (None: it has no such thing); each leaves its number in `result`
JOBS: list[tuple[str, str, str | None]] = [
    (
        "most probable next tokens",
        'result = model.next_tokens(text, k=5)["probability"].to_numpy()',
        """
        logits = lens(ids)[0, -1]
        result = logits.softmax(-1).topk(5).values.numpy()
        """,
    ),
    (
        "one head off",
        """
        with model.gates(["L5H3"]):
            result = model(text)[0, -1].numpy()
        """,
        """
        def off(z, hook):
            z[:, :, 3] = 0
            return z
        result = lens.run_with_hooks(ids, fwd_hooks=[("blocks.5.attn.hook_z", off)])[0, -1].numpy()
        """,
    ),
    (
        "attention pattern of a head",
        "result = model.patterns(text).sel(layer=5, head=3).to_numpy()",
        """
        _, cache = lens.run_with_cache(ids)
        result = cache["pattern", 5][0, 3].numpy()
        """,
    ),
    (
        "outputs of all heads at the last token",
        "result = model.head_outputs(text).sel(position=-1).to_numpy()",
        """
        _, cache = lens.run_with_cache(ids)
        result = torch.stack([cache["z", layer][0, -1] for layer in range(30)]).numpy()
        """,
    ),
    (
        "direct logit attribution of all heads",
        """
        parts = model.logit_attribution(text, " Mary", foil=" John")
        result = parts.sel(component=[str(head) for head in model.spec]).to_numpy()
        """,
        """
        _, cache = lens.run_with_cache(ids)
        heads = cache.stack_head_results(layer=-1, pos_slice=-1)[:, 0]
        scaled = cache.apply_ln_to_stack(heads, layer=-1, pos_slice=-1) * lens.ln_final.w
        mary, john = (tokenizer(name, add_special_tokens=False).input_ids[0] for name in (" Mary", " John"))
        result = (scaled @ (lens.W_U[:, mary] - lens.W_U[:, john])).numpy()
        """,
    ),
    (
        "patch a layer's heads from another text",
        """
        with model.patch(["L20"], from_text="The capital of Spain is"):
            result = model("The capital of France is")[0, -1].numpy()
        """,
        """
        spain, france = (tokenizer(f"The capital of {name} is", return_tensors="pt").input_ids
                         for name in ("Spain", "France"))
        _, cache = lens.run_with_cache(spain)
        patch = lambda z, hook: cache["z", 20]
        result = lens.run_with_hooks(france, fwd_hooks=[("blocks.20.attn.hook_z", patch)])[0, -1].numpy()
        """,
    ),
    (
        "mean ablation of 270 heads on ten items",
        """
        atlas = ha.map_heads(model, {"capitals": pairs}, method="ablate-mean")
        result = atlas.pooled_effects("capitals", "ablate-mean")["effect"].to_numpy()
        """,
        """
        rows = [tokenizer(prompt + target, return_tensors="pt").input_ids for prompt, target in pairs]
        starts = [len(tokenizer(prompt).input_ids) for prompt, _ in pairs]
        caches = [lens.run_with_cache(row)[1] for row in rows]
        def loss(hooks):
            losses = []
            for row, start in zip(rows, starts):
                logits = lens.run_with_hooks(row, fwd_hooks=hooks)[0, start - 1 : -1].log_softmax(-1)
                losses.append(-logits.gather(-1, row[0, start:, None]).mean())
            return float(torch.stack(losses).mean())
        plain, result = loss([]), torch.zeros(30, 9)
        for layer in range(30):
            mean = torch.cat([cache["z", layer][0] for cache in caches]).mean(0)
            for head in range(9):
                def replace(z, hook, head=head, mean=mean):
                    z[:, :, head] = mean[head]
                    return z
                result[layer, head] = loss([(f"blocks.{layer}.attn.hook_z", replace)]) - plain
        result = result.numpy()
        """,
    ),
    (
        "tokens that a head promotes, by its weights",
        'result = model.top_tokens("L23H4", " France", k=5, source="embedding")["score"].to_numpy()',
        """
        france = tokenizer(" France", add_special_tokens=False).input_ids[0]
        written = lens.W_E[france] @ lens.W_V[23, 4] @ lens.W_O[23, 4]
        result = (written @ lens.W_U).topk(5).values.numpy()
        """,
    ),
    (
        "which relations do heads implement",
        'result = ha.relation_scores(model, "country-capital", source="first_mlp").to_numpy()',
        None,
    ),
    (
        "learn gates, look at the map, keep it",
        """
        atlas = ha.map_heads(model, {"capitals": pairs}, seeds=1, updates=4)
        atlas.plot.agreement()
        result = atlas.scores()["facilitation"].to_numpy()
        """,
        None,
    ),
]


def lens_of(hf: Any) -> Any:
    """The same weights in TransformerLens."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig
    from transformer_lens.pretrained.weight_conversions import convert_llama_weights

    config = hf.config
    cfg = HookedTransformerConfig(
        n_layers=config.num_hidden_layers,
        d_model=config.hidden_size,
        n_heads=config.num_attention_heads,
        n_key_value_heads=config.num_key_value_heads,
        d_head=config.hidden_size // config.num_attention_heads,
        d_mlp=config.intermediate_size,
        d_vocab=config.vocab_size,
        n_ctx=256,
        act_fn="silu",
        normalization_type="RMS",
        eps=config.rms_norm_eps,
        positional_embedding_type="rotary",
        rotary_adjacent_pairs=False,
        rotary_dim=config.hidden_size // config.num_attention_heads,
        rotary_base=int(config.rope_parameters["rope_theta"]),
        gated_mlp=True,
        final_rms=True,
        original_architecture="LlamaForCausalLM",
        ungroup_grouped_query_attention=True,
    )
    lens = HookedTransformer(cfg)
    lens.load_and_process_state_dict(
        convert_llama_weights(hf, cfg),
        fold_ln=False,
        center_unembed=False,
        center_writing_weights=False,
        fold_value_biases=False,
    )
    return lens.eval()


#: seconds after which a job is not repeated
_LONG = 10.0


def lines_of(code: str) -> int:
    return len(dedent(code).strip().splitlines())


def timed(code: str, variables: dict[str, Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    exec(dedent(code), variables)
    return time.perf_counter() - began, variables["result"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)

    import headatlas as ha

    model = ha.load_model("smollm2", dtype="float32", device="cpu")
    ids = model.tokenizer(TEXT, return_tensors="pt").input_ids
    variables = {
        "ha": ha, "model": model, "text": TEXT, "pairs": PAIRS, "torch": torch,
        "lens": lens_of(model.hf), "ids": ids, "tokenizer": model.tokenizer,
    }  # fmt: skip
    table = [
        "| job | lines | TransformerLens | seconds | TransformerLens | largest difference |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for job, ours, theirs in JOBS:
        with torch.enable_grad() if "seeds=" in ours else torch.no_grad():
            seconds, results = {}, {}
            for _ in range(2):
                seconds["ours"], results["ours"] = timed(ours, variables)
                if theirs is not None:
                    seconds["theirs"], results["theirs"] = timed(theirs, variables)
                if max(seconds.values()) > _LONG:
                    break
        cells = [job, str(lines_of(ours)), "–" if theirs is None else str(lines_of(theirs))]
        cells += [f"{seconds['ours']:.2f}", "–" if theirs is None else f"{seconds['theirs']:.2f}"]
        difference = "–"
        if theirs is not None:
            first, second = (results[name].reshape(-1) for name in ("ours", "theirs"))
            difference = f"{abs(first - second).max():.1e}"
        table.append(f"| {' | '.join([*cells, difference])} |")
        print(table[-1], flush=True)
    if out is not None:
        title = "# Ten jobs, in headatlas and in TransformerLens\n\n"
        note = (
            "Made by `bench/notebook_jobs.py` on SmolLM2 in float32 on "
            f"{torch.get_num_threads()} CPU threads; seconds are those of the second of two runs, or of one "
            "run above ten seconds.\n\n"
        )
        out.write_text(title + note + "\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
