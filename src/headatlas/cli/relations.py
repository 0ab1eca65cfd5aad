"""`headatlas relations MODEL`: which relations do the heads implement, by their weights?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from headatlas.cli.options import (
    AsJson,
    ExecutorFlags,
    LoadFlags,
    MappedModel,
    Out,
    Resume,
    recalling_model,
    with_flags,
)
from headatlas.cli.progress import ShownProgress, saved_in
from headatlas.cli.show import plain_table, show_table
from headatlas.core import IMPLEMENTS, RequestError, escape_unprintable, plural

if TYPE_CHECKING:
    from headatlas import Atlas, Ray, RelationsRequest, RelationSummary

__all__ = ["relations", "show_relations", "show_summaries"]

#: columns of a terminal that has room for all of them
_WIDE = 82


@with_flags
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
    *,
    load: LoadFlags,
    executor: ExecutorFlags,
    as_json: AsJson = False,
) -> None:
    """Read off the weights which relations every head implements (MAPS). No training; texts are read only to
    choose the source vectors, for relations whose words are not single tokens, and if asked for."""
    from headatlas import RelationsRequest, builtin_relations, load_relation

    if category is not None and all(name in builtin_relations() for name in relation or ()):
        raise RequestError("--category is for relations from files; built-in ones have theirs.")
    given = None if relation is None else [load_relation(name, category=category) for name in relation]
    options: dict[str, Any] = {
        "k": k, "source": source, "salient": salient, "dynamic": dynamic, "causal": causal or (),
        "load": load.given(),
    }  # fmt: skip
    elsewhere = executor.build()
    if model is None and not resume:
        raise RequestError("give a model; only an atlas that is continued (--resume) remembers its model.")
    if model is None:
        request = RelationsRequest.resumed(out, given, **options)
    else:
        request = RelationsRequest.of(model, given, **options)
    with recalling_model(model, request.model.source, "the argument MODEL"):
        show_relations(
            request, out, resume=resume, as_json=as_json, name_left_out=left_out, executor=elsewhere
        )


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
    from headatlas import execute

    console = Console(soft_wrap=True, highlight=False)
    about = plural(len(request.relations), "relation")
    progress = ShownProgress(
        as_json, goes_on, out=saved_in(out, executor), about=about, model=request.model.source
    )
    with progress:
        atlas = execute(request, out, resume=resume, executor=executor, progress=progress)
    summaries = atlas.relation_summaries([relation.name for relation in request.relations])
    if as_json:
        rows = [summary.to_json() for summary in summaries]
        if name_left_out:
            rows = [{**row, "left_out_pairs": atlas.left_out_pairs(row["relation"])} for row in rows]
        found = {"atlas": out, "relations": rows, "heads": atlas.category_counts()}
        typer.echo(json.dumps({**found, "causal": atlas.causal_checks()}))
        return
    show_summaries(console, atlas, summaries)
    _show_left_out(console, summaries, atlas, name_left_out)
    for check in atlas.causal_checks():
        _show_causal(console, check, atlas.random_accuracy(check["relation"]))
    best = next((head for summary in summaries for head, _ in summary.best["promote"]), None)
    if best is not None:
        where = escape(out)
        console.print(
            f"[dim]atlas in {where}; 'headatlas plot {where} --kind categories' draws the map, "
            f"'headatlas head {where} {best}' shows a head[/]"
        )


def _before_category(word: str) -> str:
    """ "3 knowledge", "2 in 2 categories"; "14 of category other", as "14 other" would mean other heads."""
    return "in " if word[0].isdigit() else "of category " if word == "other" else ""


def _show_left_out(console: Console, summaries: list[RelationSummary], atlas: Atlas, by_name: bool) -> None:
    """How many pairs of which relations were left out for which reason; their words if asked for."""
    counts: dict[str, list[str]] = {}
    for summary in summaries:
        for reason, count in summary.left_out.items():
            counts.setdefault(reason, []).append(f"{summary.relation} {count:,}")
    if not counts:
        return
    hint = "" if by_name else " (--left-out names them)"
    console.print(f"[dim]pairs left out{hint}:[/]")
    for reason, relations_with_counts in counts.items():
        line = f"  {reason}: {', '.join(relations_with_counts)}"
        console.print(f"[dim]{escape(escape_unprintable(line))}[/]")
    for summary in summaries if by_name else ():
        for reason, pairs in atlas.left_out_pairs(summary.relation).items():
            words = "; ".join(f"{source} → {target}" for source, target in pairs)
            line = f"  {summary.relation}, {reason} ({len(pairs):,}): {words}"
            console.print(escape(escape_unprintable(line)))


def _show_causal(console: Console, check: dict[str, Any], random_accuracy: list[float]) -> None:
    """Accuracy against the number of heads that are switched off."""
    title = (
        f"\n[bold]{escape(check['relation'])}[/], accuracy on {plural(check['questions'], 'question')} with "
        "heads off:"
    )
    console.print(title)
    heads = escape(", ".join(check["heads"]))
    console.print(f"  [dim]its top heads, the best first: {heads}[/]")
    table = plain_table("  heads off")
    for step in check["steps"]:
        table.add_column(str(step), justify="right")
    rows = {
        "  its top heads": check["top"],
        f"  random heads ({plural(len(check['random']), 'draw')})": random_accuracy,
        **{f"  {name}, same heads off": curve for name, curve in check["controls"].items()},
    }
    if not check["controls"]:
        console.print(
            "  [dim]no control: no other scored relation is known to the model and has other heads[/]"
        )
    for name, curve in rows.items():
        table.add_row(escape(name), *(f"{value:.2f}" for value in curve))
    show_table(console, table)


def show_summaries(console: Console, atlas: Atlas, summaries: list[RelationSummary]) -> None:
    """The best heads of each relation, then how many heads have which category."""
    table = plain_table("relation")
    for column in ("pairs", "k"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("promote", no_wrap=True)
    table.add_column("suppress", no_wrap=True)
    marks = set()
    category = None
    for summary in summaries:
        if summary.category != category:
            category = summary.category
            table.add_row(f"[bold]{escape(category)}[/]")
        mark = {"static": "", "multi-token": "*", "none": "†"}[summary.kind]
        marks.add(mark)
        best = {
            side: "  ".join(f"{head} {score:.2f}" for head, score in summary.best[side][:count])
            for side, count in (("promote", 3 if console.width >= _WIDE else 2), ("suppress", 1))
        }
        if summary.kind == "none":
            best = {"promote": f"[dim]not measurable (n = {summary.single})[/]", "suppress": ""}
        pairs = f"{summary.pairs}{mark}/{summary.listed}"
        name = f"  {escape(summary.relation)}"
        table.add_row(name, pairs, str(summary.k), best["promote"], best["suppress"])
    show_table(console, table)
    if "*" in marks:
        few = [
            f"{summary.relation} (n = {summary.single})"
            for summary in summaries
            if summary.kind == "multi-token"
        ]
        names = escape(", ".join(few))
        console.print(f"[dim]* not measurable from weights with this tokenizer, scored in texts: {names}[/]")
    if "†" in marks:
        console.print("[dim]† not measurable with this tokenizer[/]")
    others = len(atlas.relations) - len(summaries)
    if others > 0:
        console.print(f"[dim]with the {plural(others, 'relation')} that the atlas had before:[/]")
    for direction, counts in atlas.category_counts().items():
        words = ", ".join(f"{count} {_before_category(word)}{word}" for word, count in counts.items())
        console.print(f"heads that {direction} a relation (score ≥ {IMPLEMENTS:g}): {words or 'none'}")
