{{- define "hostbench.name" -}}
{{- if contains "hostbench" .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-hostbench" (.Release.Name | trunc 30) }}
{{- end -}}
{{- end -}}

{{- define "hostbench.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: hostbench
{{ include "hostbench.selector" . }}
{{- end -}}

{{- define "hostbench.selector" -}}
app.kubernetes.io/name: hostbench
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hostbench.image" -}}
{{- $registry := required "image.registry is missing: say where you pushed the images of `make images`, such as --set image.registry=registry.example/hostbench" .Values.image.registry -}}
{{- if not (regexMatch "^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9._-]+)*/?$" $registry) -}}
{{- fail (printf "image.registry is %s: give a host and a path alone, such as registry.example/hostbench" $registry) -}}
{{- end -}}
{{ $registry | trimSuffix "/" }}/orchestrator:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "hostbench.keys" -}}
{{ .Values.keys.existingSecret | default (printf "%s-keys" (include "hostbench.name" .)) }}
{{- end -}}

{{- define "hostbench.tls" -}}
{{ .Values.tls.existingSecret | default (printf "%s-tls" (include "hostbench.name" .)) }}
{{- end -}}

{{- define "hostbench.certificate-names" -}}
{{- $inside := printf "%s.%s" (include "hostbench.name" .) .Release.Namespace -}}
{{- $names := list (include "hostbench.name" .) $inside (printf "%s.svc" $inside) (printf "%s.svc.cluster.local" $inside) "localhost" "127.0.0.1" -}}
{{ concat $names .Values.tls.names | join " " }}
{{- end -}}

{{- define "hostbench.influxdb-url" -}}
{{ .Values.influxdb.enabled | ternary "http://127.0.0.1:8086" .Values.influxdb.external.url }}
{{- end -}}

{{/* The names of the secrets that are random, as scripts/make-env.sh makes them. */}}
{{- define "hostbench.random-secrets" -}}
{{- $names := list "api_key" "service_key" "redis_password" -}}
{{- if .Values.influxdb.enabled -}}
{{- $names = concat $names (list "influxdb_admin_password" "influxdb_admin_token" "influxdb_password" "influxdb_read_password") -}}
{{- end -}}
{{ $names | join " " }}
{{- end -}}

{{/* What an installation leaves for the next one. */}}
{{- define "hostbench.kept" -}}
{{- if .Values.storage.keep }}
annotations:
  helm.sh/resource-policy: keep
{{- end }}
{{- end -}}

{{/* The account of the pods; empty: that of the namespace. */}}
{{- define "hostbench.account" -}}
{{ .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "hostbench.name" .) "") }}
{{- end -}}

{{/* What all pods have. The profile "restricted" of PodSecurity admits them. */}}
{{- define "hostbench.pod" -}}
automountServiceAccountToken: false
{{- with include "hostbench.account" . }}
serviceAccountName: {{ . | quote }}
{{- end }}
# Kubernetes would add variables of its own, such as HOSTBENCH_PORT.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "hostbench.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* A file of the secrets at the path that it has in Docker Compose: (dict "context" . "names" LIST). */}}
{{- define "hostbench.secret-volume" -}}
secret:
  secretName: {{ include "hostbench.keys" .context }}
  defaultMode: 0440
  items:
    {{- range .names }}
    - {key: {{ . }}, path: {{ . }}}
    {{- end }}
{{- end -}}

{{- define "hostbench.redis-answers" -}}
command:
  - sh
  - -c
  - REDISCLI_AUTH=$(cat /run/secrets/redis_password) redis-cli -s /run/redis/redis.sock ping | grep -q PONG
{{- end -}}

{{/* A random secret in base64: what it was before, else made, once for all templates of a rendering:
     (dict "context" . "name" NAME). */}}
{{- define "hostbench.random" -}}
{{- $made := get .context.Values "made" | default dict -}}
{{- if not (hasKey $made .name) -}}
{{- $before := (lookup "v1" "Secret" .context.Release.Namespace (include "hostbench.keys" .context)).data | default dict -}}
{{- $made = set $made .name (get $before .name | default (randAlphaNum 64 | b64enc)) -}}
{{- $_ := set .context.Values "made" $made -}}
{{- end -}}
{{ get $made .name }}
{{- end -}}
