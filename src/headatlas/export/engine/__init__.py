"""What writes the formats that need a model. Imports torch, so `FORMATS` does not look here."""

__all__: list[str] = []
