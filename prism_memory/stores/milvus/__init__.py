"""MilvusStore: nearest by a Milvus server, or by a file of Milvus Lite."""

from .store import MilvusStore

__all__ = ["MilvusStore"]
