"""The named mutants still fit the code; ``python tools/mutants.py`` shows that they are caught."""

from __future__ import annotations

import pytest

from tools.mutants import MUTANTS, ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_changes_code_that_is_there_once(mutant):
    text = (ROOT / "prism_memory" / mutant.file).read_text()
    assert text.count(mutant.before) == 1
    compile(text.replace(mutant.before, mutant.after), mutant.file, "exec")
    assert (ROOT / "tests" / f"test_{mutant.likely}.py").exists()
