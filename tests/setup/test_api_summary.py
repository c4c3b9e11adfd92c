"""The HTTP APIs keep what docs/api-summary.json says that they promise."""

import copy
import json

import pytest

from scripts import api_summary


@pytest.fixture(scope="module")
def summaries() -> dict[str, list[str]]:
    return api_summary.summaries()


def test_nothing_that_was_promised_is_gone(summaries: dict[str, list[str]]) -> None:
    """docs/compatibility.md says in which version a promise may end."""
    stored = json.loads(api_summary.PAGE.read_text())
    assert {name: sorted(set(stored[name]) - set(summaries[name])) for name in stored} == {
        name: [] for name in summaries
    }


def test_the_file_has_every_promise(summaries: dict[str, list[str]]) -> None:
    stored = json.loads(api_summary.PAGE.read_text())
    new = {name: sorted(set(summaries[name]) - set(stored[name])) for name in stored}
    assert not any(new.values()), f"make docs writes {new} into docs/api-summary.json"


def test_a_lost_call_parameter_status_field_and_word_is_seen() -> None:
    schema = api_summary.orchestrator_schema()
    less = copy.deepcopy(schema)
    del less["paths"]["/suites"]
    del less["paths"]["/jobs/{job_id}"]["delete"]
    call = less["paths"]["/jobs"]["get"]
    call["parameters"] = [one for one in call["parameters"] if one["name"] != "before"]
    del less["paths"]["/jobs"]["post"]["responses"]["202"]
    models = less["components"]["schemas"]
    del models["JobSpec"]["properties"]["trials"]
    models["Verdict"]["enum"].remove("noisy")
    gone = set(api_summary.promises(schema)) - set(api_summary.promises(less))
    assert {
        "GET /suites",
        "DELETE /jobs/{job_id}",
        "GET /jobs query before",
        "POST /jobs 202 application/json",
        "JobSpec.trials",
        'Verdict = "noisy"',
    } <= gone
