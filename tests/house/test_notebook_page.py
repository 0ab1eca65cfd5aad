"""docs/notebook.md runs as it stands: on SmolLM2, and on small models of other shapes that know its words."""

from __future__ import annotations

import os
import re
from pathlib import Path

import matplotlib
import pytest
from transformers import PreTrainedTokenizerFast

from headatlas.task import load_relation
from support.tiny import build_tiny

PAGE = Path(__file__).parents[2] / "docs" / "notebook.md"


def code():
    return "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL))


def run_page(source, folder):
    """Run the code of the page in a folder, and return its variables."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with matplotlib.rc_context({"backend": "agg"}):
            variables: dict = {}
            exec(compile(source, str(PAGE), "exec"), variables)
        return variables
    finally:
        os.chdir(before)


def tokenizer_of_the_page():
    """One token per word, with the space before it, for all words of the page and of its relation."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    texts = [*re.findall(r'"([^"\n]*)"', code())]
    texts += re.findall(r"\w+", code())
    texts += [word for pair in load_relation("country-capital").pairs for word in pair]
    words = {word for text in texts for word in re.findall(r"\w+|[^\w\s]", text)}
    words = sorted(words | {f"{word}s" for word in words})
    names = ["<unk>", *words, *(f" {word}" for word in words)]
    tokenizer = Tokenizer(models.WordLevel({name: index for index, name in enumerate(names)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r" ?\w+|[^\w\s]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::headatlas.core.errors.HeadatlasWarning")
@pytest.mark.parametrize("kind", ["gpt2", "qwen3", "gemma3_text"])
def test_the_page_runs_on_other_shapes(kind, tmp_path):
    tokenizer = tokenizer_of_the_page()
    is_gpt2 = kind == "gpt2"
    layers = {"n_layer": 24, "n_positions": 512} if is_gpt2 else {"num_hidden_layers": 24}
    hf = build_tiny(kind, vocab_size=len(tokenizer), **layers)
    hf.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    source = code().replace('"smollm2"', repr(str(tmp_path / "model"))).replace("L23H4", "L23H3")
    variables = run_page(source, tmp_path)
    assert variables["atlas"].contents.tasks == ("capitals",)
    assert (tmp_path / "heads.parquet").is_file()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::headatlas.core.errors.HeadatlasWarning")
def test_the_page_runs_on_smollm2(tmp_path):
    variables = run_page(code(), tmp_path)
    model, atlas = variables["model"], variables["atlas"]
    assert model.next_tokens("The capital of France is", k=1)["token"][0] == " Paris"
    with model.patch(["L20", "L21", "L22", "L23"], from_text="The capital of Spain is"):
        assert model.next_tokens("The capital of France is", k=1)["token"][0] == " Madrid"
    assert model.top_tokens("L23H4", " France", k=3, norms="folded")["token"][2] == " Paris"
    assert float(variables["scores"].sel(direction="promote", layer=23, head=4)[0]) > 0.5
    assert atlas.seeds("capitals") == [0, 1] and len(atlas.effects("capitals").layer) == 30
