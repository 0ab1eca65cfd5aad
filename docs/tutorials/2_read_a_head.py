"""Tutorial 2: what is a head by its weights?

    python docs/tutorials/2_read_a_head.py --out tutorial

No training and no text: what a head would write for a token follows from its weights. A head that turns
Spain into Madrid, Japan into Tokyo and so on implements the relation country-capital. Some minutes on two
cores, most of them for the tokens that heads amplify.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import headatlas

RELATIONS = ("country-capital", "plural", "past-tense", "name-copying")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("tutorial"))
    parser.add_argument("--fast", action="store_true", help="without the tokens that heads amplify")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    # 1. Scores: of the pairs of a relation, how many does the head have among its top tokens?
    model = headatlas.load_model("smollm2", dtype="float32")
    salient, source = not arguments.fast, "first_mlp" if arguments.fast else "auto"
    atlas = headatlas.relate_heads(
        model, RELATIONS, out=arguments.out / "relations", salient=salient, source=source
    )
    best = {}
    for relation in RELATIONS:
        scores = atlas.relation_scores().sel(direction="promote", relation=relation)
        best[relation] = headatlas.Head(*scores.to_series().idxmax())
        print(f"{relation:16} best head {best[relation]}, {float(scores.max()):.2f} of the pairs")

    # 2. The card of one head: what it implements, and the tokens that it amplifies most.
    head = best["country-capital"]
    card = atlas.card(head)
    print(f"\n{card.head}: {card.label}")
    for token in card.salient[:5]:
        print(f"  {token.token!r} -> {', '.join(map(repr, token.mapped[:3]))}")

    # 3. The tokens that the head promotes for France: as published, and with the final norm's weights.
    for norms in ("published", "folded"):
        tokens = model.top_tokens(head, " France", k=3, norms=norms)["token"]
        print(f"{head} for ' France', {norms}: {', '.join(map(repr, tokens))}")

    # 4. The same by hand: W_V and W_O of the head, what a token brings, and the unembedding.
    values, writes = model.value_output(head)
    resolved = atlas.run("country-capital", "relations").settings["resolved"]
    source = resolved["source"]
    print(f"a pair counts if its target is among the first {resolved['k']} tokens; not all of them do:")
    for pair in ((" France", " Paris"), (" Spain", " Madrid"), (" Japan", " Tokyo"), (" Germany", " Berlin")):
        country, capital = (model.tokenizer(word, add_special_tokens=False).input_ids[0] for word in pair)
        read = model.source_vectors([country], source).double()
        logits = (read @ values.double() @ writes.double() @ model.unembedding().double())[0]
        rank = int((logits > logits[capital]).sum()) + 1
        print(f"{pair[0]} through {card.head}:{pair[1]} is number {rank} of {len(logits):,} tokens")


if __name__ == "__main__":
    main()
