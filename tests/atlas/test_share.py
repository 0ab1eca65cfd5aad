"""Atlases that come from elsewhere: whole, or not at all; and never more than an atlas."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from huggingface_hub import HfApi
from huggingface_hub.utils import filter_repo_objects

from headatlas import AtlasError, RequestError
from headatlas.atlas import Store, download_atlas, open_atlas, pack_atlas, unpack_atlas, upload_atlas
from support.atlases import fit_of, spec_of
from support.cli import assert_refused, headatlas
from support.hub import hub
from support.small_run import same_numbers


@pytest.fixture(scope="module")
def atlas(tmp_path_factory):
    """A folder with two seeds of a task, a draft and work in progress."""
    from headatlas.atlas import Run

    root, spec = tmp_path_factory.mktemp("shared") / "atlas", spec_of(3, 2)
    draw = np.random.default_rng(0)
    with Store.writing(root, spec) as store:
        store.add(Run("gating", "a task, not plain", "id", {}, {"resolved": {"seeds": 2}}, {}, {}))
        for seed in range(2):
            for fit in ("free", "retain", "remove"):
                made = fit_of("a task, not plain", seed, fit, draw.uniform(0.01, 0.99, (2, 3)), spec)
                store.write(made)
        store.write_note("source", {"some": np.arange(3)}, {"source": "embedding"})
    (root / "work").mkdir()
    (root / "work" / "gating-x-free.safetensors").write_bytes(b"in progress")
    (root / "fits" / ".draft.safetensors.12.tmp").write_bytes(b"half")
    return root


def test_there_and_back(atlas, tmp_path):
    file = pack_atlas(atlas, tmp_path / "atlas.zip")
    found = unpack_atlas(file, tmp_path / "new" / "atlas")
    assert same_numbers(atlas, found)
    assert open_atlas(found).notes.keys() == {"source"}
    names = {path.name for path in found.rglob("*") if path.is_file()}
    assert not any(name.startswith(".") for name in names) and not (found / "work").exists()
    assert stat.S_IMODE(found.stat().st_mode) == 0o755
    with pytest.raises(RequestError, match="is there already"):
        pack_atlas(atlas, file)
    with pytest.raises(RequestError, match="is there already"):
        unpack_atlas(file, found)


@pytest.mark.parametrize(
    ("source", "kept"),
    [("/home/me/model", False), ("C:\\models\\mine", False), ("org/model", True), ("smollm2", True)],
)
def test_local_paths_are_not_shared(tmp_path, monkeypatch, source, kept):
    """Neither packed nor uploaded; all else of the request is."""
    from headatlas.atlas import Run

    request = {
        "model": {"source": source, "dtype": "float32"},
        "tasks": [{"name": "mine", "spec": {"name": "mine"}, "folder": "/home/me/tasks"}],
    }
    root, seen = tmp_path / "atlas", {}
    with Store.writing(root, spec_of(1)) as store:
        store.add(Run("gating", "mine", "id", request=request))
    shared = [unpack_atlas(pack_atlas(root, tmp_path / "atlas.zip"), tmp_path / "unpacked")]

    def upload(self, *, folder_path, **_):
        shutil.copytree(folder_path, tmp_path / "uploaded")
        seen["uploaded"] = True

    monkeypatch.setattr(HfApi, "create_repo", lambda *_, **__: SimpleNamespace(repo_id="me/atlas"))
    monkeypatch.setattr(HfApi, "repo_info", lambda *_, **__: SimpleNamespace(private=True))
    monkeypatch.setattr(HfApi, "upload_folder", upload)
    upload_atlas(root, "me/atlas")
    shared.append(tmp_path / "uploaded")
    assert seen["uploaded"] and "/home/me/tasks" in (root / "atlas.json").read_text()
    for folder in shared:
        (run,) = Store.open(folder).runs.values()
        assert run.request["model"] == {"dtype": "float32", **({"source": source} if kept else {})}
        assert run.request["tasks"] == [{"name": "mine", "spec": {"name": "mine"}}]
        assert "/home/me" not in (folder / "atlas.json").read_text()


def test_no_file_of_a_shared_atlas_has_a_local_path(tmp_path):
    """Neither runs nor notes nor what a record says of itself; identities, names and numbers stay."""
    from headatlas.atlas import EffectMap, Run

    home, root, spec = "/home/me/my things", tmp_path / "atlas", spec_of(2)
    task = {"name": "mine", "prompt": "/no_think {a}", "source": {"file": f"{home}/words.jsonl"}}
    request = {
        "kind": "validate",
        "model": {"source": f"{home}/model"},
        "tasks": [{"name": "mine", "spec": task}],
    }
    parts = {side: {"task": side, "spec": task} for side in ("retain", "forget")}
    given = {
        "given": {"table": f"{home}/table.csv"},
        "decides": {"dtype": "float32", "table": f"{home}/table.csv"},
    }
    facts = {
        "items": 4,
        "nll": 1.0,
        "because": "as /home/me/x.json says",
        "made_with": {"device": "/home/me/gpu"},
    }
    with Store.writing(root, replace(spec, name=f"{home}/model")) as store:
        store.add(
            Run("ablate-zero", "mine", "id", {"spec": task}, given, request=request),
            Run("contrast", "retain without forget", "other", {"parts": parts}, request=request),
        )
        store.write(EffectMap("ablate-zero", "mine", 0, "id", np.ones((1, 2)), np.ones((1, 2)), facts))
        store.write_note("source", {}, {"source": "embedding", "because": "~/me/x", "request": request})
    file = pack_atlas(root, tmp_path / "atlas.zip")
    found = open_atlas(unpack_atlas(file, tmp_path / "unpacked"))
    with zipfile.ZipFile(file) as packed:
        text = b"".join(packed.read(name) for name in packed.namelist())
    assert all(word not in text for word in (b"/home", b"my things", b"~/"))
    run = found.run("mine", "ablate-zero")
    assert run.identity == "id" and found.spec.name == "model"
    assert run.task_facts["spec"] == {**task, "source": {"file": "words.jsonl"}}
    assert run.request["tasks"] == [{"name": "mine", "spec": run.task_facts["spec"]}]
    assert run.decides["table"] == "table.csv" and run.request["model"] == {}
    assert found.notes["source"][1]["request"] == run.request
    assert found.effect("mine", "ablate-zero", 0).values.tolist() == [[1, 1]]


def test_links_are_not_packed(atlas, tmp_path):
    copy, secret = tmp_path / "atlas", tmp_path / "secret"
    shutil.copytree(atlas, copy)
    secret.write_text("mine")
    (copy / "notes" / "mine.safetensors").symlink_to(secret)
    with pytest.raises(AtlasError):
        pack_atlas(copy, tmp_path / "atlas.zip")
    assert not (tmp_path / "atlas.zip").exists()


def member(name, mode=stat.S_IFREG | 0o644):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


@pytest.mark.parametrize(
    ("name", "mode", "data"),
    [
        ("../outside.safetensors", stat.S_IFREG, b"x"),
        ("notes/../../outside.safetensors", stat.S_IFREG, b"x"),
        ("/outside.safetensors", stat.S_IFREG, b"x"),
        ("notes//outside.safetensors", stat.S_IFREG, b"x"),
        ("C:/outside.safetensors", stat.S_IFREG, b"x"),
        ("notes\\..\\outside.safetensors", stat.S_IFREG, b"x"),
        ("sitecustomize.py", stat.S_IFREG, b"raise SystemExit"),
        ("notes/run.pkl", stat.S_IFREG, b"x"),
        ("notes/.hidden.safetensors", stat.S_IFREG, b"x"),
        ("notes/link.safetensors", stat.S_IFLNK, b"/etc/passwd"),
        ("notes/pipe.safetensors", stat.S_IFIFO, b""),
        ("notes/bomb.safetensors", stat.S_IFREG, bytes(50_000_000)),
        ("notes/source.safetensors", stat.S_IFREG, b"twice"),
        ("notes/nothing.safetensors", stat.S_IFREG, b"no such file"),
        ("scores/anything/evil.safetensors", stat.S_IFREG, b"#!/bin/sh"),
        ("fits/gating/unknown/0-free.safetensors", stat.S_IFREG, b"x"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_no_part_of_an_atlas_is_refused_whole(atlas, tmp_path, name, mode, data):
    file = pack_atlas(atlas, tmp_path / "atlas.zip")
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(member(name, mode | 0o644), data, compress_type=zipfile.ZIP_DEFLATED)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(AtlasError) as caught:
        unpack_atlas(file, tmp_path / "folder" / "atlas")
    assert "\n" not in str(caught.value) and str(file) in str(caught.value)
    assert "bomb" not in name or "too densely" in str(caught.value)
    assert sorted(path for path in tmp_path.rglob("*") if path.name != "folder") == before


def test_equal_atlases_are_equal_files(atlas, tmp_path):
    """Also on a machine whose clock was in 1970."""
    one = pack_atlas(atlas, tmp_path / "one.zip").read_bytes()
    shutil.copytree(atlas, tmp_path / "atlas")
    for path in (tmp_path / "atlas").rglob("*"):
        os.utime(path, (1, 1))
    assert pack_atlas(tmp_path / "atlas", tmp_path / "two.zip").read_bytes() == one


@pytest.mark.process
def test_without_a_network(atlas, tmp_path):
    """A sentence, not a defect."""
    env = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0", "HF_TOKEN": "hf_none"}
    env |= {"HF_HOME": str(tmp_path / "home")}
    up = headatlas("share", "upload", atlas, "someone/heads", **env)
    assert_refused(up, "could not be put on the hub as someone/heads", code=1)
    down = headatlas("share", "download", "someone/heads", "--out", tmp_path / "new", **env)
    assert_refused(down, "could not be had from the hub")
    assert not (tmp_path / "new").exists()


def test_a_repository_that_is_too_large_is_not_fetched(atlas, tmp_path, monkeypatch):
    shared = tmp_path / "on the hub"
    shutil.copytree(atlas, shared)
    with hub({"someone/heads": shared}) as (address, requests):
        monkeypatch.setattr("headatlas.atlas.share._LARGEST", 10)
        for module in ("huggingface_hub.constants", "huggingface_hub.hf_api"):
            monkeypatch.setattr(f"{module}.ENDPOINT", address, raising=False)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        with pytest.raises(AtlasError, match="larger than any is"):
            download_atlas("someone/heads", tmp_path / "new")
        assert not any("resolve" in one for one in requests) and requests


def test_damaged_files(atlas, tmp_path):
    file = pack_atlas(atlas, tmp_path / "atlas.zip")
    data, draw = file.read_bytes(), np.random.default_rng(0)
    refused: list[str] = []
    for number in range(60):
        damaged = bytearray(data)
        if number % 2:
            damaged = damaged[: draw.integers(0, len(data))]
        else:
            for place in draw.integers(0, len(data), size=20):
                damaged[place] = draw.integers(0, 256)
        (tmp_path / "bad.zip").write_bytes(damaged)
        try:
            unpack_atlas(tmp_path / "bad.zip", tmp_path / f"new{number}")
        except AtlasError as error:
            refused.append(str(error))
            assert not (tmp_path / f"new{number}").exists()
        else:  # nothing that counts was hit
            assert same_numbers(atlas, tmp_path / f"new{number}")
    assert len(refused) > 30 and not any("\n" in said for said in refused)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.process
def test_from_the_hub(atlas, tmp_path, monkeypatch):
    shared = tmp_path / "on the hub"
    shutil.copytree(atlas, shared)
    (shared / "README.md").write_text("a card")
    (shared / "evil.py").write_text("raise SystemExit")
    with hub({"someone/heads": shared}) as (address, requests):
        env = {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "home")}
        out = tmp_path / "mine"
        said = headatlas("share", "download", "someone/heads", "--out", out, **env)
        assert said.returncode == 0, said.stderr
        assert same_numbers(atlas, out)
        assert not (out / "evil.py").exists() and not any("evil" in one for one in requests)
        assert {path.name for path in out.iterdir()} == {"atlas.json", "fits", "notes"}
        other = headatlas("share", "download", "someone/nothing", "--out", tmp_path / "other", **env)
        assert_refused(other, "someone/nothing could not be had from the hub")
        strange = headatlas("share", "download", "no such/name/at all", "--out", tmp_path / "other", **env)
        assert_refused(strange, "is no name of a repository")
        assert not (tmp_path / "other").exists()


def test_to_the_hub(atlas, monkeypatch):
    asked, sent, sees = {}, [], {"private": True}

    def create(self, repo, **how):
        asked.update(how, repo=repo)
        return type("Address", (str,), {"repo_id": repo})(f"hub/{repo}")

    def upload(self, *, folder_path, allow_patterns, **how):
        files = [path for path in folder_path.rglob("*") if path.is_file()]
        names = [path.relative_to(folder_path).as_posix() for path in files]
        sent.extend(filter_repo_objects(names, allow_patterns=allow_patterns))
        asked.update(how)

    monkeypatch.setattr(HfApi, "create_repo", create)
    monkeypatch.setattr(HfApi, "repo_info", lambda self, repo, **how: SimpleNamespace(**sees))
    monkeypatch.setattr(HfApi, "upload_folder", upload)
    assert upload_atlas(atlas, "someone/heads") == "hub/someone/heads"
    assert asked["private"] is True and asked["repo_type"] == "dataset"
    # what an earlier atlas left there goes, and nothing else
    gone = list(filter_repo_objects(["atlas.json", "fits/a/b/1-free.safetensors", "README.md"],
                allow_patterns=asked["delete_patterns"]))  # fmt: skip
    assert gone == ["atlas.json", "fits/a/b/1-free.safetensors"]
    sees["private"] = False
    with pytest.raises(RequestError, match="for all to see"):
        upload_atlas(atlas, "someone/heads")
    assert upload_atlas(atlas, "someone/heads", private=False)
    names = {one for one in sent if "/." not in one}
    assert "atlas.json" in names and len(names) == 8 and not any("work" in one for one in sent)


@pytest.mark.process
def test_an_atlas_is_opened_where_there_is_no_torch(atlas, tmp_path):
    """Packed, moved, unpacked and read by a process that cannot import torch."""
    file = pack_atlas(atlas, tmp_path / "atlas.zip")
    code = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'transformers'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from headatlas.atlas import open_atlas, unpack_atlas\n"
        f"atlas = open_atlas(unpack_atlas({str(file)!r}, {str(tmp_path / 'there')!r}))\n"
        "print(atlas.tasks, len(atlas.to_table()))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("['a task, not plain']")


@pytest.mark.parametrize(
    "request_", ["text", {"model": 5}, {"tasks": [5]}, {"model": {"source": 5}}, {"tasks": {"name": 5}}]
)
def test_a_note_may_hold_any_request(tmp_path, request_):
    about = {"request": request_, "because": "/home/me/x.json says so"}
    with Store.writing(tmp_path / "atlas", spec_of(2)) as store:
        store.write_note("mine", {}, about)
    found = unpack_atlas(pack_atlas(tmp_path / "atlas", tmp_path / "atlas.zip"), tmp_path / "there")
    note = open_atlas(found).notes["mine"][1]
    assert note["request"] == request_ and note["because"] == "x.json says so"
