"""How an atlas leaves for other programs: an ordinary checkpoint with gates folded in."""

from headatlas.export.checkpoint import choose_gates, export_model, require_export
from headatlas.export.checkpoint_card import Exported

__all__ = ["Exported", "choose_gates", "export_model", "require_export"]
