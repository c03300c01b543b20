"""What is declared is what is imported, and what is built is what is needed."""

import ast
import email
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from sklearn.utils.fixes import parse_version
from test_imports import MODULES, imports, parsed

import skcal

PACKAGE = Path(skcal.__file__).parent
ROOT = PACKAGE.parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
NAMES = {"sklearn": "scikit-learn"}  # of distributions that differ from those of modules

pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="skcal is not imported from its repository"
)


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirement(text):
    """Name and lowest version of a requirement."""
    match = re.fullmatch(r"([\w-]+)(?:\[[\w,-]+\])?(?:[>=]=([\w.]+))?", text)
    return match[1], match[2]


def distributions(names):
    """Those of other packages among dotted names of modules."""
    tops = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"skcal"}
    return {NAMES.get(name, name) for name in tops}


def test_dependencies_are_what_is_imported_at_the_top_of_modules():
    top = [
        getattr(node, "module", None) or node.names[0].name
        for module in MODULES
        for node in parsed(module).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    declared = {requirement(text)[0] for text in project()["dependencies"]}
    assert declared == distributions(top) == {"numpy", "scipy", "scikit-learn", "joblib"}


def test_extras_are_what_is_imported_inside_functions():
    everywhere = distributions(name for module in MODULES for name, _ in imports(module))
    dependencies = {requirement(text)[0] for text in project()["dependencies"]}
    extras = project()["optional-dependencies"]
    users = {name: extras[name] for name in ("plot", "pandas", "parquet", "dask")}
    declared = {requirement(text)[0] for texts in users.values() for text in texts}
    declared -= {"dask"}  # whose chunks are counted without an import
    brought = {"torch"}  # by who passes its tensors, so that no extra installs it
    assert brought <= {requirement(text)[0] for text in extras["integrations"]}
    assert everywhere - dependencies == declared | brought


def test_what_a_message_says_to_install_is_declared():
    named = {
        re.match(r"[\w-]+", package)[0]
        for path in SOURCES
        for packages in re.findall(
            r"pip install '?([\w. >=\[\]-]+)", path.read_text(encoding="utf-8")
        )
        for package in packages.rstrip(".").split()
    }
    extras = project()["optional-dependencies"].values()
    declared = {requirement(text)[0] for texts in extras for text in texts}
    declared |= {requirement(text)[0] for text in project()["dependencies"]}
    assert named
    assert named <= declared


def test_the_files_that_a_project_needs_are_there_and_no_address_is_invented():
    for name in ("CHANGELOG", "CODE_OF_CONDUCT", "CONTRIBUTING", "README", "SECURITY"):
        assert (ROOT / f"{name}.md").exists()
    if "urls" not in project():  # no repository yet: nothing names one
        for name in ("CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "README.md"):
            text = (ROOT / name).read_text(encoding="utf-8")
            assert not re.findall(r"https?://\S*/skcal\b", text)


def test_python_versions_are_said_alike():
    lowest = project()["requires-python"].removeprefix(">=")
    classifiers = re.findall(r"Python :: (3\.\d+)", " ".join(project()["classifiers"]))
    assert min(classifiers, key=parse_version) == lowest
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]
    assert ruff["target-version"] == "py" + lowest.replace(".", "")
    assert f"Python ≥ {lowest}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_version_is_said_alike():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    entry = (ROOT / "doc" / "citing.rst").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## \[(.+)\](?: - (\d{4}-\d\d-\d\d))?$", changes, re.MULTILINE)
    assert cited == skcal.__version__
    assert f"version = {{{skcal.__version__}}}" in entry
    assert [name for name, _ in releases][:2] == ["Unreleased", skcal.__version__]
    assert f"date-released: {releases[1][1]}" in (ROOT / "CITATION.cff").read_text()


def test_sections_of_the_changelog_are_those_of_keep_a_changelog():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^### (.+)$", changes, re.MULTILINE))
    assert sections <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_installed_metadata_is_that_of_the_project():
    metadata = importlib.metadata.metadata("skcal")
    assert metadata["Version"] == skcal.__version__
    assert metadata["Requires-Python"] == project()["requires-python"]
    [command] = importlib.metadata.entry_points(group="console_scripts", name="skcal")
    assert callable(command.load())
    assert (PACKAGE / "py.typed").exists()


