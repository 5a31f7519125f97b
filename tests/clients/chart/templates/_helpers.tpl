{{- define "harbour.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* A Job that runs as a hook: what it is for, when, and how its Pod lives where there is no real node. */ -}}
{{- define "harbour.hook" -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .root.Release.Name }}-{{ .hook }}
  labels: {{- include "harbour.labels" .root | nindent 4 }}
  annotations:
    helm.sh/hook: {{ .hook }}
    helm.sh/hook-delete-policy: before-hook-creation{{ if ne .life "fails" }},hook-succeeded{{ end }}
spec:
  backoffLimit: 0
  template:
    metadata:
      labels: {life: {{ .life }}}
    spec:
      restartPolicy: Never
      containers:
        - name: hook
          image: {{ .root.Values.image }}
          command: [sh, -c, {{ printf "echo %s; exit %d" .hook (ternary 1 0 (eq .life "fails")) | quote }}]
{{- end }}
