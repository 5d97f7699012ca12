"""Repeats one update in many processes, one connection each, as the workers of an application server do."""

import json
import multiprocessing
import sys
import time
from collections.abc import Callable

WARM_UP_SECONDS = 2.0


def work(update: Callable[[], None], done, number: int, stop) -> None:
    """Counts only updates that the database has acknowledged."""
    while not stop.is_set():
        update()
        done[number] += 1


def run(update: Callable[[], None], workers: int, seconds: float) -> None:
    """Prints how many updates were acknowledged, and how many per second after the warm-up."""
    stop = multiprocessing.Event()
    done = multiprocessing.Array("L", workers, lock=False)
    processes = [
        multiprocessing.Process(target=work, args=(update, done, number, stop)) for number in range(workers)
    ]
    for process in processes:
        process.start()
    time.sleep(WARM_UP_SECONDS)
    before, started = sum(done), time.monotonic()
    time.sleep(seconds)
    measured, elapsed = sum(done) - before, time.monotonic() - started
    stop.set()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        sys.exit("a worker failed")
    print(json.dumps({"updates": sum(done), "per_second": measured / elapsed}))
