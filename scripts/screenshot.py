"""Takes pictures of the running app: light and dark, 1440x900 and 1000 wide.

    python scripts/screenshot.py / /sample_tasks "/classes?dataset=df20" --out screenshots [--full] [--url URL]

Without --url it starts the app itself on a free port with a workspace of its own (--home to keep one).
`--readme` writes the one picture README shows.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser.conftest import CHROMIUM, FLAGS, PATIENCE, settle, start_app  # noqa: E402

SIZES = {"wide": (1440, 900), "narrow": (1000, 900)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", default=["/"])
    parser.add_argument("--out", type=Path, default=ROOT / "screenshots")
    parser.add_argument("--url", help="an app that runs already")
    parser.add_argument("--home", type=Path, help="workspace of the app that is started")
    parser.add_argument("--full", action="store_true", help="the whole page, not only the first screen")
    parser.add_argument("--themes", default="light,dark")
    parser.add_argument("--sizes", default="wide,narrow")
    parser.add_argument("--wait", type=float, default=2.0, help="seconds to wait after the page has settled")
    parser.add_argument("--readme", action="store_true", help="write docs/overview.png and nothing else")
    args = parser.parse_args()
    if args.readme:
        args.paths, args.themes, args.sizes, args.out = ["/?dataset=fruit"], "light", "wide", ROOT / "docs"
    args.out.mkdir(parents=True, exist_ok=True)

    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        process = None
        url = args.url
        if not url:
            process, url = start_app(args.home or Path(folder) / "home", Path(folder) / "log.txt")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        try:
            for theme in args.themes.split(","):
                for size in args.sizes.split(","):
                    width, height = SIZES[size]
                    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
                    context.set_default_timeout(180_000)
                    for path in args.paths:
                        tab = context.new_page()
                        tab.set_default_timeout(PATIENCE)
                        tab.goto(url + path)
                        settle(tab)
                        tab.wait_for_timeout(args.wait * 1000)
                        if args.full:  # the page scrolls inside a container: make the window as tall as its content
                            tall = tab.evaluate(
                                "() => document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight + 40"
                            )
                            tab.set_viewport_size({"width": width, "height": max(height, min(int(tall), 6000))})
                            tab.wait_for_timeout(800)
                        name = re.sub(r"\W+", "_", path).strip("_").lower() or "overview"
                        out = args.out / ("overview.png" if args.readme else f"{name}_{theme}_{size}.png")
                        tab.screenshot(path=str(out))
                        print(out)
                        tab.close()
                    context.close()
        finally:
            browser.close()
            if process:
                process.terminate()


if __name__ == "__main__":
    main()
