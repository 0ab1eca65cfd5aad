"""Odd files of every kind: each gives a result or one sentence; nothing else is left behind, nothing is run.

Every kind of file is accepted as it is, so that changed ones reach its parser. Then it is changed by chance:
bytes at any place, values at any place of its structure, and arrays; and used as the commands would.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save

from headatlas import HeadatlasError, load_relation, load_task, open_atlas
from headatlas.atlas import EffectMap, Run, ScoreMap, Store, find, import_table, pack_atlas, unpack_atlas
from headatlas.export import ExportRequest
from headatlas.page.html import page_of
from headatlas.page.payload import payload_of
from headatlas.request import ContrastRequest, MapRequest, RelationsRequest, ValidateRequest
from headatlas.request.origin import recorded_model
from support.atlases import fit_of, spec_of

pytestmark = pytest.mark.slow

ODD = [
    None, True, 0, -1, 20_000, 99_999, 1e308, 10**30, float("nan"), "", "x", "\x00", "é\u202e", "a" * 5000,
    [], [1], {}, {"a": 1}, [[[]]], "../../etc/passwd", "1e999", [None],
]  # fmt: skip
PWNED = "pwned-by-a-file"
#: YAML that makes a folder if code in it is run
HARMFUL = f"!!python/object/apply:os.mkdir [{PWNED}]"
PIECES = [
    b"\x00", b"\xff\xfe", b"{", b"}", b'"', b",", b"\n", b"\r\n", b"[[[[", b"1e999", b"NaN",
    b"\xf0\x9f\x98\x80", b"'", b"\t", b": &a *a", b"- ", b"null", b"{{", b"}}", b"%", b"\\u0000",
    b"\xed\xa0\x80", b"&a [*a, *a]",
    HARMFUL.encode(),
]  # fmt: skip
LINES = [{"prompt": f"Q {n} is", "target": f" {n * 3}", "c": n} for n in range(30)]
JSONL = "\n".join(map(json.dumps, LINES)).encode()
FRAME = pd.DataFrame(LINES)
TASK = b"""name: mine
source: {file: data.jsonl}
prompt: '{prompt}'
target: '{target}'
test: 0.2
examples: 2
"""
RELATION = {"name": "x", "category": "knowledge", "pairs": [[f"w{n}", f"v{n}"] for n in range(40)]}
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))
HARD = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=EXAMPLES == 60
)
#: files that are read in a millisecond
EASY = settings(HARD, max_examples=3 * EXAMPLES)
chances = st.integers(0, 2**32).map(random.Random)


def changed_bytes(chance: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        place = chance.randint(0, len(found))
        way = chance.randint(0, 5)
        if way == 0:
            found[place:place] = chance.choice(PIECES)
        elif way == 1:
            del found[place : place + chance.randint(1, 30)]
        elif way == 2 and place < len(found):
            found[place] = chance.randint(0, 255)
        elif way == 3:
            del found[place:]
        elif way == 4:
            found[place:place] = found[: chance.randint(0, 60)]
        elif len(found) < 100_000:
            found = found + found
    return bytes(found)


def places(value, path=()):
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, key))


def changed_values(chance: random.Random, value):
    for _ in range(chance.randint(1, 2)):
        path = chance.choice(list(places(value)))
        new = json.loads(json.dumps(chance.choice(ODD)))
        if not path:
            return new
        *way, last = path
        inner = value
        for key in way:
            inner = inner[key]
        if chance.random() < 0.25:
            del inner[last]
        else:
            inner[last] = new
    return value


def tried(work) -> str:
    """What was said, if anything: one line."""

    def late(*_):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(120)
    try:
        work()
    except HeadatlasError as error:
        said = str(error)
    else:
        return ""
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert said and "\n" not in said
    return said


@pytest.fixture(autouse=True)
def _nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.rglob(PWNED))


def test_code_in_a_task_is_not_run(tmp_path):
    """The text does harm where it is believed; here it is refused."""
    yaml.unsafe_load(HARMFUL)
    (tmp_path / PWNED).rmdir()
    for name, value in (("name", HARMFUL), ("source", HARMFUL), ("instruction", f"[{HARMFUL}]")):
        lines = [line for line in TASK.decode().splitlines() if not line.startswith(name)]
        (tmp_path / "task.yaml").write_text("\n".join([*lines, f"{name}: {value}"]))
        with pytest.raises(HeadatlasError):
            load_task(tmp_path / "task.yaml")


def accepted(work) -> None:
    assert tried(work) == ""


#: kind -> what load_task is given, and the file
TASKS = {
    "jsonl": ("task.jsonl", JSONL),
    "csv": ("task.csv", FRAME.to_csv(index=False).encode()),
    "parquet": ("task.parquet", FRAME.to_parquet()),
    "yaml": ("task.yaml", TASK),
    "odd ending": ("task.txt?format=csv", FRAME.to_csv(index=False).encode()),
    "relation": ("relation:task.json", json.dumps(RELATION).encode()),
}


@pytest.mark.parametrize("kind", TASKS)
def test_tasks(tmp_path, kind):
    given_name, good = TASKS[kind]
    file = tmp_path / given_name.removeprefix("relation:").partition("?")[0]
    (tmp_path / "data.jsonl").write_bytes(JSONL)

    def read():
        task = load_task(given_name)
        task.require_readable()
        assert len(task.items().train)

    file.write_bytes(good)
    accepted(read)

    @given(chance=chances)
    @EASY
    def changed(chance):
        file.write_bytes(changed_bytes(chance, good))
        tried(read)

    changed()


RELATION_CSV = "\n".join(["source,target", *(",".join(pair) for pair in RELATION["pairs"])]).encode()
RELATION_JSON = json.dumps(RELATION).encode()


def other_relation(chance: random.Random, _: bytes) -> bytes:
    return json.dumps(changed_values(chance, json.loads(RELATION_JSON))).encode()


@pytest.mark.parametrize(
    ("name", "good", "change"),
    [
        ("relation.csv", RELATION_CSV, changed_bytes),
        ("relation.json", RELATION_JSON, changed_bytes),
        ("relation.json", RELATION_JSON, other_relation),
    ],
    ids=["csv", "json", "values"],
)
def test_relations(tmp_path, name, good, change):
    file = tmp_path / name
    file.write_bytes(good)
    accepted(lambda: load_relation(str(file)))

    @given(chance=chances)
    @EASY
    def changed(chance):
        file.write_bytes(change(chance, good))
        tried(lambda: load_relation(str(file)))

    changed()


@pytest.mark.parametrize("kind", ["task", "relation"])
def test_tables(tmp_path, kind):
    heads = [(layer, head) for layer in range(3) for head in range(4)]
    lines = [{"model": "m", kind: "a", "layer": at, "head": on, "score": at * on / 7} for at, on in heads]
    good = pd.DataFrame(lines).to_csv(index=False).encode()
    file, out = tmp_path / "table.csv", tmp_path / "atlas"
    file.write_bytes(good)
    accepted(lambda: import_table(file, tmp_path / "accepted"))

    @given(chance=chances)
    @EASY
    def changed(chance):
        file.write_bytes(changed_bytes(chance, good))
        shutil.rmtree(out, ignore_errors=True)
        if tried(lambda: import_table(file, out)):
            assert not (out / "atlas.json").exists()
        else:
            open_atlas(out).to_table()

    changed()


@pytest.fixture(scope="module")
def atlas(tmp_path_factory):
    """A folder that has a bit of everything."""
    root, spec, draw = tmp_path_factory.mktemp("whole") / "atlas", spec_of(3, 2), np.random.default_rng(0)
    stages = {"free": {"updates": 5}, "pressed": {"updates": 5}}
    said = {"given": {"preset": "quick"}, "decides": {"dtype": "float32", "weights": "abc"}}
    said["resolved"] = {"seeds": 2, "batch": 4, "objective": "bounded", **stages}
    plain = {"nll": 3.0, "accuracy": 0.25, "token_accuracy": 0.5, "rows": 7}
    about = {"category": "knowledge", "kind": "static", "pairs": 9, "single": 9, "listed": 9, "k": 10}
    values = draw.uniform(size=(2, 2, 3))
    values[:, 1, 2] = np.nan
    (root.parent / "data.jsonl").write_bytes(JSONL)
    asked = {"model": {"source": "smollm2", "dtype": "float32", "device": "cpu"}, "options": {"seeds": 2}}
    spec_of_task = {**yaml.safe_load(TASK), "name": "sums"}
    task = {"name": "sums", "spec": spec_of_task, "folder": str(root.parent)}
    related = {**RELATION, "name": "capital", "prompt": None, "about": ""}
    with Store.writing(root, spec) as store:
        store.add(
            Run(
                "gating",
                "sums",
                "id",
                {"rows": 5, "spec": {"rows": 5}},
                said,
                plain,
                {"torch": "2"},
                {**asked, "kind": "map", "tasks": [task], "max_tokens": 64},
            ),
            Run(
                "relations",
                "capital",
                "of",
                {"category": "knowledge"},
                {"resolved": {"k": 10}},
                request={**asked, "kind": "relations", "relations": [related], "k": 10},
            ),
            Run("ablate-zero", "sums", "off", {}, {"resolved": {"seeds": 1}}),
        )
        for seed in range(2):
            for fit in ("free", "retain", "remove"):
                store.write(fit_of("sums", seed, fit, draw.uniform(0.01, 0.99, (2, 3)), spec))
        store.write(ScoreMap("relations", "capital", "of", values, about))
        facts = {"items": 4, "nll": 1.0, "whole": 2.0, "sum": 1.0}
        store.write(EffectMap("ablate-zero", "sums", 0, "off", values[0], values[1], facts))
        tokens = {"tokens": np.zeros((2, 3, 2), int), "mapped": np.zeros((2, 3, 2, 2), int)}
        arrays = {**tokens, "strength": np.zeros((2, 3, 2))}
        store.write_note("salient", arrays, {"source": "embedding", "texts": {"0": "a"}})
        store.write_note("source", {}, {"source": "embedding", "because": "said", "agreement": {}})
    use(root)
    for build in (MapRequest.resumed, RelationsRequest.resumed, ValidateRequest.of):
        accepted(lambda build=build: build(root))
    return root


def use(folder: Path) -> None:
    """All that is made of an atlas."""
    atlas = open_atlas(folder)
    atlas.to_table()
    for task in atlas.tasks:
        atlas.summary(task)
    find(atlas)
    page_of(payload_of([atlas]))


def ask_again(folder: Path) -> None:
    """What commands make of the requests in it."""
    atlas = open_atlas(folder)
    recorded_model(atlas)
    resumed = (MapRequest.resumed, ContrastRequest.resumed, RelationsRequest.resumed)
    for build in (*resumed, ValidateRequest.of):
        tried(lambda build=build: build(folder))
    tried(lambda: ExportRequest.of(folder, None, folder / "new", gates="retain"))
    packed = folder.with_suffix(".packed.zip")
    packed.unlink(missing_ok=True)
    pack_atlas(folder, packed)


def contents(file: Path):
    """What a file says of itself, without the hash of its arrays, and the arrays."""
    with safe_open(file, framework="numpy") as opened:
        about = json.loads(opened.metadata()["headatlas"])
        arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    about.pop("digest")
    return about, arrays


def digest(arrays) -> str:
    """The hash that an atlas keeps of the arrays of a file."""
    found = sha256()
    for name in sorted(arrays):
        found.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode() + arrays[name].tobytes())
    return found.hexdigest()


def write_contents(file: Path, about, arrays) -> None:
    arrays = {key: np.ascontiguousarray(value) for key, value in arrays.items()}
    words = {**about, "digest": digest(arrays)} if isinstance(about, dict) else about
    file.write_bytes(save(arrays, metadata={"headatlas": json.dumps(words)}))


def changed_arrays(chance: random.Random, file: Path) -> None:
    """A file whose hash is right and whose contents are not."""
    about, arrays = contents(file)
    if chance.random() < 0.5 or not arrays:
        about = changed_values(chance, about)
    else:
        name = chance.choice(list(arrays))
        here = arrays[name]
        odd = [np.zeros(0), here * 0, here[..., :1], np.zeros((2, 3), np.int8), np.zeros((5, 5)), None]
        new = chance.choice([*odd, here.astype(float) * np.inf])
        arrays = {key: value for key, value in {**arrays, name: new}.items() if value is not None}
    write_contents(file, about, arrays)


@given(chance=chances, kind=st.sampled_from(["words", "words", "bytes", "arrays", "arrays"]))
@HARD
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_atlases(atlas, tmp_path, chance, kind):
    copy = tmp_path / "atlas"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(atlas, copy)
    files = sorted(path for path in copy.rglob("*") if path.suffix in (".json", ".safetensors"))
    file = copy / "atlas.json" if kind == "words" else chance.choice(files)
    if kind == "arrays" and file.suffix == ".safetensors":
        changed_arrays(chance, file)
    elif kind == "bytes":
        file.write_bytes(changed_bytes(chance, file.read_bytes()))
    else:
        file = copy / "atlas.json"
        file.write_text(json.dumps(changed_values(chance, json.loads(file.read_text()))))
    tried(lambda: use(copy))
    tried(lambda: ask_again(copy))


def test_an_atlas_is_accepted_as_it_is(atlas, tmp_path):
    """As a folder (its fixture uses it too), with its arrays written again, and packed."""
    copy = tmp_path / "atlas"
    shutil.copytree(atlas, copy)
    for file in copy.rglob("*.safetensors"):
        about, arrays = contents(file)
        write_contents(file, about, arrays)
    accepted(lambda: use(copy))
    accepted(lambda: use(unpack_atlas(pack_atlas(atlas, tmp_path / "atlas.zip"), tmp_path / "new")))


@given(chance=chances)
@EASY
def test_packed_atlases(atlas, tmp_path, chance):
    """A packed atlas with some bytes that are others, or any bytes at all: all of it or nothing."""
    file, out = tmp_path / "atlas.zip", tmp_path / "new"
    shutil.rmtree(out, ignore_errors=True)
    file.unlink(missing_ok=True)
    if chance.random() < 0.8:
        file.write_bytes(changed_bytes(chance, pack_atlas(atlas, file).read_bytes()))
    else:
        file.write_bytes(chance.choice(PIECES) + b"PK\x03\x04" * chance.randint(0, 2) + chance.randbytes(200))
    if tried(lambda: unpack_atlas(file, out)):
        assert not out.exists()
    else:
        for path in atlas.rglob("*.safetensors"):
            assert (out / path.relative_to(atlas)).read_bytes() == path.read_bytes()
