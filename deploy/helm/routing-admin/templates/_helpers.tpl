{{- define "routing-admin.labels" -}}
app.kubernetes.io/name: routing-admin
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "routing-admin.selector" -}}
app.kubernetes.io/name: routing-admin
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{- define "routing-admin.pod" -}}
serviceAccountName: {{ .Values.serviceAccountName }}
automountServiceAccountToken: false
enableServiceLinks: false # For a Service called routing-admin, Kubernetes would set ROUTING_ADMIN_PORT
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "routing-admin.container" -}}
name: routing-admin
image: {{ required "image.repository: push the image of deploy/Containerfile, and name it" .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
envFrom:
  - secretRef: {name: {{ required "secret: name the Secret with the program's secrets" .Values.secret }}}
  {{- with .Values.s3.secret }}
  - secretRef: {name: {{ . }}}
  {{- end }}
env:
  # A folder within the volume: the program makes its data folder private, which only the folder's owner may do, and the
  # volume itself belongs to root.
  - {name: ROUTING_ADMIN_DATA_DIR, value: /data/routing-admin}
  - {name: ROUTING_ADMIN_PUBLIC_URL, value: {{ required "publicUrl: the address that people and agents use" .Values.publicUrl | quote }}}
  - {name: ROUTING_ADMIN_ALLOWED_HOSTS, value: "{{ .Release.Name }},{{ .Release.Name }}.{{ .Release.Namespace }},{{ .Release.Name }}.{{ .Release.Namespace }}.svc,{{ .Release.Name }}.{{ .Release.Namespace }}.svc.cluster.local"}
  - {name: ROUTING_ADMIN_TRUSTED_PROXIES, value: {{ .Values.trustedProxies | quote }}}
  - {name: ROUTING_ADMIN_DRAIN_SECONDS, value: {{ .Values.drainSeconds | quote }}}
  - {name: ROUTING_ADMIN_ARTIFACTS_URL, value: {{ required "s3.url: the bucket for artifacts, s3://…" .Values.s3.url | quote }}}
  # Named explicitly, so that the pod does not start if the key is missing. Otherwise, it would keep its data in a file
  # that is lost with the pod.
  - name: DATABASE_URL
    valueFrom: {secretKeyRef: {name: {{ .Values.postgresql.secret | default .Values.secret }}, key: {{ .Values.postgresql.key }}}}
  {{- if .Values.redis.enabled }}
  - name: REDIS_URL
    valueFrom: {secretKeyRef: {name: {{ .Values.redis.secret | default .Values.secret }}, key: {{ .Values.redis.key }}}}
  {{- end }}
  {{- if .Values.metrics.enabled }}
  - {name: ROUTING_ADMIN_METRICS_PORT, value: "9100"}
  - {name: ROUTING_ADMIN_METRICS_HOST, value: 0.0.0.0}
  {{- end }}
  {{- range $name, $value := .Values.settings }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
volumeMounts:
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "routing-admin.volumes" -}}
- {name: data, emptyDir: {sizeLimit: {{ .Values.dataSize }}}}
- {name: tmp, emptyDir: {}}
{{- end }}
