"""Every causal-LM type that transformers knows: the verdict must be the known one."""

from __future__ import annotations

import pytest

from headatlas import ModelRefusedError, load_model
from support.tiny import CannotBuildError, build_tiny, causal_types

#: Types that are refused, with words of the reason. All others that can be built must pass.
REFUSED = {
    "blt": "lies in no layer",
    "cpmant": "softmax attention",
    "deepseek_v4": "no output projection takes up the heads",
    "diffllama": "more than once",
    "falcon_mamba": "no layer of this model computes softmax attention",
    "gemma4_assistant": "does not run on plain token ids",
    "gemma4_unified_assistant": "does not run on plain token ids",
    "hrm_text": "more than once",
    "inkling_text": "fails the self-check",
    "jetmoe": "no output projection takes up the heads",
    "longcat_flash": "in two modules",
    "mamba": "no layer of this model computes softmax attention",
    "mamba2": "no layer of this model computes softmax attention",
    "musicgen": "one stream of tokens",
    "musicgen_melody": "one stream of tokens",
    "prophetnet": "no output projection takes up the heads",
    "reformer": "softmax attention",
    "rwkv": "no layer of this model computes softmax attention",
    "xlnet": "no output projection takes up the heads",
    "xlstm": "no layer of this model computes softmax attention",
    "zamba": "write to a stream",
    "zamba2": "write to a stream",
    "zaya": "not slices of any projection",
}
CANNOT_BE_BUILT = {"gemma3n"}


@pytest.mark.slow
@pytest.mark.parametrize("model_type", causal_types())
def test_verdict(model_type):
    try:
        tiny = build_tiny(model_type)
    except CannotBuildError:
        assert model_type in CANNOT_BE_BUILT
        return
    if model_type in REFUSED:
        with pytest.raises(ModelRefusedError, match=REFUSED[model_type]):
            load_model(tiny)
        return
    model = load_model(tiny)
    assert model.check is not None and model.check.passed
    assert len(model.spec) > 0
    # nothing of ours is left on the model
    for module in tiny.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks


def test_at_least_140_types_pass():
    assert len(causal_types()) - len(REFUSED) - len(CANNOT_BE_BUILT) >= 140
