"""ASCII digests of text that databases can't be trusted to compare.

MariaDB's collations take ``alice``, ``Alice``, ``álice`` and ``alice `` for one. So rows are
addressed by hexadecimal digests of the exact text, and never by matching the text in SQL.
"""

from __future__ import annotations

import hashlib
import json

__all__ = ["DIGEST_LENGTH", "digest"]

DIGEST_LENGTH = 64


def digest(*parts: str) -> str:
    """Return the sha256 hex of the parts as a JSON list, which keeps them apart.

    ``("a", "b")`` and ``("ab",)`` differ. The text is ASCII JSON, so every language can derive it.
    """
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()
