"""From the gates of retain (G+) and remove (G-) to scores and roles, seed by seed.

    role           G+     G-     score          when the head is switched off
    facilitating   high   high   G-             the task gets worse
    interfering    low    low    1 - G+         the task gets better
    irrelevant     high   low    G+ (1 - G-)    nothing happens

G+ low and G- high contradict each other: such a head is an anomaly, counted and shown, never hidden. A
head of which no score reaches the threshold has no clear role.
"""

from __future__ import annotations

import numpy as np

from headatlas.core import ROLES, THRESHOLD, require_share
from headatlas.core.lazy import xr

__all__ = ["ROLE_WORDS", "SCORES", "role_scores", "roles_of"]

#: role -> the name of its score
SCORES = {"facilitating": "facilitation", "interfering": "interference", "irrelevant": "irrelevance"}
#: what `roles_of` may answer; the empty word stands where the model has no head
ROLE_WORDS = (*ROLES, "anomaly", "unclear", "")


def role_scores(gates: xr.DataArray) -> xr.Dataset:
    """Facilitation, interference and irrelevance from gates with a `fit` axis."""
    high, low = (gates.sel(fit=fit, drop=True) for fit in ("retain", "remove"))
    return xr.Dataset(
        {"facilitation": low, "interference": 1 - high, "irrelevance": high * (1 - low)}, attrs=gates.attrs
    )


def roles_of(scores: xr.Dataset, threshold: float = THRESHOLD) -> xr.DataArray:
    """The role of every head, as a word of `ROLE_WORDS`."""
    threshold = require_share("threshold", threshold)
    helps, hurts, idle = (scores[name].values >= threshold for name in SCORES.values())
    some = scores["facilitation"]
    words = np.full(some.shape, "unclear", dtype="<U12")
    cases = (idle, hurts, helps, helps & hurts, np.isnan(some.values))  # a later one overrules
    for case, word in zip(cases, (*reversed(ROLES), "anomaly", ""), strict=True):
        words[case] = word
    return some.copy(data=words).rename("role").assign_attrs(threshold=threshold)
