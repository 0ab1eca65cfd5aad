"""An atlas that goes somewhere else: as a zip file, or by a hub.

What arrives is material, not to be trusted: only files that an atlas has are taken, each under its own name
in a new folder, each whole by its hash; nothing in them is run. The folder appears when all of it is there
and can be opened as an atlas, or not at all.
"""

from __future__ import annotations

import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headatlas.atlas.atlas import Atlas, open_atlas
from headatlas.atlas.folder import atlas_folder
from headatlas.atlas.schema import has_form
from headatlas.atlas.store import ATLAS, RESULTS, changed_words, is_result, is_sound_file, result_files
from headatlas.core import (
    AtlasError,
    HeadatlasError,
    RequestError,
    StoreError,
    first_line,
    is_local_path,
    parse_json,
    staged_folder,
    without_local_paths,
    write_whole,
    writing,
)

__all__ = ["download_atlas", "pack_atlas", "unpack_atlas", "upload_atlas"]

#: bytes of one file and of all of them: an atlas of a large model has some hundred MB
_LARGEST, _MOST = 2**32, 2**35
#: a large file that was packed to less than this share of its size is no map
_LARGE, _DENSEST = 2**20, 1 / 100
#: the time of all files in a zip file: equal atlases are equal files, whatever the clock said
_TIME = (1980, 1, 1, 0, 0, 0)


def pack_atlas(atlas: Atlas | str | Path, file: str | Path) -> Path:
    """All results of an atlas in one zip file; work in progress stays."""
    with atlas_folder(atlas) as folder:
        return _pack(folder, Path(file))


def _pack(root: Path, target: Path) -> Path:
    open_atlas(root)
    if target.exists():
        raise RequestError(f"{target} is there already; choose another out=….")

    def write(draft: Path) -> None:
        with zipfile.ZipFile(draft, "w") as packed:
            for path in result_files(root):
                member = zipfile.ZipInfo(path.relative_to(root).as_posix(), _TIME)
                member.external_attr = 0o100644 << 16
                packed.writestr(member, _shared(path), zipfile.ZIP_DEFLATED)

    write_whole(target, write)
    return target


def _shared(path: Path) -> bytes:
    """Return the file as shared: local paths are cut to their last part. Names and hashes stay as they are,
    so the files still belong to each other."""
    if path.name != ATLAS:
        return changed_words(path, _shared_words)
    atlas = parse_json(path.read_bytes())
    atlas["model"]["name"] = without_local_paths(atlas["model"]["name"])
    atlas["runs"] = [_shared_words(run) for run in atlas["runs"]]
    return json.dumps(atlas, indent=1, ensure_ascii=False).encode()


def _shared_words(words: dict[str, Any]) -> dict[str, Any]:
    """The entry of a run, or what a file says of itself."""
    kept = {key: value for key, value in words.items() if key in ("method", "relation", "methods")}
    shared = {**without_local_paths(words), **kept}
    if has_form("request", words.get("request")):  # a note of a plugin may hold anything
        shared["request"] = _shared_request(words["request"])
    return shared


def _shared_request(request: dict[str, Any]) -> dict[str, Any]:
    """Without the places of its model and tasks: the last part of a path would be looked for as a name."""
    shared: dict[str, Any] = without_local_paths(request)
    for task in shared.get("tasks", ()):
        task.pop("folder", None)
    model = request.get("model", {})
    if is_local_path(str(model.get("source", ""))):
        del shared["model"]["source"]
    return shared


def unpack_atlas(file: str | Path, folder: str | Path) -> Path:
    """The atlas in a zip file, as a folder."""
    source = Path(file)
    try:
        with zipfile.ZipFile(source) as packed:
            members = [_checked(member, source) for member in packed.infolist() if not member.is_dir()]
            _require_size(((member.filename, member.file_size) for member in members), source)

            def fill(root: Path) -> None:
                for member in members:
                    own = root / member.filename
                    with writing(Path(folder)):
                        own.parent.mkdir(parents=True, exist_ok=True)
                        with packed.open(member) as here, own.open("wb") as there:
                            shutil.copyfileobj(here, there)

            return _appear(Path(folder), fill, str(source))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise AtlasError(f"{source} is no zip file that can be read: {error}.") from None
    except FileNotFoundError:
        raise AtlasError(f"{source} does not exist.") from None
    except OSError as error:
        raise AtlasError(f"{source} cannot be read: {error.strerror or error}.") from None


def upload_atlas(
    atlas: Atlas | str | Path, repo: str, *, private: bool = True, revision: str | None = None
) -> str:
    """Put an atlas on the hub as a dataset, private unless said otherwise; gives its address. Of an atlas
    that is there nothing is left."""
    with atlas_folder(atlas) as folder:
        return _upload(folder, repo, private, revision)


