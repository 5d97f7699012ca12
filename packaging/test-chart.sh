#!/usr/bin/env bash
# Tests the Helm chart: packaging/test-chart.sh [CHART]     CHART is a folder or a .tgz, by default packaging/chart
# Lints and renders it with the values of packaging/chart-tests, validates the objects against the schemas of Kubernetes, and checks
# facts that clients depend on. Prints one line for each check, and stops at the first that fails. Needs Go and python3-yaml, and
# builds helm and kubeconform into target/chart-tools the first time, which takes a few minutes. Needs no cluster.
set -euo pipefail
[ $# -le 1 ] || { sed -n 2p "$0" >&2; exit 2; }
[ -n "${HOTROW_TEST_CHART_BOUNDED:-}" ] || HOTROW_TEST_CHART_BOUNDED=1 exec timeout --kill-after=60 1800 "$0" "$@"

helm=v3.18.6
kubeconform=v0.7.0
kubernetes=v1.33.4
operator=v0.85.0

packaging=$(cd "$(dirname "$0")" && pwd)
chart=$(realpath "${1:-$packaging/chart}")
tests=$packaging/chart-tests
tools=$packaging/../target/chart-tools
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

install() { # NAME VERSION PACKAGE
    [ -x "$tools/$1-$2" ] && return
    GOBIN=$work GOFLAGS=-trimpath timeout 900 go install "$3@$2"
    mv "$work/$1" "$tools/$1-$2"
}
install helm "$helm" helm.sh/helm/v3/cmd/helm
install kubeconform "$kubeconform" github.com/yannh/kubeconform/cmd/kubeconform
helm=$tools/helm-$helm
export HELM_CONFIG_HOME=$work HELM_CACHE_HOME=$work HELM_DATA_HOME=$work

fail() { echo "not ok: $*" >&2; exit 1; }
check() { # TEXT COMMAND...
    local text=$1
    shift
    "$@" > "$work/output" 2>&1 || { cat "$work/output" >&2; fail "$text: $*"; }
    echo "ok: $text"
}
refused() { # TEXT MESSAGE OPTION...
    local text=$1 message=$2
    shift 2
    ! render "$@" > "$work/output" 2>&1 || { cat "$work/output" >&2; fail "$text: rendered"; }
    grep -q -- "$message" "$work/output" || { cat "$work/output" >&2; fail "$text: the output above does not say: $message"; }
    echo "ok: $text"
}
# A helm that `go install` has built takes every cluster for an old one.
render() { "$helm" template shop "$chart" --namespace shop --kube-version "$kubernetes" "$@"; }

for values in minimal full; do
    check "helm lint, $values" "$helm" lint --strict --values "$tests/$values.yaml" "$chart"
    render --values "$tests/$values.yaml" > "$work/$values.yaml"
    echo "ok: helm template, $values"
done
python3 "$tests/facts.py" "$work/minimal.yaml" "$work/full.yaml"

least=(--values "$tests/minimal.yaml")
check "settings become TOML" render "${least[@]}" --set settings.pack=shadow --set settings.lanes=8 --set settings.citus_lanes=true
for line in 'citus_lanes = true' 'lanes = 8' 'pack = "shadow"'; do grep -q "^    $line$" "$work/output" || fail "the settings do not have: $line"; done
refused "a server must be named" "set upstream.existingSecret"
refused "an unknown value is an error" "replicas" "${least[@]}" --set replicas=3
refused "settings of the chart cannot be replaced" "listen" "${least[@]}" --set settings.listen=127.0.0.1:1
refused "a grace period that cuts the drain is an error" "must be at least 30" "${least[@]}" --set terminationGracePeriodSeconds=20
refused "metrics need tokens" "set tokens.existingSecret" "${least[@]}" --set metrics.enabled=true
refused "a ServiceMonitor needs metrics" "needs metrics.enabled" "${least[@]}" --set serviceMonitor.enabled=true
refused "two settings files are an error" "replaces the settings file" "${least[@]}" --set existingSettings.secret=a --set settings.lanes=8

# The schemas come from the modules of Kubernetes and of the Prometheus operator.
module() { # MODULE@VERSION
    timeout 600 go mod download -json "$1" 2> /dev/null | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}
schemas=$tools/schemas-$kubernetes-$operator
if [ ! -d "$schemas" ]; then
    swagger=$(module "k8s.io/kubernetes@$kubernetes")/api/openapi-spec/swagger.json
    monitor=$(module "github.com/prometheus-operator/prometheus-operator@$operator")
    monitor=$monitor/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml
    if [ -f "$swagger" ] && [ -f "$monitor" ]; then
        mkdir "$work/schemas"
        python3 "$tests/schemas.py" "$swagger" "$work/schemas" "$monitor"
        mv "$work/schemas" "$schemas"
    fi
fi
if [ -d "$schemas" ]; then
    for values in minimal full; do
        check "kubeconform, $values" "$tools/kubeconform-$kubeconform" -strict -summary -verbose \
            -schema-location "$schemas/{{.ResourceKind}}{{.KindSuffix}}.json" "$work/$values.yaml"
        grep Summary "$work/output"
    done
    sed 's/terminationGracePeriodSeconds/terminationGraceSeconds/' "$work/minimal.yaml" > "$work/wrong.yaml"
    ! "$tools/kubeconform-$kubeconform" -strict -schema-location "$schemas/{{.ResourceKind}}{{.KindSuffix}}.json" \
        "$work/wrong.yaml" > "$work/output" 2>&1 || fail "kubeconform accepts a field that does not exist"
    echo "ok: kubeconform rejects a field that does not exist"
else
    echo "the schemas of Kubernetes could not be downloaded: the objects were not validated"
fi
echo "all checks passed"
