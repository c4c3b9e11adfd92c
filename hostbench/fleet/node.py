"""What runs on each node of a campaign: `hostbench fleet measure`.

It measures the campaign's suite as `hostbench run` does, under the lock of the host. The document
states which campaign and node it belongs to. The node posts it to an orchestrator if the campaign
names one, and reports in two more ways. An engine can read both after the process has ended:

- a *termination message*: the Digest as JSON, or, without a document, the reason in one line;
- the document itself: in the results directory, which nodes may share, or as lines of a log.
"""

import base64
import binascii
import contextlib
import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pydantic import TypeAdapter, ValidationError

from hostbench.base.errors import HostbenchError, ResourceError, UsageError, shown
from hostbench.base.interrupt import Interrupt
from hostbench.base.units import plural
from hostbench.fleet.campaign import Campaign, Digest, MeasuredSystem
from hostbench.fleet.pair.end import End, no_lease
from hostbench.fleet.pair.near import near_end
from hostbench.model.campaign import EngineName, LockName
from hostbench.model.result import CampaignMember, ResultDocument
from hostbench.results.document import job_exit_code
from hostbench.results.sealed import read_document
from hostbench.results.store import ResultsStore
from hostbench.run.job import Audience, JobRunner

CAMPAIGN: TypeAdapter[Campaign] = TypeAdapter(Campaign)
DIGEST: TypeAdapter[Digest] = TypeAdapter(Digest)
# What Kubernetes keeps of a termination message.
MESSAGE_BYTES_MOST = 4096
# The rest of a digest has some 600 characters; each may take four bytes.
UNPOSTED_CHARACTERS_MOST = 500
# How long to wait for another run on the host, as a share of the time that the engine gives: then
# the node itself says what it waited for, before the engine ends it.
WAITING_RATIO = 0.9
BEGIN = "-----BEGIN HOSTBENCH DOCUMENT-----"
END = "-----END HOSTBENCH DOCUMENT-----"


@dataclass(frozen=True)
class NodeRequest:
    """What `hostbench fleet measure` is called with.

    `lock`: what keeps other runs away. For `lease`, `lease` returns a context that holds the node's
    Lease object; the host's lock file is taken in both cases, but a container may see one of its
    own. `message`: the file of the termination message. `log`: where the document is written as
    lines; None: nowhere. `end`: the node is the near end of this pair. `post`: what posts a
    document to an orchestrator and raises HostbenchError if it cannot; None: nothing does.
    """

    campaign: Campaign
    node: str
    engine: EngineName
    results: Path
    lock: LockName = "host"
    lease: Callable[[Interrupt], AbstractContextManager[object]] = no_lease
    message: Path | None = None
    log: TextIO | None = None
    post: Callable[[bytes], object] | None = None
    end: End | None = None

    @property
    def unit(self) -> str:
        """What the campaign calls what is measured."""
        return self.member.unit

    @property
    def member(self) -> CampaignMember:
        """Return the campaign and the node or pair of the document."""
        pair, racks = self.end and self.end.pair, self.campaign.racks
        return CampaignMember(
            campaign=self.campaign.name,
            engine=self.engine,
            cluster=self.campaign.cluster,
            node=self.node,
            lock=self.lock,
            far_node=pair and pair.far,
            round=pair and pair.round,
            rack=pair and racks.get(pair.near),
            far_rack=pair and racks.get(pair.far),
        )


def measure_node(request: NodeRequest, interrupt: Interrupt, audience: Audience) -> ResultDocument:
    """Measure the campaign's suite on this host; return the document.

    An engine may start a node twice: if the termination message names a document of this node, that
    one is returned and nothing is measured. Raise HostbenchError.
    """
    store = ResultsStore(request.results)
    if (digest := _digest_of(request)) is not None:
        audience.say(f"{request.unit} is measured already, by job {digest.job}")
        document = store.job(digest.job).load()
    else:
        document = _measured(request, store, interrupt, audience)
    if request.log is not None:
        write_document(document, request.log)
    unposted = _posted(request, store, document, audience)
    message = DIGEST.dump_json(digest_of(document, unposted)).decode()
    assert len(message.encode()) <= MESSAGE_BYTES_MOST, message
    # The message says that the document can be had, so it comes last.
    write_message(request.message, message)
    return document


def _measured(
    request: NodeRequest, store: ResultsStore, interrupt: Interrupt, audience: Audience
) -> ResultDocument:
    campaign = request.campaign
    if request.node not in campaign.nodes:
        raise UsageError(
            f"--node {shown(request.node)} is no node of campaign {campaign.name}; give one of "
            f"its {plural(len(campaign.nodes), 'node')}, such as {campaign.nodes[0]}"
        )
    if request.end is None:
        with request.lease(interrupt):
            runner = JobRunner(store, interrupt, audience, waiting_s(campaign))
            return runner.run(campaign.suite, request.member)
    with near_end(request.end, interrupt) as held:
        runner = JobRunner(store, held.interrupt, audience, waiting_s(campaign), held.far)
        return runner.run(campaign.suite, request.member, held.lock)


