"""The messages of the package that name a remedy, as its source has them."""

import ast
import re
from pathlib import Path

import skcal

ROOT = Path(skcal.__file__).parent
_REMEDY = re.compile(
    r"\b[Pp]ass\b|\b[Uu]se\b|(?<![\w-])--[a-z]|\bnumpy\.|\bscipy\.|\bsklearn\.|\bskcal\.|\bpandas\."
)
_HELP = {"help", "description", "epilog", "metavar"}


def collected():
    """Each text of the source that names a remedy: (file, text), with {} for what is filled in.

    Docstrings and the help of options are none.
    """
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        aside = _docstrings(tree) | _help(tree)
        for node in ast.walk(tree):
            text = _text(node)
            if text is None or node in aside or not _REMEDY.search(text):
                continue
            if re.fullmatch(r"[{}]*--[\w-]+", text):  # the name of an option alone
                continue
            aside |= set(ast.walk(node)) - {node}
            found[str(path.relative_to(ROOT)), " ".join(text.split())] = None
    return list(found)


def _text(node):
    """The text of a string, or of one with places to fill."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
        return "".join(parts)
    return None


def _docstrings(tree):
    return {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }


def _help(tree):
    """Nodes of the help of options: keywords, values of dicts and arguments of their builders."""
    found = set()
    for node in ast.walk(tree):
        named = getattr(getattr(node, "func", None), "id", "")
        targets = [target.id for target in getattr(node, "targets", ()) if hasattr(target, "id")]
        is_help = isinstance(node, ast.keyword) and node.arg in _HELP
        if is_help or named == "_Command" or "_FILES" in targets:
            found |= set(ast.walk(node))
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and str(key.value).startswith("--"):
                    found |= set(ast.walk(value)) | {key}
    return found
