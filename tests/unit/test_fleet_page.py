"""A campaign as a page."""

import random
import re
from xml.etree import ElementTree

from hostbench.decisions.fleet import checked_fleet
from hostbench.model.fleet import FleetCheck
from hostbench.page.fleet import HOSTS_SHOWN, fleet_report
from hostbench.report.charts.draw import draw
from hostbench.report.charts.hosts import axis_range
from hostbench.report.content import HostsChart, HostsRow
from hostbench.report.html import html
from hostbench.report.markdown import markdown
from tests.each import each
from tests.unit.baseline_hosts import CPU
from tests.unit.fleet_hosts import BEGAN_UNIX_S, campaign

BYTES_MOST = 1_500_000


def made(hosts: int = 80) -> FleetCheck:
    """A campaign with low and suspect hosts, and a third of the hosts with slower firmware."""

    def facts(number: int) -> dict[str, str]:
        return {"firmware": "<b>1.9</b>"} if number % 3 == 0 else {}

    def factor(number: int, workload: str) -> float:
        return 0.93 if workload == "cpu.fma" and number % 3 == 0 else 1.0

    slow = dict.fromkeys((1, 3, 5), (CPU[0], 0.12))
    jobs = campaign(random.Random(2), hosts, 0.01, slow, facts=facts, factor=factor)
    return checked_fleet(jobs, BEGAN_UNIX_S + 1e5, ("node-0000", "node-9999"), {})


def test_the_page_begins_with_the_answer_and_has_every_part() -> None:
    cut = "october/node-0007/result.json is cut short"
    fleet = made().model_copy(update={"refused": (cut,)})
    page = html(fleet_report(fleet))
    assert f"<li>{cut}.</li>" in page, "a path keeps its letters"
    head = page[page.index("<body>") : page.index("<nav")]
    assert '<div class="answer bad">' in head and "3 of 80 hosts are low" in head
    assert "error rate: at most 1 %" in head
    assert "27 hosts with firmware &lt;b&gt;1.9&lt;/b&gt; form a population separate" in head
    assert '<span class="mark low">3 low</span>' in head
    assert "<script" not in page and "<b>1.9" not in page
    for title in ("Hosts that are off", "Populations", "Distributions", "How sure this is"):
        assert f">{title}</h2>" in page
    assert "1 node without a document: node-9999." in page
    assert "<dt>Lock held</dt><dd>the host&#39;s lock file, on 80 hosts</dd>" in page
    assert page.count("<figure>") == 12, "one for each headline case"


def test_markdown_has_the_hosts_and_no_charts() -> None:
    text = markdown(fleet_report(made()))
    assert text.startswith("# qualify\n") and "## Hosts that are off" in text
    assert "| node-0001 |" in text or "| **node-0001** |" in text
    assert "Distributions" not in text


def test_a_large_campaign_has_a_small_page() -> None:
    """Four times the hosts that are drawn take no more than a browser likes."""
    report = fleet_report(made(260))
    page = html(report).encode()
    assert len(page) < BYTES_MOST * 260 / 1000
    assert HOSTS_SHOWN <= 260


def rows(**changes: object) -> tuple[HostsRow, ...]:
    rng = random.Random(1)
    known: dict[str, object] = {
        "label": "1,000 hosts, population 1: firmware 1.9 (2026-06-01)",
        "values": tuple(100 * rng.lognormvariate(0, 0.01) for _ in range(1000)),
        "off": (88.0,),
        "usual": 100.0,
        "expected": 97.5,
        "limit": 105.0,
    }
    return (HostsRow(**(known | changes)),)  # type: ignore[arg-type]


@each(
    "chart",
    [
        HostsChart("byte/s", rows()),
        HostsChart("s", (*rows(), *rows(limit=None, expected=None, off=()))),
        HostsChart("byte/s", rows(values=(100.0,) * 6, off=(), expected=99.9)),
        HostsChart("byte/s", rows(values=(100.0, 10.0, 500.0), off=(), limit=300.0)),
        HostsChart("byte/s", rows(values=(), off=(88.0,))),
    ],
)
def test_both_drawings_are_svg_within_their_width(chart: HostsChart) -> None:
    low, high = axis_range(chart)
    assert low < high
    for drawing in draw(chart, "hosts"):
        assert "nan" not in drawing
        svg = ElementTree.fromstring(drawing)
        width, height = map(float, svg.attrib["viewBox"].split()[2:])
        for text in svg.iter("text"):
            assert 0 <= float(text.attrib["x"]) <= width
            assert 0 <= float(text.attrib["y"]) <= height


def test_hosts_beyond_the_axis_are_counted() -> None:
    (wide, _) = draw(HostsChart("byte/s", rows(values=(*rows()[0].values, 10.0, 12.0))), "hosts")
    svg = ElementTree.fromstring(wide)
    assert "2" in [text.text for text in svg.iter("text")]


def test_hosts_that_are_off_alike_are_all_seen() -> None:
    def dots(off: tuple[float, ...]) -> set[str]:
        (wide, _) = draw(HostsChart("byte/s", rows(values=(), off=off)), "hosts")
        return set(re.findall(r"([\d.]+[ ,][\d.]+)h0", wide))

    assert len(dots((88.0,) * 4)) == 4
