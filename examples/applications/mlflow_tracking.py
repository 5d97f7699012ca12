"""MLflow's tracking server: eight clients log parameters and metrics of a run each, and of one run that they share."""

from concurrent.futures import ThreadPoolExecutor

from program import INSTALLED, Api, free_port, main, running

CLIENTS, STEPS = 8, 15
WORKERS = 2


def started(url: str):
    """The server, which first creates its schema if it does not exist. Its address is the result."""
    port = free_port()
    store = ["--backend-store-uri", url.replace("postgres://", "postgresql://"), "--no-serve-artifacts"]
    program = [str(INSTALLED / "bin" / "mlflow"), "server", "--port", str(port), "--workers", str(WORKERS), *store]
    environment = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    return running(program, environment, f"http://127.0.0.1:{port}", "/health")


def setup(url: str) -> None:
    with started(url):
        pass


def smoke(url: str) -> int:
    with started(url) as address:
        api = Api(address + "/api/2.0/mlflow", "")
        experiment = api("POST", "/experiments/create", {"name": "shop"})["experiment_id"]

        def create() -> str:
            return api("POST", "/runs/create", {"experiment_id": experiment, "start_time": 1})["run"]["info"]["run_id"]

        shared = create()

        def train(client: int) -> str:
            run = create()
            api("POST", "/runs/log-parameter", {"run_id": run, "key": "seed", "value": str(client)})
            for step in range(STEPS):
                metric = {"key": "loss", "value": STEPS - step, "timestamp": step, "step": step}
                api("POST", "/runs/log-metric", {"run_id": run, **metric})
                metrics = [{**metric, "key": "rows", "step": client * STEPS + step}, {**metric, "key": f"loss {client}"}]
                api("POST", "/runs/log-batch", {"run_id": shared, "metrics": metrics})
            api("POST", "/runs/set-tag", {"run_id": run, "key": "client", "value": str(client)})
            api("POST", "/runs/update", {"run_id": run, "status": "FINISHED", "end_time": STEPS})
            return run

        with ThreadPoolExecutor(CLIENTS) as clients:
            runs = list(clients.map(train, range(CLIENTS)))

        def history(run: str, key: str) -> int:
            return len(api("GET", f"/metrics/get-history?run_id={run}&metric_key={key}")["metrics"])

        search = {"experiment_ids": [experiment], "filter": "metrics.loss = 1 and attributes.status = 'FINISHED'"}
        finished = {run["info"]["run_id"] for run in api("POST", "/runs/search", search)["runs"]}
        assert finished == set(runs), finished
        logged = [history(run, "loss") for run in runs]
        assert logged == [STEPS] * CLIENTS, logged
        latest = api("GET", f"/runs/get?run_id={shared}")["run"]["data"]["metrics"]
        steps = {metric["key"]: metric["step"] for metric in latest}
        assert steps == {"rows": CLIENTS * STEPS - 1, **{f"loss {client}": STEPS - 1 for client in range(CLIENTS)}}, steps
        assert history(shared, "rows") == CLIENTS * STEPS
        return sum(logged) + CLIENTS * STEPS


main(setup, smoke)
