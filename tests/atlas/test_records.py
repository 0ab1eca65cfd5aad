"""Runs and records: what is written is read again, and only where it belongs."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest

from headatlas import AtlasError, open_atlas
from headatlas.atlas import EffectMap, Fit, Run, ScoreMap, Store, record_path
from headatlas.atlas.record import RECORDS
from support.atlases import fit_of, spec_of

SPEC = spec_of(2, 3)
MAP = np.arange(6, dtype=np.float32).reshape(2, 3)
ITEMS = np.arange(4)
EXAMPLES = [
    fit_of("my task", 0, "retain", np.full((2, 3), 0.5), SPEC),
    EffectMap("ablate-zero", "my task", 3, "id", MAP, MAP, {"items": 4}),
    EffectMap("ablate-zero", "my task", 3, "id", MAP, MAP, {}, np.ones((4, 2, 3)), ITEMS, ITEMS // 2),
    ScoreMap("relations", "my task", "id", np.stack([MAP, MAP]), {"category": "other"}),
    ScoreMap(
        "relations", "my task", "id", np.stack([MAP, MAP]), {"category": "other", "seeds": [0, 1]},
        np.stack([[MAP, MAP]] * 2),
    ),
]  # fmt: skip


@pytest.fixture
def store(tmp_path):
    with Store.writing(tmp_path / "atlas", SPEC) as store:
        yield store


def key_of(record):
    return {name: getattr(record, name) for name in record.KEY}


def entry(record, identity="id"):
    return Run(record.method, "my task", identity)


def path_of(store, record):
    return store.root / record_path(type(record), record.method, "my task", **key_of(record))


@pytest.mark.parametrize("record", EXAMPLES)
def test_there_and_back(store, record):
    (run,) = store.add(entry(record))
    kind, key = type(record), key_of(record)
    assert store.read(kind, run, **key) is None and store.keys(kind, run) == []
    store.write(record)
    again = store.read(kind, run, **key)
    for field in fields(record):
        np.testing.assert_equal(getattr(again, field.name), getattr(record, field.name))
    assert store.keys(kind, run) == [tuple(key.values())] and len(store.read_all(kind, run)) == 1
    assert not any(store.keys(other, run) for other in set(RECORDS) - {kind})
    open_atlas(store.root)


def test_the_paths_of_schema_1():
    paths = [
        record_path(Fit, "gating", "math", seed=2, fit="free"),
        record_path(EffectMap, "mediate", "math", seed=0),
        record_path(ScoreMap, "forced", "plural"),
    ]
    assert [path.as_posix() for path in paths] == [
        "fits/gating/math/2-free.safetensors",
        "effects/mediate/math/0.safetensors",
        "scores/forced/plural.safetensors",
    ]
    with pytest.raises(TypeError, match="named by"):
        record_path(Fit, "gating", "math", seed=2)


@pytest.mark.parametrize("record", EXAMPLES)
def test_a_record_of_another_run_is_refused(store, record):
    store.write(record)
    with pytest.raises(AtlasError, match=r"belongs to another run; delete it .* again with resume=True"):
        store.read(type(record), entry(record, "other"), **key_of(record))


@pytest.mark.parametrize("record", EXAMPLES)
def test_every_array_has_its_shape(store, record):
    (run,) = store.add(entry(record))
    for name in (*record.ARRAYS, *record.OPTIONAL):
        array = getattr(record, name)
        if array is None:
            continue
        for wrong in (array[..., None], array.astype(bool)):
            damaged = {each.name: getattr(record, each.name) for each in fields(record)} | {name: wrong}
            store.write(type(record)(**damaged))
            with pytest.raises(AtlasError, match=f"{name!r} is .*, not that of this model"):
                store.read(type(record), run, **key_of(record))


def test_optional_arrays_are_there_together(store):
    (run,) = store.add(entry(EXAMPLES[1]))
    store.write(EffectMap("ablate-zero", "my task", 3, "id", MAP, MAP, {}, items=ITEMS))
    with pytest.raises(AtlasError, match="it has no 'item_values'"):
        store.read(EffectMap, run, seed=3)


def test_strange_names_are_no_records(store):
    record = EXAMPLES[0]
    (run,) = store.add(entry(record))
    store.write(record)
    path = path_of(store, record)
    for name in ("5", "x-free", ".0-free", "free-0"):
        path.with_name(f"{name}.safetensors").write_bytes(path.read_bytes())
    assert store.keys(Fit, run) == [(0, "retain")] and len(store.read_all(Fit, run)) == 1


def test_a_run_stores_its_request_and_its_method_if_it_has_them(store):
    request, about = {"kind": "map", "options": {"seeds": 3}}, {"label": "Zero ablation", "unit": "nats"}
    store.add(Run("gating", "old", "id"), Run("ablate-zero", "new", "id", request=request, about=about))
    old, new = json.loads((store.root / "atlas.json").read_text())["runs"]
    assert list(old) == ["method", "task", "identity", "task_facts", "settings", "baseline", "made_with"]
    assert (new["request"], new["about"]) == (request, about)
    runs = Store.open(store.root).runs
    assert (runs["ablate-zero", "new"].request, runs["gating", "old"].about) == (request, {})


def test_the_request_of_more_seeds_replaces_that_of_fewer(store):
    def asked(seeds):
        settings = {"resolved": {"seeds": seeds}, "decides": {}}
        return Run("gating", "sums", "id", settings=settings, request={"seeds": seeds})

    for seeds, stored in ((2, 2), (1, 2), (5, 5)):
        (run,) = store.add(asked(seeds))
        assert run.request == {"seeds": stored} and run.settings["resolved"]["seeds"] == stored


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("request", ["map"], "is damaged: runs 0 request"),
        ("about", {"unit": 3}, "is damaged: runs 0 about unit"),
        ("about", {"unit": "\x1b[2J"}, "printable characters only"),
    ],
)
def test_a_damaged_request_or_method_is_refused(store, part, value, words):
    store.add(Run("gating", "sums", "id"))
    path = store.root / "atlas.json"
    data = json.loads(path.read_text())
    data["runs"][0][part] = value
    path.write_text(json.dumps(data))
    with pytest.raises(AtlasError, match=words):
        Store.open(store.root)
