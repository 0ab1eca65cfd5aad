"""House rules: which room may import which, what is public, what an import costs."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import headatlas

SOURCE = Path(headatlas.__file__).parent

#: room -> rooms that it may import. Data flows task + model -> method -> request -> run -> atlas -> figure.
MAY_IMPORT = {
    "core": set(),
    "model": {"core"},
    "task": {"core"},
    "method": {"core", "model", "task"},
    "request": {"core", "model", "task", "method", "atlas"},
    "run": {"core", "model", "task", "method", "atlas", "request"},
    "atlas": {"core"},
    "figure": {"core", "atlas"},
    "page": {"core", "atlas"},
    "export": {"core", "model", "task", "method", "request", "run", "atlas"},
    "cli": {"core", "figure", "page"},  # and the public names of the package
}
#: imports against that order, inside functions: what an atlas and a card show in a notebook, and the aliases
#: imports against that order, inside functions: what a notebook shows of an atlas, a card and a comparison,
#: the figures of `atlas.plot`, and the aliases and units of methods
UPWARD = {
    "atlas/atlas.py": "headatlas.page.notebook",
    "atlas/head_card.py": "headatlas.page.notebook",
    "atlas/comparison.py": "headatlas.page.notebook",
    "atlas/plots.py": "headatlas.figure",
    "atlas/method_names.py": "headatlas.method.method",
}
#: rooms in which torch and what brings torch with it may not be imported
WITHOUT_TORCH = {"core", "task", "request", "atlas", "figure", "page", "cli"}
TORCH = {"torch", "transformers", "safetensors.torch", "accelerate"}


def rooms() -> list[str]:
    return sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name[0] not in "._")


def imports(path: Path) -> set[str]:
    """Full names of all modules that a file imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def breaches(room: str, files: dict[str, set[str]]) -> list[str]:
    allowed = MAY_IMPORT[room] | {room}
    wrong = []
    for name, modules in files.items():
        for module in modules:
            parts = module.split(".")
            if parts[0] == "headatlas" and len(parts) > 1 and parts[1] in MAY_IMPORT:
                if parts[1] not in allowed and not module.startswith(UPWARD.get(name, "-")):
                    wrong.append(f"{name} imports {module}")
            if room in WITHOUT_TORCH and (parts[0] in TORCH or module in TORCH):
                wrong.append(f"{name} imports {module}")
    return wrong


@pytest.mark.parametrize("room", rooms())
def test_rooms_import_only_what_they_may(room):
    assert room in MAY_IMPORT, f"say in MAY_IMPORT what {room} may import"
    files = {str(path.relative_to(SOURCE)): imports(path) for path in (SOURCE / room).rglob("*.py")}
    assert files
    assert breaches(room, files) == []


def test_a_breach_is_seen():
    assert breaches("core", {"x.py": {"headatlas.model"}}) == ["x.py imports headatlas.model"]
    assert breaches("atlas", {"x.py": {"torch.nn"}}) == ["x.py imports torch.nn"]
    assert breaches("model", {"x.py": {"headatlas.core", "torch"}}) == []


def test_file_names_are_unique():
    """Outside the commands, which are named after what they do."""
    paths = [path for path in SOURCE.rglob("*.py") if path.parent.name != "cli" and path.stem[0] != "_"]
    counts = Counter(path.name for path in paths)
    assert {name for name, count in counts.items() if count > 1} == set()


def torch_free() -> list[str]:
    """Modules that an atlas, a request or a list of what there is needs."""
    rooms = ("core", "request", "task", "atlas", "figure", "page", "export", "method")
    computing = ("headatlas.method.engine", "headatlas.method.relation", "headatlas.export.engine")
    return [
        name
        for name in modules()
        if name.partition(".")[2].split(".")[0] in rooms
        and not name.startswith(tuple(f"{each}." for each in computing))
    ]


def test_these_modules_load_no_torch():
    names = torch_free()
    assert {"headatlas.request.map_request", "headatlas.method.gating", "headatlas.export.checkpoint"} <= set(
        names
    )
    code = (
        f"import importlib, sys\nfor name in {names}:\n    importlib.import_module(name)\n"
        "    assert 'torch' not in sys.modules, name\nprint('done')"
    )
    assert run_python(code) == "done\n"


