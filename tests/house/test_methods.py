"""Built-in methods: the order in which they are shown, and their aliases in an atlas."""

from __future__ import annotations

from headatlas.atlas.method_names import method_named, unit_of_method
from headatlas.core import METHOD_ORDER, in_method_order
from headatlas.method.method import METHODS


def test_the_order_names_built_in_methods():
    assert set(METHOD_ORDER) <= set(METHODS.built_in)
    assert in_method_order(reversed(METHODS.built_in)) == list(METHODS.built_in)
    assert in_method_order(["imported", "mine", "mediate", "gating"]) == [
        "gating",
        "mediate",
        "mine",
        "imported",
    ]


def test_an_atlas_knows_the_aliases_and_units_of_methods():
    aliases = {alias: method.name for method in METHODS.values() for alias in method.aliases}
    assert aliases == {alias: method_named(alias) for alias in aliases} != {}
    assert method_named("no-such-method") == "no-such-method"
    assert unit_of_method("mediate") == "nats" and unit_of_method("no-such-method") == "unknown"
