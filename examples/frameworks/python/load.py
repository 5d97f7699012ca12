"""Repeats one update in many workers of several processes, as the workers of an application server do."""

import asyncio
import json
import multiprocessing
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass

WARM_UP_SECONDS = 2.0
# Where workers are threads or tasks, a process has this number of them.
WORKERS_PER_PROCESS = 8

# A process inherits the program's functions, so that they can be nested.
fork = multiprocessing.get_context("fork")


@dataclass
class Part:
    """The workers of one process. They count only updates that the database has acknowledged."""

    done: object
    numbers: range
    stop: object

    def repeat(self, update: Callable[[], None], number: int) -> None:
        while not self.stop.is_set():
            update()
            self.done[number] += 1

    async def repeat_async(self, update: Callable[[], Awaitable[None]], number: int) -> None:
        while not self.stop.is_set():
            await update()
            self.done[number] += 1


def run(update: Callable[[], None], workers: int, seconds: float) -> None:
    """Each worker is a process."""
    measure(lambda part: part.repeat(update, part.numbers[0]), workers, 1, seconds)


def run_threads(connect: Callable[[int], Callable[[], None]], workers: int, seconds: float) -> None:
    """Workers are threads. In each process, `connect` opens a pool of connections and returns the update."""

    def process(part: Part) -> None:
        update = connect(len(part.numbers))
        failures = []

        def work(number: int) -> None:
            try:
                part.repeat(update, number)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in part.numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    measure(process, workers, WORKERS_PER_PROCESS, seconds)


def run_tasks(connect: Callable[[int], Coroutine], workers: int, seconds: float) -> None:
    """Workers are tasks. In each process, `connect` opens a pool of connections and returns the update."""

    async def work(part: Part) -> None:
        update = await connect(len(part.numbers))
        await asyncio.gather(*(part.repeat_async(update, number) for number in part.numbers))

    measure(lambda part: asyncio.run(work(part)), workers, WORKERS_PER_PROCESS, seconds)


def measure(process: Callable[[Part], None], workers: int, per_process: int, seconds: float) -> None:
    """Prints how many updates were acknowledged, and how many per second after the warm-up."""
    stop = fork.Event()
    done = fork.Array("L", workers, lock=False)
    parts = [Part(done, range(first, min(first + per_process, workers)), stop) for first in range(0, workers, per_process)]
    processes = [fork.Process(target=process, args=(part,)) for part in parts]
    for started in processes:
        started.start()
    time.sleep(WARM_UP_SECONDS)
    before, started = sum(done), time.monotonic()
    time.sleep(seconds)
    measured, elapsed = sum(done) - before, time.monotonic() - started
    stop.set()
    for ended in processes:
        ended.join()
    if any(ended.exitcode for ended in processes):
        sys.exit("a worker failed")
    print(json.dumps({"updates": sum(done), "per_second": measured / elapsed}))
