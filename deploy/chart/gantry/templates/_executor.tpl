{{/* The template of executor pods, which Spark's scheduler completes and creates. */}}
{{- define "gantry.executor" -}}
apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-executor
  # Network policies admit the release's own pods.
  labels: {{ include "gantry.labels" (dict "root" . "part" "executor") | nindent 4 }}
spec:
  {{- include "gantry.podSecurity" . | nindent 2 }}
  containers:
    - name: executor
      {{- include "gantry.sparkContainer" . | nindent 6 }}
      # Spark appends the argument "executor".
      command: [python, -m, spark_jobs.kubernetes]
      workingDir: /tmp
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: lake, mountPath: /var/lib/gantry/lake, subPath: lake}
        - {name: conf, mountPath: /etc/gantry/conf, readOnly: true}
        {{- if .Values.tls.existingSecret }}
        - {name: tls, mountPath: /etc/gantry/tls, readOnly: true}
        {{- end }}
  volumes:
    - name: lake
      persistentVolumeClaim: {claimName: data-{{ .Release.Name }}-console-0}
    - name: conf
      configMap: {name: {{ .Release.Name }}-console}
    - name: tmp
      emptyDir: {}
    {{- with .Values.tls.existingSecret }}
    # Only the authority's certificate: executors are clients.
    - name: tls
      secret: {secretName: {{ . }}, defaultMode: 0440, items: [{key: ca.crt, path: ca.crt}]}
    {{- end }}
{{- end }}
