"""Generators of the built-in tasks: each gives records and needs no network."""

__all__: list[str] = []
