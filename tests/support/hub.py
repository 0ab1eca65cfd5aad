"""A model hub on the loopback address: the requests and answers of the real one, for local folders.

Tests reach no network; this serves the same routes (model info, file heads, file bodies, missing
repository, gated repository, missing revision), so that the real client code runs unchanged.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

__all__ = ["COMMIT", "hub"]

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Handler(BaseHTTPRequestHandler):
    folders: dict[str, Path]
    gated: set[str]
    requests: list[str]
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        self.requests.append(f"{self.command} {self.path}")
        path = self.path.split("?")[0].strip("/")
        kind = next((one for one in ("api/models/", "api/datasets/") if path.startswith(one)), None)
        if kind:
            self._api(path.removeprefix(kind), body)
        else:
            self._file(path.removeprefix("datasets/"), body)

    def _find(self, path: str) -> tuple[str | None, str]:
        for name in (*self.folders, *self.gated):
            if path == name or path.startswith(name + "/"):
                return name, path[len(name) :].strip("/")
        return None, ""

    def _api(self, path: str, body: bool) -> None:
        name, rest = self._find(path)
        if name is None:
            return self._fail(404, "RepoNotFound", body)
        if name in self.gated:
            return self._fail(403, "GatedRepo", body)
        parts = rest.split("/")
        if parts[0] in ("revision", "tree") and parts[1] not in ("main", COMMIT):
            return self._fail(404, "RevisionNotFound", body)
        root = self.folders[name]
        plain = [file for file in sorted(root.rglob("*")) if file.is_file()]
        files = {file.relative_to(root).as_posix(): file for file in plain}
        if parts[0] == "tree":
            rows = [
                {"type": "file", "path": path, "size": file.stat().st_size, "oid": "0" * 40}
                for path, file in files.items()
            ]
            return self._send(json.dumps(rows).encode(), body, {})
        info = {
            "_id": "0", "id": name, "modelId": name, "sha": COMMIT, "private": False, "tags": [],
            "downloads": 0, "likes": 0, "siblings": [{"rfilename": path} for path in files],
        }  # fmt: skip
        return self._send(json.dumps(info).encode(), body, {})

    def _file(self, path: str, body: bool) -> None:
        name, rest = self._find(path)
        if name is None:
            return self._fail(404, "RepoNotFound", body)
        _, revision, filename = rest.split("/", 2)
        if revision not in ("main", COMMIT):
            return self._fail(404, "RevisionNotFound", body)
        file = self.folders[name] / filename
        if not file.is_file():
            return self._fail(404, "EntryNotFound", body)
        data = file.read_bytes()
        etag = f'"{hashlib.sha256(data).hexdigest()}"'
        return self._send(data, body, {"ETag": etag, "X-Repo-Commit": COMMIT})

    def _send(self, data: bytes, body: bool, headers: dict[str, str]) -> None:
        self.send_response(200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def _fail(self, status: int, code: str, body: bool) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", code)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", "2")
        self.end_headers()
        if body:
            self.wfile.write(b"{}")


@contextmanager
def hub(folders: dict[str, Path], gated: set[str] = frozenset()) -> Iterator[tuple[str, list[str]]]:  # type: ignore[assignment]
    """(address, requests so far) of a hub that has these models."""
    requests: list[str] = []
    handler = type("Handler", (_Handler,), {"folders": folders, "gated": gated, "requests": requests})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
