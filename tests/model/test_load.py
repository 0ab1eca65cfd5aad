"""`load_model`: every source, and one clear sentence for everything that is no model."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys

import pytest
import torch
from transformers import AutoModel, BertConfig, PreTrainedTokenizerFast, T5Config

from headatlas import (
    GateError,
    HeadatlasError,
    ModelRefusedError,
    ModelSourceError,
    RequestError,
    UnknownNameError,
    gates,
    load_model,
)
from headatlas.model.embedded import EMBEDDED
from support.hub import COMMIT, hub
from support.tiny import build_tiny, sample_ids
from support.tiny_gguf import write_tiny_gguf


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny-llama"
    build_tiny("llama").save_pretrained(path)
    return path


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


# --- sources that work ---


def test_a_folder(folder):
    model = load_model(folder)
    assert model.spec.name == "tiny-llama"
    assert (model.spec.layers, model.spec.heads, model.spec.kv_heads) == (3, (4, 4, 4), (2, 2, 2))
    assert (model.spec.head_dim, model.spec.hidden, model.spec.vocabulary) == ((8, 8, 8), 48, 160)
    assert (model.spec.architecture, model.spec.model_type) == ("LlamaForCausalLM", "llama")
    assert model.spec.dtype == "float32" and model.spec.revision is None
    assert model.tokenizer is None  # the folder has none
    assert load_model(str(folder)).spec == model.spec
    assert repr(model) == "<Model tiny-llama: 3 layers x 4 heads, float32>"


def test_the_content_hash_tells_weights_apart(folder):
    one = build_tiny("llama")
    same, other = build_tiny("llama"), build_tiny("llama")
    with torch.no_grad():
        other.model.layers[1].self_attn.o_proj.weight[:, 8:16] = 0  # one head switched off
    hashes = [load_model(hf).spec.content_hash for hf in (one, same, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert load_model(folder).spec.content_hash == hashes[0]


@pytest.mark.parametrize("dtype", ["bfloat16", torch.bfloat16])
def test_a_dtype(folder, dtype):
    model = load_model(folder, dtype=dtype)
    assert model.hf.dtype == torch.bfloat16 and model.spec.dtype == "bfloat16" and model.check.passed


def test_a_loaded_model_is_used_as_it_is():
    """The self-check runs in eval mode; afterwards the modes of all modules are the user's."""
    hf = build_tiny("gpt2", resid_pdrop=0.5, embd_pdrop=0.5).train()
    hf.transformer.h[1].eval()
    before = {name: tensor.clone() for name, tensor in hf.state_dict().items()}
    modes = [module.training for module in hf.modules()]
    model = load_model(hf, tokenizer="anything")
    assert model.hf is hf and model.tokenizer == "anything" and model.check.passed
    assert [module.training for module in hf.modules()] == modes and len(set(modes)) == 2
    assert all(torch.equal(tensor, before[name]) for name, tensor in hf.state_dict().items())
    assert model.spec.name == "GPT2LMHeadModel"


def test_the_chosen_attention_code_is_kept(folder):
    for implementation in ("eager", "sdpa"):
        model = load_model(folder, attn_implementation=implementation)
        assert model.hf.config._attn_implementation == implementation
    assert model.check.kernels < 1e-5


def test_an_adapter_counts_when_it_is_part_of_the_linear():
    """An unmerged adapter, as LoRA libraries wrap it: read with the adapter, not without."""

    class Adapted(torch.nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base_layer = base
            self.in_features, self.out_features = base.in_features, base.out_features
            self.down = torch.nn.Linear(base.in_features, 2, bias=False)
            self.up = torch.nn.Linear(2, base.out_features, bias=False)

        def forward(self, x):
            return self.base_layer(x) + self.up(self.down(x))

    hf = build_tiny("llama")
    for layer in hf.model.layers:
        layer.self_attn.v_proj = Adapted(layer.self_attn.v_proj)
        layer.self_attn.o_proj = Adapted(layer.self_attn.o_proj)
    model = load_model(hf)
    value, output = model.value_output(1, 2)
    adapted = hf.model.layers[1].self_attn.v_proj
    merged = adapted.base_layer.weight + adapted.up.weight @ adapted.down.weight
    assert torch.allclose(value, merged[8:16].T, atol=1e-5)
    adapted = hf.model.layers[1].self_attn.o_proj
    merged = adapted.base_layer.weight + adapted.up.weight @ adapted.down.weight
    assert torch.allclose(output, merged[:, 16:24].T, atol=1e-5)


def test_the_tokenizer_comes_along(copy):
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: number for number, word in enumerate(["[UNK]", "the", "cat", "sat"])}
    backend = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]").save_pretrained(copy)
    assert load_model(copy).tokenizer("the cat sat")["input_ids"] == [1, 2, 3]


