"""PgQueuer, a job queue: 200 jobs are enqueued one by one, and four workers with one pool do them."""

import asyncio

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode
from program import main

JOBS, WORKERS = 200, 4


def setup(url: str) -> None:
    async def create() -> None:
        async with asyncpg.create_pool(url, min_size=1) as pool:
            await Queries(AsyncpgPoolDriver(pool)).install()

    asyncio.run(create())


async def work(url: str) -> int:
    done = []

    async def sell(job: Job) -> None:
        done.append(int(job.payload))

    async with asyncpg.create_pool(url, min_size=8, max_size=16) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        await asyncio.gather(*(queries.enqueue("sell", str(number).encode()) for number in range(JOBS)))
        workers = [PgQueuer(AsyncpgPoolDriver(pool)) for _ in range(WORKERS)]
        for worker in workers:
            worker.entrypoint("sell")(sell)
        await asyncio.gather(*(worker.qm.run(mode=QueueExecutionMode.drain) for worker in workers))
        left = await queries.queue_size()
    assert not left, left
    assert sorted(done) == list(range(JOBS)), "a job was lost or done twice"
    return len(done)


main(setup, lambda url: asyncio.run(work(url)))
