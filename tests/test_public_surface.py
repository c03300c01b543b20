"""Every public name with its signature stands in a table, so that each change of one is seen.

``python tests/test_public_surface.py`` writes the table again.
"""

import importlib
import inspect
import pkgutil
import re
from itertools import groupby
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
    """Public methods and properties of a class that skcal defines: name and signature."""
    for name in sorted(dir(cls)):
        owners = [base for base in cls.__mro__ if name in vars(base)]
        if name.startswith("_") or not owners or not owners[0].__module__.startswith("skcal"):
            continue
        if owners[0].__module__ == "skcal._sklearn_compat":  # in place of a newer scikit-learn's
            continue
        if re.fullmatch("set_.*_request", name):  # which scikit-learn makes of the methods
            continue
        attribute = inspect.getattr_static(cls, name)
        if isinstance(attribute, property):
            yield name, f"{name} (property)"
        elif callable(getattr(cls, name)):
            yield name, f"{name}{signature(getattr(cls, name))}"


def surface():
    """Everything public, each once under the first module that offers it: module, name, line."""
    seen = set()
    for module in public_modules():
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            if id(thing) in seen:
                yield module.__name__, name, f"{name}: as above"
                continue
            seen.add(id(thing))
            yield module.__name__, name, f"{name}{signature(thing)}" if callable(thing) else name
            for member, line in members(thing) if inspect.isclass(thing) else ():
                yield module.__name__, f"{name}.{member}", line


def table():
    """The lines of the table; members that a class above has, too, are named after it."""
    lines, first = [], {}
    entries = [(*entry[:1], entry[1].partition("."), entry[2]) for entry in surface()]
    for (module, owner), group in groupby(entries, key=lambda entry: (entry[0], entry[1][0])):
        if f"[{module}]" not in lines:
            lines += ["", f"[{module}]"]
        alike = {}
        for _, (_, _, member), line in group:
            if not member:
                lines.append(line)
            elif first.setdefault(line, owner) == owner:
                lines.append(f"    .{line}")
            else:
                alike.setdefault(first[line], []).append(member)
        lines += [f"    as {other}: {', '.join(names)}" for other, names in alike.items()]
    return lines[1:]


def test_the_public_surface_is_that_of_the_table():
    told = TABLE.read_text(encoding="utf-8").splitlines()
    lines = table()
    changed = [f"+ {line}" for line in lines if line not in told]
    changed += [f"- {line}" for line in told if line not in lines]
    remedy = "if this is meant, run python tests/test_public_surface.py and tell CHANGELOG.md"
    assert lines == told, "\n".join([remedy, *changed])


def test_the_table_has_names_methods_and_no_address_of_the_process():
    lines = table()
    assert len(lines) > 200
    assert any(line.startswith("    .fit(self, X, y") for line in lines)
    assert any(line.startswith("    as Binning: feature_map, ") for line in lines)
    assert not [line for line in lines if " at 0x" in line]


if __name__ == "__main__":
    TABLE.write_text("\n".join(table()) + "\n", encoding="utf-8")
