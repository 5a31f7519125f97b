{{- define "ray-cluster.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "ray-cluster.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $joined := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $joined .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "ray-cluster.labels" -}}
app.kubernetes.io/name: {{ include "ray-cluster.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* What head and workers have in common: (dict "group" values "container" name "root" $). Empty values stay out. */ -}}
{{- define "ray-cluster.group" -}}
{{- $group := .group -}}
{{- $root := .root -}}
rayStartParams:
{{- /* initArgs is what rayStartParams was called once. */}}
{{- range $name, $value := merge (dict) ($group.rayStartParams | default dict) ($group.initArgs | default dict) }}
  {{ $name }}: {{ $value | quote }}
{{- else }}
  {}
{{- end }}
template:
  metadata:
    labels:
      {{- merge (dict) ($group.labels | default dict) (include "ray-cluster.labels" $root | fromYaml) | toYaml | nindent 6 }}
    {{- with $group.annotations }}
    annotations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
  spec:
    {{- with $root.Values.imagePullSecrets }}
    imagePullSecrets:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- range $field := list "serviceAccountName" "restartPolicy" "runtimeClassName" "priorityClassName" "priority" "initContainers" "resourceClaims" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "dnsConfig" "volumes" }}
    {{- with get $group $field }}
    {{ $field }}:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- end }}
    {{- with $group.podSecurityContext }}
    securityContext:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    containers:
      - name: {{ .container }}
        {{- with $group.image | default $root.Values.image }}
        image: "{{ .repository }}:{{ .tag }}"
        {{- with .pullPolicy }}
        imagePullPolicy: {{ . }}
        {{- end }}
        {{- end }}
        {{- with concat (($root.Values.common | default dict).containerEnv | default list) ($group.containerEnv | default list) }}
        env:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- range $field := list "command" "args" "envFrom" "ports" "resources" "volumeMounts" "lifecycle" "securityContext" }}
        {{- with get $group $field }}
        {{ $field }}:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- end }}
      {{- with $group.sidecarContainers }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
{{- end }}

{{- /* A worker group: (dict "name" name "group" values "root" $). */ -}}
{{- define "ray-cluster.workerGroup" -}}
groupName: {{ .name }}
replicas: {{ .group.replicas | default 0 }}
minReplicas: {{ .group.minReplicas | default 0 }}
maxReplicas: {{ kindIs "invalid" .group.maxReplicas | ternary 2147483647 .group.maxReplicas }}
numOfHosts: {{ .group.numOfHosts | default 1 }}
{{ include "ray-cluster.group" (dict "group" .group "container" "ray-worker" "root" .root) }}
{{- end }}
