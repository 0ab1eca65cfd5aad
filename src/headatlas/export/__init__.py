"""How an atlas leaves for other programs. No torch until a format needs a model."""

from headatlas.export.checkpoint import export_model
from headatlas.export.checkpoint_card import Exported
from headatlas.export.format import FORMATS, ExportFormat, ExportRequest

__all__ = ["FORMATS", "ExportFormat", "ExportRequest", "Exported", "export_model"]
