"""The built site, which tests with -m integrations share."""

import shutil
import subprocess
import sys

import pytest
from pages import DOC


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Build the pages without the figures of the gallery, in a copy, and return their folder."""
    pytest.importorskip("sphinx_gallery", reason="needs the extra doc")
    folder = tmp_path_factory.mktemp("site")
    generated = shutil.ignore_patterns("_build", "auto_examples", "generated")
    for name in ("doc", "examples"):
        shutil.copytree(DOC.parent / name, folder / name, ignore=generated)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(DOC.parent / name, folder)
    options = ["-q", "-D", "plot_gallery=0", "-b", "html"]
    command = [sys.executable, "-m", "sphinx", *options, folder / "doc", folder / "html"]
    subprocess.run(command, check=True)
    return folder / "html"
