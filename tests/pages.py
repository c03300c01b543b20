"""The pages of the documentation."""

from pathlib import Path

DOC = Path(__file__).parents[1] / "doc"
GENERATED = {"_build", "_templates", "auto_examples", "generated"}
PAGES = {
    str(path.relative_to(DOC)): path
    for path in sorted(DOC.rglob("*.rst"))
    if not GENERATED & set(path.relative_to(DOC).parts)
}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PAGES.items()}