WRONG_REQUESTS = [
    ["map", "smollm2", "--task", "nosuch"],
    ["map", "smollm2", "--task", "math", "--preset", "nope"],
    ["map", "smollm2", "--task", "math", "--seeds", "0"],
    ["map", "smollm2", "--task", "math", "--items", "3"],
    ["map", "smollm2", "--task", "math", "--method", "nope"],
    ["map", "smollm2", "--task", "math", "--option", "x=1"],
    ["relations", "smollm2", "--relation", "nope"],
    ["contrast", "smollm2", "--retain", "math", "--forget", "math"],
    ["validate", "no-such-folder"],
    ["export", "no-such-folder", "--out", "x"],
]


def test_a_wrong_request_is_rejected_without_torch():
    """Loading torch would take seconds."""
    code = (
        "import sys\nfrom headatlas.cli import main\n"
        f"for words in {WRONG_REQUESTS}:\n"
        "    sys.argv = ['headatlas', *words]\n"
        "    try:\n        main()\n    except SystemExit as end:\n        assert end.code == 2, words\n"
        "    else:\n        assert False, words\n"
        "    assert 'torch' not in sys.modules, words\nprint('done')"
    )
    assert run_python(code) == "done\n"


def test_no_room_for_leftovers():
    assert not {"utils", "helpers", "misc", "common"} & {path.stem for path in SOURCE.rglob("*")}


def modules() -> list[str]:
    names = []
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        names.append(".".join(parts).removesuffix(".__init__"))
    return sorted(set(names) - {"headatlas.__main__", "headatlas._version"})


@pytest.mark.parametrize("name", modules())
def test_public_names_are_complete_and_sorted(name):
    module = importlib.import_module(name)
    exported = module.__all__
    # sorted as ruff does it: CONSTANTS, Classes, functions
    assert exported == sorted(exported, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    assert len(set(exported)) == len(exported)
    for public in exported:
        assert getattr(module, public) is not None
    defined = {
        key
        for key, value in vars(module).items()
        if not key.startswith("_") and getattr(value, "__module__", None) == name
    }
    internal = {"headatlas.cli", "headatlas.model"}
    if not any(name.startswith(room + ".") for room in internal):
        assert defined <= set(exported), f"{name}: public but not in __all__: {defined - set(exported)}"


def test_the_shelf_shows_every_public_room_name():
    for name in headatlas.__all__:
        assert getattr(headatlas, name) is not None
    assert sorted(dir(headatlas)) == sorted(headatlas.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = headatlas.nonsense


@pytest.mark.parametrize("room", rooms())
def test_no_public_name_is_that_of_a_module(room):
    """Of a room that loads its names on first use, importing the module would put it in place of the name."""
    package = importlib.import_module(f"headatlas.{room}")
    modules_of_room = {module.name for module in pkgutil.iter_modules(package.__path__)}
    if "__getattr__" in vars(package):
        assert not modules_of_room & set(package.__all__)


def run_python(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout


def test_import_brings_no_heavy_library():
    loaded = set(run_python("import headatlas, sys; print(*sys.modules)").split())
    heavy = {"torch", "transformers", "numpy", "pandas", "xarray", "matplotlib", "scipy", "rich", "typer"}
    assert "headatlas" in loaded
    assert heavy & loaded == set()


def test_import_costs_under_half_a_second_of_computing():
    """Processor time, which a busy machine does not stretch, above that of a bare interpreter."""
    code = "import os{}; t = os.times(); print(t.user + t.system)"
    bare = min(float(run_python(code.format(""))) for _ in range(3))
    with_us = min(float(run_python(code.format(", headatlas"))) for _ in range(3))
    assert with_us - bare < 0.5


@pytest.mark.parametrize("arguments", [["--help"], ["list", "models"]])
def test_the_command_line_needs_no_torch_for(arguments):
    code = (
        f"import sys; sys.argv = ['headatlas', *{arguments}]\n"
        "from headatlas.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print('torch' in sys.modules)"
    )
    assert run_python(code).split()[-1] == "False"


@pytest.mark.parametrize("module", ["", ".embedded", ".locate"])
def test_a_model_is_located_without_torch(module):
    assert run_python(f"import sys, headatlas.model{module}; print('torch' in sys.modules)") == "False\n"


def test_this_suite_never_reaches_a_hub():
    assert os.environ["HF_HUB_OFFLINE"] == "1"
