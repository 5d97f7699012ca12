"""Writes the schemas of Kubernetes' objects as kubeconform reads them: packaging/chart-tests/schemas.py SWAGGER FOLDER [CRD]...

SWAGGER is api/openapi-spec/swagger.json of Kubernetes. Each CRD is the definition of a custom resource, as YAML or JSON. Fields that
a schema does not have are errors.
"""

import json
import sys
from pathlib import Path

import yaml


def strict(schema):
    """The same schema, without other fields than those that it names."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: strict(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema \
            and not schema.get("x-kubernetes-preserve-unknown-fields"):
        schema["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        schema.pop("type", None)
    return schema


def write(folder, kind, group, version, schema):
    name = "-".join([kind.lower(), *([group.split(".")[0]] if group else []), version])
    (Path(folder) / f"{name}.json").write_text(json.dumps(schema))


swagger, folder = sys.argv[1:3]
definitions = strict(json.loads(Path(swagger).read_text())["definitions"])
for name, definition in definitions.items():
    for identity in definition.get("x-kubernetes-group-version-kind", []):
        schema = {"$ref": f"#/definitions/{name}", "definitions": definitions}
        if identity["kind"] in ("ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount"):
            write(folder, identity["kind"], identity["group"], identity["version"], schema)
for path in sys.argv[3:]:
    crd = yaml.safe_load(Path(path).read_text())["spec"]
    for version in crd["versions"]:
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}
        write(folder, crd["names"]["kind"], crd["group"], version["name"], schema)
