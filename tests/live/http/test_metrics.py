"""Prometheus gets what it expects: promtool finds no fault, and the real one scrapes it."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from live.http.api_site import (
    READER,
    WAIT,
    FakeService,
    bearing,
    client,
    controlled,
    job,
    running_job,
    served,
    token_file,
)
from live.http.real_prometheus import configured, scraping

from penstock.live.http.api import Api
from penstock.live.protocol.tokens import Tokens

SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
needs_prometheus = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="Debian's package prometheus is not installed"
)


@pytest.fixture
def service() -> FakeService:
    return FakeService()


def scraped(service: FakeService, tokens: Tokens | None = None, **options: Any) -> str:
    with served(Api(service, tokens=tokens, **options)) as where, client(where, READER) as reader:
        answer = reader.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return answer.text


def samples(text: str) -> dict[str, float]:
    values = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            values[f"{name}{{{labels}}}" if labels else name] = float(value)
    return values


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens.read(token_file(tmp_path))


def test_totals_of_the_site(service: FakeService, tokens: Tokens) -> None:
    for seconds in (0.0004, 0.005, 0.006, 45.0, 500.0):
        service.waits.add(seconds)
    values = samples(scraped(service, tokens))
    expected = {
        "penstock_forwarded_bytes_total": 30,
        "penstock_direct_bytes_total": 40,
        'penstock_fail_open_total{reason="lease"}': 1,
        'penstock_fail_open_total{reason="max-wait"}': 2,
        'penstock_throttled_seconds_total{user="ada"}': 1.5,
        'penstock_throttled_seconds_total{user="bob"}': 2.0,
        'penstock_jobs{state="running"}': 2,
        'penstock_jobs{state="ended"}': 1,
        "penstock_waiting_jobs": 1,
        "penstock_transferring_jobs": 1,
        'penstock_file_system_bytes_total{file_system="home"}': 50,
        'penstock_file_system_waiting_jobs{file_system="home"}': 1,
        'penstock_file_system_waiting_jobs{file_system="scratch"}': 0,
        'penstock_io_node_up{node="0"}': 1,
        'penstock_io_node_up{node="1"}': 0,
        'penstock_io_node_queue{node="0"}': 5,
        'penstock_io_node_bytes_total{direction="read",node="0"}': 10,
        'penstock_io_node_bytes_total{direction="write",node="0"}': 20,
        'penstock_io_node_deaths_total{node="1"}': 6,
        "penstock_turns_total": 5,
        'penstock_turn_wait_seconds_bucket{le="0.001"}': 1,
        'penstock_turn_wait_seconds_bucket{le="0.005"}': 2,
        'penstock_turn_wait_seconds_bucket{le="0.02"}': 3,
        'penstock_turn_wait_seconds_bucket{le="30.0"}': 3,
        'penstock_turn_wait_seconds_bucket{le="120.0"}': 4,
        'penstock_turn_wait_seconds_bucket{le="+Inf"}': 5,
        "penstock_turn_wait_seconds_count": 5,
        "penstock_store_failed_total": 4,
        "penstock_record_lost_total": 7,
        "penstock_record_failed_total": 8,
        "penstock_policy_failures_total": 9,
    }
    assert {name: values.get(name) for name in expected} == expected
    assert values["penstock_turn_wait_seconds_sum"] == pytest.approx(545.0114)
    assert 0 <= values["penstock_scrape_duration_seconds"] < WAIT


def test_jobs_have_no_series_unless_asked_for(service: FakeService, tokens: Tokens) -> None:
    assert "penstock_job_" not in scraped(service, tokens)


def test_the_jobs_that_wrote_most_have_series_while_they_run(
    service: FakeService, tokens: Tokens
) -> None:
    """Job 3 wrote more than all, and has ended; of those that run, two are asked for."""
    service.listed += [job(k, written=k) for k in range(4, 50)]
    values = samples(scraped(service, tokens, job_metrics=2))
    written = {name: value for name, value in values.items() if "job_write" in name}
    assert written == {
        'penstock_job_write_bytes_total{job="job.1",user="ada"}': 1 << 30,
        'penstock_job_write_bytes_total{job="job.2",user="bob"}': 1 << 20,
    }


@pytest.mark.security
def test_without_tokens_users_are_not_named(service: FakeService) -> None:
    text = scraped(service, job_metrics=5)
    assert "ada" not in text
    assert "bob" not in text
    assert samples(text)['penstock_throttled_seconds_total{user=""}'] == 3.5


def test_answers_are_counted_by_code(service: FakeService) -> None:
    with served(Api(service)) as where, client(where) as anonymous:
        for path in ("/v1/mode", "/none", "/none", "/v1/jobs/none"):
            anonymous.get(path)
        values = samples(anonymous.get("/metrics").text)
    assert values['penstock_http_answers_total{code="404"}'] == 3
    assert values['penstock_http_answers_total{code="200"}'] == 1


@needs_prometheus
def test_promtool_finds_no_fault(service: FakeService, tokens: Tokens) -> None:
    text = scraped(service, tokens, job_metrics=5)
    subprocess.run(
        ["promtool", "check", "metrics"], input=text, text=True, timeout=WAIT, check=True
    )


@needs_prometheus
def test_promtool_accepts_the_example(tmp_path: Path) -> None:
    config = configured(tmp_path, "127.0.0.1:9617", READER)
    subprocess.run(["promtool", "check", "config", config], timeout=WAIT, check=True)


@needs_prometheus
def test_prometheus_scrapes_a_real_controller(tmp_path: Path) -> None:
    """The example, with a token, against a controller with a job; then the job ends."""
    options = {"token_file": str(token_file(tmp_path)), "job_metrics": 3}
    with (
        controlled(tmp_path, **options) as (state, where),
        scraping(tmp_path, where, READER) as prometheus,
    ):
        with running_job(state, write_bytes=123) as job:
            assert prometheus.awaited('sum(penstock_io_node_up{job="penstock"})') == "2"
            written = f'penstock_job_write_bytes_total{{job="{job}"}}'
            assert prometheus.awaited(written) == "123"
        assert prometheus.awaited('penstock_jobs{state="running"}', until="0") == "0"
        count = "count(penstock_job_write_bytes_total) or vector(0)"
        assert prometheus.awaited(count, until="0") == "0"


@pytest.mark.security
def test_a_scrape_needs_a_token_where_there_are_tokens(
    service: FakeService, tokens: Tokens
) -> None:
    with served(Api(service, tokens=tokens)) as where, client(where) as anybody:
        assert anybody.get("/metrics").status_code == 401
        assert anybody.get("/metrics", headers=bearing(READER)).status_code == 200
