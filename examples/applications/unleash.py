"""Unleash, feature flags: two servers, 24 clients that register and report how often a flag was evaluated."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path

from program import Api, free_port, main, running, until

PROGRAM = str(Path(__file__).parent / "node" / "node_modules" / "unleash-server" / "dist" / "server.js")
ADMIN = "*:*.smoke"
CLIENT = "default:development.smoke"
CLIENTS, REPORTS = 24, 10


def started(url: str, stack: ExitStack) -> str:
    port = free_port()
    environment = {
        "DATABASE_URL": url,
        "DATABASE_SSL": "false",
        "HTTP_PORT": str(port),
        "HTTP_HOST": "127.0.0.1",
        "INIT_ADMIN_API_TOKENS": ADMIN,
        "INIT_CLIENT_API_TOKENS": CLIENT,
        "CHECK_VERSION": "false",
        "SEND_TELEMETRY": "false",
        "LOG_LEVEL": "warn",
        "TZ": "UTC",
    }
    return stack.enter_context(running(["node", PROGRAM], environment, f"http://127.0.0.1:{port}", "/health"))


def setup(url: str) -> None:
    with ExitStack() as stack:
        started(url, stack)  # its migrations come first


def smoke(url: str) -> int:
    with ExitStack() as stack:
        addresses = [started(url, stack) for _ in range(2)]
        admin = Api(addresses[0], ADMIN)
        features = "/api/admin/projects/default/features"
        admin("POST", features, {"name": "sale", "type": "release"})
        admin("POST", f"{features}/sale/environments/development/on")

        def report(number: int) -> None:
            client = Api(addresses[number % 2], CLIENT)
            about = {"appName": f"shop-{number % 4}", "instanceId": str(number)}
            now = datetime.now(timezone.utc).isoformat()
            client("POST", "/api/client/register", {**about, "strategies": [], "started": now, "interval": 1000})
            toggles = {"sale": {"yes": 1, "no": 0}}
            for _ in range(REPORTS):
                client("POST", "/api/client/metrics", {**about, "bucket": {"start": now, "stop": now, "toggles": toggles}})

        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(report, range(CLIENTS)))

        def counted() -> int:
            metrics = admin("GET", "/api/admin/client-metrics/features/sale/raw")
            return sum(hour["yes"] for hour in metrics["data"] if hour["environment"] == "development")

        until(lambda: counted() >= CLIENTS * REPORTS, "the servers write the metrics")
        assert counted() == CLIENTS * REPORTS, counted()
        return counted()


main(setup, smoke)
