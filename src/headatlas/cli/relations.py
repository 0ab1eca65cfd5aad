"""`headatlas relations MODEL`: which relations do the heads implement, by their weights?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headatlas.cli.options import (
    DTYPE,
    Address,
    AsJson,
    Device,
    DeviceMap,
    Exchange,
    ExecutorName,
    Gpus,
    MappedModel,
    Out,
    Resume,
    Revision,
    TrustRemoteCode,
    executor_of,
    load_options,
    require_destination,
)
from headatlas.cli.progress import ShownProgress, counted, saved_in
from headatlas.cli.show import show_table
from headatlas.core import RequestError, escape_unprintable

if TYPE_CHECKING:
    import xarray as xr

    from headatlas import Atlas, Ray
    from headatlas.request import RelationsRequest

__all__ = ["relations", "show_relations"]

_BEST = 3
#: columns of a terminal that has room for all of them
_WIDE = 82


def relations(
    model: MappedModel = None,
    relation: Annotated[
        list[str] | None,
        typer.Option("--relation", "-r", help="Built-in name, CSV or JSON file; all built-in ones if none."),
    ] = None,
    category: Annotated[
        str | None, typer.Option(help="The category of relations from files that name none.")
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--k",
            help="How far down a target may be (default: 1 copying, 10 others; 3, 25 in large vocabularies).",
        ),
    ] = None,
    source: Annotated[str, typer.Option(help="auto, first_mlp (as published) or embedding.")] = "auto",
    salient: Annotated[
        bool, typer.Option("--salient/--no-salient", help="Also find the tokens that each head amplifies.")
    ] = True,
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Also score what heads do in texts.")] = False,
    causal: Annotated[
        list[str] | None, typer.Option(help="Also switch off the top heads of this relation (repeatable).")
    ] = None,
    left_out: Annotated[
        bool, typer.Option("--left-out", help="Name the pairs that are left out of the scores, and why.")
    ] = False,
    out: Out = "atlas",
    resume: Resume = False,
    dtype: Annotated[str | None, DTYPE] = None,
    device: Device = None,
    device_map: DeviceMap = None,
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    executor: ExecutorName = "local",
    address: Address = None,
    exchange: Exchange = None,
    gpus: Gpus = None,
    as_json: AsJson = False,
) -> None:
    """Read off the weights which relations every head implements (MAPS). No training; texts are read only to
    choose the source vectors, for relations whose words are not single tokens, and if asked for."""
    from headatlas.request import RelationsRequest
    from headatlas.task import builtin_relations, load_relation

    if category is not None and all(name in builtin_relations() for name in relation or ()):
        raise RequestError("--category is for relations from files; built-in ones have theirs.")
    given = None if relation is None else [load_relation(name, category=category) for name in relation]
    require_destination(out, resume)
    load = load_options(dtype, device, device_map, revision, trust_remote_code)
    options: dict[str, Any] = {
        "k": k, "source": source, "salient": salient, "dynamic": dynamic, "causal": causal or (),
        "load": load,
    }  # fmt: skip
    elsewhere = executor_of(executor, address, exchange, gpus)
    if model is None and not resume:
        raise RequestError("give a model; only an atlas that is continued (--resume) remembers its model.")
    if model is None:
        request = RelationsRequest.resumed(out, given, **options)
    else:
        request = RelationsRequest.of(model, given, **options)
    show_relations(request, out, resume=resume, as_json=as_json, name_left_out=left_out, executor=elsewhere)


def show_relations(
    request: RelationsRequest,
    out: str,
    *,
    resume: bool,
    as_json: bool = False,
    name_left_out: bool = False,
    goes_on: str = "the same command with --resume",
    executor: Ray | None = None,
) -> None:
    """Carry out the request with a bar, then say what came of it; `name_left_out` lists the pairs that no
    score is made of."""
    from headatlas.run import execute

    console = Console(soft_wrap=True, highlight=False)
    wanted, about = request.relations, counted(len(request.relations), "relation")
    progress = ShownProgress(
        as_json, goes_on, out=saved_in(out, executor), about=about, model=request.model.source
    )
    with progress:
        atlas = execute(request, out, resume=resume, executor=executor, progress=progress)
    scores = atlas.relation_scores().sel(relation=[one.name for one in wanted])
    if as_json:
        rows = _rows(scores, atlas)
        if name_left_out:
            rows = [{**row, "left_out_pairs": atlas.left_out_pairs(row["relation"])} for row in rows]
        found = {"atlas": out, "relations": rows, "heads": _counts(atlas)}
        typer.echo(json.dumps({**found, "causal": atlas.causal_checks()}))
        return
    _show(console, scores, atlas)
    _show_left_out(console, _rows(scores, atlas), atlas, name_left_out)
    for check in atlas.causal_checks():
        _show_causal(console, check)
    best = next((one["head"] for row in _rows(scores, atlas) for one in row["promote"]), None)
    if best is not None:
        where = escape(out)
        console.print(
            f"[dim]atlas in {where}; 'headatlas plot {where} --kind categories' draws the map, "
            f"'headatlas head {where} {best}' shows a head[/]"
        )


def _rows(scores: xr.DataArray, atlas: Atlas) -> list[dict[str, Any]]:
    """One relation each: how it was measured, the pairs left out for each reason, its best heads."""
    import numpy as np

    found = []
    for name in scores.relation.values:
        one = scores.sel(relation=name)
        best = {}
        for direction in ("promote", "suppress"):
            values = np.nan_to_num(one.sel(direction=direction).values, nan=-1.0)
            order = np.argsort(-values, axis=None, kind="stable")[:_BEST]
            places = [np.unravel_index(place, values.shape) for place in order]
            best[direction] = [
                {"head": f"L{layer}H{head}", "score": round(float(values[layer, head]), 4)}
                for layer, head in places
                if values[layer, head] > 0
            ]
        keys = ("category", "kind", "pairs", "single", "listed", "k", "source")
        about = {key: one[key].item() for key in keys}
        left_out = {reason: len(pairs) for reason, pairs in atlas.left_out_pairs(str(name)).items()}
        found.append({"relation": str(name), **about, "left_out": left_out, **best})
    return found


def _counts(atlas: Atlas) -> dict[str, dict[str, int]]:
    """direction -> category (or "2 categories", …) -> heads."""
    from headatlas.atlas import categories, category_words, relations_of_one_origin

    scores, _ = relations_of_one_origin(atlas)
    if not scores.sizes["relation"]:
        return {}
    by_category = categories(scores)
    found: dict[str, dict[str, int]] = {}
    for direction in ("promote", "suppress"):
        words = category_words(by_category, direction).values.ravel().tolist()
        order = sorted(set(words) - {""}, key=lambda word: (word[0].isdigit(), word))
        found[direction] = {word: words.count(word) for word in order}
    return found


def _before_category(word: str) -> str:
    """ "3 knowledge", "2 in 2 categories"; "14 of category other", as "14 other" would mean other heads."""
    return "in " if word[0].isdigit() else "of category " if word == "other" else ""


def _show_left_out(console: Console, rows: list[dict[str, Any]], atlas: Atlas, by_name: bool) -> None:
    """How many pairs of which relations were left out for which reason; their words if asked for."""
    counts: dict[str, list[str]] = {}
    for row in rows:
        for reason, count in row["left_out"].items():
            counts.setdefault(reason, []).append(f"{row['relation']} {count:,}")
    if not counts:
        return
    hint = "" if by_name else " (--left-out names them)"
    console.print(f"[dim]pairs left out{hint}:[/]")
    for reason, relations_with_counts in counts.items():
        line = f"  {reason}: {', '.join(relations_with_counts)}"
        console.print(f"[dim]{escape(escape_unprintable(line))}[/]")
    for row in rows if by_name else ():
        for reason, pairs in atlas.left_out_pairs(row["relation"]).items():
            words = "; ".join(f"{source} → {target}" for source, target in pairs)
            line = f"  {row['relation']}, {reason} ({len(pairs):,}): {words}"
            console.print(escape(escape_unprintable(line)))


def _show_causal(console: Console, check: dict[str, Any]) -> None:
    """Accuracy against the number of heads that are switched off."""
    import numpy as np

    title = (
        f"\n[bold]{escape(check['relation'])}[/], accuracy on {counted(check['questions'], 'question')} with "
        "heads off:"
    )
    console.print(title)
    console.print(f"  [dim]its top heads, the best first: {', '.join(check['heads'])}[/]")
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("  heads off", no_wrap=True)
    for step in check["steps"]:
        table.add_column(str(step), justify="right")
    rows = {
        "  its top heads": check["top"],
        f"  random heads ({counted(len(check['random']), 'draw')})": np.mean(check["random"], axis=0),
        **{f"  {name}, same heads off": curve for name, curve in check["controls"].items()},
    }
    if not check["controls"]:
        console.print(
            "  [dim]no control: no other scored relation is known to the model and has other heads[/]"
        )
    for name, curve in rows.items():
        table.add_row(escape(name), *(f"{value:.2f}" for value in curve))
    show_table(console, table)


def _show(console: Console, scores: xr.DataArray, atlas: Atlas) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("relation", no_wrap=True)
    for column in ("pairs", "k"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("promote", no_wrap=True)
    table.add_column("suppress", no_wrap=True)
    marks = set()
    category = None
    rows = _rows(scores, atlas)
    for row in rows:
        if row["category"] != category:
            category = row["category"]
            table.add_row(f"[bold]{escape(category)}[/]")
        mark = {"static": "", "multi-token": "*", "none": "†"}[row["kind"]]
        marks.add(mark)
        best = {
            side: "  ".join(f"{one['head']} {one['score']:.2f}" for one in row[side][:count])
            for side, count in (("promote", _BEST if console.width >= _WIDE else _BEST - 1), ("suppress", 1))
        }
        if row["kind"] == "none":
            best = {"promote": f"[dim]not measurable (n = {row['single']})[/]", "suppress": ""}
        pairs = f"{row['pairs']}{mark}/{row['listed']}"
        name = f"  {escape(row['relation'])}"
        table.add_row(name, pairs, str(row["k"]), best["promote"], best["suppress"])
    show_table(console, table)
    if "*" in marks:
        few = [f"{row['relation']} (n = {row['single']})" for row in rows if row["kind"] == "multi-token"]
        names = escape(", ".join(few))
        console.print(f"[dim]* not measurable from weights with this tokenizer, scored in texts: {names}[/]")
    if "†" in marks:
        console.print("[dim]† not measurable with this tokenizer[/]")
    others = len(atlas.relations) - len(rows)
    if others > 0:
        console.print(f"[dim]with the {counted(others, 'relation')} that the atlas had before:[/]")
    for direction, counts in _counts(atlas).items():
        words = ", ".join(f"{count} {_before_category(word)}{word}" for word, count in counts.items())
        console.print(f"heads that {direction} a relation (score ≥ 0.15): {words or 'none'}")
