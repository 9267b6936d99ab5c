"""A browser without a window, for tests of pages: what a page looks like when its scripts have run."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from html import unescape

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MISSING = "no browser: install Debian's chromium-headless-shell"


def find() -> str | None:
    """Path of a browser, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def _started(url: str, width: int, height: int, *options: str) -> str:
    """Standard output of a browser that opens a page.

    Raises:
        RuntimeError: the browser failed.
    """
    browser = find()
    if browser is None:
        raise RuntimeError(MISSING)
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--hide-scrollbars", "--user-data-dir=" + profile, "--window-size=%d,%d" % (width, height), *options, url],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=400)
    if done.returncode:
        raise RuntimeError("%s ended with %d: %s" % (browser, done.returncode, done.stderr[-500:]))
    return done.stdout


def dom(url: str, width: int = 1280, height: int = 900, *options: str) -> str:
    """The document of a page as HTML, after its scripts.

    Raises:
        RuntimeError: the browser failed.
    """
    text = _started(url, width, height, "--virtual-time-budget=8000", *options, "--dump-dom")
    if not text:
        raise RuntimeError("the browser printed no document of " + url)
    return text


def screenshot(url: str, file: str, width: int = 1280, height: int = 900) -> None:
    """Writes what a window shows of a page as PNG."""
    _started(url, width, height, "--virtual-time-budget=8000", "--screenshot=" + file)


#: Opens addresses in a frame, one after another, and leaves what a function returns for each of them.
_VISITS = """<!doctype html><title>visits</title><body><iframe></iframe><script>
const visits = %s, look = {%s}, found = [], frame = document.querySelector("iframe");
const pause = ms => new Promise(done => setTimeout(done, ms));
async function all() {
  for (const [address, width, name] of visits) {
    frame.style = `width: ${width}px; height: 900px; border: 0`;
    await new Promise(done => { frame.onload = done; frame.src = address; });
    found.push(await look[name](frame.contentWindow));
  }
  document.body.dataset.found = JSON.stringify(found);
}
all().catch(error => { document.body.dataset.failed = String(error); });
</script>"""


def visit(folder: str, visits: Sequence[tuple[str, int, str]], functions: dict[str, str]) -> list:
    """Results of functions on the pages of a folder, in one browser.

    Args:
        folder (str): where the pages are.
        visits (list of (address, width, name)): pages relative to the folder, with a query or an anchor where there
            is one; the width of the window; the name of a function.
        functions (dict): name -> source of a JavaScript function of the window; it may be async, and may await
            ``pause(milliseconds)``.

    Returns:
        list: what the functions returned.

    Raises:
        RuntimeError: a function failed, or the browser.
    """
    path = os.path.join(folder, "visits.probe.html")
    source = ", ".join("%s: %s" % pair for pair in functions.items())
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(_VISITS % (json.dumps(list(visits)), source))
        text = dom("file://" + os.path.abspath(path), 1400, 900, "--allow-file-access-from-files",
                   "--virtual-time-budget=%d" % (2000 * len(visits) + 8000))
    finally:
        os.unlink(path)
    found = re.search(r'data-found="([^"]*)"', text)
    if found is None:
        raise RuntimeError("visits failed: %s" % re.findall(r'data-failed="([^"]*)"', text))
    return json.loads(unescape(found.group(1)))


def probed(path: str, script: str, width: int = 1280, height: int = 900, fragment: str = "") -> str:
    """The document of a page of a disk with one more script at its end, which leaves what it finds in the document."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    at = page.rindex("</body>")
    probe = path + ".probe.html"
    try:
        with open(probe, "w", encoding="utf-8") as file:
            file.write(page[:at] + "<script>%s</script>" % script + page[at:])
        return dom("file://%s%s" % (os.path.abspath(probe), fragment), width, height)
    finally:
        os.unlink(probe)


#: Leaves on the body how wide the page is, and how wide the window.
WIDTHS = ('addEventListener("load", () => { document.body.dataset.widths = '
          'document.documentElement.scrollWidth + " " + document.documentElement.clientWidth; });')


def widths(path: str, width: int) -> tuple[int, int]:
    """(width of the page, width of the window): the first is larger where something sticks out."""
    text = probed(path, WIDTHS, width).split('data-widths="', 1)[1].split('"', 1)[0]
    page, window = map(int, text.split())
    return page, window
