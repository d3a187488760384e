{{- define "gantry.consoleMounts" -}}
{{ include "gantry.mounts" . }}
- {name: conf, mountPath: /etc/gantry/conf, readOnly: true}
{{- if .Values.acl.existingSecret }}
- {name: acl, mountPath: /etc/gantry/acl, readOnly: true}
{{- end }}
{{- end }}

{{/* The environment of console, worker and scheduler; call with (dict "root" $ "secret" NAME). */}}
{{- define "gantry.consoleEnv" -}}
- {name: DJANGO_SETTINGS_MODULE, value: console.settings}
- {name: GANTRY_HOME, value: /var/lib/gantry}
- {name: HOME, value: /tmp}
- {name: CONSOLE_CLUSTERS, value: {{ printf "%s=%s" .root.Values.clusterName (include "gantry.namesrvAddr" .root | replace ";" ",") | quote }}}
- name: SECRET_KEY
  valueFrom: {secretKeyRef: {name: {{ .secret }}, key: secret-key}}
- {name: SPARK_MASTER, value: {{ .root.Values.spark.master | quote }}}
- {name: SPARK_CONF_DIR, value: /etc/gantry/conf}
{{- with .root.Values.console.allowedHosts }}
- {name: CONSOLE_ALLOWED_HOSTS, value: {{ . | quote }}}
{{- end }}
{{- if .root.Values.console.ingress.tlsSecret }}
- {name: CONSOLE_HTTPS, value: "true"}
{{- end }}
{{- if .root.Values.postgresql.url }}
- {name: DATABASE_URL, value: {{ .root.Values.postgresql.url | quote }}}
{{- else if .root.Values.postgresql.enabled }}
- name: POSTGRES_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ .root.Release.Name }}-postgresql, key: password}}
- {name: DATABASE_URL, value: "postgres://gantry:$(POSTGRES_PASSWORD)@{{ .root.Release.Name }}-postgresql/gantry"}
{{- end }}
{{- if .root.Values.redis.url }}
- {name: REDIS_URL, value: {{ .root.Values.redis.url | quote }}}
{{- else if .root.Values.redis.enabled }}
- {name: REDIS_URL, value: "redis://{{ .root.Release.Name }}-redis:6379/0"}
{{- end }}
{{- if .root.Values.tls.existingSecret }}
- {name: CONSOLE_CLUSTER_TLS, value: "{{ .root.Values.clusterName }}=/etc/gantry/conf/tls.properties"}
{{- end }}
{{- if .root.Values.acl.existingSecret }}
- {name: CONSOLE_CLUSTER_CREDENTIALS, value: "{{ .root.Values.clusterName }}=/etc/gantry/acl/tools.yml"}
{{- end }}
{{- if .root.Values.metrics.existingSecret }}
- {name: CONSOLE_METRICS_TOKEN_FILE, value: /etc/gantry/metrics/token}
{{- end }}
{{- range $name, $value := .root.Values.console.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}
