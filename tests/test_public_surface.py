"""Every public name with its signature stands in a table, so that each change of one is seen.

``python tests/test_public_surface.py`` writes the table again.
"""

import importlib
import inspect
import pkgutil
from pathlib import Path

import skcal

TABLE = Path(__file__).with_name("public_surface.txt")


def public_modules():
    """skcal and those of its modules that say what they offer."""
    yield skcal
    for info in pkgutil.walk_packages(skcal.__path__, "skcal."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            module = importlib.import_module(info.name)
            if hasattr(module, "__all__"):
                yield module


def signature(thing):
    """The parameters with their defaults; annotations are left out."""
    parameters = inspect.signature(thing).parameters.values()
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    return str(inspect.Signature(plain))


def members(cls):
    """Public methods and properties of a class that skcal defines."""
    for name in sorted(dir(cls)):
        owners = [base for base in cls.__mro__ if name in vars(base)]
        if name.startswith("_") or not owners or not owners[0].__module__.startswith("skcal"):
            continue
        if owners[0].__module__ == "skcal._sklearn_compat":  # in place of a newer scikit-learn's
            continue
        attribute = inspect.getattr_static(cls, name)
        if isinstance(attribute, property):
            yield f"{name} (property)"
        elif callable(getattr(cls, name)):
            yield f"{name}{signature(getattr(cls, name))}"


def surface():
    """The lines of the table: each name once, under the first module that offers it."""
    seen, lines = set(), []
    for module in public_modules():
        lines.append(f"[{module.__name__}]")
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            if id(thing) in seen:
                lines.append(f"{name}: as above")
                continue
            seen.add(id(thing))
            lines.append(f"{name}{signature(thing)}" if callable(thing) else name)
            if inspect.isclass(thing):
                lines += [f"    .{member}" for member in members(thing)]
        lines.append("")
    return lines


def test_the_public_surface_is_that_of_the_table():
    told = TABLE.read_text(encoding="utf-8").splitlines()
    lines = surface()
    changed = [f"+ {line}" for line in lines if line not in told]
    changed += [f"- {line}" for line in told if line not in lines]
    remedy = "if this is meant, run python tests/test_public_surface.py and tell CHANGELOG.md"
    assert lines == told, "\n".join([remedy, *changed])


def test_the_table_has_names_methods_and_no_address_of_the_process():
    lines = surface()
    assert len(lines) > 200
    assert any(line.startswith("    .fit(self, X, y") for line in lines)
    assert not [line for line in lines if " at 0x" in line]


if __name__ == "__main__":
    TABLE.write_text("\n".join(surface()) + "\n", encoding="utf-8")
