"""Back ends by name: near matches, foreign classes, missing extras, options."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mdialeval.errors import ConfigError, MissingExtraError
from mdialeval.registry import assets, create, package_asset, resolve

TABLE = {"ordered": "collections:OrderedDict", "broken": "mdialeval_test_broken:Thing", "gone": "collections:Gone"}


def test_unknown_names_get_a_near_match() -> None:
    with pytest.raises(ConfigError, match="unknown engine 'orderd': did you mean 'ordered'"):
        resolve("engine", TABLE, "orderd")


def test_a_class_outside_of_the_tree_is_found() -> None:
    assert resolve("engine", TABLE, "fractions:Fraction").__name__ == "Fraction"


def test_a_missing_class_or_module_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="no class 'Gone'"):
        resolve("engine", TABLE, "gone")
    with pytest.raises(ConfigError, match="no module 'no_such_module'"):
        resolve("engine", TABLE, "no_such_module:Thing")


def test_a_missing_extra_prints_the_pip_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mdialeval_test_broken.py").write_text("import xllamacpp\n\n\nclass Thing: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtraError, match=r'pip install "mdialeval\[llm\]"') as caught:
        resolve("engine", TABLE, "broken")
    assert caught.value.exit_code == 4
    assert assets("engine", TABLE, "broken")[0].fix == 'pip install "mdialeval[llm]"'


class Engine:
    def __init__(self, *, model: str, beams: int = 1) -> None:
        self.model, self.beams = model, beams


def test_options_are_compared_with_the_signature() -> None:
    table = {"engine": f"{__name__}:Engine"}
    sys.modules.setdefault(__name__, sys.modules[Engine.__module__])
    assert create("engine", table, "engine", {"model": "x"}).beams == 1
    with pytest.raises(ConfigError) as caught:
        create("engine", table, "engine", {"beans": 2})
    assert "has no option 'beans': did you mean 'beams'?" in str(caught.value)
    assert "needs the option 'model'" in str(caught.value)


def test_package_assets_know_versions() -> None:
    assert package_asset("numpy").present
    assert package_asset("no-such-package-here").fix == "pip install no-such-package-here"
