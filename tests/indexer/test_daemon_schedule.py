"""When the daemon does what: no overlap, missed runs once, growing waits after faults, a quota waited out."""

from __future__ import annotations

import itertools
import json
import shutil
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from daemon_world import DaemonWorld, FakeClock
from share_world import ShareWorld

from db import requests, runs
from indexer.faults import Clock, Faults
from indexer.post import Post, SecondDaemon
from indexer.timetable import VERIFY
from notewarden.errors import DatabaseUnavailable, QuotaReached


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    clock.install(monkeypatch)
    return clock


@pytest.fixture
def house(world: ShareWorld, clock: FakeClock) -> DaemonWorld:
    house = DaemonWorld(world, clock)
    house.schedule()
    world.write("a.md")
    return house


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(times)]


def test_it_polls_at_once_and_then_by_the_schedule_with_some_jitter(house: DaemonWorld) -> None:
    with house.daemon() as daemon:
        house.live(daemon, 600)
    assert house.polls[0] == 0
    assert 9 <= len(house.polls) <= 11
    assert all(60 <= gap <= 68 for gap in gaps(house.polls))
    assert len({round(gap) for gap in gaps(house.polls)}) > 1, "hosts started together drift apart"
    assert house.world.paths() == {"a.md"}


def test_missed_polls_are_made_up_by_one(house: DaemonWorld) -> None:
    with house.daemon() as daemon:
        house.live(daemon, 10)
        house.clock.advance(3 * 3600)  # the machine slept
        house.live(daemon, 10)
        # Of 180; a third is the regular one, where the phase of the schedule falls into these seconds.
        assert len(house.polls) in (2, 3)


def test_a_poll_that_takes_longer_than_its_interval_is_never_joined_by_another(house: DaemonWorld) -> None:
    begun, ends = threading.Event(), threading.Event()
    at_work: list[int] = []
    most: list[int] = []

    def before() -> None:
        at_work.append(1)
        most.append(len(at_work))
        begun.set()
        assert ends.wait(30)
        at_work.pop()

    house.before_poll = before
    with house.daemon(threads=True) as daemon:
        daemon.step()
        assert begun.wait(30)
        house.live(daemon, 1000, step=20)
        assert len(most) == 1, "sixteen more came due meanwhile"
        ends.set()
        wait_for(lambda: daemon._idle.is_set() and bool(house.polls))
        house.live(daemon, 70, step=10)
        wait_for(lambda: len(house.polls) >= 2)
    assert max(most) == 1
    assert len(most) <= 3, "what came due meanwhile was not saved up"


def wait_for(holds: Callable[[], bool]) -> None:
    done = threading.Event()
    for _ in range(600):
        if holds():
            return
        done.wait(0.05)
    raise AssertionError("it never came")


def test_an_absent_share_is_tried_again_with_growing_waits_and_at_once_when_it_is_back(
    house: DaemonWorld,
) -> None:
    aside = house.world.root.with_name("aside")
    with house.daemon() as daemon:
        house.live(daemon, 61)
        house.world.root.rename(aside)
        before = house.clock.seconds
        house.live(daemon, 200)
        tried = [at for at in house.polls if at > before]
        fault = daemon.state()["faults"]["share notes"]
        assert fault["failures"] >= 5
        assert "notes" in fault["reason"]
        found = gaps(tried)
        assert found[:3] == pytest.approx([5, 10, 20], abs=2)
        assert max(found) <= 70
        aside.rename(house.world.root)
        house.live(daemon, 70)
        assert daemon.state()["faults"] == {}
    assert house.world.paths() == {"a.md"}


def test_one_absent_share_does_not_slow_the_others(house: DaemonWorld) -> None:
    other = house.world.folder / "other"
    shares = [
        {"name": name, "path": house.world.folder / name, "acl": {"source": "posix"}}
        for name in ("notes", "other")
    ]
    house.world.settings = house.world._make(
        share=shares,
        directory={"source": "file", "file": house.world.people},
        schedule={"poll": "60s", "verify": "off"},
    )
    other.mkdir(mode=0o755)
    (other / "b.md").write_text("# B\n")
    with house.daemon() as daemon:
        house.live(daemon, 5)
        shutil.rmtree(other)
        house.live(daemon, 300)
        assert daemon.state()["faults"].keys() == {"share other"}
        house.world.write("new.md")
        house.live(daemon, 70)
    assert "new.md" in house.world.paths()
    polled = [
        {share["share"] for share in report["shares"]}
        for (report,) in house.world.rows("select report from nw.run where kind = 'sync' order by run_id")
    ]
    assert {"other"} in polled, "the absent one was tried alone"
    assert {"notes"} in polled, "and left alone while the other was due"
    assert "b.md" in house.world.paths(), "nothing of the absent share was deleted"


def test_waits_double_up_to_a_limit_and_jitter_takes_up_to_half() -> None:
    clock = FakeClock()
    plain = Faults(Clock(clock.monotonic, clock.now), first_s=5, longest_s=60, chance=lambda: 0.0)
    assert [plain.failed("x", "") for _ in range(6)] == [5, 10, 20, 40, 60, 60]
    plain.passed("x")
    assert plain.failed("x", "") == 5, "a success forgets"
    jittered = Faults(Clock(clock.monotonic, clock.now), first_s=8, longest_s=60, chance=lambda: 1.0)
    assert jittered.failed("x", "") == 4


