"""The atlas folder: opened by one writer at a time, read by anyone.

    atlas.json                              what was mapped, how, with which settings
    fits/<method>/<task>/<seed>-<fit>.safetensors    one file per finished fit
    effects/<method>/<task>/<seed>.safetensors       effects of single heads
    scores/<method>/<relation>.safetensors           one file per relation
    notes/<name>.safetensors                         what is known of all heads together (salient tokens, …)
    work/<method>-<task>-<stage>.safetensors         a fit in progress; gone when it is finished
    atlas.lock                              held while a process writes

A file is written under another name, flushed to the disk and renamed. Renaming is all or nothing.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeVar

import numpy as np
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from headatlas.atlas.record import RECORDS, Record, Run, record_folder, record_path
from headatlas.atlas.schema import require_form, require_names, require_note, require_record
from headatlas.core import (
    AtlasError,
    ModelSpec,
    RequestError,
    StoreError,
    difference,
    parse_json,
    require_path,
    slug,
    write_whole,
    writing,
)

__all__ = [
    "ATLAS",
    "LOCK",
    "RESULTS",
    "SCHEMA",
    "Store",
    "changed_words",
    "drop_drafts",
    "is_result",
    "is_sound_file",
    "is_work",
    "locked",
    "note_path",
    "result_files",
    "work_path",
]

#: raised when an older headatlas could no longer read what this one writes
SCHEMA = 1
ATLAS, LOCK = "atlas.json", "atlas.lock"
#: the folders that hold results
RESULTS = (*(kind.FOLDER for kind in RECORDS), "notes")
_RESUME = (
    "What is finished is safe; when this is mended, the same call goes on (with resume=True, if it has one)."
)
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

#: the arrays of a file and the words beside them
Contents = tuple[dict[str, np.ndarray], dict[str, Any]]
_Record = TypeVar("_Record", bound=Record)


class Store:
    """Reads and writes an atlas folder. `Store.open` to read; `Store.writing` to write."""

    def __init__(self, root: Path, spec: ModelSpec, runs: dict[tuple[str, str], Run]) -> None:
        self.root, self.spec, self.runs = root, spec, runs

    @classmethod
    def exists(cls, root: Path) -> bool:
        try:
            return (root / ATLAS).exists()
        except OSError as error:  # a folder above it is closed to this user, or the name is no name
            raise AtlasError(f"{root} cannot be read: {error.strerror or error}.") from None

    @classmethod
    def open(cls, root: str | Path) -> Store:
        """Read `atlas.json`."""
        root = require_path("the folder of an atlas", root)
        try:
            data = parse_json((root / ATLAS).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            if not root.exists():
                raise AtlasError(f"there is no folder {root}.") from None
            raise AtlasError(
                f"{root} is not an atlas: it has no {ATLAS}. map_heads or relate_heads makes one."
            ) from None
        except OSError as error:
            raise AtlasError(f"{root / ATLAS} cannot be read: {error.strerror or error}.") from None
        except ValueError as error:
            reason = str(error) if "nested" in str(error) else "it is not JSON"
            raise AtlasError(f"{root / ATLAS} is damaged: {reason}.") from None
        schema = data.get("schema") if isinstance(data, dict) else None
        if not isinstance(schema, int):
            raise AtlasError(f"{root / ATLAS} was not written by headatlas: it has no schema number.")
        if schema > SCHEMA:
            raise AtlasError(
                f"{root} was written by a newer headatlas (schema {schema}; this one reads up to {SCHEMA}): "
                "install the newer version to open it."
            )
        require_form("atlas", data, root / ATLAS)
        try:
            runs = [Run.from_json(run) for run in data["runs"]]
            spec = ModelSpec.from_json(data["model"])
        except (KeyError, TypeError, ValueError) as error:
            raise AtlasError(f"{root / ATLAS} is damaged: {type(error).__name__} {error}.") from None
        return cls(root, spec, {(run.method, run.task): run for run in runs})

    @classmethod
    def require_writable(cls, root: str | Path) -> None:
        """What can be said before there is anything to write: is this a folder, whole and not in use?"""
        root = Path(root)
        there = cls.exists(root)
        for folder in (root, *root.parents):
            if folder.exists() and not folder.is_dir():
                raise AtlasError(f"{folder} is a file; an atlas is a folder: choose another out=….")
        if there:
            cls.open(root)
        _require_writable_folder(root)
        if there:
            with locked(root):
                pass

    @classmethod
    @contextmanager
    def writing(cls, root: str | Path, spec: ModelSpec | None) -> Iterator[Store]:
        """The folder for writing, created for `spec` if it does not exist. One process at a time.

        None opens an existing atlas whatever its model is, for results that come without a model.
        """
        root = Path(root)
        cls.require_writable(root)
        with writing(root):
            root.mkdir(parents=True, exist_ok=True)
        with locked(root):
            if spec is None or cls.exists(root):
                store = cls.open(root)
                if spec is not None:
                    store.require_same_model(spec)
            else:
                store = cls(root, spec, {})
                store.save()
            drop_drafts(root)
            yield store

    def require_same_model(self, spec: ModelSpec) -> None:
        """The same weights, in whatever dtype: each run says its own."""
        if self.spec.has_same_weights(spec):
            return
        for one in (self.spec, spec):
            if one.content_hash is None:
                raise AtlasError(
                    f"{self.root} cannot be continued: the weights of {one.name} could not be read, so "
                    "nothing shows that both are the same model; choose a new out=…."
                )
        raise AtlasError(f"{self.root} maps {self.spec.name}, whose weights are not those of {spec.name}.")

    def save(self) -> None:
        """Write `atlas.json`."""
        data = {
            "schema": SCHEMA,
            "model": self.spec.to_json(),
            "runs": [run.to_json() for run in self.runs.values()],
        }
        require_names("atlas", data, self.root / ATLAS)
        write_whole(self.root / ATLAS, json.dumps(data, indent=1, ensure_ascii=False), _RESUME)

    def add(self, *runs: Run) -> list[Run]:
        """Enter runs, or find the same ones. If one of them was made otherwise, all are refused; one of
        which nothing has come yet is replaced."""
        entered: list[Run] = []
        for run in runs:
            self._require_same_weights(run)
            known = self.runs.get((run.method, run.task))
            if known is None or (known.identity != run.identity and not self._has_come(known)):
                entered.append(run)
            elif known.identity != run.identity:
                made_with = difference(known.decides, run.decides)
                raise AtlasError(
                    f"{self.root} has {run.task!r} already, made with {made_with}; "
                    "choose another out=… or ask for the same."
                )
            elif not run.requested_seeds <= known.requested_seeds:
                joined = run.with_seeds(run.requested_seeds | known.requested_seeds)
                entered.append(replace(known, settings=joined.settings, request=run.request))
            else:
                entered.append(known)
        changed = [run for run in entered if self.runs.get((run.method, run.task)) != run]
        self.runs.update({(run.method, run.task): run for run in entered})
        if changed:
            self.save()
        return entered

    def _require_same_weights(self, run: Run) -> None:
        """Refuse a run whose weights are not those of the other tasks and methods in the atlas."""
        if "weights" not in run.decides:
            return
        dtype, weights = str(run.decides.get("dtype")), str(run.decides["weights"])
        for known in self.runs.values():
            is_same_run = (known.method, known.task) == (run.method, run.task)  # `add` says what differs
            if not is_same_run and known.has_other_weights(dtype, weights) and self._has_come(known):
                known.require_weights(dtype, weights)

    def _has_come(self, run: Run) -> bool:
        """Is there a record of this run, or work in progress?"""
        begun = {path.stem.rpartition("-")[0] for path in (self.root / "work").glob("*.safetensors")}
        own = work_path(run.method, run.task, "stage").stem.rpartition("-")[0]  # a stage has no dash in it
        return own in begun or any(self.keys(kind, run) for kind in RECORDS)

    def update(self, run: Run, **changes: Any) -> Run:
        """Change what is said about a run (its baseline)."""
        changed = replace(self.runs[run.method, run.task], **changes)
        self.runs[run.method, run.task] = changed
        self.save()
        return changed

    # records

    def keys(self, kind: type[Record], run: Run) -> list[tuple[Any, ...]]:
        """The keys of all records of a run that are there: (seed, fit) of fits, (seed,) of effect maps, () of
        a score map."""
        if not kind.KEY:
            return [()] if (self.root / record_path(kind, run.method, run.task)).exists() else []
        folder = self.root / record_folder(kind, run.method, run.task)
        names = [path.stem.split("-", len(kind.KEY) - 1) for path in folder.glob("*.safetensors")]
        names = [name for name in names if len(name) == len(kind.KEY) and name[0].isdecimal()]
        return sorted((int(seed), *others) for seed, *others in names)

    def write(self, record: Record) -> None:
        """Write a record, in the place of an earlier one of the same run and key."""
        subject = getattr(record, record.SUBJECT)
        key = {name: getattr(record, name) for name in record.KEY}
        about = {"schema": SCHEMA, "method": record.method, record.SUBJECT: subject, **key}
        about |= {"identity": record.identity, "facts": dict(record.facts)}
        arrays = {name: getattr(record, name) for name in (*record.ARRAYS, *record.OPTIONAL)}
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items() if array is not None}
        _save(self.root / record_path(type(record), record.method, subject, **key), arrays, about)

    def read(self, kind: type[_Record], run: Run, **key: Any) -> _Record | None:
        """A record of a run, `read(Fit, run, seed=0, fit="free")`; None if it is not there, an `AtlasError`
        if it is damaged or belongs to another run."""
        path = self.root / record_path(kind, run.method, run.task, **key)
        if (contents := _load(path, kind.REPAIR)) is None:
            return None
        arrays, about = contents
        own = {kind.SUBJECT: run.task, "identity": run.identity, **key}
        if any(about.get(name) != value for name, value in own.items()):
            raise AtlasError(f"{path} belongs to another run; {kind.REPAIR}.")
        require_record(kind, arrays, about, self.spec, path)
        stated = {name: arrays[name] for name in (*kind.ARRAYS, *kind.OPTIONAL) if name in arrays}
        facts = kind.current_facts(about["facts"])
        record = kind(**{"method": run.method, **own, **stated, "facts": facts})
        if damage := record.damage():
            raise AtlasError(f"{path} is damaged: {damage}.")
        return record

    def read_all(self, kind: type[_Record], run: Run) -> list[_Record]:
        """All records of a run, by their keys."""
        keys = [dict(zip(kind.KEY, key, strict=True)) for key in self.keys(kind, run)]
        return [record for key in keys if (record := self.read(kind, run, **key)) is not None]

    # notes: what is known of all heads together

    def write_note(self, name: str, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
        """`name` is a plain word."""
        _save(self.root / note_path(name), dict(arrays), {"schema": SCHEMA, **about})

    def read_note(self, name: str) -> Contents | None:
        """A note; None if it is not there."""
        path = self.root / note_path(name)
        contents = _load(path, "delete it and make it again")
        if contents is not None:
            require_note(name, *contents, self.spec, path)
        return contents

    def drop_note(self, name: str) -> None:
        _drop(self.root / note_path(name))

    def notes(self) -> dict[str, Contents]:
        """All notes."""
        paths = (self.root / "notes").glob("*.safetensors")
        names = sorted(path.stem for path in paths if not path.name.startswith("."))
        return {name: note for name in names if (note := self.read_note(name)) is not None}

    # work in progress

    def write_work(
        self, run: Run, stage: str, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]
    ) -> None:
        _save(self._work(run, stage), dict(arrays), {"schema": SCHEMA, "identity": run.identity, **about})

    def read_work(self, run: Run, stage: str) -> Contents | None:
        """What was in progress; None if nothing is, or if it is of no use (it is only time that is lost)."""
        try:
            work = _load(self._work(run, stage), "")
        except AtlasError:
            return None
        wanted = (run.identity, SCHEMA)
        return work if work and (work[1].get("identity"), work[1].get("schema")) == wanted else None

    def drop_work(self, run: Run, stage: str) -> None:
        _drop(self._work(run, stage))

    def _work(self, run: Run, stage: str) -> Path:
        return self.root / work_path(run.method, run.task, stage)


def work_path(method: str, task: str, stage: str) -> Path:
    """The file, in an atlas, of a stage in progress."""
    return Path("work", f"{method}-{slug(task)}-{stage}.safetensors")


def note_path(name: str) -> Path:
    """The file, in an atlas, of a note."""
    return Path("notes", f"{name}.safetensors")


def is_result(name: str) -> bool:
    """Is this the path, in an atlas folder, of a file that holds results?"""
    top, *others = name.split("/")
    if name == ATLAS:
        return True
    plain = bool(others) and all(_PART.fullmatch(part) for part in others)
    return top in RESULTS and plain and name.endswith(".safetensors")


def result_files(root: Path) -> Iterator[Path]:
    """All files of an atlas folder that hold results; links are refused."""
    for path in sorted(root.rglob("*")):
        if is_result(path.relative_to(root).as_posix()):
            if path.is_symlink() or not path.is_file():
                raise AtlasError(f"{path} is no plain file; an atlas that is shared has no links.")
            yield path


def is_work(name: str) -> bool:
    """Is this the path of work in progress?"""
    top, _, rest = name.partition("/")
    return top == "work" and bool(_PART.fullmatch(rest)) and rest.endswith(".safetensors")


def drop_drafts(root: Path) -> None:
    """Remove what a process that was killed may have left half written: only names that we give."""
    drafts = list(root.glob(f".{ATLAS}.*.tmp"))
    for name in (*RESULTS, "work"):
        drafts += (root / name).rglob(".*.safetensors.*.tmp")
    for draft in drafts:
        if draft.name.split(".")[-2].isdecimal():
            draft.unlink(missing_ok=True)


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """The folder for this process alone."""
    lock = FileLock(root / LOCK, timeout=0)
    with writing(root):
        try:
            lock.acquire()
        except Timeout:
            raise StoreError(
                f"{root} is being written by another headatlas; wait for it or choose another out=…."
            ) from None
    try:
        yield
    finally:
        lock.release()


def _require_writable_folder(root: Path) -> None:
    """Refuse a folder that cannot be written or created. Permission bits do not tell (root, read-only mounts,
    /proc), so this makes a folder and removes it."""
    nearest = next((folder for folder in (root, *root.absolute().parents) if folder.exists()), root)
    try:
        Path(mkdtemp(prefix=".headatlas-", dir=nearest)).rmdir()
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):  # the same request can succeed later
            raise StoreError(f"{root} cannot be written: {reason}. {_RESUME}") from None
        raise RequestError(f"{root} cannot be written: {reason}; choose another out=….") from None


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    digest = sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _save(path: Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    text = json.dumps({**about, "digest": _digest(arrays)}, ensure_ascii=False)
    # not into a file: that would leave drafts of its own
    write_whole(path, save(arrays, metadata={"headatlas": text}), _RESUME)


def _drop(path: Path) -> None:
    with writing(path, _RESUME):
        path.unlink(missing_ok=True)


def changed_words(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """Return the file with its metadata changed."""
    contents = _load(path, "")
    if contents is None:
        raise AtlasError(f"{path} is gone.")
    arrays, about = contents
    changed = change(about)
    if changed == about:
        return path.read_bytes()
    return save(arrays, metadata={"headatlas": json.dumps(changed, ensure_ascii=False)})


def is_sound_file(path: Path) -> bool:
    """Can it be read, and is all of it there?"""
    try:
        return _load(path, "") is not None
    except AtlasError:
        return False


def _load(path: Path, advice: str) -> Contents | None:
    """What is in a file; None if it is not there."""
    try:
        with safe_open(path, framework="numpy") as file:
            about = parse_json((file.metadata() or {})["headatlas"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise AtlasError(f"{path} cannot be read: {error.strerror}.") from None
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise AtlasError(f"{path} is damaged ({error}); {advice}.") from None
    if not isinstance(about, dict) or about.get("digest") != _digest(arrays):
        raise AtlasError(f"{path} is damaged (its contents do not match their hash); {advice}.")
    return arrays, about
