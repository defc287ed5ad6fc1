{{- define "agenteval.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "agenteval.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "agenteval.labels" -}}
{{ include "agenteval.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* Security context of the containers, with minimal permissions. */ -}}
{{- define "agenteval.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* The sidecar's container. Parameters (dictionary): root, and listen (the interface for OTLP). */ -}}
{{- define "agenteval.container" -}}
name: agenteval
image: "{{ .root.Values.image.repository }}{{ if .root.Values.image.digest }}@{{ .root.Values.image.digest }}{{ else }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}{{ end }}"
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args:
  - serve
  - --config=/etc/otel-agenteval/config.yaml
  - --grpc={{ .listen }}:14317
  - --http={{ .listen }}:14318
  - --metrics=0.0.0.0:19464
  - --web=127.0.0.1:19465
  {{- if .journal }}
  - --journal=/var/lib/otel-agenteval/journal
  {{- end }}
  {{- if not (or .root.Values.tokenSecret (and .root.Values.tls.secret .root.Values.tls.clientCa)) }}
  - --insecure
  {{- end }}
env:
  - name: OTEL_AGENTEVAL_SERVE__DRAIN_TIMEOUT
    value: 20s
  {{- if .root.Values.tokenSecret }}
  - name: OTEL_AGENTEVAL_SERVE__TOKEN
    valueFrom: {secretKeyRef: {name: {{ .root.Values.tokenSecret }}, key: token}}
  {{- end }}
  {{- if .root.Values.tls.secret }}
  - {name: OTEL_AGENTEVAL_SERVE__TLS__CERT_FILE, value: /etc/otel-agenteval-tls/tls.crt}
  - {name: OTEL_AGENTEVAL_SERVE__TLS__KEY_FILE, value: /etc/otel-agenteval-tls/tls.key}
  {{- if .root.Values.tls.clientCa }}
  - {name: OTEL_AGENTEVAL_SERVE__TLS__CLIENT_CA_FILE, value: /etc/otel-agenteval-tls/ca.crt}
  {{- end }}
  {{- end }}
  {{- with .root.Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- if or .root.Values.secretEnv .root.Values.secretValues }}
envFrom:
  {{- if .root.Values.secretValues }}
  - secretRef: {name: {{ include "agenteval.name" .root }}}
  {{- end }}
  {{- if .root.Values.secretEnv }}
  - secretRef: {name: {{ .root.Values.secretEnv }}}
  {{- end }}
{{- end }}
ports:
  - {name: otlp-grpc, containerPort: 14317}
  - {name: otlp-http, containerPort: 14318}
  - {name: metrics, containerPort: 19464}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60 # replaying a long journal takes time
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 20
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 3
resources: {{ toYaml .root.Values.resources | nindent 2 }}
securityContext: {{ include "agenteval.containerSecurity" .root | nindent 2 }}
volumeMounts:
  - {name: config, mountPath: /etc/otel-agenteval, readOnly: true}
  - {name: state, mountPath: /var/lib/otel-agenteval}
  - {name: tmp, mountPath: /tmp}
  {{- if .root.Values.tls.secret }}
  - {name: tls, mountPath: /etc/otel-agenteval-tls, readOnly: true}
  {{- end }}
  {{- with .root.Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- /* Volumes of both modes. */ -}}
{{- define "agenteval.volumes" -}}
- {name: config, configMap: {name: {{ include "agenteval.name" . }}}}
- {name: tmp, emptyDir: {sizeLimit: 64Mi}}
{{- if .Values.tls.secret }}
- {name: tls, secret: {secretName: {{ .Values.tls.secret }}, defaultMode: 0440}}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Common fields of the pods in both modes. */ -}}
{{- define "agenteval.pod" -}}
serviceAccountName: {{ include "agenteval.name" . }}
automountServiceAccountToken: false
terminationGracePeriodSeconds: 30
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  runAsNonRoot: true
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* Content of the Secrets that pods use. Existing Secrets are only read by install and upgrade, because template has no cluster access. */ -}}
{{- define "agenteval.secrets" -}}
{{- toYaml .Values.secretValues }}
{{- range compact (list .Values.secretEnv .Values.tokenSecret .Values.tls.secret) }}
{{ . }}: {{ dig "data" dict (lookup "v1" "Secret" $.Release.Namespace .) | toJson }}
{{- end }}
{{- end -}}

{{- define "agenteval.podMetadata" -}}
labels: {{ include "agenteval.labels" . | nindent 2 }}
annotations:
  checksum/config: {{ include (print $.Template.BasePath "/config.yaml") . | sha256sum }}
  checksum/secrets: {{ include "agenteval.secrets" . | sha256sum }}
  {{- with .Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
