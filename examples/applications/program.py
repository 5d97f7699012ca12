"""What the smoke tests share: a server program that runs during a test, and requests to it."""

import base64
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

INSTALLED = Path(__file__).parent.parent.parent / "target" / "applications"
DEBIAN = INSTALLED / "debian"
# Where the programs of Debian's packages find their libraries.
FOLDERS = ["usr/lib/*-linux-gnu", "lib/*-linux-gnu", "usr/lib/freeradius"]
LIBRARIES = ":".join(str(folder) for pattern in FOLDERS for folder in DEBIAN.glob(pattern))
PATIENCE_SECONDS = 90


def main(setup: Callable[[str], None], smoke: Callable[[str], int]) -> None:
    """PROGRAM setup URL creates the schema. PROGRAM smoke URL works with it, and prints how much work was checked."""
    if sys.argv[1] == "setup":
        setup(sys.argv[2])
    else:
        print(json.dumps({"done": smoke(sys.argv[2])}))


def free_port(ports: Iterable[int] = (0,)) -> int:
    """The first free one of the ports. The kernel chooses for 0."""
    for port in ports:
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return listener.getsockname()[1]
    sys.exit(f"no free port in {ports}")


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not after {PATIENCE_SECONDS} s")
        time.sleep(0.2)


@contextmanager
def process(command: list[str], environment: dict[str, str], ready: Callable[[], bool]):
    """The program, from the time that it is ready until the end of the block."""
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=sys.stderr)
    try:
        until(lambda: process.poll() is not None or ready(), command[0])
        if process.poll() is not None:
            sys.exit(f"{command[0]} has ended with {process.returncode}")
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def running(command: list[str], environment: dict[str, str], address: str, health: str):
    """The program, from its first successful answer to the path `health` until the end of the block."""
    with process(command, environment, lambda: answers(address + health)):
        yield address


def answers(address: str) -> bool:
    try:
        return urllib.request.urlopen(address).status == 200
    except (urllib.error.URLError, ConnectionError):
        return False


class Api:
    """A JSON API. A request without success is an exception."""

    def __init__(self, address: str, authorization: str) -> None:
        self.address, self.authorization = address, authorization

    def __call__(self, method: str, path: str, body: object = None) -> object:
        headers = {"Authorization": self.authorization, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
        return json.loads(text) if text.strip().startswith((b"{", b"[")) else text


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
