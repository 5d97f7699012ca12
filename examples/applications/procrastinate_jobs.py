"""Procrastinate, a job queue: eight clients enqueue 200 jobs, and a worker does 16 at a time."""

import asyncio

from procrastinate import App, PsycopgConnector
from program import main

JOBS = 200


def application(url: str) -> App:
    return App(connector=PsycopgConnector(conninfo=url, min_size=8))


def setup(url: str) -> None:
    async def create() -> None:
        async with (app := application(url)).open_async():
            await app.schema_manager.apply_schema_async()

    asyncio.run(create())


async def work(url: str) -> int:
    done = []
    app = application(url)

    @app.task(name="sell")
    async def sell(number: int) -> None:
        done.append(number)

    async with app.open_async():
        async def enqueue(client: int) -> None:
            for number in range(client, JOBS, 8):
                await sell.defer_async(number=number)

        await asyncio.gather(*map(enqueue, range(8)))
        await app.run_worker_async(concurrency=16, wait=False, install_signal_handlers=False)
        succeeded = await app.job_manager.list_jobs_async(status="succeeded")
    assert sorted(done) == list(range(JOBS)), "a job was lost or done twice"
    return len(list(succeeded))


main(setup, lambda url: asyncio.run(work(url)))
