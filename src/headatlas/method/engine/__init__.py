"""Computes what the methods declare: a model driven with gates."""

__all__: list[str] = []
