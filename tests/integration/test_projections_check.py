"""`projections check`: a fold that depends on order, batching or timing is found out, by the fewest events that show it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import farandole
from farandole import migrate, postgres
from farandole.cli import app
from farandole.errors import ConfigurationError, ExitCode
from farandole.projections import CORE, packaged, read
from farandole.projections.checking import Options, Report, check, inspecting, text
from farandole.projections.checking.sandbox import opened, sweep
from farandole.settings import Settings, load_settings
from farandole.stack.status import Endpoints
from farandole.testing import check_projection
from farandole.testing.flow import environment
from tests.integration.checked_folds import FAULTY, faulty
from tests.integration.projection_tables import Folder, one, places, prepare
from tests.journeys import EVENTS, Log, facts, written

#: Small samples: what these folds do wrong shows soon.
FEW = Options(jobs=4, seed=2, source="generated")


@pytest.fixture(scope="module")
def namespace(farandole_stack: Endpoints) -> Settings:
    """With the runtime's tables: one for all, since a check leaves nothing behind."""
    services = asdict(replace(farandole_stack, schema_registry_url=None))
    made = load_settings(**services, namespace=f"t{secrets.token_hex(3)}")
    migrate.migrate(made)
    return made


@pytest.fixture
def settings(namespace: Settings) -> Iterator[Settings]:
    """Of that namespace, and whether it is as it was."""
    with postgres.connect(namespace) as connection:
        connection.execute(GAP)
        yield namespace
        assert one(connection, LEFT) == 0
        assert one(connection, "SELECT count(*) FROM event_log") == 0
        assert one(connection, "SELECT gap FROM projector_offset") is None


LEFT = "SELECT count(*) FROM pg_namespace WHERE starts_with(nspname, current_schema() || '__check')"
#: What a fold meddles with.
GAP = "INSERT INTO projector_offset (topic, partition) VALUES ('a', 0) ON CONFLICT DO NOTHING"


def checked(settings: Settings, folder: Path, name: str, options: Options = FEW) -> Report:
    return check(settings, faulty(folder, name), read(packaged() / CORE), EVENTS, options)


def test_projections_that_are_shipped_have_no_fault_with_real_and_generated_events(
    farandole_settings: Settings,
) -> None:
    prepare(farandole_settings)
    records = written(Log(farandole_settings), facts(5, 8))
    Folder(farandole_settings, "a", places(records, farandole_settings)).fold(records)
    core = read(packaged() / CORE)
    example = Path(farandole.__file__).parent / "templates" / "projections" / "example"
    shipped = [folder for folder in packaged().iterdir() if folder.is_dir()]
    assert len(shipped) >= 4
    for folder in [example, *shipped]:
        report = check(farandole_settings, read(folder), core, EVENTS, Options(jobs=4))
        assert report.passed, text(report)
        assert report.events > 15 + 5
        assert report.trials > 30
    with postgres.connect(farandole_settings) as connection:
        assert one(connection, LEFT) == 0
        assert one(connection, "SELECT count(*) FROM event_log") == len(records)


#: What is found in each, the number of events that show it, and what must be said.
FOUND = [
    ("last_stage", "order", 2, "1: A, then B\n  2: B, then A"),
    ("first_event", "order", 2, "first_event (type) depend on the order"),
    ("ties", "order", 2, "must end with event_id"),
    ("pairs", "order", 2, "gathered whole"),
    ("batches", "batching", 2, "1: A, B in one batch\n  2: A, then B"),
    ("collected", "inside_batch", 2, "1: A, B in one batch\n  2: B, A in one batch"),
    ("second_of_two", "refold", 2, "event_log before"),
    ("neighbours", "at_once", 2, "A and B at once in two projectors"),
    ("lost_update", "at_once", 2, "not a sub-select from the table"),
    ("seconds", "float", 3, "bigint of millionths"),
    ("seen_at", "time", 1, "seen_at/fold.sql:1: now is the time of folding"),
    ("numbered", "time", 1, "numbered/tables.sql:2: bigserial counts as rows come"),
    ("ungrouped", "error", 2, "GROUP BY the columns of ON CONFLICT"),
]


@pytest.mark.parametrize(("name", "kind", "events", "said"), FOUND, ids=[name for name, *_ in FOUND])
def test_what_depends_on_more_than_the_events_is_shown_by_the_fewest_of_them(
    name: str, kind: str, events: int, said: str, settings: Settings, tmp_path: Path
) -> None:
    report = checked(settings, tmp_path, name)
    assert [finding.kind for finding in report.findings] == [kind], text(report)
    example = report.findings[0].example
    assert example
    assert len(example.events) == events
    assert " ".join(said.split()) in " ".join(text(report).split())


#: What is found by looking, or has no example that is the same each time.
SEEN = [
    ("crosswise", "deadlock", "ORDER BY type"),
    ("misspelt", "typo", 'misspelt/fold.sql:3: column "occured_at" does not exist'),
    ("committing", "transaction", "committing/fold.sql:3: COMMIT"),
    ("meddling", "foreign_write", "writes to parked, projector_offset"),
    ("counting", "empty_batch", "1 row(s) of counting when new_events is empty"),
    ("keyless", "key", "no unique or exclusion constraint matching the ON CONFLICT"),
    ("looking", "reads", "reads step"),
    ("thrown", "time", "thrown/fold.sql:1: random is drawn anew"),
]


