"""What imports what, and what every public name says about itself."""

import ast
import importlib
import inspect
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
    "_sklearn_compat",
    "_floats",
    "_notes",
    "_parallel",
    "_text",
    "_cv_results",
    "_html",
    "_files",
    "_frames",
    "_tables",
    "_summaries",
    "datasets",
    "_validation",
    "_matrices",
    "_cholesky",
    "_bins",
    "notions",
    "pair_risk",
    "kernels",
    "recalibration",
    "functions",
    "model_selection",
    "recalibrated_classifier",
    "metrics",
    "hypothesis_tests",
    "monitoring",
    "displays",
    "report",
    "skcal",
    "cli",
    "__main__",
]
MODULES = {
    ".".join(("skcal", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in ROOT.rglob("*.py")
}


def imports(path):
    """Yield (module, name) for every import statement, also inside functions; name may be None."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}, line {node.lineno}: a relative import"
            yield from ((node.module, alias.name) for alias in node.names)


def skcal_imports(path):
    """Return the skcal modules that a file imports."""
    found = set()
    for module, name in imports(path):
        if module.split(".")[0] == "skcal":
            submodule = f"{module}.{name}"
            found.add(submodule if submodule in MODULES else module)
    return found


def layer(module):
    return module.split(".")[1] if "." in module else "skcal"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_modules_import_only_lower_layers(module):
    rank = LAYERS.index(layer(module))
    for other in skcal_imports(MODULES[module]):
        assert LAYERS.index(layer(other)) < rank or layer(other) == layer(module), other


def test_contributing_lists_the_rooms_in_this_order():
    path = ROOT.parent / "CONTRIBUTING.md"
    if not path.exists():
        pytest.skip("skcal is not imported from its repository")
    _, rooms, _ = path.read_text(encoding="utf-8").split("\n## ", 2)
    names = re.findall(r"^- (`.*?`): ", rooms, re.MULTILINE)
    assert [name for each in names for name in each.strip("`").split("`, `")] == LAYERS


def test_modules_import_each_other_without_cycles():
    # A package's __init__ re-exports, so that importing it means importing its modules.
    graph = {module: skcal_imports(path) - {module} for module, path in MODULES.items()}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert {"skcal", "skcal.notions"} <= set(order)


@pytest.mark.parametrize(
    "module", sorted(module for module, path in MODULES.items() if path.name == "__init__.py")
)
def test_packages_only_re_export(module):
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    rest = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    assert {ast.unparse(node).split(" = ")[0] for node in rest[1:]} <= {"__all__", "__version__"}
    assert ast.get_docstring(tree)


def private_names(module, name):
    parts = [*module.split("."), name or ""]
    return [part for part in parts if part.startswith("_")] if parts[0] == "sklearn" else []


@pytest.mark.parametrize("module", sorted(MODULES))
def test_private_names_of_scikit_learn_enter_through_one_file(module):
    private = [pair for pair in imports(MODULES[module]) if private_names(*pair)]
    assert bool(private) == (module == "skcal._sklearn_compat"), private


@pytest.mark.parametrize("module", sorted(MODULES))
def test_optional_packages_are_imported_where_they_are_used(module):
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {getattr(node, "module", None) or node.names[0].name for node in top}
    optional = {"matplotlib", "pandas", "polars", "pyarrow", "dask", "distributed"}
    assert not optional & {name.split(".")[0] for name in names}


def test_import_skcal_loads_no_optional_package():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['matplotlib', 'pandas', 'dask'])); "
        "import skcal; [getattr(skcal, name) for name in skcal.__all__]"
    )  # importing a module whose entry is None raises
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


PACKAGES = [
    skcal,
    importlib.import_module("skcal.metrics"),
    importlib.import_module("skcal.hypothesis_tests"),
    importlib.import_module("skcal.monitoring"),
    importlib.import_module("skcal.displays"),
    importlib.import_module("skcal.report"),
]
PUBLIC = [(name, getattr(package, name)) for package in PACKAGES for name in package.__all__]


def parameters(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


def section(docstring, title):
    """Return the body of a numpydoc section, or None."""
    underlined = f"\n{title}\n{'-' * len(title)}\n"
    if underlined not in docstring:
        return None
    lines = docstring.split(underlined)[1].splitlines()
    rules = [i for i, line in enumerate(lines) if line and not line.strip("-")]
    return "\n".join(lines[: rules[0] - 1] if rules else lines)


@pytest.mark.parametrize("package", PACKAGES)
def test_all_names_are_sorted_and_exist(package):
    assert package.__all__ == sorted(package.__all__)
    assert all(callable(getattr(package, name)) for name in package.__all__)


@pytest.mark.parametrize(("name", "thing"), PUBLIC)
def test_public_names_have_a_summary_and_a_runnable_example(name, thing):
    docstring = inspect.getdoc(thing)
    assert docstring.splitlines()[0].endswith(".")
    assert ">>> " in section(docstring, "Examples")


@pytest.mark.parametrize(("name", "thing"), PUBLIC)
def test_public_names_document_every_parameter_in_the_order_of_the_signature(name, thing):
    described = section(inspect.getdoc(thing), "Parameters")
    documented = [
        item.strip("* ")
        for line in (described or "").splitlines()
        if line and not line[0].isspace()
        for item in line.split(" : ")[0].split(",")
    ]
    assert documented == parameters(thing)


@pytest.mark.parametrize(("name", "thing"), [p for p in PUBLIC if inspect.isclass(p[1])])
def test_public_methods_have_a_docstring(name, thing):
    own = {n: f for n, f in vars(thing).items() if inspect.isfunction(f) and n[0] != "_"}
    assert all(inspect.getdoc(function) for function in own.values())
