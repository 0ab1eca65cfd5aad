"""`Model`: a transformers model with every head at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headatlas.core import GateError, Head, ModelSpec, RequestError
from headatlas.model.activations import head_outputs, observe
from headatlas.model.anatomy import Anatomy, Attention
from headatlas.model.fingerprint import fingerprint
from headatlas.model.first_tokens import first_tokens
from headatlas.model.gate_modules import Gating, is_gated
from headatlas.model.gate_values import gate_tensor, replacement_outputs
from headatlas.model.labels import (
    labelled_head_outputs,
    logit_attribution,
    next_tokens,
    patterns,
    top_tokens,
)
from headatlas.model.linear import columns_of, is_plain, width_in, width_out
from headatlas.model.logit_attribution import find_final_norm
from headatlas.model.modes import eval_mode
from headatlas.model.post_norm import NormAfter, find_norms
from headatlas.model.probe import eager, input_device
from headatlas.model.proof import SelfCheck
from headatlas.model.readout import Readout
from headatlas.model.source_vectors import Sources
from headatlas.model.texts import Text, one_row, token_ids, token_texts
from headatlas.model.weights import ValueOutput, output_slice, read_head, value_slice

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["SOURCES", "Model", "gates"]

SOURCES = ("embedding", "first_mlp")


class Model:
    """A model whose heads were found and proved. Made by `load_model`.

    `hf` is the plain transformers model, unchanged; `tokenizer` may be None for a model that was
    handed over loaded; `check` is the self-check it passed (None if that was skipped).

    Every run (map, contrast, relations, validate, export) hashes the weights anew, so weights may change
    between runs, and measures in eval mode; afterwards modules that were in train mode are again.
    """

    def __init__(
        self,
        hf: Any,
        tokenizer: Any,
        spec: ModelSpec,
        anatomy: Anatomy,
        gating: Gating,
        check: SelfCheck | None,
    ) -> None:
        self.hf = hf
        self.tokenizer = tokenizer
        self.spec = spec
        self.anatomy = anatomy
        self.check = check
        self._gating = gating
        self._sources = Sources(hf, anatomy)
        self._readout = Readout(hf)
        self._norms: dict[int, NormAfter] | None = None
        self._final_norm: NormAfter | None = None
        #: the tokenizer that was asked, and its answer
        self._first_tokens: tuple[Any, tuple[tuple[int, ...], str]] | None = None
        #: hash of the exact weights when the model was loaded or last measured
        self._weights_hash = fingerprint(hf, exact=True)
        self._is_measuring = False
        #: what was found out about the model at some cost; forgotten when the weights change
        self.remembered: dict[Any, Any] = {}

    def __repr__(self) -> str:
        layers, heads = self.spec.shape
        return f"<Model {self.spec.name}: {layers} layers x {heads} heads, {self.spec.dtype}>"

    @property
    def device(self) -> torch.device:
        """Where token ids go in."""
        return input_device(self.hf)

    @property
    def weights_hash(self) -> str | None:
        """A hash of the weights as they are now; `spec.content_hash` is the same in any dtype."""
        return self._weights_hash if self._is_measuring else fingerprint(self.hf, exact=True)

    @property
    def weights_identity(self) -> str:
        """`weights_hash`, or a text that equals no other if the weights cannot be read."""
        return self.weights_hash or f"unknown {uuid4().hex}"

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """The length of a run: its hashes are those of the weights at its beginning, and the model is in eval
        mode. Modules that were in train mode are put back into it."""
        if self._is_measuring:
            yield
            return
        self.identify_weights()
        self._is_measuring = True
        try:
            with eval_mode(self.hf):
                yield
        finally:
            self._is_measuring = False

    def _evaluating(self) -> AbstractContextManager[None]:
        """Eval mode; inside a run it is set already, and looking at every module takes time."""
        return nullcontext() if self._is_measuring else eval_mode(self.hf)

    def identify_weights(self) -> None:
        """Hash the weights as they are now. Unless they are known to be the same, read their dtype again and
        forget what was derived from the old ones."""
        before, self._weights_hash = self._weights_hash, fingerprint(self.hf, exact=True)
        if before != self._weights_hash or before is None:
            self.spec = replace(
                self.spec, content_hash=fingerprint(self.hf), dtype=str(self.hf.dtype).removeprefix("torch.")
            )
            self._sources = Sources(self.hf, self.anatomy)
            self._norms = self._final_norm = self._first_tokens = None
            self.remembered = {}

    def first_tokens(self) -> tuple[tuple[int, ...], str]:
        """(ids of the tokens that go before every text, usually one or none; how that is known)."""
        if self.tokenizer is None:
            raise RequestError(f"{self.spec.name} has no tokenizer; pass tokenizer=… to load_model.")
        if self._first_tokens is None or self._first_tokens[0] is not self.tokenizer:
            with eval_mode(self.hf):
                self._first_tokens = self.tokenizer, first_tokens(self.hf, self.tokenizer)
        return self._first_tokens[1]

    def gates(
        self, values: Any, positions: Any = None, replacement: Any = "zero"
    ) -> AbstractContextManager[None]:
        """See `headatlas.gates`."""
        values = gate_tensor(self.spec, values)
        outputs = replacement_outputs(self, replacement)
        is_text = isinstance(replacement, str)
        return self._gating(values, positions, outputs, one_position_for_all=not is_text)

    def patch(self, heads: Any, from_text: Text, positions: Any = None) -> AbstractContextManager[None]:
        """Inside the block the outputs of `heads` are those that they have in `from_text`, a text of as many
        tokens as those that the model reads there.

        >>> with model.patch(["L17H2", "L23H4"], "The capital of Spain is"):  # doctest: +SKIP
        ...     model.next_tokens("The capital of France is")
        """
        outputs = self.head_activations(token_ids(self, from_text))
        gates_of_heads = gate_tensor(self.spec, heads)
        return self._gating(gates_of_heads, positions, outputs, one_position_for_all=False)

    def __call__(self, text: Text) -> Float[Tensor, "row position vocabulary"]:
        """The logits of texts of equal length in tokens, or of token ids. Texts get the first tokens that the
        model wants. Gates that are in force hold here too."""
        with torch.no_grad(), self._evaluating():
            logits: Tensor = self.hf(input_ids=token_ids(self, text), use_cache=False).logits
        return logits

    def tokens(self, text: Text) -> list[str]:
        """The tokens of a text as the model reads it, the first tokens that it wants included."""
        return token_texts(self, one_row(self, text)[0])

    def next_tokens(self, text: Text, k: int = 10) -> pd.DataFrame:
        """The `k` most probable next tokens of a text: columns `token` and `probability`."""
        return next_tokens(self, text, k)

    def patterns(self, text: Text) -> xr.DataArray:
        """Attention patterns [layer, head, query, key] of a text, or with `row` first of several texts. The
        coordinates `query_token` and `key_token` hold the tokens; negative positions count from the end."""
        return patterns(self, text)

    def head_outputs(self, text: Text) -> xr.DataArray:
        """The outputs of all heads before W_O (TransformerLens: `hook_z`): [position, layer, head, dim], or
        with `row` first for several texts. The coordinate `token` holds the tokens; negative positions count
        from the end. Gates that are in force hold here too."""
        return labelled_head_outputs(self, text)

    def logit_attribution(
        self, text: Text, target: str | int, foil: str | int | None = None, position: int = -1
    ) -> xr.DataArray:
        """What each component of the model adds to the logit of `target` after a text, or to its difference
        from the logit of `foil`: along `component` the heads ("L5H3"), what each layer adds besides ("L5
        rest": its MLP and biases), "embedding" and "bias". They sum to the logit.

        The final norm is applied as the model applies it at that position.
        """
        return logit_attribution(self, text, target, foil, position)

    def top_tokens(
        self,
        head: str | tuple[int, int] | Head,
        token: str | int,
        k: int = 10,
        *,
        norms: str = "published",
        source: str = "first_mlp",
        suppressed: bool = False,
    ) -> pd.DataFrame:
        """The tokens that a head promotes most (or suppresses most) by its weights when it attends to
        `token`: columns `token` and `score`.

        `norms="published"` ignores the final norm, as MAPS does; "folded" multiplies by its weights, which is
        nearer to what the model computes. `source` as in `source_vectors`.
        """
        return top_tokens(self, head, token, k, norms=norms, source=source, suppressed=suppressed)

    def fixed_gates(self, values: Float[Tensor, "row layer head"]) -> AbstractContextManager[None]:
        """`gates` that do not change inside the block: what compiled blocks need. Not for
        models whose weights are elsewhere until they are used."""
        return self._gating.ahead(values)

    def logits_at(
        self,
        ids: Int[Tensor, "row position"],
        rows: Int[Tensor, " wanted"],
        positions: Int[Tensor, " wanted"],
    ) -> Float[Tensor, "wanted vocabulary"]:
        """The logits at position `positions[i]` of row `rows[i]` of `ids`.

        The vocabulary is visited for these positions only. Gates that are in force hold here too.
        """
        self.try_readout(ids)
        with self._evaluating():
            return self._readout(ids, rows, positions)

    def try_readout(self, ids: Int[Tensor, "row position"]) -> None:
        """Find out, once per model, whether `logits_at` can leave out what is not wanted; `ids` are some
        texts. Otherwise it is done at the first need."""
        if not self._readout.tried:
            with self._gating.paused(), self._evaluating():
                self._readout.find_out(ids)

    def head_activations_at(
        self, ids: Int[Tensor, "row position"], positions: Int[Tensor, " row"]
    ) -> dict[int, tuple[Float[Tensor, "row channel"], Float[Tensor, "row hidden"]]]:
        """layer -> (head outputs, side by side; what the values are made from) at position `positions[row]`
        of each row of `ids`, as the model runs."""
        with eval_mode(self.hf):
            return observe(self.hf, self.anatomy, ids, positions)

    def head_activations(
        self, ids: Int[Tensor, "row position"]
    ) -> dict[int, Float[Tensor, "row position channel"]]:
        """layer -> what the heads put out on these texts, side by side, as tensors; `head_outputs` labels
        them."""
        with eval_mode(self.hf):
            return head_outputs(self.hf, self.anatomy, ids)

    def plain_attention(self) -> AbstractContextManager[None]:
        """Inside the block, transformers' plain attention code instead of the one that was chosen."""
        return eager(self.hf)

    def attention(self, layer: int) -> Attention:
        """Where the heads of a layer are."""
        self.spec.require((layer, 0))
        found = self.anatomy.attention[layer]
        assert found is not None
        return found

    def value_output(self, layer: int | str | tuple[int, int] | Head, head: int | None = None) -> ValueOutput:
        """(W_V [hidden, head_dim], W_O [head_dim, hidden]) of one query head.

        The head as two numbers, `value_output(5, 3)`, or as one name, `"L5H3"` or `(5, 3)`.
        Heads that share a key/value head share W_V. In the weights' own dtype and device;
        quantised weights are dequantised for this one head.
        """
        name = self.spec.require(layer if head is None else (layer, head))  # type: ignore[arg-type]
        return read_head(self.hf, self.attention(name.layer), name.head)

    def value_weight(
        self, layer: int | str | tuple[int, int] | Head, head: int | None = None
    ) -> Float[Tensor, "hidden head_dim"]:
        """W_V of one head, named as in `value_output`."""
        name = self.spec.require(layer if head is None else (layer, head))  # type: ignore[arg-type]
        return value_slice(self.hf, self.attention(name.layer), name.head)

    def output_weight(
        self, layer: int | str | tuple[int, int] | Head, head: int | None = None
    ) -> Float[Tensor, "head_dim hidden"]:
        """W_O of one head, named as in `value_output`."""
        name = self.spec.require(layer if head is None else (layer, head))  # type: ignore[arg-type]
        return output_slice(self.hf, self.attention(name.layer), name.head)

    def final_norm(self) -> NormAfter:
        """The norm before the unembedding."""
        if self._final_norm is None:
            self._final_norm = find_final_norm(self.hf, self.anatomy)
        return self._final_norm

    def norm_after(self, layer: int) -> NormAfter | None:
        """The norm between the layer's W_O and the stream, if there is one."""
        if self._norms is None:
            self._norms = find_norms(self.hf, self.anatomy)
        return self._norms.get(layer)

    def source_vectors(
        self, tokens: Tensor | Sequence[int], kind: str = "first_mlp"
    ) -> Float[Tensor, "token hidden"]:
        """What tokens bring to the heads; `kind` is one of `SOURCES`."""
        if kind not in SOURCES:
            raise RequestError(f"no source vectors of kind {kind!r}; there are {' and '.join(SOURCES)}.")
        ids = self._token_ids(tokens)
        if is_gated(self.hf):
            raise GateError("source vectors are those of the plain model; call it outside the gates block.")
        if not len(ids):
            return torch.empty(0, self.spec.hidden, dtype=self.hf.dtype, device=self.device)
        with eval_mode(self.hf):
            return self._sources.embedding(ids) if kind == "embedding" else self._sources.first_mlp(ids)

    def _token_ids(self, tokens: Any) -> Int[Tensor, " token"]:
        try:
            ids = torch.as_tensor(tokens, device=self.device)
        except (TypeError, ValueError, RuntimeError) as error:
            raise RequestError("tokens are given as ids: one list of whole numbers.") from error
        if ids.ndim != 1 or (len(ids) and (ids.is_floating_point() or ids.is_complex())):
            raise RequestError(
                f"tokens are one list of whole numbers, not {ids.dtype} of shape {list(ids.shape)}."
            )
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < self.spec.vocabulary:
            raise RequestError(f"token ids go from 0 to {self.spec.vocabulary - 1}.")
        return ids.long()

    def unembedding(self) -> Float[Tensor, "hidden vocabulary"]:
        """W_U, without bias."""
        output = self.hf.get_output_embeddings()
        if output is None or width_in(output) != self.spec.hidden:
            raise RequestError(f"{self.spec.name} has no unembedding that reads its stream directly.")
        if is_plain(output):
            weight: Tensor = output.weight.detach()
            return weight.T
        return columns_of(output, torch.arange(width_out(output)))


def gates(
    model: Model, values: Any, positions: Any = None, replacement: Any = "zero"
) -> AbstractContextManager[None]:
    """Gate every head of `model` inside a `with` block.

    `values` are one of:

    - [layer, head] for all rows, or [row, layer, head] with one gate set per row of the batch: a tensor
      (gradients flow into it), an array, nested lists, or a labelled array such as
      `atlas.gates(task).sel(fit="retain").mean("seed")`;
    - heads to switch off: `["L5H3", (7, 0), "L9"]`, where "L9" is a whole layer, or an array, Index or Series
      of such names;
    - a mapping from heads or layers to values, all others being one: `{"L5H3": 0.5}`.

    A tensor is read at each forward pass, so an optimizer may step inside the block.

    Each head's output is multiplied by its value before the output projection: 1 leaves the model as
    it is, bit for bit, 0 removes the head. Values where the model has no head are ignored.

    With `positions` they hold there alone: a whole number or a slice for all rows (negative numbers count
    from the end of the text), one position per row, or [row, position] of bools. Positions count the tokens
    of the whole text from 0, padding on the left included, also where a key/value cache holds the first of
    them (`generate`): `positions=0` gates the first token of the prompt, `positions=-1` its last one, and
    neither gates a generated token.

    `replacement` is what a closed gate leaves in place of a head's output: "zero", "mean" (the head's mean
    output in a built-in English text), a text as long in tokens as those that the model reads, what
    `Model.head_outputs` gives, its mean over positions or another array [layer, head, dim], or a mapping from
    layers to tensors [channel] or [row, position, channel] with the heads of the layer side by side. A gate
    between 0 and 1 mixes the two.

    Values are rounded to the dtype of the model; those in double precision keep single precision.

    Gating a gated model is refused. When the block ends, also by an error, the model is as before.
    With gradient checkpointing call `backward` inside the block: it runs the model again.
    Gates hold for all threads that use the model.
    """
    if not isinstance(model, Model):
        raise GateError(f"gates takes the Model that load_model gives, not a {type(model).__name__}.")
    return model.gates(values, positions, replacement)
