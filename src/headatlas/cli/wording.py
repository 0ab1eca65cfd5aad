"""Messages speak of the arguments of functions; a command shows its flags instead."""

from __future__ import annotations

import re

__all__ = ["command_text"]

#: argument -> flag, where a command has one for it
_FLAGS = {
    **{name: f"--{name.replace('_', '-')}" for name in (
        "average", "batch", "device", "device_map", "draws", "dtype", "dynamic", "exchange", "force",
        "forget", "gates", "gpus", "heads", "items", "kind", "layers", "max_tokens", "method", "model", "out",
        "resume", "retain", "retest", "revision", "seeds", "source", "task", "trust_remote_code", "updates",
    )},
    "tasks": "--task",
    "methods": "--method",
}  # fmt: skip
#: what no flag alone stands for
_PHRASES = {
    "methods=[]": "--method gating",
    "private=False": "--public",
    "load it with load_task(…, trust_code=True)": "say so: --trust-task-code",
    "the same call goes on": "the same command goes on",
}
#: function -> the command that calls it
_COMMANDS = {
    "contrast_heads": "contrast", "export_model": "export", "import_table": "import", "map_heads": "map",
    "relate_heads": "relations", "validate_atlas": "validate", "write_page": "page", "write_table": "table",
}  # fmt: skip
_FUNCTION = re.compile(rf"\b({'|'.join(_COMMANDS)})\b(?!\()")
#: name=value, but not in an address such as my.csv?task=sums
_ARGUMENT = re.compile(rf"(?<![\w?&./=-])({'|'.join(_FLAGS)})=(…|True\b|'([^']*)'|([\w-]+(?:\.[\w-]+)*))")


def command_text(text: str) -> str:
    """`seeds=10` becomes `--seeds 10`, `out=…` and `resume=True` become `--out` and `--resume`."""
    for phrase, replacement in _PHRASES.items():
        text = text.replace(phrase, replacement)
    text = _FUNCTION.sub(lambda match: f"'headatlas {_COMMANDS[match[1]]}'", text)
    return _ARGUMENT.sub(_flag, text)


def _flag(match: re.Match[str]) -> str:
    name, value, quoted, plain = match.groups()
    if value in ("…", "True"):
        return _FLAGS[name]
    return f"{_FLAGS[name]} {plain if quoted is None else quoted}"
