"""Checks the facts of the rendered chart that clients depend on: packaging/chart-tests/facts.py MINIMAL FULL

Both files are the output of `helm template`, for minimal.yaml and for full.yaml. Prints one line for each fact.
"""

import sys
import tomllib

import yaml


def fact(text, is_so):
    if not is_so:
        sys.exit(f"not ok: {text}")
    print(f"ok: {text}")


def objects(path):
    with open(path) as file:
        return [document for document in yaml.safe_load_all(file) if document]


def of_kind(rendered, kind):
    return [one for one in rendered if one["kind"] == kind]


def pod(rendered):
    [deployment] = of_kind(rendered, "Deployment")
    return deployment["spec"]["template"]["spec"]


def environment(rendered):
    [container] = pod(rendered)["containers"]
    return {variable["name"]: variable for variable in container["env"]}


def of_both(name, rendered):
    """The facts that hold for all values."""
    [deployment] = of_kind(rendered, "Deployment")
    spec, env = pod(rendered), environment(rendered)
    [container] = spec["containers"]
    drain = int(env["HOTROW_DRAIN_TIMEOUT_MS"]["value"]) / 1000
    wait = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = spec["terminationGracePeriodSeconds"]
    fact(f"{name}: the grace period ({grace} s) has room for preStop ({wait} s) and the drain ({drain:.0f} s)",
         grace >= wait + drain + 5)
    for probe in ("livenessProbe", "readinessProbe"):
        fact(f"{name}: {probe} is hotrow health, and its limit is longer than that of the command",
             container[probe]["exec"]["command"] == ["/usr/bin/hotrow", "health"] and container[probe]["timeoutSeconds"] > 2)
    fact(f"{name}: an update starts a gateway before it stops one",
         deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0})
    labels = deployment["spec"]["selector"]["matchLabels"]
    fact(f"{name}: the selector of the Deployment has no version, because it cannot be changed",
         set(labels) == {"app.kubernetes.io/name", "app.kubernetes.io/instance"})
    budget = of_kind(rendered, "PodDisruptionBudget")[0]["spec"]
    fact(f"{name}: at most one gateway is stopped at once", budget["maxUnavailable"] == 1 and budget["selector"]["matchLabels"] == labels)
    for service in of_kind(rendered, "Service"):
        fact(f"{name}: the Service {service['metadata']['name']} selects the pods", service["spec"]["selector"] == labels)
        ports = {port["name"] for port in container["ports"]}
        fact(f"{name}: its ports exist in the pod", {port["targetPort"] for port in service["spec"]["ports"]} <= ports)
    security = container["securityContext"]
    fact(f"{name}: no rights, no writable files, not root",
         security["readOnlyRootFilesystem"] and security["capabilities"] == {"drop": ["ALL"]}
         and not security["allowPrivilegeEscalation"] and spec["securityContext"]["runAsUser"] == 65532
         and spec["securityContext"]["runAsNonRoot"])
    fact(f"{name}: no token of the cluster, and no variables of Services in the pod",
         spec["automountServiceAccountToken"] is False and spec["enableServiceLinks"] is False)
    [config] = [volume["projected"] for volume in spec["volumes"] if volume["name"] == "config"]
    fact(f"{name}: only root and the gateway's group can read the files",
         config["defaultMode"] == 0o440 and spec["securityContext"]["fsGroup"] == 65532)
    fact(f"{name}: the server's URL comes from a Secret",
         env["HOTROW_UPSTREAM"]["valueFrom"]["secretKeyRef"] == {"name": "shop-upstream", "key": "url"})
    for one in rendered:
        fact(f"{name}: {one['kind']} {one['metadata']['name']} has the namespace of the release", one["metadata"]["namespace"] == "shop")


