"""What a result must say about the model that it was made with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headatlas.core.errors import HeadNameError, RequestError
from headatlas.core.head import Head
from headatlas.core.methods import IMPORTED

__all__ = ["DTYPES", "ModelRef", "ModelSpec", "require_device", "require_dtype_name"]

#: dtypes that a model can be loaded in; "auto" keeps the checkpoint's own, "fast" suits the device
DTYPES = ("auto", "fast", "float32", "bfloat16", "float16", "float64", "int8", "int4")
#: kinds of devices that torch knows; "npu" and others come with packages of their own
_DEVICES = (
    "cpu", "cuda", "mps", "xpu", "hpu", "npu", "mtia", "xla", "meta", "maia", "ipu", "hip", "ve", "fpga",
    "vulkan", "lazy", "privateuseone",
)  # fmt: skip
_DEVICE = re.compile(rf"({'|'.join(_DEVICES)})(:\d+)?")


def require_dtype_name(dtype: str) -> str:
    """The dtype, if a model can be loaded in it."""
    if dtype not in DTYPES:
        raise RequestError(f"no dtype {dtype!r}; allowed: {', '.join(DTYPES)}.")
    return dtype


def require_device(device: str) -> str:
    """The device, if it is written as torch writes one. Whether it is here is known when torch is loaded."""
    if not _DEVICE.fullmatch(device):
        advice = " 'auto' is for device_map=…." if device == "auto" else ""
        raise RequestError(
            f"unknown device {device!r}; use cpu, cuda, mps or an index such as cuda:1.{advice}"
        )
    return device


@dataclass(frozen=True, slots=True)
class ModelRef:
    """How to load a model. `source` is a built-in name, a name on the hub or an absolute path; None: the
    caller has loaded the model."""

    source: str | None
    dtype: str = "auto"
    device: str | None = None
    device_map: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False

    def options(self) -> dict[str, Any]:
        """What `load_model` takes."""
        options = {name: getattr(self, name) for name in self.__slots__[1:]}
        return {name: value for name, value in options.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """Without the permission to run the model's own code: that is given anew each time."""
        data = asdict(self)
        del data["trust_remote_code"]
        return {name: value for name, value in data.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ModelRef:
        known = {name: data[name] for name in cls.__slots__ if name in data and name != "trust_remote_code"}
        return cls(**{"source": None, **known})


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The shape and identity of a model; plain data, kept in the atlas.

    `heads`, `kv_heads` and `head_dim` have one entry per layer. A layer without attention heads
    has 0 in all three: a hole in the map. `head_dim` is the width of what a head passes to the
    output projection (the value width, where values and queries differ). `parameters` is None where nobody
    has counted them: an imported table names heads and no model.
    """

    name: str
    architecture: str
    model_type: str
    layers: int
    heads: tuple[int, ...]
    kv_heads: tuple[int, ...]
    head_dim: tuple[int, ...]
    hidden: int
    vocabulary: int
    parameters: int | None
    dtype: str
    revision: str | None
    content_hash: str | None

    def __post_init__(self) -> None:
        for field in ("heads", "kv_heads", "head_dim"):
            length = len(getattr(self, field))
            if length != self.layers:
                raise ValueError(f"{field} has {length} entries for {self.layers} layers")

    @property
    def shape(self) -> tuple[int, int]:
        """(layers, most heads in a layer): the shape of a map of this model."""
        return self.layers, max(self.heads, default=0)

    def has_same_weights(self, other: ModelSpec) -> bool:
        """True if both are known to be the same model, in whatever dtype. An unknown hash equals nothing."""
        known = self.content_hash is not None
        return known and (self.content_hash, self.shape) == (other.content_hash, other.shape)

    def __iter__(self) -> Iterator[Head]:
        """Every head, layer by layer."""
        for layer, count in enumerate(self.heads):
            for head in range(count):
                yield Head(layer, head)

    def __len__(self) -> int:
        return sum(self.heads)

    def __contains__(self, name: object) -> bool:
        """Is there such a head? `name` as for `Head.parse`; what names no head is not in."""
        try:
            head = Head.parse(name)  # type: ignore[arg-type]
        except HeadNameError:
            return False
        return head.layer < self.layers and head.head < self.heads[head.layer]

    def require(self, name: str | tuple[int, int] | Head) -> Head:
        """The head of that name, or a `HeadNameError` that says which heads there are."""
        head = Head.parse(name)
        if head in self:
            return head
        if head.layer >= self.layers:
            raise HeadNameError(f"{head} does not exist: {self.name} has layers 0 to {self.layers - 1}.")
        count = self.heads[head.layer]
        there = f"heads 0 to {count - 1}" if count else "no attention heads"
        raise HeadNameError(f"{head} does not exist: layer {head.layer} of {self.name} has {there}.")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ModelSpec:
        lists = {key: tuple(data[key]) for key in ("heads", "kv_heads", "head_dim")}
        # before `parameters` could be None, imported tables stored 0
        is_uncounted = data["architecture"] == IMPORTED and data["parameters"] == 0
        parameters = None if is_uncounted else data["parameters"]
        return cls(**{**data, **lists, "parameters": parameters})