def _posted(
    request: NodeRequest, store: ResultsStore, document: ResultDocument, audience: Audience
) -> str | None:
    """Post the document as it is stored, if it is to be posted; return why that failed, or None."""
    if request.post is None:
        return None
    try:
        request.post(store.job(document.job.id).document.read_bytes())
    except HostbenchError as error:
        audience.say(f"the document is not posted: {error.message}")
        return error.message[:UNPOSTED_CHARACTERS_MOST]
    return None


def waiting_s(campaign: Campaign) -> float:
    """Return how long a node waits for other runs on the host, and for the other end of a pair."""
    return WAITING_RATIO * campaign.time_limit_s


@contextlib.contextmanager
def reported(message: Path | None) -> Iterator[None]:
    """Write the line of an expected error into the termination message, and raise it again."""
    try:
        yield
    except HostbenchError as error:
        # The reason is worth more than an error about the file that cannot take it.
        with contextlib.suppress(ResourceError):
            write_message(message, error.message)
        raise


def _digest_of(request: NodeRequest) -> Digest | None:
    """Return what an earlier start on this node measured, or None."""
    if request.message is None:
        return None
    with contextlib.suppress(OSError):
        digest = read_message(request.message.read_text(errors="replace"))
        if isinstance(digest, Digest) and digest.member == request.member:
            return digest
    return None


def digest_of(document: ResultDocument, unposted: str | None = None) -> Digest:
    """Return the document of a campaign's node in a few words. `unposted`: see Digest."""
    assert document.member is not None, "not of a campaign"
    assert document.digest is not None, "not sealed"
    return Digest(
        job=document.job.id,
        digest=document.digest,
        exit_code=job_exit_code(document),
        verdicts=document.job.verdicts,
        member=document.member,
        unposted=unposted,
        system=MeasuredSystem(
            kernel=document.host.kernel,
            machine=document.host.machine,
            boot=None if document.boot is None else document.boot.id,
        ),
    )


def write_message(path: Path | None, text: str) -> None:
    """Write a termination message. Raise ResourceError."""
    if path is None:
        return
    content = text.encode()[:MESSAGE_BYTES_MOST].decode(errors="ignore")
    try:
        # In place: in a container the file is a mount, which no other file can replace.
        path.write_text(content)
    except OSError as error:
        raise ResourceError(
            f"cannot write the termination message {path}: {error.strerror}; free space or rights "
            "there, or name another file with --termination-message"
        ) from None


def read_message(text: str) -> Digest | str | None:
    """Return the Digest in a termination message, or the reason why there is no document; None: the
    message is empty or incomplete, so the node has not ended by itself."""
    text = text.strip()
    if text.startswith("{"):
        with contextlib.suppress(ValidationError):
            return DIGEST.validate_json(text)
        return None
    return text or None


def read_campaign(path: Path) -> Campaign:
    """Return the campaign in a file that an engine wrote. Raise UsageError."""
    try:
        return CAMPAIGN.validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"cannot read the campaign {path}: {error.strerror}; hostbench fleet run writes it"
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"{path} is no campaign of this hostbench version: {where}: {first['msg']}; the client "
            "and the nodes need the same version"
        ) from None


def write_document(document: ResultDocument, stream: TextIO) -> None:
    """Write the document as lines of base64 between two marker lines, for a log."""
    content = gzip.compress(document.model_dump_json().encode(), mtime=0)
    lines = base64.encodebytes(content).decode()
    stream.write(f"{BEGIN}\n{lines}{END}\n")
    stream.flush()


def read_document_of_log(lines: Iterable[str], source: str) -> ResultDocument:
    """Return the document between the marker lines of a log. Raise UsageError if it is missing, cut
    short or changed."""
    remedy = "measure the node again under another --name"
    try:
        content = gzip.decompress(base64.b64decode("".join(_between_markers(lines)), validate=True))
    except (EOFError, LookupError, binascii.Error, gzip.BadGzipFile, zlib.error):
        raise UsageError(f"{source} holds no whole document; {remedy}") from None
    return read_document(content, source, remedy)


def _between_markers(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines between the markers. Raise LookupError if one is missing."""
    inside = False
    for line in lines:
        text = line.rstrip(os.linesep)
        if text == BEGIN:
            inside = True
        elif text == END and inside:
            return
        elif inside:
            yield text
    raise LookupError(END)
