"""What an agent remembers of jobs: where each begins, how far it has come, and which of its runs is served."""

from streaming.broker.agent.jobs import MOST_JOBS, OWNED_SECONDS, READS_SECONDS, Jobs, Place
from streaming.broker.journal.journal import Begun
from tests.clocks import Clock

P, J = "jobs", "job"


def begun(seq: int) -> Begun:
    made = Begun()
    made.seq = seq
    made.done.set()
    return made


def test_a_run_that_is_new_takes_over_at_once_and_the_one_before_it_does_not_come_back() -> None:
    jobs = Jobs("id", Clock())
    assert jobs.claim(P, J, "first")
    assert jobs.claim(P, J, "second")
    assert jobs.claim(P, "other", "first")
    assert jobs.twins() == []
    assert not jobs.claim(P, J, "first")
    assert jobs.claim(P, J, "second")
    assert jobs.twins() == [J]
    assert jobs.claim(P, J, "third")
    assert not jobs.claim(P, J, "second")


def test_a_run_that_was_taken_over_from_goes_on_when_the_other_is_no_more() -> None:
    clock = Clock()
    jobs = Jobs("id", clock)
    for run in ("first", "second"):
        assert jobs.claim(P, J, run)
    assert not jobs.claim(P, J, "first")
    clock.now += OWNED_SECONDS
    assert jobs.claim(P, J, "first")
    assert jobs.twins() == []
    assert not jobs.claim(P, J, "second")


def test_each_beginning_has_a_name_of_its_own() -> None:
    jobs, watcher = Jobs("id", Clock()), object()
    names = []
    for run in ("first", "second"):
        jobs.claim(P, J, run)
        assert (jobs.place(P, J, run), jobs.journal(P, J)) == (None, "id")
        jobs.note_beginning(P, J, run, begun(7), watcher)
        assert jobs.place(P, J, run) == Place(jobs.journal(P, J), 7)
        names.append(jobs.journal(P, J))
    assert names == ["id.1", "id.2"]
    assert jobs.place(P, J, "first") is None
    assert jobs.place("another", J, "second") is None


def test_a_beginning_that_nobody_will_publish_is_asked_for_again() -> None:
    jobs, watcher = Jobs("id", Clock()), object()
    jobs.claim(P, J, "run")
    waiting = Begun()
    jobs.note_beginning(P, J, "run", waiting, watcher)
    assert (jobs.begins(P, J, "run", watcher), jobs.begins(P, J, "run", object()), jobs.place(P, J, "run")) == (True, False, None)
    waiting.done.set()
    assert jobs.begins(P, J, "run", object())
    jobs.forget(P, J, "run")
    assert not jobs.begins(P, J, "run", watcher)


def test_who_has_come_furthest_of_those_that_were_heard_lately() -> None:
    clock = Clock(0)
    jobs = Jobs("id", clock)
    assert jobs.furthest() == -1
    for job, seq in (("slow", 3), ("fast", 5)):
        jobs.claim(P, job, "run")
        jobs.note_beginning(P, job, "run", begun(seq), None)
    assert jobs.furthest() == 5
    jobs.note_after(P, "slow", "run", 4)
    jobs.note_after(P, "fast", "run", 9)
    jobs.note_after(P, "fast", "another run", 99)
    assert jobs.furthest() == 9
    clock.now += READS_SECONDS + 1
    jobs.claim(P, "slow", "run")
    assert jobs.furthest() == 4


def test_the_job_that_was_heard_least_lately_gives_way_to_one_more_of_its_principal() -> None:
    clock = Clock(0)
    jobs = Jobs("id", clock)
    for number in range(MOST_JOBS + 1):
        clock.now += 1
        jobs.claim(P, f"job {number}", "run")
        jobs.note_beginning(P, f"job {number}", "run", begun(number), None)
        jobs.claim("another", "job 0", "run")
    assert jobs.place(P, "job 0", "run") is None
    assert jobs.place(P, "job 1", "run") is not None


def test_one_plan_of_a_job_waits() -> None:
    jobs = Jobs("id", Clock())
    assert jobs.may_wait(P, J)
    assert not jobs.may_wait(P, J)
    assert jobs.may_wait(P, "other")
    jobs.waited(P, J)
    assert jobs.may_wait(P, J)