def _upload(root: Path, repo: str, private: bool, revision: str | None) -> str:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError

    open_atlas(root)
    files = list(result_files(root))  # no links
    hub = HfApi(library_name="headatlas")
    try:
        made = hub.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
        if private and hub.repo_info(made.repo_id, repo_type="dataset").private is False:
            raise RequestError(
                f"{repo} is there already, for all to see; private=False says that this is meant."
            )
        with TemporaryDirectory() as copy:
            for path in files:
                target = Path(copy) / path.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(_shared(path))
            hub.upload_folder(
                repo_id=made.repo_id,
                repo_type="dataset",
                folder_path=Path(copy),
                revision=revision,
                allow_patterns=_patterns(),
                delete_patterns=_patterns(),
                commit_message="An atlas of attention heads, made by headatlas",
            )
    except HFValidationError as error:
        raise RequestError(f"{repo!r} is no name of a repository: {first_line(error)}") from None
    except HeadatlasError:
        raise
    except Exception as error:  # the client has errors of its own for the network, and of others
        raise StoreError(f"{root} could not be put on the hub as {repo}: {first_line(error)}") from None
    return str(made)


def download_atlas(repo: str, folder: str | Path, *, revision: str | None = None) -> Path:
    """An atlas from the hub, as a folder."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.hf_api import RepoFile

    def fill(root: Path) -> None:
        hub = HfApi(library_name="headatlas")
        commit = hub.repo_info(repo, repo_type="dataset", revision=revision).sha
        there = hub.list_repo_tree(repo, recursive=True, revision=commit, repo_type="dataset")
        files = [one for one in there if isinstance(one, RepoFile) and is_result(one.path)]
        _require_size(((one.path, one.size) for one in files), f"{repo} on the hub")
        snapshot_download(
            repo, repo_type="dataset", revision=commit, allow_patterns=_patterns(), local_dir=root
        )
        shutil.rmtree(root / ".cache", ignore_errors=True)  # the client's own notes

    try:
        return _appear(Path(folder), fill, f"{repo} on the hub")
    except HFValidationError as error:
        raise RequestError(f"{repo!r} is no name of a repository: {first_line(error)}") from None
    except HeadatlasError:
        raise
    except Exception as error:  # as above
        raise AtlasError(f"{repo} could not be had from the hub: {first_line(error)}") from None


def _patterns() -> list[str]:
    return [ATLAS, *(f"{name}/**.safetensors" for name in RESULTS)]


def _checked(member: zipfile.ZipInfo, source: Path) -> zipfile.ZipInfo:
    kind = member.external_attr >> 28  # of a Unix file: 8 plain, 10 a link
    if not is_result(member.filename) or kind not in (0, 8):
        raise AtlasError(f"{source} is not a packed atlas: it holds {member.filename[:80]!r}.")
    if member.flag_bits & 1:
        raise AtlasError(f"{source} is encrypted.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise AtlasError(f"{source} is not a packed atlas: {member.filename} is packed in an unusual way.")
    if member.file_size > _LARGE and member.compress_size < member.file_size * _DENSEST:
        raise AtlasError(f"{source} is not a packed atlas: {member.filename} is packed too densely.")
    return member


def _require_size(files: Iterable[tuple[str, int]], source: Path | str) -> None:
    seen: set[str] = set()
    total = 0
    for name, size in files:
        total += size
        if name in seen:
            raise AtlasError(f"{source} is not a packed atlas: it holds {name} twice.")
        seen.add(name)
        if size > _LARGEST or total > _MOST:
            raise AtlasError(f"{source} is not a packed atlas: it is larger than any is.")
    if ATLAS not in seen:
        raise AtlasError(f"{source} is not a packed atlas: it has no {ATLAS}.")


def _appear(target: Path, fill: Callable[[Path], Any], said: str) -> Path:
    """The folder, when what `fill` puts into it is an atlas."""
    if target.exists():
        raise RequestError(f"{target} is there already; choose another out=….")
    with staged_folder(target) as draft:
        try:
            fill(draft)
            _require_atlas(draft, said)
        except AtlasError as error:
            raise type(error)(str(error).replace(str(draft), said)) from None
    return target


def _require_atlas(folder: Path, said: str) -> None:
    """The folder holds an atlas, whole and nothing else."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or (path.is_file() and not is_result(name)):
            raise AtlasError(f"{said} is not an atlas: it holds {name!r}.")
    for path in folder.rglob("*.safetensors"):
        if not is_sound_file(path):
            raise AtlasError(f"{path} is damaged.")
    open_atlas(folder)
