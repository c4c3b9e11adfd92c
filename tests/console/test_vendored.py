"""What pages load from other projects is what they published, and nothing is loaded from
elsewhere."""

import hashlib
import json
import re
from pathlib import Path

from hostbench.report.html import BLOCKS
from orchestrator.console.shell import TEMPLATES
from orchestrator.console.static_files import DIRECTORY

VENDOR = DIRECTORY / "vendor"
PACKAGES = json.loads((VENDOR / "vendor.json").read_text())


def test_each_file_has_the_digest_of_its_release() -> None:
    known = {name: digest for one in PACKAGES for name, digest in one["sha256"].items()}
    there = {path.name for path in VENDOR.iterdir()} - {"vendor.json"}
    assert there == known.keys()
    for name, digest in known.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


def test_each_package_has_its_licence_and_its_version_in_its_names() -> None:
    assert {one["package"] for one in PACKAGES} == {"htmx.org", "uplot"}
    for one in PACKAGES:
        texts = [name for name in one["sha256"] if name.endswith("LICENSE.txt")]
        assert len(texts) == 1
        assert all(one["version"] in name for name in one["sha256"] if name not in texts)


def test_pages_name_no_other_site_and_have_nothing_inline() -> None:
    for path in [
        *TEMPLATES.glob("*.j2"),
        BLOCKS,
        DIRECTORY / "console.css",
        DIRECTORY / "console.js",
    ]:
        text = Path(path).read_text()
        assert "//" not in re.sub(r"^\s*//.*$|https?://www\.w3\.org", "", text, flags=re.M), path
        assert not re.search(r"\son[a-z]+=|<style|\sstyle=|hx-on|\|\s*safe\b", text), path
        assert not re.search(r"<script(?![^>]*\ssrc=)", text), path