def test_the_package_is_found_beside_its_clone(tmp_path):
    """An editable install writes the clone's path, which comes after the folder of a script."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert tools["setuptools"]["package-dir"] == {"": "."}  # without it there is an import hook
    clone = tmp_path / "skcal"
    shutil.copytree(PACKAGE, clone / "skcal", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "script.py").write_text(
        "from importlib.util import find_spec; print(find_spec('skcal').origin)"
    )
    environment = {**os.environ, "PYTHONPATH": str(clone)}
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(clone / "skcal" / "__init__.py")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a wheel and a source archive, built from a copy in an environment of their own."""
    folder = tmp_path_factory.mktemp("packaging")
    skipped = shutil.ignore_patterns(
        ".git", ".venv", "*.egg-info", "__pycache__", ".*_cache", "_build"
    )
    shutil.copytree(ROOT, folder / "source", ignore=skipped)
    python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    toml = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = toml["build-system"]["requires"]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needed]
    if subprocess.run(pip, capture_output=True).returncode:
        pytest.skip("the build system cannot be installed: no package index")
    code = "import setuptools.build_meta as b; b.build_wheel('..'); b.build_sdist('..')"
    done = subprocess.run(
        [python, "-c", code], cwd=folder / "source", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    code = "import setuptools.build_meta as b; b.build_editable('../editable')"
    subprocess.run([python, "-c", code], cwd=folder / "source", check=True, capture_output=True)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        message = email.message_from_bytes(wheel.read(metadata))
    inside = {name for name in names if ".dist-info/" not in name}
    files = [*SOURCES, *PACKAGE.rglob("*.css"), PACKAGE / "py.typed"]
    expected = {path.relative_to(ROOT).as_posix() for path in files}
    assert inside == expected
    assert any(name.endswith("licenses/LICENSE") for name in names)
    required = [text for text in message.get_all("Requires-Dist") if "extra ==" not in text]
    assert sorted(required) == sorted(project()["dependencies"])
    assert set(message.get_all("Provides-Extra")) == set(project()["optional-dependencies"])
    assert message["Version"] == skcal.__version__


@pytest.mark.slow
def test_an_editable_install_is_a_path_file(built):
    [wheel] = (built[0].parent / "editable").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert [Path(name).suffix for name in files] == [".pth"]
        assert archive.read(files[0]).decode().strip() == str(built[0].parent / "source")


@pytest.mark.slow
def test_the_wheel_runs_from_elsewhere(built, tmp_path):
    with zipfile.ZipFile(built[0]) as wheel:
        wheel.extractall(tmp_path / "site")
    table = "cat,dog,label\n" + "0.8,0.2,cat\n0.3,0.7,dog\n0.6,0.4,dog\n0.9,0.1,cat\n" * 10
    (tmp_path / "predictions.csv").write_text(table)
    where = {"PYTHONPATH": str(tmp_path / "site")}
    for arguments in (["--version"], ["test", "predictions.csv", "--resamples", "39"]):
        command = [sys.executable, "-W", "error", "-m", "skcal", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=where, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    code = "import skcal; print(skcal.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=where, capture_output=True
    )
    assert done.stdout.decode().strip() == str(tmp_path / "site" / "skcal" / "__init__.py")


@pytest.mark.slow
def test_the_source_archive_holds_what_a_build_needs(built):
    with tarfile.open(built[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    expected = {path.relative_to(ROOT).as_posix() for path in SOURCES} | {
        *("pyproject.toml", "README.md", "LICENSE", "skcal/py.typed", "PKG-INFO")
    }
    assert expected <= names
    beside = {
        path.relative_to(ROOT).as_posix()
        for folder in ("tests", "doc", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".rst", ".txt", ".csv", ".png")
        and not {"generated", "auto_examples", "_build"} & set(path.parts)
    }
    beside |= {path.name for path in ROOT.glob("*.md")} | {"CITATION.cff", "setup.cfg", ".ci/run"}
    assert beside <= names
    assert not [name for name in names if name.endswith((".npz", ".pyc", ".so"))]
