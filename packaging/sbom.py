"""Prints a list of all libraries in the program (CycloneDX 1.5): packaging/sbom.py BINARY VERSION [TARGET]

Each library has its version, licence, checksum and dependencies. The same program gives the same bytes: the time is
SOURCE_DATE_EPOCH, and the serial number is made from the content. Needs cargo and Cargo.lock.
"""

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def libraries(target):
    """Name and version of each crate in the program, as third-party.sh finds them."""
    tree = output("cargo", "tree", "--locked", "--package", "hotrow", "--edges", "normal,no-proc-macro",
                  "--target", target, "--prefix", "none", "--format", "{p}")
    return {tuple(line.split(" ")[:2]) for line in tree.splitlines() if line}


def checksums():
    """The checksum of each crate of a registry."""
    found = {}
    for block in (ROOT / "Cargo.lock").read_text().split("[[package]]"):
        fields = dict(re.findall(r'^(name|version|checksum) = "(.*)"$', block, re.MULTILINE))
        if "checksum" in fields:
            found[fields["name"], fields["version"]] = fields["checksum"]
    return found


def purl(name, version):
    return f"pkg:cargo/{name}@{version}"


def component(package, sums):
    """One library."""
    name, version = package["name"], package["version"]
    entry = {"type": "library", "bom-ref": purl(name, version), "name": name, "version": version,
             "purl": purl(name, version)}
    if package.get("license"):
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if (name, version) in sums:
        entry["hashes"] = [{"alg": "SHA-256", "content": sums[name, version]}]
    if package.get("repository"):
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return entry


def main():
    if len(sys.argv) not in (3, 4) or "SOURCE_DATE_EPOCH" not in os.environ:
        sys.exit("usage: SOURCE_DATE_EPOCH=... packaging/sbom.py BINARY VERSION [TARGET]")
    binary, version = sys.argv[1:3]
    host = re.search(r"^host: (.*)$", output("rustc", "-vV"), re.MULTILINE)[1]
    target = sys.argv[3] if len(sys.argv) == 4 else host
    rust = output("rustc", "--version").split(" ")[1]
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)

    inside = {(name, number.removeprefix("v")) for name, number in libraries(target)}
    metadata = json.loads(output("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target))
    packages = {package["id"]: package for package in metadata["packages"]
                if (package["name"], package["version"]) in inside}
    if len(packages) != len(inside):
        sys.exit(f"sbom.py: cargo tree lists {len(inside)} crates, and cargo metadata knows {len(packages)} of them")
    references = {key: purl(package["name"], package["version"]) for key, package in packages.items()}
    sums = checksums()
    components = [component(package, sums) for package in packages.values()]
    [own] = [entry for entry in components if entry["name"] == "hotrow"]
    components.remove(own)
    components.append({"type": "library", "bom-ref": f"pkg:generic/rust-std@{rust}", "name": "rust-std", "version": rust,
                       "purl": f"pkg:generic/rust-std@{rust}", "licenses": [{"expression": "MIT OR Apache-2.0"}]})
    dependencies = []
    for node in metadata["resolve"]["nodes"]:
        if node["id"] in packages:
            normal = [edge["pkg"] for edge in node["deps"] if any(kind["kind"] is None for kind in edge["dep_kinds"])]
            on = sorted({references[key] for key in normal if key in packages})
            dependencies.append({"ref": references[node["id"]], "dependsOn": on})

    program = dict(own, type="application", version=version)
    program["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(Path(binary).read_bytes()).hexdigest()}]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": program},
        "components": sorted(components, key=lambda entry: entry["bom-ref"]),
        "dependencies": sorted(dependencies, key=lambda entry: entry["ref"]),
    }
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}"
    print(json.dumps(document, indent=2, sort_keys=True))


main()
