"""The hooks of a commit are checks of `make lint`, with the tools of the same place."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_every_hook_is_a_check_of_make_lint() -> None:
    text = (ROOT / "Makefile").read_text()
    recipe = re.search(r"^lint:.*\n((?:\t.*\n|    .*\n)*)", text, re.MULTILINE)
    assert recipe
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert len(hooks) > 4
    for hook in hooks:
        command = hook["entry"].removesuffix(" --force-exclude")
        assert hook["language"] == "system" and command in recipe[1], hook["id"]
