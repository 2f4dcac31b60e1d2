"""Records twice, shuffled, cut into batches of every size, folded by two projectors at once: always the same tables."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from farandole import postgres
from farandole.kafka import Record
from farandole.settings import Settings
from tests import oracle
from tests.integration.projection_tables import (
    Folder,
    failures,
    jobs,
    one,
    places,
    prepare,
    stage_counts,
    stage_times,
    throughput,
)
from tests.journeys import Log, facts


@pytest.mark.parametrize("seed", range(3))
def test_every_batch_size_and_two_projectors_give_the_tables_of_the_fold_in_plain_python(
    seed: int, farandole_settings: Settings
) -> None:
    """For each size from one record to all of them new jobs, so that one test's tables hold the outcome of every split."""
    prepare(farandole_settings)
    chance, log = random.Random(seed), Log(farandole_settings)
    happened: list[oracle.Happened] = []
    streams: tuple[list[list[Record]], list[list[Record]]] = ([], [])
    for size in range(1, 41):
        chosen = facts(1000 * seed + size, 4)
        twice = [*chosen, *chosen]
        chance.shuffle(twice)
        happened += [fact.happened for fact in twice]
        for partition, stream in enumerate(streams):  # both projectors meet every job, in different orders
            mine = [log.append(fact.event, fact.fields, partition) for fact in twice[partition::2]]
            stream += [mine[start : start + size] for start in range(0, len(mine), size)]
    folders = [
        Folder(farandole_settings, name, places([r for batch in stream for r in batch], farandole_settings))
        for name, stream in zip("ab", streams, strict=True)
    ]

    def fold(place: int) -> None:
        for batch in streams[place]:
            folders[place].fold(batch)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(fold, range(2)))
    with postgres.connect(farandole_settings) as database:
        assert jobs(database) == oracle.jobs(happened)
        assert stage_times(database) == oracle.stage_times(happened)
        assert stage_counts(database) == oracle.stage_counts(happened, {})
        assert throughput(database) == oracle.throughput(happened)
        assert failures(database) == oracle.failures(happened)
        assert one(database, "SELECT count(*) FROM event_log") == len(oracle.once(happened))
        assert one(database, "SELECT (SELECT count(*) FROM conflict) + (SELECT count(*) FROM parked)") == 0
