"""Prefect's server: eight clients take a slot of one limit for each of ten flow runs, and report the run's states."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from program import INSTALLED, Api, free_port, main, running

PROGRAM = str(INSTALLED / "bin" / "prefect")
CLIENTS, RUNS = 8, 10


@contextmanager
def started(url: str):
    """The server, which first creates its schema if it does not exist. Its address is the result."""
    port = free_port()
    program = [PROGRAM, "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui"]
    with TemporaryDirectory() as folder:
        environment = {
            "PREFECT_HOME": folder,
            "PREFECT_API_DATABASE_CONNECTION_URL": url.replace("postgres://", "postgresql+asyncpg://"),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
        }
        with running(program, environment, f"http://127.0.0.1:{port}/api", "/health") as address:
            yield address


def setup(url: str) -> None:
    with started(url):
        pass


def smoke(url: str) -> int:
    with started(url) as address:
        api = Api(address, "")
        flow = api("POST", "/flows/", {"name": "sell"})["id"]
        limit = api("POST", "/v2/concurrency_limits/", {"name": "shop", "limit": CLIENTS})["id"]
        slot = {"names": ["shop"], "slots": 1}

        def client(_: int) -> None:
            for _ in range(RUNS):
                api("POST", "/v2/concurrency_limits/increment", {**slot, "mode": "concurrency"})
                run = api("POST", "/flow_runs/", {"flow_id": flow, "state": {"type": "PENDING"}})["id"]
                for state in ["RUNNING", "COMPLETED"]:
                    answer = api("POST", f"/flow_runs/{run}/set_state", {"state": {"type": state}})
                    assert answer["status"] == "ACCEPT", answer
                api("POST", "/v2/concurrency_limits/decrement", slot)

        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(client, range(CLIENTS)))
        completed = api("POST", "/flow_runs/count", {"flow_runs": {"state": {"type": {"any_": ["COMPLETED"]}}}})
        taken = api("GET", f"/v2/concurrency_limits/{limit}")["active_slots"]
        assert int(completed) == CLIENTS * RUNS, completed
        assert taken == 0, taken
        return int(completed)


main(setup, smoke)