# --- the hub, played by a server on this machine ---


def ask(address, home, *arguments):
    env = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0"}
    env |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    command = [sys.executable, "-m", "headatlas", "check", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=env, timeout=300)


@pytest.mark.slow
def test_a_model_of_the_hub(folder, tmp_path):
    with hub({"org/tiny": folder}) as (address, requests):
        first = ask(address, tmp_path, "org/tiny", "--json")
        assert first.returncode == 0, first.stderr
        assert any(request.startswith("GET /org/tiny/resolve/") for request in requests)
        spec = json.loads(first.stdout)["model"]
        assert spec["name"] == "org/tiny" and spec["revision"] == COMMIT and spec["heads"] == [4, 4, 4]
        requests.clear()
        assert ask(address, tmp_path, "org/tiny").returncode == 0
        assert not any("GET /org/tiny/resolve" in request for request in requests)  # cached
    # the hub is gone; the model is still on this machine
    again = ask(address, tmp_path, "org/tiny", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["model"] == spec
    # …and another one is not
    absent = ask(address, tmp_path, "org/other")
    assert absent.returncode == 2
    assert "hub cannot be reached" in absent.stderr and "Traceback" not in absent.stderr


@pytest.mark.slow
def test_the_hub_says_no(folder, tmp_path):
    with hub({"org/tiny": folder}, gated={"org/gated"}) as (address, _):
        for arguments, words in [
            (["org/nothing"], "no model named 'org/nothing'"),
            (["smolm2"], "did you mean 'smollm2'?"),
            (["org/gated"], "access to 'org/gated' must be asked for"),
            (["org/tiny", "--revision", "v9"], "'org/tiny' has no revision 'v9'"),
        ]:
            answer = ask(address, tmp_path, *arguments)
            assert answer.returncode == 2, answer.stderr
            assert words in answer.stderr and len(answer.stderr.strip().splitlines()) == 1
            assert answer.stdout == ""


# --- requests that cannot be met ---


def test_a_name_that_cannot_be_one():
    with pytest.raises(UnknownNameError, match="no model named 'smol lm2'; did you mean 'smollm2'"):
        load_model("smol lm2")


def test_offline_and_not_here():
    with pytest.raises(ModelSourceError, match=r"cannot be reached.*Did you mean 'smollm2'"):
        load_model("smollm")


@pytest.mark.parametrize("path", ["./nowhere", "/nowhere/at/all", "a/b/c", "model.gguf", "~/nowhere"])
def test_a_path_that_is_not_there(path):
    with pytest.raises(ModelSourceError, match="there is no file or folder"):
        load_model(path)


def test_a_folder_without_config(tmp_path):
    with pytest.raises(ModelSourceError, match=r"has no config\.json"):
        load_model(tmp_path)
    (tmp_path / "m.gguf").touch()
    with pytest.raises(ModelSourceError, match=r"name the GGUF file itself: .*m\.gguf"):
        load_model(tmp_path)


def test_a_file_of_another_kind(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"x" * 100)
    with pytest.raises(ModelSourceError, match="give a GGUF file, or the folder"):
        load_model(tmp_path / "model.safetensors")


def test_broken_config(copy):
    (copy / "config.json").write_text("{")
    with pytest.raises(ModelSourceError, match="copy cannot be loaded"):
        load_model(copy)
    (copy / "config.json").write_text("{}")
    with pytest.raises(ModelSourceError, match="copy cannot be loaded"):
        load_model(copy)


def damage(path, how):
    data = bytearray(path.read_bytes())
    if how == "truncated":
        data = data[: len(data) // 2]
    elif how == "header cut":
        data = data[:20]
    elif how == "empty":
        data = bytearray()
    elif how == "length":
        data[:8] = struct.pack("<Q", 1 << 60)
    elif how == "header text":
        data[8:40] = b"\xff" * 32
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["truncated", "header cut", "empty", "length", "header text"])
def test_corrupt_safetensors(copy, how):
    damage(copy / "model.safetensors", how)
    with pytest.raises(ModelSourceError, match="truncated or corrupt") as caught:
        load_model(copy)
    assert "\n" not in str(caught.value)


def test_missing_weights_are_not_made_up(copy):
    """transformers would fill them with random numbers."""
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    del weights["model.layers.1.self_attn.o_proj.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelSourceError, match=r"lacks weights: model\.layers\.1\.self_attn\.o_proj\.weight"):
        load_model(copy)


def test_weights_of_another_shape(copy):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "num_attention_heads": 6}))
    with pytest.raises(ModelSourceError, match="copy cannot be loaded"):
        load_model(copy)


