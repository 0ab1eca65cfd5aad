"""Thresholds in the browser are thresholds in Python: one atlas, worked out on both sides."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest

from headatlas.atlas import category_words
from headatlas.figure import PALETTES
from headatlas.page.payload import payload_of
from page.building import WEB, npm
from page.test_payload import some_atlas, with_tokens

pytestmark = pytest.mark.browser

THRESHOLDS = (0.01, 0.15, 0.37, 0.5, 0.73, 1.0)


def plain(values):
    return [None if np.isnan(value) else float(value) for value in np.asarray(values, np.float32).ravel()]


def expected(atlas):
    scores, roles, counts = [], [], []
    maps = {"always": atlas.always, "any": atlas.any, "mean": lambda task: atlas.scores(task).mean("seed")}
    for task in atlas.tasks:
        for over, made in maps.items():
            for score in ("facilitation", "interference", "irrelevance"):
                values = made(task)[score].values
                about = {"task": task, "score": score, "over": over}
                scores.append({**about, "values": plain(values)})
                if over != "mean":
                    counts += [
                        {**about, "threshold": least, "count": int((values >= least).sum())}
                        for least in THRESHOLDS
                    ]
        for least in THRESHOLDS:
            words = atlas.roles(task, least).values
            roles.append({"task": task, "threshold": least, "words": [one.ravel().tolist() for one in words]})
    return {
        "payload": payload_of([atlas]),
        "scores": scores,
        "roles": roles,
        "counts": counts,
        "words": [
            {
                "direction": direction,
                "threshold": least,
                "words": category_words(atlas.categories(least), direction).values.ravel().tolist(),
            }
            for direction in ("promote", "suppress")
            for least in THRESHOLDS
        ],
        "colours": [
            {
                "palette": name,
                "helping": helping,
                "hurting": hurting,
                "rgb": (255 * palette.blend(np.array(helping), np.array(hurting))).tolist(),
            }
            for name, palette in PALETTES.items()
            for helping in (0, 0.3, 1)
            for hurting in (0, 0.8, 1)
        ],
        "heat": [
            {
                "palette": name,
                "lines": palette.lines,
                "rgb": [[255 * part for part in palette.heat(value / 50)[:3]] for value in range(51)],
            }
            for name, palette in PALETTES.items()
        ],
        "categories": [
            {"palette": name, "colours": palette.of_words(["algorithmic", "own"])}
            for name, palette in PALETTES.items()
        ],
    }


def test_both_sides_agree(tmp_path):
    atlas = with_tokens(some_atlas())
    gates = atlas._fits["gating", "sums"][0, "remove"].logits
    gates[0, 0] = 0  # a gate of exactly one half
    file = tmp_path / "expected.json"
    file.write_text(json.dumps(expected(atlas)))
    asked = [*npm("exec"), "--", "vitest", "run", "test/python.test.ts"]
    env = {**os.environ, "HEADATLAS_EXPECTED": str(file)}
    told = subprocess.run(asked, cwd=WEB, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "5 passed" in told.stdout
