{{- define "profiler-agent.labels" -}}
app.kubernetes.io/name: profiler-agent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "profiler-agent.selector" -}}
app.kubernetes.io/name: profiler-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "profiler-agent.accessLogs" -}}
{{- printf "%s-access-logs" (include "profiler-agent.name" . | trunc 51 | trimSuffix "-") }}
{{- end }}

{{- define "profiler-agent.name" -}}
{{- if eq .Release.Name .Chart.Name }}{{ .Chart.Name }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}