def of_minimal(rendered):
    kinds = sorted(one["kind"] for one in rendered)
    fact("minimal: the optional objects are off",
         kinds == ["ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"])
    fact("minimal: two gateways", of_kind(rendered, "Deployment")[0]["spec"]["replicas"] == 2)
    fact("minimal: metrics are for the probes only", environment(rendered)["HOTROW_METRICS"]["value"] == "127.0.0.1:9187")
    data = of_kind(rendered, "ConfigMap")[0]["data"]
    fact("minimal: the settings file is TOML", tomllib.loads(data["hotrow.toml"]) == {})
    fact("minimal: each client needs a password", all(line.endswith("scram-sha-256") for line in data["hba.conf"].splitlines()))
    [container] = pod(rendered)["containers"]
    wait = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    drain = int(environment(rendered)["HOTROW_DRAIN_TIMEOUT_MS"]["value"]) / 1000
    fact("minimal: preStop is longer than the drain", wait > drain)
    fact("minimal: memory is limited, and CPU time is not", set(container["resources"]["limits"]) == {"memory"})


def of_full(rendered):
    env, spec = environment(rendered), pod(rendered)
    fact("full: metrics and HTTP can be reached, with tokens",
         env["HOTROW_METRICS"]["value"] == "0.0.0.0:9187" and env["HOTROW_HTTP"]["value"] == "0.0.0.0:8080"
         and env["HOTROW_HTTP_TOKEN_FILE"]["value"] == "/etc/hotrow/tokens")
    [config] = [volume["projected"] for volume in spec["volumes"] if volume["name"] == "config"]
    files = {item["path"]: source["secret"]["name"] for source in config["sources"] if "secret" in source for item in source["secret"]["items"]}
    fact("full: each secret file comes from its Secret",
         files == {"hotrow.toml": "shop-settings", "users.txt": "shop-users", "tokens": "shop-tokens",
                   "tls.crt": "shop-tls", "tls.key": "shop-tls"})
    for name in ("HOTROW_USERS_FILE", "HOTROW_TLS_CERT_FILE", "HOTROW_TLS_KEY_FILE", "HOTROW_HTTP_TOKEN_FILE", "HOTROW_CONFIG"):
        fact(f"full: the file of {name} is mounted", env[name]["value"].removeprefix("/etc/hotrow/") in files)
    fact("full: the ConfigMap has no settings file beside that of the Secret", list(of_kind(rendered, "ConfigMap")[0]["data"]) == ["hba.conf"])
    [monitor] = of_kind(rendered, "ServiceMonitor")
    [endpoint] = monitor["spec"]["endpoints"]
    fact("full: Prometheus sends the token", endpoint["authorization"]["credentials"] == {"name": "shop-tokens", "key": "metrics-token"})
    internal = [one for one in of_kind(rendered, "Service") if monitor["spec"]["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()]
    fact("full: the ServiceMonitor selects one Service with metrics",
         len(internal) == 1 and endpoint["port"] in {port["name"] for port in internal[0]["spec"]["ports"]})
    fact("full: the job has the name that the alert rules have",
         monitor["spec"]["jobLabel"] == "app.kubernetes.io/name" and internal[0]["metadata"]["labels"]["app.kubernetes.io/name"] == "hotrow")
    outside = [one for one in of_kind(rendered, "Service") if one["spec"]["type"] == "LoadBalancer"]
    fact("full: the load balancer has the port for clients only", [port["port"] for port in outside[0]["spec"]["ports"]] == [5432])
    [policy] = of_kind(rendered, "NetworkPolicy")
    rules = {port["port"]: rule["from"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    fact("full: only the named peers reach each port",
         "podSelector" in rules["postgresql"][0] and "namespaceSelector" in rules["metrics"][0] and rules["http"] == rules["metrics"]
         and policy["spec"]["policyTypes"] == ["Ingress", "Egress"])
    fact("full: a digest names the image", pod(rendered)["containers"][0]["image"].startswith("ghcr.io/hotrow/hotrow@sha256:"))


minimal, full = (objects(path) for path in sys.argv[1:])
of_both("minimal", minimal)
of_both("full", full)
of_minimal(minimal)
of_full(full)