@pytest.mark.parametrize(("name", "kind", "said"), SEEN, ids=[name for name, *_ in SEEN])
def test_what_ends_badly_is_named(name: str, kind: str, said: str, settings: Settings, tmp_path: Path) -> None:
    report = checked(settings, tmp_path, name)
    assert report.findings[0].kind == kind, text(report)
    assert said in " ".join(text(report).split())
    assert report.passed is (kind == "reads")


def test_every_faulty_fold_is_tried() -> None:
    assert FAULTY.keys() == {name for name, *_ in FOUND} | {name for name, *_ in SEEN}


def test_a_row_may_be_gathered_from_the_events_of_its_job(settings: Settings, tmp_path: Path) -> None:
    report = checked(settings, tmp_path, "gathered")
    assert report.findings == [], text(report)


def test_faults_of_different_columns_are_all_shown(settings: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "several"
    folder.mkdir()
    (folder / "tables.sql").write_text(
        "CREATE TABLE IF NOT EXISTS several (trace_id uuid PRIMARY KEY, seen_at timestamptz, n bigint, type text);"
    )
    (folder / "fold.sql").write_text(
        """INSERT INTO several AS old
SELECT trace_id, now(), 1, max(type) FROM new_events GROUP BY trace_id ORDER BY trace_id
ON CONFLICT (trace_id) DO UPDATE SET n = old.n + 1, type = excluded.type;"""
    )
    report = check(settings, read(folder), read(packaged() / CORE), EVENTS, FEW)
    assert {finding.kind for finding in report.findings} >= {"time", "order", "batching"}, text(report)


def test_a_check_that_was_killed_leaves_nothing_that_the_next_one_does_not_remove(
    settings: Settings, tmp_path: Path
) -> None:
    killed, working = (f"{settings.schema_name}__check_{name}" for name in ("0dead000", "0live000"))
    with postgres.connect(settings) as connection:
        for schema in (killed, working):
            connection.execute(postgres.script(f"CREATE SCHEMA {schema} CREATE TABLE event_log (n int)"))
        with postgres.connect(settings) as other, postgres.advisory_lock(other, "check", working):
            checked(settings, tmp_path, "misspelt")
            left = "SELECT array_agg(nspname::text) FROM pg_namespace WHERE nspname LIKE '%\\_\\_check\\_%'"
            assert working in one(connection, left)
            assert killed not in one(connection, left)
        assert sweep(connection, settings) == [working]


def test_ctrl_c_leaves_no_schema_behind(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from farandole.projections.checking.trials import Trials

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Trials, "batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checked(settings, tmp_path, "last_stage")


def test_a_mistake_in_views_is_named_and_what_others_have_not_made_yet_is_no_fault(
    settings: Settings, tmp_path: Path
) -> None:
    projection = faulty(tmp_path, "gathered")
    with opened(settings, projection, read(packaged() / CORE)) as sandbox:
        sandbox.install()

        def found(select: str) -> list[tuple[str, str]]:
            sandbox.projection = replace(projection, views=f"CREATE VIEW many AS\n{select};")
            return [(finding.severity, finding.what) for finding in inspecting.views(sandbox)]

        where = f"{projection.where}/views.sql:2"
        mistake = ("fault", f'{where}: column "stagee" does not exist')
        assert found("SELECT stagee FROM gathered") == [mistake]
        absent = ("warning", f'{where}: relation "of_others" does not exist')
        assert found("SELECT * FROM gathered JOIN of_others USING (trace_id)") == [absent]
        assert found("SELECT * FROM gathered JOIN job_state USING (trace_id)") == []


def test_real_events_alone_must_be_there(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="event_log is empty"):
        checked(settings, tmp_path, "last_stage", Options(source="real"))


def test_a_users_test_fails_with_the_same_words(settings: Settings, tmp_path: Path) -> None:
    faulty(tmp_path, "batches")
    with pytest.raises(AssertionError, match=r"depend on how the events are cut into batches(.|\n)*n = old\.n \+"):
        check_projection(tmp_path / "batches", settings, jobs=4)
    check_projection(packaged() / "stage_times", settings, jobs=4)


def test_the_command_ends_with_1_and_tells_programs_why(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(settings).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "pyproject.toml").write_text('[tool.farandole]\nflow = "jobs"\n')
    faulty(tmp_path / "projections", "batches")
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ["projections", "check", "batches", "--jobs", "4", "--json"])
    assert ended.exit_code == ExitCode.FAILED
    (report,) = json.loads(ended.stdout)
    assert (report["projection"], report["passed"], report["findings"][0]["kind"]) == ("batches", False, "batching")
    assert len(report["findings"][0]["example"]["events"]) == 2
    ended = CliRunner().invoke(app, ["projections", "check", "job_state", "--jobs", "4"])
    assert (ended.exit_code, ended.stdout.split(":")[0]) == (ExitCode.OK, "job_state")
    ended = CliRunner().invoke(app, ["projections", "check", "nothing"])
    assert ended.exit_code == ExitCode.CONFIGURATION
