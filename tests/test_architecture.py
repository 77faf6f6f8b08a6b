"""Layers hold, there is no import cycle, and importing the package is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src" / "mdialeval"
LAYERS: list[set[str]] = [
    {"records", "errors", "languages", "files"},
    {"config", "registry", "signature", "tables", "store", "cache", "assets", "devices", "unpacked"},
    {"readers", "segments", "translate", "rank", "graphs", "tasks", "llm"},
    {"model"},
    {"train", "scorers", "agreement", "report"},
    {"pipeline"},
    {"verbs"},
    {"api"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def _modules() -> dict[str, Path]:
    found = {}
    for path in SRC.rglob("*.py"):
        parts = path.relative_to(SRC.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imports(path: Path, modules: dict[str, Path], module_level_only: bool) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if module_level_only and (is_function or is_typing):
            skipped.update(ast.walk(node))
    names: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.add(full if full in modules else node.module)
    return {name for name in names if name in modules}


def _folder(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_lower_layers_never_import_higher_ones() -> None:
    modules = _modules()
    wrong = [
        f"{name} imports {target}"
        for name, path in modules.items()
        if name != "mdialeval"
        for target in _imports(path, modules, module_level_only=False)
        if target != "mdialeval" and LEVEL[_folder(target)] > LEVEL[_folder(name)]
    ]
    assert wrong == []


def test_every_module_has_a_layer() -> None:
    assert sorted({_folder(m) for m in _modules()} - set(LEVEL) - {""}) == []


def test_no_import_cycle() -> None:
    modules = _modules()
    edges = {name: _imports(path, modules, module_level_only=True) - {name} for name, path in modules.items()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name])
        if name not in done:
            for target in sorted(edges[name]):
                visit(target, (*trail, name))
            done.add(name)

    for name in sorted(modules):
        visit(name, ())


def test_importing_the_package_loads_no_heavy_library() -> None:
    heavy = ("torch", "transformers", "pandas", "spacy", "comet", "matplotlib")
    code = f"import sys, mdialeval; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
