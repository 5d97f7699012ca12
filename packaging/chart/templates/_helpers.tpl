{{/* Names, labels and checks that the templates share. */}}

{{- define "hotrow.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "hotrow.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "hotrow.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "hotrow.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "hotrow.selector" -}}
app.kubernetes.io/name: {{ include "hotrow.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hotrow.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "hotrow.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "hotrow.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "hotrow.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "hotrow.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag }}
{{- printf "%s%s%s" .Values.image.repository (ternary "@" ":" (hasPrefix "sha256:" $tag)) $tag }}
{{- end }}

{{/* The settings file. JSON's texts, numbers and booleans are also TOML's. */}}
{{- define "hotrow.settings" -}}
{{- range $name, $value := .Values.settings }}
{{ $name }} = {{ toJson $value }}
{{- end }}
{{ .Values.extraSettings }}
{{- end }}

{{/* Whether a Service other than that for clients has ports. */}}
{{- define "hotrow.needsTokens" -}}
{{- if or .Values.metrics.enabled .Values.http.enabled }}true{{ end }}
{{- end }}

{{/* The grace period, or an error if it is too short. */}}
{{- define "hotrow.gracePeriod" -}}
{{- $needed := add .Values.preStopSeconds .Values.drainSeconds 5 | int }}
{{- $given := default $needed .Values.terminationGracePeriodSeconds | int }}
{{- if lt $given $needed }}
{{- fail (printf "terminationGracePeriodSeconds is %d and must be at least %d: preStopSeconds + drainSeconds + 5" $given $needed) }}
{{- end }}
{{- $given }}
{{- end }}

{{/* Errors about values that do not fit each other, with the next step. */}}
{{- define "hotrow.check" -}}
{{- if not (or .Values.upstream.existingSecret .Values.existingSettings.secret) }}
{{- fail "no server is named: set upstream.existingSecret to a Secret with the server's URL, made for example with: kubectl create secret generic hotrow-upstream --from-literal=url='postgres://gate:secret@db:5432/shop'" }}
{{- end }}
{{- if and .Values.existingSettings.secret (or .Values.settings .Values.extraSettings) }}
{{- fail "existingSettings.secret replaces the settings file: write settings and extraSettings into that Secret" }}
{{- end }}
{{- if and (include "hotrow.needsTokens" .) (not .Values.tokens.existingSecret) }}
{{- fail "metrics.enabled and http.enabled need tokens: set tokens.existingSecret, see values.yaml" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not .Values.metrics.enabled) }}
{{- fail "serviceMonitor.enabled needs metrics.enabled" }}
{{- end }}
{{- end }}
