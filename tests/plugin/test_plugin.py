"""A package with a method, a figure, a task and an export format: used like built-in ones once it is
installed; an atlas that was made with it opens without it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headatlas import UnknownNameError, open_atlas
from headatlas.figure import draw_figure
from headatlas.page import write_page
from headatlas.page.payload import payload_of
from support.planted import word_tokenizer
from support.small_run import write_task
from support.tiny import build_tiny

pytestmark = [pytest.mark.slow, pytest.mark.process]

PACKAGE = Path(__file__).parent / "package"
#: commands, run one after the other in one process that has the plugin
COMMANDS = {
    "methods": ["list", "methods"],
    "tasks": ["list", "tasks"],
    "figures": ["list", "figures"],
    "formats": ["list", "formats"],
    "gate": ["map", "MODEL", "-t", "echo", "--seeds", "1", "--updates", "3", "--batch", "4",
             "-o", "OUT/atlas"],
    "measure": [
        "map", "MODEL", "-t", "echo", "--method", "output-norm", "--items", "6", "--option", "power=1",
        "--resume", "-o", "OUT/atlas",
    ],
    "wrong option": [
        "map", "MODEL", "-t", "echo", "--method", "output-norm", "--option", "colour=1", "--resume",
        "-o", "OUT/atlas",
    ],
    "validate": ["validate", "OUT/atlas", "--items", "5", "--draws", "2", "--retest", "0",
                 "--method", "output-norm", "--effect-items", "6", "--json"],
    "draw": ["plot", "OUT/atlas", "--kind", "norms", "--out", "OUT/norms.png"],
    "draw with an option": ["plot", "OUT/atlas", "--kind", "norms", "--label", "(b)",
                            "--out", "OUT/labelled.png"],
    "wrong option of a figure": ["plot", "OUT/atlas", "--kind", "norms", "--option", "colour=1"],
    "head": ["head", "OUT/atlas", "L0H0"],
    "table": ["table", "OUT/atlas", "--out", "OUT/table.csv"],
    "import": ["import", "OUT/table.csv", "--out", "OUT/imported"],
    "draw effects": ["plot", "OUT/atlas", "--kind", "effects", "--out", "OUT/effects.png"],
    "draw sufficiency": ["plot", "OUT/atlas", "--kind", "sufficiency", "--out", "OUT/sufficiency.png"],
    "report": ["report", "OUT/atlas"],
    "export": ["export", "OUT/atlas", "--format", "head-list", "--threshold", "0.1",
               "--out", "OUT/heads"],
    "fit": ["map", "MODEL", "-t", "echo", "--method", "short-gating", "--seeds", "1", "--updates", "6",
            "--batch", "4", "-o", "OUT/fitted"],
    "fit on": ["map", "--resume", "--method", "short-gating", "--seeds", "2", "-o", "OUT/fitted"],
    "fit, as JSON": ["map", "--resume", "--method", "short-gating", "--json", "-o", "OUT/fitted"],
    "draw fitted agreement": ["plot", "OUT/fitted", "--out", "OUT/agreement.png"],
    "draw fitted score": ["plot", "OUT/fitted", "--kind", "score", "--out", "OUT/score.png"],
    "draw fitted trajectories": ["plot", "OUT/fitted", "--kind", "trajectories",
                                 "--out", "OUT/trajectories.png"],
    "draw fitted effects": ["plot", "OUT/fitted", "--kind", "effects", "--out", "OUT/fitted.png"],
    "page of fitted": ["page", "OUT/fitted", "--out", "OUT/fitted.html"],
    "head of fitted": ["head", "OUT/fitted", "L0H0", "--json"],
    "table of fitted": ["table", "OUT/fitted", "--json"],
    "report of fitted": ["report", "OUT/fitted"],
    "export of fitted": ["export", "OUT/fitted", "--gates", "retain", "--items", "4", "--force",
                         "--out", "OUT/checkpoint"],
    "validate fitted": ["validate", "OUT/fitted"],
    "fit free": ["map", "MODEL", "-t", "echo", "--method", "free-gating", "--seeds", "1", "--updates", "3",
                 "--batch", "4", "-o", "OUT/free"],
    "draw free": ["plot", "OUT/free", "--out", "OUT/free.png"],
    "table of free": ["table", "OUT/free", "--json"],
    "fit beside": ["map", "MODEL", "-t", "echo", "--method", "short-gating", "--seeds", "1", "--updates",
                   "6", "--batch", "4", "--resume", "-o", "OUT/atlas"],
    "draw beside": ["plot", "OUT/atlas", "--method", "short-gating", "--out", "OUT/beside.png"],
}  # fmt: skip
REFUSED = ("wrong option", "wrong option of a figure", "validate fitted", "draw free")
CHILD = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from headatlas.cli import main
found = {}
for name, words in json.loads(sys.argv[1]).items():
    out, err, code = io.StringIO(), io.StringIO(), 0
    sys.argv = ["headatlas", *words]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    found[name] = [code, out.getvalue(), err.getvalue()]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    build_tiny("llama").save_pretrained(folder / "model")
    word_tokenizer(100).save_pretrained(folder / "model")
    return folder


def run_with(package, folder, commands):
    """Install a package beside headatlas and run the commands in one process, in `folder`."""
    site = folder / "site"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(site)]
    subprocess.run([sys.executable, *install, str(package)], check=True)
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(commands)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}, cwd=folder,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def results(folder):
    words = {
        name: [word.replace("MODEL", str(folder / "model")).replace("OUT", str(folder)) for word in command]
        for name, command in COMMANDS.items()
    }
    return run_with(PACKAGE, folder, words)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in REFUSED])
def test_commands_take_what_the_plugin_brings(results, name):
    code, _, err = results[name]
    assert code == 0, err


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("methods", "output-norm"),
        ("tasks", "echo"),
        ("figures", "norms"),
        ("formats", "head-list"),
        ("measure", "output-norm: mean norm of a head's output"),
        ("measure", "1 seed of 6 items, effects in norm"),
        ("head", "of the head alone; rank: 1 helps most"),
        ("report", "output-norm (unit: norm)"),
        ("import", "output-norm: echo"),
    ],
)
def test_it_is_listed_and_reported(results, command, line):
    assert line in results[command][1]


def test_its_options_are_checked(results):
    code, _, err = results["wrong option"]
    assert code == 2 and "'colour' is not an option of output-norm; it has seeds, items, power." in err


def test_a_fitted_method_has_roles(folder, results):
    atlas = open_atlas(folder / "fitted")
    assert atlas.tasks == ["echo"] and atlas.methods("echo") == ["short-gating"]
    assert atlas.seeds("echo") == [0, 1] and atlas.effect_maps == []
    resolved = atlas.run("echo").settings["resolved"]
    assert [resolved[stage]["updates"] for stage in ("free", "pressed")] == [6, 3]
    assert atlas.trajectory("echo", "remove")["update"].values[-1] == 3
    assert "Always" in results["fit"][1] and "--kind" not in results["fit"][1]
    (task,) = json.loads(results["fit, as JSON"][1])["tasks"]
    assert task["seeds"] == 2 and "updates" not in {doubt["key"] for doubt in task["doubts"]}
    (card,) = json.loads(results["head of fitted"][1])["tasks"]
    assert card["task"] == "echo"
    assert {line["method"] for line in json.loads(results["table of fitted"][1])} == {"short-gating"}
    assert "Short gating: objective bounded, 6 + 3 updates" in results["report of fitted"][1]
    assert "Short gating" in json.dumps(payload_of([atlas]))


def test_a_fitted_method_is_not_validated(results):
    code, _, err = results["validate fitted"]
    assert code == 2 and "echo: fitted by short-gating, and only gates of the method gating" in err


def test_a_fitted_method_without_roles(results):
    """Its gates are kept; what needs G+ and G- says so."""
    assert "echo: fitted by free-gating, which has no G+ and G−" in results["fit free"][1]
    assert {line["fit"] for line in json.loads(results["table of free"][1])} == {"free"}
    code, _, err = results["draw free"]
    assert code == 2 and "there is no task to draw" in err


def test_a_fitted_method_beside_gating(folder, results):
    """The gates of a task are those of gating, unless the other method is chosen."""
    atlas = open_atlas(folder / "atlas")
    assert atlas.fitted_methods("echo") == ["gating", "short-gating"]
    assert atlas.methods("echo") == ["gating", "short-gating", "output-norm", *atlas.methods("echo")[3:]]
    assert atlas.run("echo").method == "gating" and ("echo", "short-gating") not in atlas.effect_maps
    chosen = atlas.fitted_by("short-gating")
    assert chosen.run("echo").method == "short-gating"
    assert np.array_equal(chosen.gates("echo"), atlas.gates("echo", "short-gating"))
    assert not np.array_equal(chosen.gates("echo"), atlas.gates("echo"))
    assert atlas.importance("echo", "short-gating").equals(chosen.importance("echo"))
    with pytest.raises(UnknownNameError, match="short-gating"):
        atlas.fitted_by("short-gatin")


def test_validation_compares_it(results):
    (task,) = json.loads(results["validate"][1])["tasks"].values()
    assert "output-norm" in {line["method"] for line in task["methods"]}


def test_figures_and_the_export_are_written(folder, results):
    assert all((folder / f"{name}.png").stat().st_size > 1000 for name in ("norms", "effects", "sufficiency"))
    heads = (folder / "heads").read_text().splitlines()
    assert str(len(heads)) in results["export"][1]


def test_options_of_its_figure_are_checked(results):
    code, _, err = results["wrong option of a figure"]
    assert code == 2 and "'colour' is not an option of the figure norms; it has none." in err


@pytest.mark.usefixtures("results")
def test_its_table_comes_back(folder):
    atlas, again = open_atlas(folder / "atlas"), open_atlas(folder / "imported")
    assert again.run("echo", "output-norm").unit == "norm"
    np.testing.assert_array_equal(
        again.importance("echo", "output-norm"), atlas.importance("echo", "output-norm")
    )


@pytest.mark.usefixtures("results")
def test_its_atlas_opens_without_it(folder):
    atlas = open_atlas(folder / "atlas")
    effects = atlas.effects("echo", "output-norm")["effect"].values
    assert (effects > 0).all() and effects.shape == (1, *atlas.spec.shape)
    run = atlas.run("echo", "output-norm")
    assert run.about == {"label": "Output norm", "unit": "norm", "summary": "mean norm of a head's output"}
    assert run.settings["decides"]["power"] == 1
    assert "output-norm" in atlas.methods("echo")
    table = atlas.to_table()
    assert np.allclose(sorted(table.loc[table["method"] == "output-norm", "value"]), sorted(effects.ravel()))
    (effect,) = [one for one in atlas.card("L0H0").effects if one.method == "output-norm"]
    assert effect.effect == pytest.approx(float(effects[0, 0, 0]))
    draw_figure(atlas, "effects")
    draw_figure(atlas, "sufficiency")
    with pytest.raises(UnknownNameError, match="norms"):
        draw_figure(atlas, "norms")
    page = write_page(atlas, folder / "page.html")
    assert "output-norm" in Path(page or folder / "page.html").read_text(encoding="utf-8")


def test_the_examples_of_the_docs_work(folder, tmp_path):
    """The code blocks of docs/extending.md as a package, and its commands."""
    text = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)
    files = {}
    for language, content in blocks:
        if language in ("python", "toml"):
            files[content.splitlines()[0].removeprefix("# ")] = content
    build = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    files["pyproject.toml"] += build
    for name, content in {**files, "my_heads/__init__.py": ""}.items():
        path = tmp_path / "package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    write_task(tmp_path / "my_task.jsonl")
    (commands,) = [content.splitlines() for language, content in blocks if language == "sh"]
    quick = ["--seeds", "1", "--updates", "3", "--batch", "4"]
    words = {line: line.replace("MODEL", str(folder / "model")).split()[1:] for line in commands}
    words = {
        line: [*each, *quick * (each[0] == "map" and "--method" not in each)] for line, each in words.items()
    }
    assert len(files) == 4 and len(words) == 6
    for line, (code, out, err) in run_with(tmp_path / "package", tmp_path, words).items():
        assert code == 0 and "Warning" not in err, (line, out, err)
    assert (tmp_path / "atlas" / "output-norms-color-red.png").is_file()
    assert (tmp_path / "heads.txt").read_text().startswith("L")
    about = open_atlas(tmp_path / "atlas").run("my_task", "output-norm").about
    assert about["unit"] == "norm"