@pytest.mark.parametrize("how", ["truncated", "header cut", "header text", "length", "not gguf"])
def test_corrupt_gguf(tmp_path, how):
    whole = EMBEDDED["smollm2"].gguf()
    with whole.open("rb") as file:
        start = file.read(3_000_000)  # the header with the vocabulary, and some tensors
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"NOPE" + start[4:] if how == "not gguf" else start)
    if how not in ("truncated", "not gguf"):
        damage(path, how)
    with pytest.raises(
        ModelSourceError, match=r"'broken\.gguf' (cannot be read as a GGUF model|is not a GGUF)"
    ) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore")
def test_encoders_and_sequence_to_sequence_models(tmp_path):
    bert = BertConfig(
        hidden_size=48, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64, vocab_size=99
    )
    AutoModel.from_config(bert).save_pretrained(tmp_path / "bert")
    with pytest.raises(ModelRefusedError, match=r"bert is an encoder-only model \(bert\)"):
        load_model(tmp_path / "bert")
    t5 = T5Config(d_model=48, d_kv=12, d_ff=64, num_layers=1, num_heads=4, vocab_size=99)
    AutoModel.from_config(t5).save_pretrained(tmp_path / "t5")
    with pytest.raises(ModelRefusedError, match=r"t5 is a sequence-to-sequence model \(t5\)"):
        load_model(tmp_path / "t5")


def test_a_model_of_another_kind(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "vit"}))
    with pytest.raises(ModelRefusedError, match="no causal language model"):
        load_model(tmp_path)


def test_an_unknown_architecture(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "no-such-type"}))
    with pytest.raises(ModelSourceError, match="cannot be loaded"):
        load_model(tmp_path)


