"""How figures show a method: the line of its curve and its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headatlas.atlas import Atlas

__all__ = ["method_label", "method_looks"]

Dash = str | tuple[int, tuple[int, ...]]
Look = tuple[str, Dash]  # colour, dash

_DASHED, _DOTTED = (0, (4, 2)), (0, (1, 1))
#: gating stands out; the others differ in colour and dash, so that they can be told apart in grey as well
_LOOKS: dict[str, Look] = {
    "gating": ("#000000", "-"),
    "ablate-zero": ("#0072b2", "-"),
    "ablate-mean": ("#0072b2", _DASHED),
    "ablate-resample": ("#0072b2", _DOTTED),
    "attribute-gradient": ("#d55e00", _DASHED),
    "attribute-integrated": ("#d55e00", "-"),
    "mediate": ("#009e73", "-"),
    "random": ("#999999", "-"),
}
#: of the methods of plugins, in turn
_OTHER_COLOURS: tuple[str, ...] = ("#cc79a7", "#e69f00", "#56b4e9")
_OTHER_DASHES: tuple[Dash, ...] = ("-", _DASHED, _DOTTED)
_OTHERS: list[Look] = [(colour, dash) for dash in _OTHER_DASHES for colour in _OTHER_COLOURS]


def method_looks(methods: Sequence[str], colours: Mapping[str, str] | None = None) -> dict[str, Look]:
    """Colour and dash of each method. Those of plugins depend on which of them are shown; `colours` replace
    the usual ones."""
    others = [method for method in methods if method not in _LOOKS]
    of_others = {method: _OTHERS[index % len(_OTHERS)] for index, method in enumerate(others)}
    looks = {method: _LOOKS.get(method) or of_others[method] for method in methods}
    return {method: ((colours or {}).get(method, colour), dash) for method, (colour, dash) in looks.items()}


def method_label(atlas: Atlas, method: str) -> str:
    """What a run of the method says of itself, or else the method's name."""
    labels = (run.about.get("label") for (name, _), run in atlas.runs.items() if name == method)
    return next((str(label) for label in labels if label), method)
