"""Embeddings from any provider that litellm knows."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from ..exceptions import ConfigurationError, EmbeddingInvalid
from ..tokens import TiktokenCounter
from .base import TEXT_FORMAT, Embedder

__all__ = ["LiteLLMEmbedder"]

#: The encoding of OpenAI's embedding models.
TOKENS = "cl100k_base"


class LiteLLMEmbedder(Embedder):
    """Calls ``litellm.embedding``; nothing optional is sent unless an option asks for it.

    ``model``: as litellm names it, such as "text-embedding-3-small" or "voyage/voyage-3".
    ``dimensions``: the width to request, where the model can shorten. ``batch_size``: texts a
    request. ``timeout``: seconds an attempt, of which litellm makes up
    to three; by default litellm's own, which is ten minutes. ``api_base``: another
    endpoint. ``truncate``: cut a text at the model's limit, by OpenAI's tokenizer for embeddings;
    by default a text that is too long is reported, and not embedded in part. Every other option is
    passed on to litellm as it is.
    """

    def __init__(
        self,
        *,
        model: str,
        dimensions: int | None = None,
        batch_size: int = 96,
        timeout: float | None = None,
        api_base: str | None = None,
        truncate: bool = False,
        **options: Any,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise ConfigurationError(f"model is {model!r:.80}. Name an embedding model.")
        for name, value in (("dimensions", dimensions), ("batch_size", batch_size)):
            if name == "dimensions" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(
                    f"{name} is {value!r:.80}. Give a whole number of at least 1."
                )
        if not isinstance(truncate, bool):
            raise ConfigurationError(f"truncate is {truncate!r:.80}. Give True or False.")
        self.model = model
        self.truncate = truncate
        self.batch_size = batch_size
        self.space = f"{model}@{dimensions or 'default'}{_endpoint(api_base)}/{TEXT_FORMAT}"
        given = {"dimensions": dimensions, "timeout": timeout, "api_base": api_base, **options}
        self.options = {name: value for name, value in given.items() if value is not None}

    def embed(self, texts: Sequence[str]) -> Sequence[Any]:
        """Return the vectors of one request, in the order of the texts; None for a missing one.

        Raises what litellm raises, EmbeddingInvalid when the items of the answer can't be told
        apart, and ConfigurationError when texts are to be truncated at a limit nobody knows.
        """
        import litellm  # 3 to 4 seconds and 200 MB: only where it is needed

        if self.truncate:
            texts = [self._truncated(text) for text in texts]
        response = litellm.embedding(model=self.model, input=list(texts), **self.options)
        return _in_order(response.data, len(texts))

    def _truncated(self, text: str) -> str:
        import litellm

        try:
            limit = litellm.get_model_info(self.model).get("max_input_tokens")
        except Exception:  # noqa: BLE001 - it raises a bare Exception for models of its own
            limit = None
        if not limit:
            raise ConfigurationError(
                f"truncate is on, but litellm knows no limit of the model {self.model!r:.80}. "
                "Turn it off: texts that are too long are then reported."
            )
        return TiktokenCounter(encoding=TOKENS).cut(text, limit)


def _in_order(items: Sequence[Any], count: int) -> list[Any]:
    """Sort by ``index``: litellm keeps the server's order, which nobody promises.

    What a short answer numbers is kept, since it is paid for. Servers that number nothing are
    taken to keep the order.
    """
    if not items or len(items) > count:
        raise EmbeddingInvalid(f"The provider returned {len(items)} vectors for {count} texts.")
    indices = [_field(item, "index") for item in items]
    if len(items) == count and set(indices) == {None}:
        indices = list(range(count))
    if len(set(indices)) < len(indices) or not set(indices) <= set(range(count)):
        raise EmbeddingInvalid(
            f"The provider's {len(items)} vectors for {count} texts are not numbered 0 to "
            f"{count - 1}, so they can't be told apart."
        )
    rows: list[Any] = [None] * count
    for index, item in zip(indices, items, strict=True):
        rows[index] = _decoded(_field(item, "embedding"))
    return rows


def _decoded(embedding: Any) -> Any:
    """Decode what ``encoding_format="base64"`` brings, and litellm passes on: float32 numbers."""
    if not isinstance(embedding, str):
        return embedding
    try:
        data = base64.b64decode(embedding, validate=True)
        return list(struct.unpack(f"<{len(data) // 4}f", data))
    except (ValueError, struct.error):
        return None


def _field(item: Any, name: str) -> Any:
    return item.get(name) if hasattr(item, "get") else getattr(item, name, None)


def _endpoint(api_base: str | None) -> str:
    """Name an endpoint without what may be secret in its address."""
    if api_base is None:
        return ""
    try:
        parts = urlsplit(api_base)
        host, port = parts.hostname, parts.port
    except (ValueError, TypeError, AttributeError):
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise ConfigurationError(
            "api_base is not a URL. Give one such as 'https://example.com/v1'."
        ) from None
    return f"+{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
