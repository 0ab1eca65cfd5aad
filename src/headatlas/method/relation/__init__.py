"""MAPS: what heads write for a token, read off their weights."""

__all__: list[str] = []