def test_a_database_that_is_gone_is_waited_for(house: DaemonWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    with house.daemon() as daemon:
        house.live(daemon, 5)
        with monkeypatch.context() as gone:

            def refuse() -> None:
                raise DatabaseUnavailable

            gone.setattr(daemon._database, "owner", refuse)
            gone.setattr(daemon._database, "listener", refuse)
            daemon._post.close()
            house.live(daemon, 300)
            tried = len(house.polls)
            assert daemon.state()["faults"]["database"]["failures"] >= 3
        house.world.write("later.md")
        house.live(daemon, 70)
        assert daemon.state()["faults"] == {}
        assert len(house.polls) > tried
    assert "later.md" in house.world.paths()


def test_a_failing_provider_is_left_alone_while_permissions_and_deletes_go_on(house: DaemonWorld) -> None:
    with house.daemon() as daemon:
        house.live(daemon, 5)
        house.world.embedder.poison["poisoned"] = False
        house.world.write("b.md", "# B\n\npoisoned\n")
        (house.world.root / "a.md").unlink()
        house.live(daemon, 130)
        assert house.world.trouble()["b.md"].state == "pending"
        assert house.world.paths() == set(), "the delete went through"
        assert "provider" in daemon.state()["faults"]
        house.world.embedder.poison.clear()
        house.live(daemon, 130)
        assert house.world.paths() == {"b.md"}
        assert daemon.state()["faults"] == {}


def test_a_quota_is_waited_out_not_hammered(house: DaemonWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []
    real = house.world.embedder.embed_documents

    def used_up(texts: list[str]) -> object:
        calls.append(house.clock.seconds)
        if house.clock.seconds < 400:
            raise QuotaReached(after_s=300)
        return real(texts)

    monkeypatch.setattr(house.world.embedder, "embed_documents", used_up)
    with house.daemon() as daemon:
        house.live(daemon, 290)
        assert len(calls) == 1
        assert daemon.state()["faults"]["provider"]["quota"] is True
        house.live(daemon, 20)
        assert len(calls) == 2, "asked again when the wait was over, and not counted as a fault"
        assert daemon.state()["faults"]["provider"]["failures"] == 1
        house.live(daemon, 310)
        assert house.world.paths() == {"a.md"}
        assert daemon.state()["faults"] == {}


def test_a_second_daemon_is_told_who_holds_the_database(house: DaemonWorld) -> None:
    with house.daemon() as first, house.world.database.owner():
        second = Post(house.world.database)
        second.name = "notewarden run 1@elsewhere"
        with pytest.raises(SecondDaemon) as refused:
            second.mend()
    assert first._post.name in str(refused.value)
    assert refused.value.exit_code == 1
    with house.daemon():
        pass


def test_the_rows_of_a_killed_daemon_are_ended_by_the_next(house: DaemonWorld) -> None:
    with house.world.database.owner() as conn:
        runs.begin(conn, "daemon", daemon=True)
        runs.begin(conn, "sync", daemon=True)
        taken = requests.put(conn, "sync", {})
        requests.take(conn)
    with house.daemon() as daemon:
        house.live(daemon, 3)
        with house.world.database.owner() as conn:
            assert requests.look(conn, taken).ended, "what the killed one had taken up was served"
    left = house.world.rows("select kind from nw.run where ended_at is null")
    assert left == []


def test_a_good_configuration_is_taken_up(house: DaemonWorld) -> None:
    with house.daemon() as daemon:
        house.live(daemon, 5)
        house.schedule(poll="10s")
        daemon.reload_wanted.set()
        seen = len(house.polls)
        house.live(daemon, 60)
        assert len(house.polls) - seen >= 5


@pytest.mark.parametrize(
    "fault", ['[schedule]\npoll = "soon"\n', "[unknown]\n", "not = toml = at all", "[database]\nurl = 1\n"]
)
def test_a_bad_configuration_is_refused_and_the_old_stays(house: DaemonWorld, fault: str) -> None:
    with house.daemon() as daemon:
        house.live(daemon, 5)
        old = daemon.settings
        old.file.write_text(fault)
        daemon.reload_wanted.set()
        house.live(daemon, 130)
        assert daemon.settings is old
        assert "refused" in daemon.state()["configuration"]
        assert len(house.polls) >= 3, "and goes on by the old one"
        house.schedule()
        daemon.reload_wanted.set()
        daemon.step()
        assert daemon.state()["configuration"] == "as loaded"


def test_a_configuration_for_another_database_is_refused(house: DaemonWorld) -> None:
    with house.daemon() as daemon:
        text = daemon.settings.file.read_text()
        daemon.settings.file.write_text(text + '\n[database]\nurl = "postgresql:///elsewhere"\n')
        daemon.reload_wanted.set()
        daemon.step()
        assert "restart" in daemon.state()["configuration"]


def test_the_clock_set_back_does_not_stop_the_polls(house: DaemonWorld) -> None:
    with house.daemon() as daemon:
        house.live(daemon, 10)
        house.clock.stepped = timedelta(hours=-5)
        seen = len(house.polls)
        house.live(daemon, 130)
        assert len(house.polls) - seen >= 2


def test_verification_hashes_everything_once_a_night(house: DaemonWorld) -> None:
    house.schedule(poll="1h", verify="daily 13:30")
    house.world.write("b.md")
    with house.daemon() as daemon:
        house.live(daemon, 5)
        house.world.files.opened.clear()
        daemon._do(VERIFY)
        done = house.world.rows("select report from nw.run where kind = 'sync' order by run_id desc limit 1")
        assert done[0][0]["shares"][0]["hashed"] == 2
        assert daemon.timetable.due_in(VERIFY) is not None


def test_a_shorter_interval_for_permissions_polls_more_often(house: DaemonWorld) -> None:
    house.schedule(poll="1h", acl="60s")
    with house.daemon() as daemon:
        house.live(daemon, 5)
        (house.world.root / "a.md").chmod(0o600)
        house.live(daemon, 80)
        assert house.world.readable("alice") == set(), "closed within the interval of the permissions"


def test_a_request_is_served_at_once_with_its_result(house: DaemonWorld) -> None:
    with house.daemon() as daemon:
        house.live(daemon, 5)
        house.world.write("b.md")
        with house.world.database.owner() as conn:
            asked = requests.put(conn, "sync", {})
            daemon.step()
            daemon.step()
            standing = requests.look(conn, asked)
    assert standing.ended
    assert standing.exit_code == 0
    assert standing.result is not None
    assert standing.result["report"]["shares"][0]["added"] == 1


def test_an_admins_request_ends_a_running_poll_at_the_next_note(house: DaemonWorld) -> None:
    for number in range(40):
        house.world.write(f"many/{number}.md")
    begun, ends = threading.Event(), threading.Event()
    real = house.world.embedder.embed_documents

    def slow(texts: list[str]) -> object:
        begun.set()
        assert ends.wait(30)
        return real(texts)

    house.world.embedder.embed_documents = slow  # type: ignore[method-assign, assignment]
    with house.daemon(threads=True) as daemon:
        daemon.step()
        assert begun.wait(30)
        with house.world.database.owner() as conn:
            asked = requests.put(conn, "reindex", {"paths": ["a.md"]})
        daemon.step()
        ends.set()

        def served() -> bool:
            daemon.step()
            with house.world.database.owner() as conn:
                return requests.look(conn, asked).ended

        wait_for(served)
    kinds = house.world.rows("select report from nw.run where kind = 'sync' order by run_id")
    assert len(kinds) >= 2
    assert kinds[0][0]["shares"][0]["added"] < 41, "the poll ended early"
    assert len(house.world.paths()) == 41, "what the poll left was done by the request's own"


def test_what_the_daemon_says_of_itself_can_be_read_by_others(house: DaemonWorld) -> None:
    with house.daemon() as daemon:
        house.live(daemon, 40)
        with house.world.database.owner() as conn:
            told = runs.current_daemon(conn)
    assert told is not None
    assert told["next_poll_s"] is not None
    assert json.dumps(told)
    with house.world.database.owner() as conn:
        assert runs.current_daemon(conn) is None, "it ended in order"


def test_a_stop_during_embedding_leaves_every_note_whole(house: DaemonWorld) -> None:
    for number in range(40):
        house.world.write(f"many/{number}.md")
    begun, ends = threading.Event(), threading.Event()
    real = house.world.embedder.embed_documents
    slices: list[int] = []

    def slow(texts: list[str]) -> object:
        slices.append(len(texts))
        begun.set()
        assert ends.wait(30)
        return real(texts)

    house.world.embedder.embed_documents = slow  # type: ignore[method-assign, assignment]
    with house.daemon(threads=True) as daemon:
        daemon.step()
        assert begun.wait(30)
        daemon.stopping.set()
        ends.set()
    assert daemon.ended_in_time
    assert slices == [8], "not one text more was embedded after the stop"
    house.world.whole()
    house.world.embedder.embed_documents = real  # type: ignore[method-assign]
    house.world.restart()
    report = house.world.sync()
    assert report.status == "ok"
    assert len(house.world.paths()) == 41


def test_a_poll_that_was_stopped_is_no_good_poll(world: ShareWorld) -> None:
    world.write("a.md")
    world.sync(stopped=lambda: True)
    assert world.one("select polled_at from nw.share") is None
    world.sync()
    assert world.one("select polled_at from nw.share") is not None


def test_an_unexpected_fault_does_not_end_the_daemon(
    house: DaemonWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    with house.daemon() as daemon:
        house.live(daemon, 5)
        with monkeypatch.context() as broken:
            broken.setattr(daemon.work, "_poll", boom)
            house.live(daemon, 100)
            assert "ZeroDivisionError" in daemon.state()["faults"]["work"]["reason"]
        house.live(daemon, 130)
        assert daemon.state()["faults"] == {}


def boom(name: str) -> None:
    raise ZeroDivisionError
