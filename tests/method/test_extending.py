"""Mistakes of the author of a method, a figure or a format, each answered in one sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headatlas import (
    FORMATS,
    ExportRequest,
    ExtensionError,
    ValidateRequest,
    import_table,
    map_heads,
    open_atlas,
)
from headatlas.core import METHOD_ORDER, Options
from headatlas.export import ExportFormat
from headatlas.figure import FIGURES, FigureKind
from headatlas.method import METHODS, EffectOptions, HeadEffects, Method
from headatlas.method.engine.head_effects import checked_effects
from headatlas.method.gating import STAGES, GatingSettings
from headatlas.page.payload import payload_of
from support.cli import invoke
from support.planted import word_tokenizer
from support.small_run import small_model, small_run, write_task
from support.tiny import build_tiny
from support.watching import Watch


def measure(model, rows, *, options, seed, progress):
    """Row by row, layer + row."""
    layers, heads = model.spec.shape
    per_row = np.arange(len(rows))[:, None, None] + np.arange(layers)[:, None] * np.ones((1, 1, heads))
    return HeadEffects(per_row.mean(0), per_row.std(0), per_row)


SOUND = Method("by-hand", "By hand", "a number per head", EffectOptions, measure, unit="bits")


@dataclass(frozen=True)
class NoEffectOptions(Options):
    power: int = 1


class Undecorated(EffectOptions):
    power: int = 1


def without_seed(model, rows, *, options, progress):
    return None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "../by hand"}, "a method is named '../by hand'; a method's name has lower-case letters"),
        ({"name": "relations"}, "a method is named 'relations'; an atlas uses that name for something else"),
        ({"name": "validation"}, "a method is named 'validation'; an atlas uses that name for something"),
        ({"measure": None}, "the method 'by-hand' needs either a function `measure` or a function `fit`"),
        ({"fit": measure}, "the method 'by-hand' needs either"),
        ({"options": dict}, "the options of the method 'by-hand' are <class 'dict'>, not a subclass of Eff"),
        ({"options": NoEffectOptions}, "not a subclass of EffectOptions"),
        (
            {"options": Undecorated},
            "the option 'power' of the method 'by-hand' is lost: decorate Undecorated",
        ),
        (
            {"measure": without_seed},
            r"`measure` of the method 'by-hand' does not take \(model, rows, \*, opt",
        ),
        ({"decide": len}, "unexpected keyword argument 'decided'"),
    ],
)
def test_a_method_is_checked_where_it_is_declared(changes, message):
    with pytest.raises(ExtensionError, match=message):
        replace(SOUND, **changes)


def test_a_figure_and_a_format_are_checked_where_they_are_declared():
    with pytest.raises(ExtensionError, match="the options of the export format 'x' are None, not a subclass"):
        ExportFormat("x", "x", None, print)
    with pytest.raises(ExtensionError, match="the figure 'x' has no function that draws it"):
        FigureKind("x", "x", None, print)


def test_a_new_method_has_version_1_and_the_built_in_ones_keep_theirs():
    assert SOUND.version == 1
    assert all(METHODS[name].version >= 2 for name in METHOD_ORDER)


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture
def task(tmp_path):
    return str(write_task(tmp_path / "words.jsonl"))


def add(monkeypatch, method):
    monkeypatch.setitem(METHODS._values, method.name, method)


def test_a_method_without_losses_is_stored(model, task, tmp_path, monkeypatch):
    add(monkeypatch, SOUND)
    out = tmp_path / "atlas"
    atlas = map_heads(model, task, method="by-hand", items=4, out=out)
    effects = atlas.effect("words", "by-hand", 0)
    assert effects.values.dtype == np.float32 and effects.values[1, 0] == 2.5
    assert not {"nll", "whole"} & effects.facts.keys()
    monkeypatch.undo()
    summary = open_atlas(out).effect_summary("words", "by-hand")
    assert summary.nll is None and summary.whole is None and summary.sum > 0


def returning(change):
    def wrong(model, rows, **given):
        return change(measure(model, rows, **given))

    return replace(SOUND, measure=wrong)


def with_value(name, place, value):
    def change(effects):
        array = getattr(effects, name).copy()
        array[place] = value
        return replace(effects, **{name: array})

    return change


def as_integers(effects):
    object.__setattr__(
        effects, "values", effects.values.astype(int)
    )  # tests check the type in the constructor
    return effects


WRONG = {
    "None": (lambda effects: None, "returned None, not HeadEffects"),
    "values alone": (lambda effects: effects.values, "returned a value of type ndarray, not HeadEffects"),
    "whole numbers": (
        as_integers,
        "returned an array of int64 as values, not a NumPy array of floats",
    ),
    "a layer too few": (
        lambda effects: HeadEffects(effects.values[1:], effects.errors[1:], effects.per_row[:, 1:]),
        r"returned values of shape \[2, 4\]; \[layer, head\] is \[3, 4\] here",
    ),
    "a row too few": (
        lambda effects: replace(effects, per_row=effects.per_row[1:]),
        r"returned per_row of shape \[3, 3, 4\]; \[row, layer, head\] is \[4, 3, 4\] here",
    ),
    "NaN": (with_value("values", (1, 2), np.nan), "returned nan in values for L1H2, not a finite number"),
    "too large": (with_value("values", (1, 2), 1e300), r"returned 1e\+300 in values for L1H2"),
    "infinite in a row": (with_value("per_row", (0, 1, 3), np.inf), "returned inf in per_row for L1H3"),
    "an infinite error": (with_value("errors", (0, 0), np.inf), "returned inf in errors for L0H0"),
    "a loss": (lambda effects: replace(effects, plain=float("nan")), "returned nan as plain, not a finite"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_method_returns_is_checked_before_it_is_stored(model, task, tmp_path, monkeypatch, name):
    change, message = WRONG[name]
    add(monkeypatch, returning(change))
    with pytest.raises(ExtensionError, match=f"the method 'by-hand' {message}"):
        map_heads(model, task, method="by-hand", items=4, out=tmp_path / "atlas")
    assert not list((tmp_path / "atlas").rglob("*.safetensors"))
    open_atlas(tmp_path / "atlas")


def test_there_is_no_number_where_there_is_no_head(model):
    effects = measure(model, [0, 0], options=None, seed=0, progress=None)
    ragged = replace(model.spec, heads=(4, 2, 4))
    with pytest.raises(
        ExtensionError, match=r"returned 1\.5 in values for L1H2, not NaN: the model has no head"
    ):
        checked_effects("by-hand", effects, ragged, 2)
    arrays = {name: getattr(effects, name).copy() for name in ("values", "errors", "per_row")}
    for array in arrays.values():
        array[..., 1, 2:] = np.nan
    assert checked_effects("by-hand", replace(effects, **arrays), ragged, 2).rows == 2


def test_a_method_that_fails_is_named(model, task, monkeypatch):
    def broken(model, rows, **given):
        return len(model) + rows

    add(monkeypatch, replace(SOUND, measure=broken))
    with pytest.raises(ExtensionError, match=r"the method 'by-hand' failed \(TypeError: .*\)"):
        map_heads(model, task, method="by-hand", items=4)


def test_the_table_of_a_method_comes_back(model, task, tmp_path, monkeypatch):
    add(monkeypatch, SOUND)
    atlas = map_heads(model, task, method="by-hand", items=4)
    table = atlas.to_table()
    again = import_table(table, tmp_path / "installed")
    assert again.run("words", "by-hand").unit == "bits" and again.effect_maps == [("words", "by-hand")]
    np.testing.assert_array_equal(again.importance("words", "by-hand"), atlas.importance("words", "by-hand"))
    monkeypatch.undo()
    elsewhere = import_table(table, tmp_path / "elsewhere")
    pd.testing.assert_frame_equal(elsewhere.to_table(), table)


def test_effects_are_shown_in_their_unit(model, task, tmp_path, monkeypatch):
    add(monkeypatch, SOUND)
    out = tmp_path / "atlas"
    map_heads(model, task, method="by-hand", items=4, out=out)
    monkeypatch.undo()
    atlas = open_atlas(out)
    (line,) = [line for line in atlas.report().markdown().splitlines() if line.startswith("| words, by-hand")]
    assert "(unit: bits)" in line and "In nats of loss unless" in atlas.report().markdown()
    assert payload_of([atlas])["atlases"][0]["effects"][0]["unit"] == "bits"
    card = atlas.card("L1H0")
    assert card.effects[0].unit == "bits" and "+2.500 bits" in card._repr_html_()
    shown = invoke("head", out, "L1H0").stdout
    assert "bits" in shown and "nats" not in shown


def test_map_says_nothing_of_losses_that_were_not_measured(task, tmp_path, monkeypatch):
    add(monkeypatch, SOUND)
    build_tiny("llama").save_pretrained(tmp_path / "model")
    word_tokenizer(100).save_pretrained(tmp_path / "model")
    command = ("map", tmp_path / "model", "--task", task, "--method", "by-hand", "--items", 4)
    said = invoke(*command, "--out", tmp_path / "atlas")
    assert said.returncode == 0, said.stderr
    assert "words, 1 seed of 4 items, effects in bits" in said.stdout
    assert "nats" not in said.stdout and "together" not in said.stdout
    asked = invoke(*command, "--out", tmp_path / "other", "--json")
    (shown,) = json.loads(asked.stdout)["tasks"]
    assert shown["nll"] is None and shown["whole"] is None


@dataclass(frozen=True)
class Written:
    names: list[str]

    def to_json(self):
        return {"heads": self.names}

    def lines(self):
        return [", ".join(self.names)]


def write_names(request, atlas, model):
    assert model is None
    needed = atlas.always(request.task)["facilitation"].values >= 0.5
    names = [str(head) for head in atlas.spec if needed[head.layer, head.head]]
    request.out.write_text("".join(f"{name}\n" for name in names))
    return Written(names)


NAMES = ExportFormat("names", "names of heads", Options, write_names)


def test_a_format_without_a_model_needs_neither_model_nor_task_file(model, task, tmp_path, monkeypatch):
    monkeypatch.setitem(FORMATS._values, "names", NAMES)
    small_run(model, task, tmp_path / "atlas", seeds=1)
    Path(task).unlink()
    assert invoke("export", tmp_path / "atlas", "--format", "names", "--out", tmp_path / "x").returncode == 0
    refused = invoke("export", tmp_path / "atlas", "--out", tmp_path / "y")
    assert "words: its file is not known or has moved" in refused.stderr and "validated" not in refused.stderr
    unknown = invoke("export", tmp_path / "atlas", "-t", "wrds", "--format", "names", "--out", tmp_path / "y")
    assert "did you mean 'words'" in unknown.stderr
    imported = import_table(open_atlas(tmp_path / "atlas").to_table(), tmp_path / "imported")
    request = ExportRequest.of(imported.path, None, tmp_path / "z", format="names")
    assert request.task == "words" and request.definition is None
    assert ExportRequest.from_json(json.loads(json.dumps(request.to_json()))) == request


def test_validation_compares_methods_of_plugins_that_were_mapped_or_named(model, task, tmp_path, monkeypatch):
    add(monkeypatch, SOUND)
    out = tmp_path / "atlas"
    small_run(model, task, out, seeds=1)
    built_in = tuple(name for name in METHODS.built_in if name != "gating")
    assert ValidateRequest.of(out, model=model).methods == built_in
    assert ValidateRequest.of(out, model=model, methods=["by-hand"]).methods == ("by-hand",)
    map_heads(model, task, method="by-hand", items=4, out=out, resume=True)
    assert set(ValidateRequest.of(out, model=model).methods) == {*built_in, "by-hand"}


def plot_count(atlas, *, color="black", label=None):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.text(0, 0, f"{len(atlas.spec)} heads", color=color)
    return figure


COUNT = FigureKind("head-count", "the number of heads", plot_count, lambda atlas: None)


def test_a_figure_takes_options_of_its_own(model, task, tmp_path, monkeypatch):
    monkeypatch.setitem(FIGURES._values, "head-count", COUNT)
    folder = tmp_path / "atlas"
    small_run(model, task, folder, seeds=1)
    command = ("plot", folder, "--kind", "head-count")
    drawn = invoke(*command, "--option", "color=red")
    assert drawn.stdout.strip() == str(folder / "head-count-color-red.png"), drawn.stderr
    assert (folder / "head-count-color-red.png").stat().st_size > 100
    refused = invoke(*command, "--option", "colour=red")
    assert refused.returncode == 2
    assert "'colour' is not an option of the figure head-count; it has color." in refused.stderr
    assert "head-count" in invoke("plot", "--help").stdout


def test_a_dtype_of_a_plugin_is_no_integration_path(model, task, monkeypatch):
    def in_half(model, rows, **given):
        return replace(measure(model, rows, **given), dtype="bfloat16")

    add(monkeypatch, replace(SOUND, measure=in_half))
    watch = Watch()
    map_heads(model, task, method="by-hand", items=4, progress=watch)
    assert not any("float32 copy" in note for note in watch.notes)


def test_constants_are_compared_as_the_atlas_stores_them(model, task, tmp_path, monkeypatch):
    add(monkeypatch, replace(SOUND, constants={"pair": (1, np.int64(2))}))
    out = tmp_path / "atlas"
    small_run(model, task, out, seeds=1)
    map_heads(model, task, method="by-hand", items=4, out=out, resume=True)
    request = ValidateRequest.of(out, model=model, methods=["by-hand"])
    assert "by-hand" in request.methods and request.plan(open_atlas(out))


def test_aliases_name_gates(model, task, monkeypatch):
    short = Method(
        "short", "Short", "gates", GatingSettings, fit=METHODS["gating"].fit, stages=STAGES, aliases=("sh",)
    )
    add(monkeypatch, short)
    monkeypatch.setitem(METHODS.__dict__, "_aliases", {"sh": "short"})
    atlas = small_run(model, task, None, seeds=1, method="short")
    full = atlas.importance("words", "short")
    assert atlas.importance("words", "sh").equals(full) and atlas.scores("words", "sh").sizes["seed"] == 1
    assert atlas.fitted_by("sh").importance("words").equals(full)
    assert atlas.run("words", "sh").method == "short"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--option", "tasks=5"], "--option tasks has a flag of its own; use --task."),
        (["--option", "label=5"], "--option label has a flag of its own; use --label."),
        (["--kind", "score", "--score", "retain", "--option", "score=remove"], "use --score."),
        (["--kind", "sufficiency", "--method", "gating"], "sufficiency has no use for it."),
        (["--kind", "ablation", "--method", "gating"], "--method is for --kind agreement, score, "),
    ],
)
def test_flags_of_figures_have_one_way_in(model, task, tmp_path, options, words):
    small_run(model, task, tmp_path / "atlas", seeds=1)
    refused = invoke("plot", tmp_path / "atlas", *options)
    assert refused.returncode == 2 and words in refused.stderr
