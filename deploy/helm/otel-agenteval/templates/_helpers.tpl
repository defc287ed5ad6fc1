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

{{- /* What containers may: nothing that they do not need. */ -}}
{{- define "agenteval.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* The sidecar's container. Takes a dictionary: root, and listen, the interface that OTLP is taken on. */ -}}
{{- define "agenteval.container" -}}
name: agenteval
image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args:
  - serve
  - --config=/etc/otel-agenteval/config.yaml
  - --grpc={{ .listen }}:14317
  - --http=0.0.0.0:14318
  - --metrics=0.0.0.0:19464
  - --web=127.0.0.1:19465
  {{- if .journal }}
  - --journal=/var/lib/otel-agenteval/journal
  {{- end }}
  {{- if not .root.Values.tokenSecret }}
  - --insecure
  {{- end }}
env:
  - name: OTEL_AGENTEVAL_SERVE__DRAIN_TIMEOUT
    value: 20s
  {{- if .root.Values.tokenSecret }}
  - name: OTEL_AGENTEVAL_SERVE__TOKEN
    valueFrom: {secretKeyRef: {name: {{ .root.Values.tokenSecret }}, key: token}}
  {{- end }}
{{- if .root.Values.secretEnv }}
envFrom:
  - secretRef: {name: {{ .root.Values.secretEnv }}}
{{- end }}
ports:
  - {name: otlp-grpc, containerPort: 14317}
  - {name: otlp-http, containerPort: 14318}
  - {name: metrics, containerPort: 19464}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60 # a long journal is read before anything else
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
{{- end -}}

{{- /* What the pods of both modes have in common. */ -}}
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

{{- define "agenteval.podMetadata" -}}
labels: {{ include "agenteval.labels" . | nindent 2 }}
annotations:
  checksum/config: {{ toYaml .Values.config | sha256sum }}
  {{- with .Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
