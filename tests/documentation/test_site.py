"""What a reader of the built site sees, measured in headless Chromium, where it is installed."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from page_code import MADE
from pages import DOC, PAGES, TEXTS
from PIL import Image

pytestmark = pytest.mark.integrations
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
SMALLEST = 9  # points of a picture's texts as shown
SCREEN = 900  # pixels of a first screen's height
# Lists of links, of names and of changes; what they list has its picture.
LISTS = re.compile(r"api/|(changelog|contributing|citing|extend/index)\.rst")
READ = [page for page in PAGES if not LISTS.match(page)]
MEASURE = """<body style="margin: 0"><iframe style="border: 0; height: %d px"></iframe><pre></pre>
<script>
const pages = %s, found = {}, frame = document.querySelector("iframe");
const contrast = (one, other) => {
  const light = text => text.match(/[\\d.]+/g).slice(0, 3).map(value => value / 255)
    .map(value => value > .04 ? ((value + .055) / 1.055) ** 2.4 : value / 12.92)
    .reduce((sum, value, k) => sum + value * [.2126, .7152, .0722][k], .05);
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return high / low;
};
const look = (page, width) => new Promise(resolve => {
  frame.style.width = width + "px";
  frame.onload = () => setTimeout(() => {
    const view = frame.contentWindow, root = view.document;
    const all = selector => [...root.querySelectorAll(selector)];
    const shown = all("article img, article svg, article .highlight .go, article table")
      .filter(one => one.getBoundingClientRect().width > 0);
    const told = { wide: root.documentElement.scrollWidth - width, result: 1e9, images: {} };
    for (const one of shown) told.result = Math.min(told.result, one.getBoundingClientRect().top);
    for (const one of all("article img"))
      told.images[decodeURI(one.src.split("/").pop())] = one.getBoundingClientRect().width;
    told.contrast = ["light", "dark"].map(theme => {
      root.documentElement.dataset.theme = theme;
      told.bright = all("article img:not(.only-light, .only-dark)")
        .filter(one => !view.getComputedStyle(one).filter.includes("invert")).length;
      const back = view.getComputedStyle(root.body).backgroundColor;
      const links = "article p a:not(.sd-btn), article .decision-tree text";
      const texts = all("article p, article h1, " + links);
      const seen = texts.map(one => {
        const style = view.getComputedStyle(one);
        return contrast(one.tagName == "text" ? style.fill : style.color, back);
      });
      return Math.min(...seen);
    });
    resolve(told);
  }, 20);
  frame.src = page;
});
(async () => {
  for (const page of pages)
    found[page] = { wide: await look(page, 1280), narrow: await look(page, 400) };
  document.querySelector("pre").textContent = JSON.stringify(found);
})();
</script></body>"""


@pytest.fixture(scope="module")
def seen(site):
    """What the browser says of each page: in a wide window and on a telephone."""
    if BROWSER is None:
        pytest.skip("Chromium is not installed")
    pages = [page.replace(".rst", ".html") for page in READ]
    (site / "measure.html").write_text(MEASURE % (SCREEN, json.dumps(pages)))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    options += ["--window-size=1400,1000", "--virtual-time-budget=300000", "--dump-dom"]
    command = [BROWSER, *options, (site / "measure.html").as_uri()]
    page = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    return json.loads(html.unescape(re.search("<pre>(.*?)</pre>", page, re.DOTALL)[1]))


def test_pages_fit_a_telephone(seen):
    assert {
        page: one["narrow"]["wide"] for page, one in seen.items() if one["narrow"]["wide"] > 0
    } == {}


def test_the_first_screen_has_a_picture_or_a_result(seen):
    late = {page: one["wide"]["result"] for page, one in seen.items()}
    assert {page: top for page, top in late.items() if not top < SCREEN} == {}


def test_texts_can_be_read_in_light_and_dark_mode(seen):
    assert {
        page: one["wide"]["contrast"]
        for page, one in seen.items()
        if min(one["wide"]["contrast"]) < 4.5
    } == {}


def test_figures_are_dark_on_a_dark_page(seen):
    assert {
        page: one["wide"]["bright"] for page, one in seen.items() if one["wide"]["bright"]
    } == {}


def test_texts_of_pictures_are_shown_in_nine_points(seen):
    small, made = {}, {path.name: path for path in (DOC / MADE).glob("*.png")}
    for page, one in seen.items():
        for name, width in one["wide"]["images"].items():
            if name in made and width > 0:
                with Image.open(made[name]) as picture:
                    points = float(picture.text["Smallest"]) * width / (picture.width / 2)
                if points < SMALLEST:
                    small[page, name] = round(points, 1)
    assert small == {}


class Links(HTMLParser):
    """The addresses that a page leads to, and the names that it has."""

    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.names |= {attributes.get("id", ""), attributes.get("name", "")}
        self.links += [attributes[key] for key in ("href", "src") if attributes.get(key)]


def test_links_lead_to_a_page_and_a_place(site):
    pages = {path: Links(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    pages.pop(site / "measure.html", None)
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"\w+:|//", link):
                continue
            target, _, place = link.partition("#")
            target = target.partition("?")[0]
            file = (path.parent / target).resolve() if target else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists() or (file in pages and place not in pages[file].names):
                broken.append((path.relative_to(site).as_posix(), link))
    assert broken == []
    assert len(pages) > 200


def test_there_are_25_pictures():
    images = {
        Path(name).name.replace("_dark", "_light")
        for text in TEXTS.values()
        for name in re.findall(r"^ *\.\. image:: (\S+)$", text, re.MULTILINE)
    }
    assert len(images) >= 25
