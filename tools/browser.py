"""A browser without a window, for tests of pages: what a page looks like when its scripts have run."""
from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MISSING = "no browser: install Debian's chromium-headless-shell"


def find() -> str | None:
    """Path of a browser, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def dom(url: str, width: int = 1280, height: int = 900) -> str:
    """The document of a page as HTML, after its scripts.

    Raises:
        RuntimeError: the browser failed.
    """
    browser = find()
    if browser is None:
        raise RuntimeError(MISSING)
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--user-data-dir=" + profile, "--window-size=%d,%d" % (width, height), "--virtual-time-budget=8000",
             "--dump-dom", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=240)
    if done.returncode or not done.stdout:
        raise RuntimeError("%s ended with %d: %s" % (browser, done.returncode, done.stderr[-500:]))
    return done.stdout


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