def test_foreign_code_is_not_run_unasked(copy):
    config = json.loads((copy / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.M"}}
    (copy / "config.json").write_text(json.dumps(config))
    (copy / "own.py").write_text("raise SystemExit('ran')")
    with pytest.raises(ModelSourceError, match="trust_remote_code=True"):
        load_model(copy)


def test_a_decoder_that_looks_ahead_is_refused():
    hf = build_tiny("xlm", causal=False)
    with pytest.raises(ModelRefusedError, match="later tokens are seen by earlier ones"):
        load_model(hf)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_faint_look_ahead_is_refused_too(dtype):
    """In half precision the leak is smaller than rounding elsewhere; the patterns show it."""
    hf = build_tiny("xlm", causal=False)
    with torch.no_grad():
        for attention in hf.transformer.attentions:
            attention.out_lin.weight.mul_(0.05)
    with pytest.raises(ModelRefusedError, match="later tokens are seen"):
        load_model(hf.to(dtype))


def test_parts_with_their_own_attention_code():
    """The text part is looked at in plain code, whatever the other parts use, and gets its own back."""
    hf = build_tiny("gemma3", attn_implementation="sdpa")
    hf.set_attn_implementation({"": "eager", "text_config": "sdpa", "vision_config": "sdpa"})
    before = [hf.config._attn_implementation, *(p._attn_implementation for p in parts(hf))]
    assert load_model(hf).check.passed
    assert [hf.config._attn_implementation, *(p._attn_implementation for p in parts(hf))] == before


def parts(hf):
    return [hf.config.text_config, hf.config.vision_config]


def test_attention_codes_that_disagree_are_refused(monkeypatch):
    """The patterns that are proved must be those of the code that runs."""
    hf = build_tiny("llama", attn_implementation="sdpa")
    import transformers.integrations.sdpa_attention as sdpa

    true = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        sdpa.torch.nn.functional,
        "scaled_dot_product_attention",
        lambda q, k, v, **kw: true(q, k, v.flip(-1), **kw),
    )
    with pytest.raises(
        ModelRefusedError, match=r"the plain and the chosen attention code give different logits"
    ):
        load_model(hf)


def test_a_refusal_carries_the_check():
    with pytest.raises(ModelRefusedError) as caught:
        load_model(build_tiny("inkling_text"))
    assert not caught.value.check.passed
    assert caught.value.check.layers[0].gate < 1e-3 < caught.value.check.layers[0].pattern


@pytest.mark.parametrize("option", [{"dtype": "bfloat16"}, {"device": "cpu"}, {"device_map": "auto"}])
def test_a_loaded_model_is_not_changed(option):
    with pytest.raises(RequestError, match=f"{next(iter(option))} cannot be changed"):
        load_model(build_tiny("llama"), **option)


@pytest.mark.parametrize("source", [None, 5, "", {"a": 1}])
def test_what_is_no_model_at_all(source):
    with pytest.raises(RequestError, match="is no model: give a name"):
        load_model(source)


def test_modules_of_other_kinds():
    with pytest.raises(RequestError, match="a Linear is no transformers model"):
        load_model(torch.nn.Linear(2, 2))
    with pytest.raises(ModelRefusedError, match="no logits: load the class that has a language-model head"):
        load_model(build_tiny("gpt2").transformer)


def test_a_model_is_not_loaded_inside_its_own_gates():
    model = load_model(build_tiny("llama"))
    with gates(model, torch.ones(3, 4)), pytest.raises(GateError, match="outside the gates block"):
        load_model(model.hf)


@pytest.mark.parametrize("name", ["x" * 300, "~nobody-of-that-name/x", "\0"])
def test_names_that_no_file_system_takes(name):
    with pytest.raises(RequestError) as caught:
        load_model(name)
    assert len(str(caught.value)) < 400


def test_a_folder_has_no_revisions(folder):
    with pytest.raises(ModelSourceError, match="has no revisions"):
        load_model(folder, revision="main")


def test_an_address_is_no_name():
    with pytest.raises(ModelSourceError, match="give the name on the hub"):
        load_model("https://example.org/gpt2")


def test_the_old_name_of_dtype(folder):
    assert load_model(folder, torch_dtype=torch.bfloat16).spec.dtype == "bfloat16"


def test_gguf_and_device_map(tmp_path):
    write_tiny_gguf(tmp_path / "t.gguf")
    with pytest.raises(RequestError, match="device_map cannot be used with a GGUF file"):
        load_model(tmp_path / "t.gguf", device_map="auto")


def test_a_folder_without_tokenizer_files_has_none(tmp_path):
    build_tiny("gpt2").save_pretrained(tmp_path)  # its type makes an empty one from nothing
    assert load_model(tmp_path).tokenizer is None


def test_no_memory_is_no_refusal(folder, monkeypatch):
    import headatlas.model.load as module

    def full(*arguments):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(module, "self_check", full)
    with pytest.raises(HeadatlasError, match="no memory left") as caught:
        load_model(folder)
    assert caught.value.exit_code == 1


def test_wrong_options(folder):
    with pytest.raises(RequestError, match="no dtype 'float31'; allowed: auto, fast, float32"):
        load_model(folder, dtype="float31")


def test_unchecked(folder):
    model = load_model(folder, check=False)
    assert model.check is None
    with gates(model, torch.ones(3, 4)):
        model.hf(sample_ids())
