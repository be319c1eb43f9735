"""Embeddings from any provider that litellm knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.core.checks import CheckMessage

from ..exceptions import ConfigurationError, EmbeddingInvalid
from .base import TEXT_FORMAT, Embedder

__all__ = ["LiteLLMEmbedder"]


class LiteLLMEmbedder(Embedder):
    """Calls ``litellm.embedding``; nothing optional is sent unless an option asks for it.

    ``model``: as litellm names it, such as "text-embedding-3-small" or "voyage/voyage-3".
    ``dimensions``: the width to request, where the model can shorten. ``batch_size``: texts a
    request. ``timeout``: seconds an attempt; litellm makes up to three. ``api_base``: another
    endpoint. Every other option is passed on to litellm as it is.
    """

    is_remote: ClassVar[bool] = True

    def __init__(
        self,
        *,
        model: str,
        dimensions: int | None = None,
        batch_size: int = 96,
        timeout: float | None = None,
        api_base: str | None = None,
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
        self.model = model
        self.batch_size = batch_size
        self.space = f"{model}@{dimensions or 'default'}{_endpoint(api_base)}/{TEXT_FORMAT}"
        given = {"dimensions": dimensions, "timeout": timeout, "api_base": api_base, **options}
        self.options = {name: value for name, value in given.items() if value is not None}

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the vectors of one request, in the order of the texts.

        Raises what litellm raises, and EmbeddingInvalid when the answer's items can't be told
        apart.
        """
        import litellm  # 3 to 4 seconds and 200 MB: only where it is needed

        response = litellm.embedding(model=self.model, input=list(texts), **self.options)
        return _in_order(response.data)

    def check(self, setting: str) -> list[CheckMessage]:
        return []


def _in_order(items: Sequence[Any]) -> list[Any]:
    """Sort by ``index``: litellm keeps the server's order, which nobody promises."""
    by_index = {_field(item, "index"): _field(item, "embedding") for item in items}
    if sorted(by_index, key=str) != sorted(range(len(items)), key=str):
        raise EmbeddingInvalid(
            f"The provider's {len(items)} vectors are not numbered 0 to {len(items) - 1}, so they "
            "can't be told apart."
        )
    return [by_index[index] for index in range(len(items))]


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
