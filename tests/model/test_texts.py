"""Looking inside a model: tokens, patterns, head outputs, logit attribution, top tokens."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from headatlas import GateError, Head, HeadatlasError, RequestError, UnknownNameError, gates, load_model
from headatlas.model.gate_values import _MEAN_TEXT
from headatlas.model.texts import token_ids
from support.heads import LAYOUTS, shared_model
from support.planted import word_tokenizer
from support.tiny import build_tiny, sample_ids

TEXT, OTHER = "w1 w2 w3 w4 w5", "w9 w8 w7 w6 w5"


@pytest.fixture(scope="module")
def llama():
    return load_model(build_tiny("llama"), tokenizer=word_tokenizer(100), check=False)


def test_tokens_and_logits_of_a_text(llama):
    ids = token_ids(llama, TEXT)
    assert llama.tokens(TEXT) == ["w1", "w2", "w3", "w4", "w5"]
    with torch.no_grad():
        expected = llama.hf(input_ids=ids).logits
    assert torch.equal(llama(TEXT), expected) and torch.equal(llama(ids), expected)
    assert torch.allclose(llama([TEXT, OTHER])[0], expected[0], atol=1e-5)


def test_the_first_tokens_that_a_model_wants_come_first(llama, monkeypatch):
    monkeypatch.setattr(type(llama), "first_tokens", lambda self: ((3,), "for this test"))
    assert token_ids(llama, TEXT)[0, 0] == 3 and len(llama.tokens(TEXT)) == 6


def test_next_tokens_are_the_most_probable(llama):
    table = llama.next_tokens(TEXT, k=4)
    probabilities = llama(TEXT)[0, -1].double().softmax(0)
    assert table["probability"].is_monotonic_decreasing and len(table) == 4
    assert table["probability"][0] == pytest.approx(float(probabilities.max()))
    assert llama.tokenizer.convert_tokens_to_ids(table["token"][0]) == int(probabilities.argmax())


def test_what_is_no_text_gets_one_sentence(llama):
    with pytest.raises(RequestError, match="have 2 to 3 tokens; give texts with the same number"):
        llama(["w1 w2", "w1 w2 w3"])
    for text in ("", [], [""], 5, None, torch.ones(2)):
        with pytest.raises(RequestError, match=r"a text is a string|token ids are whole numbers"):
            llama.tokens(text)
    with pytest.raises(RequestError, match="2 tokens"):
        llama.logit_attribution(TEXT, "w1 w2")
    with pytest.raises(RequestError, match="position is 5"):
        llama.logit_attribution(TEXT, "w1", position=5)
    with pytest.raises(RequestError, match="k is"):
        llama.next_tokens(TEXT, k=0)


def test_calls_that_take_one_text_refuse_several(llama):
    for ask in (llama.next_tokens, llama.tokens, lambda texts: llama.logit_attribution(texts, 5)):
        for texts in ([TEXT, OTHER], sample_ids(batch=2, length=6)):
            with pytest.raises(RequestError, match="takes one text, not 2; call it once per text"):
                ask(texts)
    assert llama.tokens([TEXT]) == llama.tokens(TEXT)


@pytest.mark.parametrize("wrong", [-1, 160])
def test_token_ids_outside_the_vocabulary_are_refused(llama, wrong):
    for ask in (llama, llama.next_tokens, llama.patterns, llama.head_outputs):
        with pytest.raises(RequestError, match=f"token ids go from 0 to 159, not {wrong}"):
            ask(torch.tensor([1, wrong]))


@pytest.mark.parametrize("kind", LAYOUTS)
def test_patterns_are_those_that_the_model_computes(kind):
    """Weighted by the pattern, one-hot values show it again: each row sums to one, no head looks ahead."""
    model, ids = shared_model(kind), sample_ids(batch=2, length=6)
    array = model.patterns(ids)
    assert array.dims == ("row", "layer", "head", "query", "key")
    for head in model.spec:
        pattern = array.sel(layer=head.layer, head=head.head).values
        if kind == "sinks":
            assert (pattern.sum(-1) < 1).all()
        else:
            np.testing.assert_allclose(pattern.sum(-1), 1, atol=1e-5)
        assert (np.triu(pattern, 1) == 0).all()
    assert np.isnan(array.values).all((0, 3, 4)).sum() == np.prod(model.spec.shape) - len(model.spec)


def test_patterns_equal_those_of_transformers(llama):
    ids = sample_ids(batch=2, length=6)
    hf = build_tiny("llama", attn_implementation="eager")
    with torch.no_grad():
        expected = torch.stack(hf(input_ids=ids, output_attentions=True).attentions, dim=1)
    np.testing.assert_allclose(llama.patterns(ids).values, expected.numpy(), atol=1e-6)


def test_tokens_are_coordinates_and_positions_count_from_the_end(llama):
    pattern = llama.patterns(TEXT).sel(layer=1, head=2)
    assert pattern.dims == ("query", "key")
    assert pattern.key_token.values.tolist() == llama.tokens(TEXT)
    outputs = llama.head_outputs(TEXT)
    last = outputs.sel(position=-1)
    assert last.dims == ("layer", "head", "dim") and last.token.item() == "w5"
    raw = llama.head_activations(token_ids(llama, TEXT))
    np.testing.assert_array_equal(last.sel(layer=1).values.ravel(), raw[1][0, -1].numpy())
    assert llama.head_outputs([TEXT, OTHER]).dims[0] == "row"


@pytest.mark.parametrize("kind", LAYOUTS)
def test_contributions_sum_to_the_logit(kind):
    model, ids = shared_model(kind), sample_ids(batch=1, length=6)
    if kind == "output projection outside":  # BERT adds a layer between its last norm and the logits
        with pytest.raises(HeadatlasError, match="no norm was found"):
            model.logit_attribution(ids, 5)
        return
    for foil in (None, 9):
        parts = model.logit_attribution(ids, 5, foil, position=3)
        logits = model(ids)[0, 3].double()
        if "note" in parts.attrs:  # Gemma caps its logits
            logits = model.hf.config.final_logit_softcapping * torch.atanh(
                logits / model.hf.config.final_logit_softcapping
            )
        expected = float(logits[5] - (logits[9] if foil is not None else 0))
        assert float(parts.sum()) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "overrides", "factor"),
    [("granite", {"residual_multiplier": 0.25}, 0.25), ("cohere", {}, 1.0), ("falcon_h1", {}, None)],
)
def test_how_attention_enters_the_residual_stream(kind, overrides, factor):
    """A residual multiplier scales what heads contribute; parallel blocks add them as they are. Falcon-H1
    multiplies attention outputs and adds them together with those of a state space."""
    hf = build_tiny(kind, **overrides)
    model, ids = load_model(hf, check=False), sample_ids(batch=1, length=6)
    factor = hf.config.attention_out_multiplier if factor is None else factor
    stream = []
    norm = next(m for name, m in hf.named_modules() if name in ("model.norm", "model.final_layernorm"))
    handle = norm.register_forward_pre_hook(lambda module, args: stream.append(args[0][0, -1].double()))
    model(ids)
    handle.remove()
    parts = model.logit_attribution(ids, 5, 9)
    z = model.head_activations(ids)
    stream = [one.detach() for one in stream]
    logits_scale = float(parts.sum()) / float(_direct(model, norm, stream[0], stream[0]))
    for head in model.spec:
        width = model.spec.head_dim[head.layer]
        output = z[head.layer][0, -1, head.head * width : (head.head + 1) * width].double()
        written = factor * output @ model.output_weight(head.layer, head.head).detach().double()
        expected = logits_scale * float(_direct(model, norm, stream[0], written))
        assert float(parts.sel(component=str(head))) == pytest.approx(expected, abs=1e-5)


def _direct(model, norm, stream, vector):
    """The logit difference of tokens 5 and 9 that a vector makes in a stream whose scale is given."""
    if "Cohere" in type(norm).__name__:  # subtracts the mean
        stream, vector = stream - stream.mean(), vector - vector.mean()
    scale = torch.rsqrt(stream.pow(2).mean() + norm.variance_epsilon)
    unembedding = model.unembedding().double()
    return (vector * scale * norm.weight.detach().double()) @ (unembedding[:, 5] - unembedding[:, 9])


def test_attribution_by_hand(llama):
    """head output · W_O · (gain / rms) · W_U, written out for a Llama."""
    ids = token_ids(llama, TEXT)
    with torch.no_grad():
        norm = llama.hf.model.norm
        stream = []
        handle = norm.register_forward_pre_hook(lambda module, args: stream.append(args[0]))
        llama.hf(input_ids=ids)
        handle.remove()
    x = stream[0][0, -1].double()
    scale = torch.rsqrt(x.pow(2).mean() + norm.variance_epsilon)
    direction = llama.unembedding()[:, 7].double() - llama.unembedding()[:, 8].double()
    parts = llama.logit_attribution(TEXT, 7, 8)
    z = llama.head_outputs(TEXT).sel(position=-1)
    for head in llama.spec:
        written = torch.as_tensor(z.sel(layer=head.layer, head=head.head).values).double()
        written = written @ llama.output_weight(head.layer, head.head).double()
        expected = float((written * norm.weight.detach().double() * scale) @ direction)
        assert float(parts.sel(component=str(head))) == pytest.approx(expected, abs=1e-6)
    assert parts.to_series().nlargest(5).index[0] in parts.component.values


def test_models_whose_logits_are_no_sum_of_heads_are_refused():
    model = load_model(build_tiny("roberta-prelayernorm"), check=False)
    with pytest.raises(HeadatlasError, match="not a linear function of its final norm"):
        model.logit_attribution(sample_ids(batch=1, length=6), 5)


def test_inside_a_gated_block_the_plain_model_is_not_shown(llama):
    with llama.gates(["L0H1"]):
        for ask in (lambda: llama.patterns(TEXT), lambda: llama.logit_attribution(TEXT, 5)):
            with pytest.raises(GateError, match="outside the gates block"):
                ask()
        assert float(np.abs(llama.head_outputs(TEXT).sel(layer=0, head=1)).max()) == 0


def test_top_tokens_by_hand(llama):
    value, output = llama.value_output("L1H2")
    vector = llama.source_vectors([5])[0]
    scores = (vector @ value @ output) @ llama.unembedding()
    table = llama.top_tokens("L1H2", 5, k=3)
    assert table["score"].tolist() == pytest.approx(scores.topk(3).values.tolist(), abs=1e-5)
    suppressed = llama.top_tokens((1, 2), 5, k=1, suppressed=True)
    assert suppressed["score"][0] == pytest.approx(float(scores.min()), abs=1e-5)
    with torch.no_grad():
        llama.hf.model.norm.weight[:] = torch.linspace(0.5, 2, llama.spec.hidden)
    folded = (vector @ value @ output * llama.hf.model.norm.weight) @ llama.unembedding()
    llama.identify_weights()
    table = llama.top_tokens(Head(1, 2), 5, k=3, norms="folded")
    assert table["score"].tolist() == pytest.approx(folded.topk(3).values.tolist(), abs=1e-5)
    with pytest.raises(UnknownNameError, match="did you mean 'folded'"):
        llama.top_tokens("L1H2", 5, norms="fold")


def test_gates_from_names_layers_and_labelled_arrays(llama):
    import xarray as xr

    def logits_with(*arguments, **options):
        with gates(llama, *arguments, **options):
            return llama(TEXT)

    zeros = torch.ones(llama.spec.shape)
    zeros[1, 2] = zeros[0] = 0
    expected = logits_with(zeros)
    for same in (
        ["L1H2", "L0"],
        ("L0", (1, 2)),
        {Head(1, 2), "L0"},
        iter(["L0", Head(1, 2)]),
        {"L0": 0, "L1H2": 0.0},
        zeros.numpy(),
        zeros.tolist(),
        xr.DataArray(zeros.numpy()[None, None], dims=["seed", "fit", "layer", "head"]),
        xr.DataArray(zeros.numpy().T, dims=["head", "layer"]),
    ):
        assert torch.equal(logits_with(same), expected)
    assert torch.equal(logits_with("L1"), logits_with([f"L1H{head}" for head in range(4)]))
    assert torch.equal(logits_with([]), llama(TEXT))
    wide = xr.DataArray(np.ones((2, *llama.spec.shape)), dims=["seed", "layer", "head"])
    with pytest.raises(GateError, match="select from 'seed' or average over it"):
        gates(llama, wide)
    part = xr.DataArray(zeros.numpy(), dims=["layer", "head"], coords={"layer": range(3), "head": range(4)})
    with pytest.raises(GateError, match="part of the layers"):
        gates(llama, part.sel(layer=slice(0, 1)))
    with pytest.raises(HeadatlasError, match="L9H0 does not exist"):
        gates(llama, ["L9"])


def test_gates_from_what_pandas_and_numpy_give(llama):
    def logits_with(values):
        with gates(llama, values):
            return llama(TEXT)

    expected = logits_with(["L1H2", "L0H3"])
    names = pd.Series(["L1H2", "L0H3"])
    pairs = pd.MultiIndex.from_tuples([(1, 2), (0, 3)], names=["layer", "head"])
    for same in (
        names,
        names.astype("category"),
        pd.Index(names),
        names.to_numpy(),
        np.array(["L1H2", "L0H3"]),
        pairs,
        list(pairs),
        [(np.int64(1), np.int32(2)), Head.parse((np.int64(0), np.int64(3)))],
        {(np.int64(1), np.int64(2)): 0, "L0H3": 0},
    ):
        assert torch.equal(logits_with(same), expected)
    assert torch.equal(logits_with((np.int64(1), np.int64(2))), logits_with("L1H2"))
    parts = llama.logit_attribution(TEXT, 5)
    largest = parts[parts["head"] >= 0].to_series().nlargest(3).index
    assert torch.equal(logits_with(largest), logits_with(list(largest)))
    with pytest.raises(HeadatlasError, match="'L1 rest' names no head"):
        gates(llama, pd.Index(["L1 rest"]))
    with pytest.raises(GateError, match=r"gates of shape \[2\]"):
        gates(llama, np.array([0.5, 1]))


@pytest.mark.parametrize("positions", [-1, 2, slice(1, 3), slice(-2, None), np.int64(4)])
def test_the_same_positions_in_all_rows(llama, positions):
    chosen = torch.zeros(5, dtype=torch.bool)
    chosen[positions] = True
    with gates(llama, ["L1H2"], positions=chosen[None].repeat(2, 1)):
        expected = llama([TEXT, OTHER])
    with gates(llama, ["L1H2"], positions=positions):
        assert torch.equal(llama([TEXT, OTHER]), expected)


def test_the_last_position_of_a_prompt_while_text_is_generated(llama):
    ids = token_ids(llama, TEXT)

    def generated(positions):
        with gates(llama, ["L0", "L1"], positions=positions):
            options = {"max_new_tokens": 4, "do_sample": False, "output_logits": True, "pad_token_id": 0}
            options |= {"return_dict_in_generate": True, "use_cache": True}
            options |= {"attention_mask": torch.ones_like(ids)}
            return torch.stack(llama.hf.generate(ids, **options).logits)

    assert torch.equal(generated(-1), generated([4]))
    with gates(llama, ["L1"], positions=7), pytest.raises(GateError, match="positions 7, but a text of 5"):
        llama(TEXT)


def test_replacements(llama):
    ids, other = token_ids(llama, TEXT), token_ids(llama, OTHER)
    outputs = llama.head_activations(other)
    with gates(llama, ["L1H2"], replacement=outputs):
        expected = llama(TEXT)
    for replacement in (OTHER, llama.head_outputs(OTHER), llama.head_outputs([OTHER])):
        with gates(llama, ["L1H2"], replacement=replacement):
            assert torch.equal(llama(ids), expected)
    with llama.patch(["L1H2"], OTHER):
        assert torch.equal(llama(TEXT), expected)
    with llama.patch("L0", "w1 w2"), pytest.raises(GateError, match="replacement in layer 0 has 2 positions"):
        llama(TEXT)
    with gates(llama, ["L1H2"], replacement="zero"):
        zero = llama(TEXT)
    with gates(llama, ["L1H2"]):
        assert torch.equal(llama(TEXT), zero)
    mean = llama.head_activations(token_ids(llama, _MEAN_TEXT))[1].mean(dim=(0, 1))
    with gates(llama, ["L1H2"], replacement={1: mean}):
        expected = llama(TEXT)
    with gates(llama, ["L1H2"], replacement="mean"):
        assert torch.equal(llama(TEXT), expected)
    with pytest.raises(GateError, match="a replacement is"):
        gates(llama, ["L1H2"], replacement=5)


def test_a_text_of_one_token_does_not_stand_for_all_positions(llama):
    for block in (lambda: llama.patch(["L1"], "w4"), lambda: gates(llama, ["L1"], replacement="w4")):
        with (
            block(),
            pytest.raises(GateError, match=r"has 1 positions.*give a replacement with as many tokens"),
        ):
            llama("w1 w2 w3")
        with block():
            llama("w3")
    outputs = llama.head_activations(token_ids(llama, "w4"))
    with gates(llama, ["L1"], replacement=outputs):  # tensors are constants on purpose
        llama("w1 w2 w3")


@pytest.mark.parametrize(("given", "meant"), [("zeros", "zero"), ("Zero", "zero"), ("means", "mean")])
def test_a_misspelled_replacement_is_no_text(llama, given, meant):
    with pytest.raises(GateError, match=f"replacement is '{given}'; did you mean '{meant}'"):
        gates(llama, ["L1H2"], replacement=given)


def test_a_constant_replacement_for_each_head(llama):
    outputs = llama.head_activations(token_ids(llama, OTHER))
    with gates(llama, ["L1H2", "L0"], replacement={layer: z.mean((0, 1)) for layer, z in outputs.items()}):
        expected = llama([TEXT, OTHER])
    mean = llama.head_outputs(OTHER).mean("position")
    for same in (mean, mean.values, torch.as_tensor(mean.values), mean.transpose("dim", "head", "layer")):
        with gates(llama, ["L1H2", "L0"], replacement=same):
            assert torch.allclose(llama([TEXT, OTHER]), expected, atol=1e-5)
    rows = llama.head_outputs([TEXT, OTHER]).mean("position")
    with gates(llama, ["L1H2", "L0"], replacement=rows):
        assert torch.allclose(llama([TEXT, OTHER])[1], expected[1], atol=1e-5)
    for wrong in (mean.isel(layer=slice(0, 1)), mean.isel(dim=0), mean.values[0], mean.expand_dims("seed")):
        with pytest.raises(GateError, match="head outputs"):
            gates(llama, ["L1H2"], replacement=wrong)


def test_attribution_in_half_precision():
    """Large activations round the residual stream by more than a head writes; how heads enter it is found in
    single precision all the same."""
    hf = build_tiny("llama")
    with torch.no_grad():
        hf.model.embed_tokens.weight[:, 0] += 2000.0
    model = load_model(hf.bfloat16(), tokenizer=word_tokenizer(100), check=False)
    parts = model.logit_attribution(TEXT, 5, 9)
    logits = model(TEXT)[0, -1].float()
    span = float(logits.abs().max())
    assert float(parts.sum()) == pytest.approx(float(logits[5] - logits[9]), abs=0.05 * span)
    assert model.hf.dtype == torch.bfloat16
