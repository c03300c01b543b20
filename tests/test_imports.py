"""What imports what, and what every public name says about itself."""

import ast
import functools
import importlib
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import skcal

ROOT = Path(skcal.__file__).parent

# Lower layers first; a layer imports lower ones and its own modules only.
LAYERS = [
    "exceptions",
    "_sklearn_compat",
    "_running",
    "_show",
    "_selection",
    "_validation",
    "_labels",
    "datasets",
    "_matrices",
    "_bins",
    "_groups",
    "_folds",
    "_scores",
    "pair_risk",
    "kernels",
    "notions",
    "_rounding",
    "_read_as",
    "sample",
    "table",
    "recalibration",
    "functions",
    "model_selection",
    "metrics",
    "hypothesis_tests",
    "choice",
    "monitoring",
    "displays",
    "report",
    "skcal",
    "cli",
    "__main__",
]
PRINTING = ("report", "cli", "displays", "monitoring")
N_PRIVATE = 39  # names that these rooms import of others and no package offers; it only falls
MODULES = {
    ".".join(("skcal", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in ROOT.rglob("*.py")
}


@functools.cache
def parsed(module):
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@functools.cache
def imports(module):
    """List (module, name) for every import statement, also inside functions; name may be None."""
    found = []
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}, line {node.lineno}: a relative import"
            found += [(node.module, alias.name) for alias in node.names]
    return found


def skcal_imports(module):
    """Return the skcal modules that a module imports."""
    found = set()
    for package, name in imports(module):
        if package.split(".")[0] == "skcal":
            submodule = f"{package}.{name}"
            found.add(submodule if submodule in MODULES else package)
    return found


def layer(module):
    return module.split(".")[1] if "." in module else "skcal"


def test_modules_import_only_lower_layers():
    rank = {module: LAYERS.index(layer(module)) for module in MODULES}
    pairs = [(module, other) for module in MODULES for other in skcal_imports(module)]
    wrong = [
        f"{module} imports {other}"
        for module, other in pairs
        if LAYERS.index(layer(other)) >= rank[module] and layer(other) != layer(module)
    ]
    assert not wrong, wrong
    assert len(pairs) > 500


def test_contributing_lists_the_rooms_in_this_order():
    path = ROOT.parent / "CONTRIBUTING.md"
    if not path.exists():
        pytest.skip("skcal is not imported from its repository")
    _, rooms, _ = path.read_text(encoding="utf-8").split("\n## ", 2)
    names = re.findall(r"^- (`.*?`): ", rooms, re.MULTILINE)
    assert [name for each in names for name in each.strip("`").split("`, `")] == LAYERS


def imports_when_used(module):
    """Return the skcal modules that a module imports by name, when somebody asks for them."""
    return {
        node.args[0].value
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module"
        if isinstance(node.args[0], ast.Constant)
    }


def test_modules_import_each_other_without_cycles_also_when_they_are_used():
    # A package's __init__ re-exports, so that importing it means importing its modules.
    graph = {
        module: (skcal_imports(module) | imports_when_used(module)) - {module} for module in MODULES
    }
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert {"skcal", "skcal.notions"} <= set(order)


def test_no_module_imports_back_up():
    """Imports of a higher room, when somebody asks; the package itself, above all rooms, may."""
    found = {
        (module, other)
        for module in MODULES
        for other in imports_when_used(module)
        if LAYERS.index(layer(other)) > LAYERS.index(layer(module))
    }
    assert not found


@functools.cache
def private_names():
    """What rooms that print use of the rest and no package offers, and the modules that do.

    The package ``_show`` is the internal room whose names every room may use (CONTRIBUTING.md).
    """
    packages = [
        importlib.import_module(name)
        for name, path in MODULES.items()
        if path.name == "__init__.py" or name == "skcal.exceptions"
    ]
    offered = [getattr(each, name) for each in packages for name in getattr(each, "__all__", ())]
    offered += [  # documented in doc/api/blocks.rst
        thing
        for block in map(importlib.import_module, ("skcal.notions", "skcal.kernels"))
        for name, thing in vars(block).items()
        if name[0] != "_" and getattr(thing, "__module__", "") == block.__name__
    ]
    offered = {id(thing) for thing in offered}
    users = {}
    for module in MODULES:
        room = layer(module)
        for other, name in imports(module) if room in PRINTING else ():
            within = other.split(".")[0] == "skcal" and layer(other) != room
            if not within or name in (None, "__version__") or f"{other}.{name}" in MODULES:
                continue
            thing = getattr(importlib.import_module(other), name)
            if getattr(thing, "__module__", "skcal").split(".")[0] == "sklearn":
                continue  # a name of scikit-learn, by way of _sklearn_compat
            if id(thing) not in offered:
                users.setdefault(f"{other}.{name}", []).append(module)
    return users


def test_rooms_that_print_use_few_private_names():
    """They ask public functions; a change below need not be known above."""
    assert len(private_names()) <= N_PRIVATE, private_names()
    assert "skcal.sample.read_sample" in private_names()


def test_packages_only_re_export():
    packages = [module for module, path in MODULES.items() if path.name == "__init__.py"]
    assert {"skcal", "skcal.metrics"} <= set(packages)
    for module in packages:
        tree = parsed(module)
        rest = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
        # It imports higher rooms when they are used.
        if module == "skcal":
            rest = [node for node in rest if not isinstance(node, ast.FunctionDef | ast.If)]
        assigned = {ast.unparse(node).split(" = ")[0] for node in rest[1:]}
        assert assigned <= {"__all__", "__version__", "_ANSWERS", "_WHEN_USED"}, module
        assert ast.get_docstring(tree), module


def test_import_skcal_loads_answers_when_used_and_no_optional_package():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['matplotlib', 'pandas', 'dask'])); "
        "import skcal; print(*(name for name in sys.modules if name.startswith('skcal.'))); "
        "assert all(getattr(skcal, name).__name__ == f'skcal.{name}' "
        "for name in skcal._WHEN_USED); [getattr(skcal, name) for name in skcal.__all__]"
    )  # importing a module whose entry is None raises
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    loaded = result.stdout.split()
    assert "skcal.recalibration" in loaded
    late = {"skcal.hypothesis_tests", "skcal.displays", "skcal.report", "skcal.monitoring"}
    assert not late & set(loaded)


PACKAGES = [
    skcal,
    importlib.import_module("skcal.recalibration"),
    importlib.import_module("skcal.metrics"),
    importlib.import_module("skcal.hypothesis_tests"),
    importlib.import_module("skcal.monitoring"),
    importlib.import_module("skcal.displays"),
    importlib.import_module("skcal.report"),
]


@pytest.mark.parametrize("package", PACKAGES)
def test_all_names_are_sorted_and_exist(package):
    assert package.__all__ == sorted(package.__all__)
    assert all(callable(getattr(package, name)) for name in package.__all__)


def test_the_package_offers_few_names():
    assert len(skcal.__all__) <= 24
