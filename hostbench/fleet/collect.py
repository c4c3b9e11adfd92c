"""Collecting the documents of a campaign's nodes into a results directory."""

from collections.abc import Iterable
from pathlib import Path

from hostbench.base.errors import UsageError
from hostbench.fleet.campaign import Campaign, Digest, Engine, NodeStatus
from hostbench.model.result import ResultDocument
from hostbench.results.store import DOCUMENT, JobDirectory


def document_path(root: Path, campaign: str, result: Digest) -> Path:
    """Return where the document of a node or a pair belongs. Each has a results directory of its
    own: jobs of a thousand nodes may have the same id."""
    return root / campaign / result.member.unit / result.job / DOCUMENT


def collect(engine: Engine, campaign: Campaign, status: NodeStatus, root: Path) -> Path:
    """Store the document of a measured node, unless it is there; return its path.

    Raise HostbenchError if it cannot be had, or is not the one that the node named.
    """
    result = status.result
    assert result is not None, "not measured"
    path = document_path(root, campaign.name, result)
    if not path.exists():
        document = _checked(engine.documents(campaign.name, [status.node]), campaign, result)
        path.parent.mkdir(parents=True, exist_ok=True)
        JobDirectory(path.parent).store(document)
    return path


def _checked(
    documents: Iterable[ResultDocument], campaign: Campaign, result: Digest
) -> ResultDocument:
    node = result.member.unit
    document = next(iter(documents), None)
    if document is None:
        raise UsageError(f"{node} has no document; measure it again under another --name")
    if document.digest != result.digest:
        raise UsageError(
            f"the document of {node} is not the one that it named: {document.digest} instead of "
            f"{result.digest}; measure the node again under another --name"
        )
    member = document.member
    if member is None or (member.campaign, member.cluster) != (campaign.name, campaign.cluster):
        raise UsageError(
            f"the document of {node} is of another campaign or cluster than {campaign.name}: "
            f"{member}; choose another --name"
        )
    return document
