{{- define "gantry.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Labels of an object; call with (dict "root" $ "part" "broker"). */}}
{{- define "gantry.labels" -}}
{{ include "gantry.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "gantry.selector" -}}
app.kubernetes.io/name: gantry
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "gantry.namesrvAddr" -}}
{{- $addresses := list -}}
{{- range $i := until (int .Values.namesrv.replicas) -}}
{{- $addresses = append $addresses (printf "%s-namesrv-%d.%s-namesrv:9876" $.Release.Name $i $.Release.Name) -}}
{{- end -}}
{{ join ";" $addresses }}
{{- end }}

{{/* Controllers as id-host:port; call with (dict "root" $ "port" 9878). */}}
{{- define "gantry.controllerPeers" -}}
{{- $peers := list -}}
{{- range $i := until (int .root.Values.controllers.replicas) -}}
{{- $peers = append $peers (printf "n%d-%s-controller-%d.%s-controller:%d" $i $.root.Release.Name $i $.root.Release.Name (int $.port)) -}}
{{- end -}}
{{ join ";" $peers }}
{{- end }}

{{- define "gantry.controllerAddr" -}}
{{- $addresses := list -}}
{{- range $i := until (int .Values.controllers.replicas) -}}
{{- $addresses = append $addresses (printf "%s-controller-%d.%s-controller:9878" $.Release.Name $i $.Release.Name) -}}
{{- end -}}
{{ join ";" $addresses }}
{{- end }}

{{/* Settings as a .properties file, with those of TLS and access control. */}}
{{- define "gantry.properties" -}}
{{- range $key, $value := .settings }}
{{ $key }}={{ $value }}
{{- end }}
{{- if .root.Values.tls.existingSecret }}
tls.test.mode.enable=false
tls.server.mode=enforcing
tls.server.certPath=/etc/gantry/tls/tls.crt
tls.server.keyPath=/etc/gantry/tls/tls.key
tls.enable=true
tls.client.authServer=true
tls.client.trustCertPath=/etc/gantry/tls/ca.crt
{{- if eq .part "broker" }}
haTlsEnable=true
{{- end }}
{{- end }}
{{- if .root.Values.acl.existingSecret }}
authenticationEnabled=true
authorizationEnabled=true
{{- end }}
{{- with .root.Values.podNetworks }}
{{- if eq $.part "broker" }}
haAllowedAddresses={{ join ";" . }}
{{- else if eq $.part "controller" }}
raftAllowedAddresses={{ join ";" . }}
controllerAllowedAddresses={{ join ";" . }}
{{- end }}
{{- end }}
{{- if .root.Values.metrics.existingSecret }}
metricsTokenFile=/etc/gantry/metrics/token
{{- end }}
{{- end }}

{{- define "gantry.podSecurity" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "gantry.containerSecurity" -}}
image: {{ include "gantry.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{ include "gantry.confined" . }}
{{- end }}

{{/* Containers that run Spark: the worker with its driver, and the executors. */}}
{{- define "gantry.sparkContainer" -}}
image: {{ .Values.spark.image | default (include "gantry.image" .) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{ include "gantry.confined" . }}
{{- end }}

{{- define "gantry.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* A broker checks its store before it is ready, minutes after a power cut. */}}
{{- define "gantry.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 2
  failureThreshold: 450
livenessProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* Side port of worker and scheduler: a port of its own for each container of the pod; call with a name. */}}
{{- define "gantry.jobProbes" -}}
startupProbe:
  httpGet: {path: /livez, port: {{ . }}}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: {{ . }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}

{{- define "gantry.mounts" -}}
- {name: data, mountPath: /var/lib/gantry}
- {name: tmp, mountPath: /tmp}
{{ include "gantry.secretMounts" . }}
{{- end }}

{{- define "gantry.secretMounts" -}}
{{- if .Values.tls.existingSecret }}
- {name: tls, mountPath: /etc/gantry/tls, readOnly: true}
{{- end }}
{{- if .Values.metrics.existingSecret }}
- {name: metrics, mountPath: /etc/gantry/metrics, readOnly: true}
{{- end }}
{{- end }}

{{- define "gantry.volumes" -}}
- name: tmp
  emptyDir: {}
{{- with .Values.tls.existingSecret }}
- name: tls
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- with .Values.metrics.existingSecret }}
- name: metrics
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- define "gantry.aclEnv" -}}
{{- with .Values.acl.existingSecret }}
- name: ROCKETMQ_INIT_AUTHENTICATION_USER
  valueFrom: {secretKeyRef: {name: {{ . }}, key: initAuthenticationUser}}
- name: ROCKETMQ_INNER_CLIENT_AUTHENTICATION_CREDENTIALS
  valueFrom: {secretKeyRef: {name: {{ . }}, key: innerClientAuthenticationCredentials}}
{{- end }}
{{- end }}

{{/* Replicas of one set on different nodes where possible. */}}
{{- define "gantry.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "gantry.selector" . | nindent 8 }}
{{- end }}

{{- define "gantry.claim" -}}
- metadata: {name: data}
  spec:
    accessModes: [{{ .mode | default "ReadWriteOnce" }}]
    {{- with .class }}
    storageClassName: {{ . }}
    {{- end }}
    resources: {requests: {storage: {{ .size }}}}
{{- end }}

{{- define "gantry.budget" }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .root.Release.Name }}-{{ .part }}
  labels: {{ include "gantry.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{ include "gantry.selector" . | nindent 6 }}
{{- end }}
