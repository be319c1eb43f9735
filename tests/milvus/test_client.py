"""The client, and what becomes of its errors and its logs."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from prism_memory.exceptions import IndexUnavailable
from prism_memory.models import Space
from prism_memory.stores import MilvusStore
from tests.queues import closed_port


def test_its_absence_is_told_with_the_place_and_what_to_do():
    store = MilvusStore(uri=f"http://127.0.0.1:{closed_port()}", token="root:hush-hush")
    store.alias = "m"
    space = Space(name="s", key="5" * 64, width=3, bits=256)
    with pytest.raises(IndexUnavailable) as caught:
        store.held("default", space, 0, None)
    for words in ("'m'", store.place, "MilvusException", 'PRISM_MEMORY["STORES"]'):
        assert words in str(caught.value)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(("own", "level"), [("", logging.CRITICAL), ("ERROR", logging.ERROR)])
def test_importing_the_client_leaves_the_project_s_logging_alone(own, level):
    code = (
        "import logging, django; django.setup()\n"
        f"if {own!r}: logging.getLogger('pymilvus').setLevel({own!r})\n"
        "from prism_memory.stores.milvus.connection import imported\n"
        "imported(); logger = logging.getLogger('pymilvus')\n"
        "print(logger.level, logger.handlers, logger.propagate)"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == f"{level} [] True"
