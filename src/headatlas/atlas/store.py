"""The atlas folder: opened by one writer at a time, read by anyone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from headatlas.atlas.differing import difference
from headatlas.atlas.layout import (
    ATLAS,
    LOCK,
    RESUME,
    SCHEMA,
    drafts,
    effect_path,
    fit_path,
    note_names,
    note_path,
    score_path,
    work_path,
    write_whole,
    writing,
)
from headatlas.atlas.record import EffectMap, Fit, ItemEffects, Run, ScoreMap
from headatlas.atlas.schema import NOTES, require_arrays, require_form, require_names
from headatlas.core import AtlasError, ModelSpec, StoreError, parse_json, require_path

__all__ = ["Store", "is_sound_file", "locked"]

_ARRAYS = ("logits", "path", "path_updates", "losses")


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
                f"{root} is no atlas: it has no {ATLAS}. 'headatlas map' or 'relations' makes one."
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
                raise AtlasError(f"{folder} is a file; an atlas is a folder: choose another --out.")
        if there:
            cls.open(root)
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
            for draft in drafts(root):
                draft.unlink(missing_ok=True)
            yield store

    def require_same_model(self, spec: ModelSpec) -> None:
        """The same weights, in whatever dtype: each run says its own."""
        if self.spec.has_same_weights(spec):
            return
        for one in (self.spec, spec):
            if one.content_hash is None:
                raise AtlasError(
                    f"{self.root} cannot be continued: the weights of {one.name} could not be read, so "
                    "nothing shows that both are the same model; choose a new --out."
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
        text = json.dumps(data, indent=1, ensure_ascii=False)

        def write(draft: Path) -> None:
            draft.write_text(text, encoding="utf-8")

        write_whole(self.root / ATLAS, write, RESUME)

    def add(self, *runs: Run) -> list[Run]:
        """Enter runs, or find the same ones. If one of them was made otherwise, all are refused; one of
        which nothing has come yet is replaced."""
        entered: list[Run] = []
        for run in runs:
            known = self.runs.get((run.method, run.task))
            if known is None or (known.identity != run.identity and not self._has_come(known)):
                entered.append(run)
            elif known.identity != run.identity:
                raise AtlasError(
                    f"{self.root} has {run.task!r} already, made with {difference(known, run)}; "
                    "choose another --out or ask for the same."
                )
            else:
                more = _seeds(run) > _seeds(known)
                entered.append(replace(known, settings=run.settings) if more else known)
        changed = [run for run in entered if self.runs.get((run.method, run.task)) != run]
        self.runs.update({(run.method, run.task): run for run in entered})
        if changed:
            self.save()
        return entered

    def _has_come(self, run: Run) -> bool:
        """Is there a fit of this run, finished or in progress?"""
        like = work_path(self.root, run.method, run.task, "stage")
        own = like.stem.rpartition("-")[0]  # a stage has no dash in it
        begun = {path.stem.rpartition("-")[0] for path in like.parent.glob("*.safetensors")}
        scored = score_path(self.root, run.method, run.task).exists() or self.measured(run)
        return bool(scored) or bool(self.finished(run)) or own in begun

    def update(self, run: Run, **changes: Any) -> Run:
        """Change what is said about a run (its baseline)."""
        changed = replace(self.runs[run.method, run.task], **changes)
        self.runs[run.method, run.task] = changed
        self.save()
        return changed

    # fits

    def finished(self, run: Run) -> set[tuple[int, str]]:
        """(seed, fit) of every finished fit of a run."""
        folder = fit_path(self.root, run.method, run.task, 0, "free").parent
        names = [path.stem.partition("-") for path in folder.glob("*.safetensors")]
        return {(int(seed), fit) for seed, _, fit in names if seed.isdecimal()}

    def write_fit(self, fit: Fit) -> None:
        path = fit_path(self.root, fit.method, fit.task, fit.seed, fit.fit)
        arrays = {name: np.ascontiguousarray(getattr(fit, name)) for name in _ARRAYS}
        about = {
            "schema": SCHEMA,
            "method": fit.method,
            "task": fit.task,
            "seed": fit.seed,
            "fit": fit.fit,
            "identity": fit.identity,
            "facts": dict(fit.facts),
        }
        _save(path, arrays, about)

    def read_fit(self, run: Run, seed: int, fit: str) -> Fit:
        path = fit_path(self.root, run.method, run.task, seed, fit)
        arrays, about = _load(path, "run the map again with --resume after deleting it: only it is made anew")
        if (about.get("identity"), about.get("seed"), about.get("fit")) != (run.identity, seed, fit):
            raise AtlasError(f"{path} belongs to another run; delete it and run the map again with --resume.")
        self._require("fit", arrays, about, path)
        values = {name: arrays[name] for name in _ARRAYS}
        return Fit(run.method, run.task, seed, fit, run.identity, **values, facts=about["facts"])

    def _require(
        self, kind: str, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any], path: Path
    ) -> None:
        require_form(kind, about, path)
        require_arrays(kind, arrays, self.spec, path)

    def fits(self, run: Run) -> list[Fit]:
        return [self.read_fit(run, seed, fit) for seed, fit in sorted(self.finished(run))]

    # effects of single heads

    def measured(self, run: Run) -> list[int]:
        """The seeds of a run whose effects are there."""
        folder = effect_path(self.root, run.method, run.task, 0).parent
        return sorted(int(path.stem) for path in folder.glob("*.safetensors") if path.stem.isdecimal())

    def write_effects(self, effects: EffectMap) -> None:
        about = {
            "schema": SCHEMA,
            "method": effects.method,
            "task": effects.task,
            "seed": effects.seed,
            "identity": effects.identity,
            "facts": dict(effects.facts),
        }
        arrays = {name: np.ascontiguousarray(getattr(effects, name)) for name in ("values", "errors")}
        if effects.per_item is not None:
            item = effects.per_item
            arrays |= {"item_values": item.values, "items": item.items, "item_groups": item.groups}
        _save(effect_path(self.root, effects.method, effects.task, effects.seed), arrays, about)

    def read_effects(self, run: Run) -> list[EffectMap]:
        found = []
        for seed in self.measured(run):
            path = effect_path(self.root, run.method, run.task, seed)
            arrays, about = _load(path, "delete it and run the map again with --resume: only it is made anew")
            if (about.get("identity"), about.get("seed")) != (run.identity, seed):
                raise AtlasError(f"{path} belongs to another run; delete it and make it again with --resume.")
            self._require("effects", arrays, about, path)
            values = arrays["values"], arrays["errors"]
            names = ("item_values", "items", "item_groups")
            per_item = ItemEffects(*(arrays[name] for name in names)) if names[0] in arrays else None
            found.append(
                EffectMap(run.method, run.task, seed, run.identity, *values, about["facts"], per_item)
            )
        return found

    # scores of relations, and notes

    def write_scores(self, scores: ScoreMap) -> None:
        about = {
            "schema": SCHEMA,
            "method": scores.method,
            "relation": scores.relation,
            "identity": scores.identity,
            "facts": dict(scores.facts),
        }
        path = score_path(self.root, scores.method, scores.relation)
        arrays = {"values": scores.values}
        if scores.per_seed is not None:
            arrays["per_seed"] = scores.per_seed
        _save(path, {name: np.ascontiguousarray(values) for name, values in arrays.items()}, about)

    def read_scores(self, run: Run) -> ScoreMap | None:
        """The scores of a run; None if they are not there yet."""
        path = score_path(self.root, run.method, run.task)
        if not path.exists():
            return None
        arrays, about = _load(path, "delete it and run 'headatlas relations' again with --resume")
        if (about.get("identity"), about.get("relation")) != (run.identity, run.task):
            raise AtlasError(f"{path} belongs to another run; delete it and make it again with --resume.")
        self._require("scores", arrays, about, path)
        per_seed, facts = arrays.get("per_seed"), about["facts"]
        if isinstance(facts.get("seeds"), int):  # older versions kept their number, and the mean
            facts = {**facts, "seeds": [], "averaged_seeds": facts["seeds"]}
        if per_seed is not None and len(per_seed) != max(1, len(facts.get("seeds", ()))):
            raise AtlasError(f"{path} is damaged: it does not name the seeds of its scores.")
        return ScoreMap(run.method, run.task, run.identity, arrays["values"], facts, per_seed)

    def write_note(self, name: str, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
        """What is known of all heads together; `name` is a plain word."""
        _save(note_path(self.root, name), dict(arrays), {"schema": SCHEMA, **about})

    def read_note(self, name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        path = note_path(self.root, name)
        if not path.exists():
            return None
        arrays, about = _load(path, "delete it and make it again")
        kind = "validation" if name.startswith("validation-") else name
        self._require(kind if kind in NOTES else "note", arrays, about, path)
        return arrays, about

    def drop_note(self, name: str) -> None:
        path = note_path(self.root, name)
        with writing(path, RESUME):
            path.unlink(missing_ok=True)

    def notes(self) -> dict[str, tuple[dict[str, np.ndarray], dict[str, Any]]]:
        """All notes."""
        found = {name: self.read_note(name) for name in note_names(self.root)}
        return {name: note for name, note in found.items() if note is not None}

    # work in progress

    def write_work(
        self, run: Run, stage: str, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]
    ) -> None:
        path = work_path(self.root, run.method, run.task, stage)
        _save(path, dict(arrays), {"schema": SCHEMA, "identity": run.identity, **about})

    def read_work(self, run: Run, stage: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """What was in progress; None if nothing is, or if it is of no use (it is only time that is lost)."""
        path = work_path(self.root, run.method, run.task, stage)
        if not path.exists():
            return None
        try:
            arrays, about = _load(path, "")
        except AtlasError:
            return None
        fits = about.get("identity") == run.identity and about.get("schema") == SCHEMA
        return (arrays, about) if fits else None

    def drop_work(self, run: Run, stage: str) -> None:
        path = work_path(self.root, run.method, run.task, stage)
        with writing(path, RESUME):
            path.unlink(missing_ok=True)


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """The folder for this process alone."""
    lock = FileLock(root / LOCK, timeout=0)
    with writing(root):
        try:
            lock.acquire()
        except Timeout:
            raise StoreError(
                f"{root} is being written by another headatlas; wait for it or choose another --out."
            ) from None
    try:
        yield
    finally:
        lock.release()


def _seeds(run: Run) -> int:
    return int(run.settings.get("resolved", {}).get("seeds", 0))


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    digest = sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _save(path: Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    text = json.dumps({**about, "digest": _digest(arrays)}, ensure_ascii=False)
    data = save(arrays, metadata={"headatlas": text})  # not into a file: that would leave drafts of its own

    def write(draft: Path) -> None:
        draft.write_bytes(data)

    write_whole(path, write, RESUME)


def is_sound_file(path: Path) -> bool:
    """Can it be read, and is all of it there?"""
    try:
        _load(path, "")
    except AtlasError:
        return False
    return True


def _load(path: Path, advice: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    try:
        with safe_open(path, framework="numpy") as file:
            about = parse_json((file.metadata() or {})["headatlas"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except PermissionError as error:
        raise AtlasError(f"{path} cannot be read: {error.strerror}.") from None
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise AtlasError(f"{path} is damaged ({error}); {advice}.") from None
    if not isinstance(about, dict) or about.get("digest") != _digest(arrays):
        raise AtlasError(f"{path} is damaged (its contents do not match their hash); {advice}.")
    return arrays, about
