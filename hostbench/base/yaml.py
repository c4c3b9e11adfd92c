"""A small YAML reader that records the line of everything.

Anchors and aliases are refused: they can make a document endless or enormous, and a suite needs
neither. Duplicate keys are refused, too: YAML would silently keep the last one.
"""

from pathlib import Path
from typing import Any

import yaml

from hostbench.base.errors import shown

Place = tuple[str | int, ...]


class YamlError(Exception):
    """Why the text is not a tree: one line, and the line number if it is known."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class _Loader(yaml.SafeLoader):
    """SafeLoader without anchors and aliases."""

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise YamlError(f"alias *{event.anchor} is not allowed; write the value out", line)
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            raise YamlError(f"anchor &{anchor} is not allowed; write the value out", line)
        return super().compose_node(parent, index)


def table_of(path: Path) -> Any:
    """Return the tree of one of our own tables.

    If the library has a reader in C, it is used, as it is ten times as fast: otherwise the CPUs'
    table would delay the start of the command line by a quarter of a second.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - both are safe


def parse(text: str) -> tuple[Any, dict[Place, int]]:
    """Return the tree of one YAML document, and the line (from 1) of every place in it.

    Raise YamlError.
    """
    lines: dict[Place, int] = {}
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        tree = None if root is None else _build(loader, root, (), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        raise YamlError(problem, mark.line + 1 if mark else None) from None
    except yaml.YAMLError as error:
        raise YamlError(str(error).splitlines()[0], None) from None
    except RecursionError:
        raise YamlError("it is nested too deeply", None) from None
    return tree, lines


def _build(loader: _Loader, node: yaml.Node, place: Place, lines: dict[Place, int]) -> Any:
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        _refuse_tag(node, "tag:yaml.org,2002:seq")
        return [
            _build(loader, item, (*place, position), lines)
            for position, item in enumerate(node.value)
        ]
    if isinstance(node, yaml.MappingNode):
        _refuse_tag(node, "tag:yaml.org,2002:map")
        return _build_mapping(loader, node, place, lines)
    assert isinstance(node, yaml.ScalarNode)
    try:
        return loader.construct_object(node)
    except ValueError as error:  # such as the date 2020-13-45
        raise YamlError(f"{shown(node.value)}: {error}", lines[place]) from None


def _build_mapping(
    loader: _Loader, node: yaml.MappingNode, place: Place, lines: dict[Place, int]
) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        # A key is used as it is written: `on: 1` has the key "on".
        if not isinstance(key_node, yaml.ScalarNode):
            raise YamlError("a key must be a word", line)
        key = key_node.value
        if key in mapping:
            raise YamlError(
                f"key {shown(key)} appears here a second time; remove one of them", line
            )
        mapping[key] = _build(loader, value_node, (*place, key), lines)
        lines[(*place, key)] = line
    return mapping


def _refuse_tag(node: yaml.Node, expected: str) -> None:
    if node.tag != expected:
        raise YamlError(f"tag {node.tag} is not allowed; remove it", node.start_mark.line + 1)
