"""How an atlas leaves for other programs: an ordinary checkpoint with gates folded in."""

from headatlas.export.checkpoint import export_model, require_export
from headatlas.export.checkpoint_card import Exported

__all__ = ["Exported", "export_model", "require_export"]
