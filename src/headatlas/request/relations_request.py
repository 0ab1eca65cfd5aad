"""A request that scores relations on all heads: `RelationsRequest`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from headatlas.atlas import Atlas, ScoreMap, note_path, open_atlas, record_path
from headatlas.core import ModelRef, UnknownNameError, require_whole
from headatlas.request.origin import model_ref, recorded_model
from headatlas.request.plan import Plan, Step
from headatlas.task import (
    LEAST_PAIRS,
    Relation,
    Relations,
    RelationSource,
    builtin_relations,
    distinct_relations,
    load_relation,
)

__all__ = ["DYNAMIC", "NORMS", "SOURCES", "RelationsRequest"]

#: what stands for a source token: the output of the first MLP or the embedding; "auto" chooses one
SOURCES = ("auto", "first_mlp", "embedding")
#: what is done with the final norm: ignored, as MAPS does, or its weights multiplied in
NORMS = ("published", "folded")
#: methods that score relations in texts
DYNAMIC = ("attending", "forced")
#: relations in one step
_TOGETHER = 5


@dataclass(frozen=True, slots=True)
class RelationsRequest:
    """Scores of relations by the weights; `salient`, `dynamic` and `causal` (names of relations) add tokens
    that heads amplify, scores in texts, and accuracy with top heads off."""

    kind: ClassVar[str] = "relations"
    job: ClassVar[str] = "headatlas.run.relations_job:RelationsJob"

    model: ModelRef
    relations: tuple[Relation, ...]
    k: int | None = None
    source: str = "auto"
    salient: bool = True
    dynamic: bool = False
    causal: tuple[str, ...] = ()
    min_pairs: int = LEAST_PAIRS
    norms: str = "published"

    @classmethod
    def of(
        cls,
        model: Any,
        relations: Relations | None = None,
        *,
        k: int | None = None,
        source: str = "auto",
        salient: bool = True,
        dynamic: bool = False,
        causal: Sequence[str] = (),
        min_pairs: int = LEAST_PAIRS,
        norms: str = "published",
        load: Mapping[str, Any] | None = None,
    ) -> RelationsRequest:
        """All built-in relations if none is given. A model given by name keeps the dtype of its weights."""
        chosen = tuple(distinct_relations(relations))
        if source not in SOURCES:
            raise UnknownNameError("source", source, SOURCES)
        if norms not in NORMS:
            raise UnknownNameError("norms", norms, NORMS)
        if k is not None:
            k = require_whole("k", k, 1, 1_000_000)  # what the vocabulary allows shows when it is loaded
        names = [relation.name for relation in chosen]
        for name in causal:
            if name not in names:
                raise UnknownNameError("relation among those that are scored", name, names)
        ref = model_ref(model, **{"dtype": "auto", **(load or {})})
        min_pairs = require_whole("min_pairs", min_pairs, 1, 1_000_000)
        return cls(ref, chosen, k, source, salient, dynamic, tuple(causal), min_pairs, norms)

    @classmethod
    def resumed(
        cls,
        folder: str | Path,
        relations: Relations | None = None,
        *,
        load: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> RelationsRequest:
        """Continue an atlas with its model, its dtype, its `k` and its `norms`: without `relations`
        all built-in ones and those of the atlas."""
        atlas = open_atlas(folder)
        runs = [run for (method, _), run in atlas.runs.items() if method == "relations"]
        if relations is None:
            stored = [_from_json(data) for run in runs for data in run.request.get("relations", ())]
            known = {relation.name for relation in stored}
            others: list[RelationSource] = [name for name in builtin_relations() if name not in known]
            relations = [*stored, *others]
        limits = {run.request.get("k") for run in runs}
        if options.get("k") is None and len(limits) == 1:
            options["k"] = limits.pop()
        least = {run.request.get("min_pairs", LEAST_PAIRS) for run in runs}
        if len(least) == 1:
            options.setdefault("min_pairs", least.pop())
        norms = {run.request.get("norms", "published") for run in runs}
        if len(norms) == 1:
            options.setdefault("norms", norms.pop())
        dtypes = {str(run.decides.get("dtype", "auto")) for run in runs}
        dtype = dtypes.pop() if len(dtypes) == 1 else "auto"
        request = cls.of(None, relations, **options)
        return replace(request, model=recorded_model(atlas, **{"dtype": dtype, **(load or {})}))

    def only(self, subjects: Sequence[str]) -> RelationsRequest:
        """The source vectors are chosen from all relations, so a worker needs them all."""
        return self

    def plan(self, atlas: Atlas | None = None) -> Plan:
        """The source vectors are chosen from all relations; then some relations each, and what needs them
        all."""
        names = [relation.name for relation in self.relations]
        steps = []
        for start in range(0, len(names), _TOGETHER):
            block = tuple(names[start : start + _TOGETHER])
            # which relations can be scored in texts shows when their tokens are known
            makes = () if self.dynamic else tuple(record_path(ScoreMap, "relations", name) for name in block)
            title = f"relations {start + 1} to {start + len(block)}"
            steps.append(Step(title, block, part="scores", makes=makes))
        if self.salient:
            steps.append(Step("salient tokens", part="salient", makes=(note_path("salient"),)))
        first = [Step("source vectors", part="source", makes=(note_path("source"),))]
        last = [[Step("heads off", part="causal")]] if self.causal else []
        methods = ["relations", *(DYNAMIC if self.dynamic else ())]
        return Plan([first, steps, *last], [(method, name) for method in methods for name in names])

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model.to_json(),
            "relations": [_to_json(relation) for relation in self.relations],
            "k": self.k,
            "source": self.source,
            "salient": self.salient,
            "dynamic": self.dynamic,
            "causal": list(self.causal),
            **({} if self.min_pairs == LEAST_PAIRS else {"min_pairs": self.min_pairs}),
            **({} if self.norms == "published" else {"norms": self.norms}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RelationsRequest:
        options = {name: data[name] for name in ("k", "source", "salient", "dynamic", "causal")}
        options["min_pairs"] = data.get("min_pairs", LEAST_PAIRS)
        options["norms"] = data.get("norms", "published")
        request = cls.of(None, [_from_json(relation) for relation in data["relations"]], **options)
        return replace(request, model=ModelRef.from_json(data["model"]))


def _to_json(relation: Relation) -> dict[str, Any]:
    """A built-in relation by its name, another one whole: its pairs are few."""
    if relation.name in builtin_relations() and load_relation(relation.name) == relation:
        return {"name": relation.name}
    data = {field.name: getattr(relation, field.name) for field in fields(relation) if field.compare}
    return {**data, "pairs": [list(pair) for pair in relation.pairs]}


def _from_json(data: Mapping[str, Any]) -> Relation:
    if "pairs" not in data:
        return load_relation(data["name"])
    stored = {field.name: data[field.name] for field in fields(Relation) if field.name in data}
    return Relation(**{**stored, "pairs": tuple((source, target) for source, target in data["pairs"])})
