{{- /* Names, as the chart kuberay-operator makes them: its releases are upgraded in place. */ -}}

{{- define "eagleray.short" -}}
{{- trunc 63 . | trimSuffix "-" -}}
{{- end }}

{{- define "eagleray.name" -}}
{{- include "eagleray.short" (default "kuberay-operator" .Values.nameOverride) -}}
{{- end }}

{{- define "eagleray.fullname" -}}
{{- $name := default "kuberay-operator" .Values.nameOverride -}}
{{- $joined := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- include "eagleray.short" (default $joined .Values.fullnameOverride) -}}
{{- end }}

{{- define "eagleray.component" -}}
{{- include "eagleray.short" (default "kuberay-operator" .Values.componentOverride) -}}
{{- end }}

{{- define "eagleray.account" -}}
{{- $made := ternary (include "eagleray.fullname" .) "default" .Values.serviceAccount.create -}}
{{- default $made .Values.serviceAccount.name -}}
{{- end }}

{{- define "eagleray.webhookService" -}}
{{- printf "%s-webhook" (include "eagleray.fullname" . | trunc 55 | trimSuffix "-") -}}
{{- end }}

{{- /* The configuration belongs to the whole cluster: releases of one name in two namespaces have one each. */ -}}
{{- define "eagleray.webhookConfiguration" -}}
{{- printf "%s-%s-webhooks" .Release.Namespace (include "eagleray.fullname" .) -}}
{{- end }}

{{- define "eagleray.selector" -}}
app.kubernetes.io/name: {{ include "eagleray.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "eagleray.labels" -}}
{{ include "eagleray.selector" . }}
helm.sh/chart: {{ include "eagleray.short" (printf "%s-%s" .Chart.Name (replace "+" "_" .Chart.Version)) }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The batch scheduler that is asked for; empty for none. */ -}}
{{- define "eagleray.scheduler" -}}
{{- $asked := .Values.batchScheduler | default dict -}}
{{- $name := ternary "" ($asked.name | default "") (eq ($asked.name | default "") "default") -}}
{{- if and $asked.enabled $name -}}
{{- fail "batchScheduler.enabled and batchScheduler.name are set both; enabled is the old way to say name: volcano" -}}
{{- end -}}
{{- ternary "volcano" $name ($asked.enabled | default false) -}}
{{- end }}

{{- /* Says something if a gate is on: (dict "name" "Gate" "root" $). Only for gates that are off by default. */ -}}
{{- define "eagleray.gate" -}}
{{- $set := dict -}}
{{- range .root.Values.featureGates -}}
{{- $_ := set $set .name .enabled -}}
{{- end -}}
{{- if ternary (get $set .name) (get $set "AllAlpha") (hasKey $set .name) -}}on{{- end -}}
{{- end }}

{{- define "eagleray.gates" -}}
{{- $all := list -}}
{{- range .Values.featureGates -}}
{{- if and .enabled (has .name (include "eagleray.gatesToCome" $ | splitList " ")) -}}
{{- fail (printf "featureGates: %s has nothing behind it in this version; remove it or set it to false" .name) -}}
{{- end -}}
{{- $all = append $all (printf "%s=%t" .name .enabled) -}}
{{- end -}}
{{- join "," $all -}}
{{- end }}

{{- define "eagleray.watched" -}}
{{- $own := ternary .Release.Namespace "" .Values.singleNamespaceInstall -}}
{{- .Values.watchNamespace | default list | join "," | default $own -}}
{{- end }}

{{- define "eagleray.logFile" -}}
{{- if and .Values.logging.baseDir .Values.logging.fileName -}}
{{- printf "%s/%s" .Values.logging.baseDir .Values.logging.fileName -}}
{{- end -}}
{{- end }}

{{- /* Fails with a message on numbers that the operator would refuse. */ -}}
{{- define "eagleray.checkNumbers" -}}
{{- $client := .Values.kubeClient | default dict -}}
{{- $cap := .Values.reconcileConcurrency -}}
{{- if and (not (kindIs "invalid" $cap)) (not (regexMatch "^[1-9][0-9]*$" (toString $cap))) -}}
{{- fail (printf "reconcileConcurrency: %v is no positive integer" $cap) -}}
{{- end -}}
{{- if and (hasKey $client "qps") (not (regexMatch "^[0-9]+([.][0-9]+)?$" (toString $client.qps))) -}}
{{- fail (printf "kubeClient.qps: %v is no number of requests per second" $client.qps) -}}
{{- end -}}
{{- if and (hasKey $client "burst") (not (regexMatch "^[0-9]+$" (toString $client.burst))) -}}
{{- fail (printf "kubeClient.burst: %v is no integer" $client.burst) -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElectionEnabled) -}}
{{- fail "replicas: more than one need leaderElectionEnabled, or they would work against each other" -}}
{{- end -}}
{{- end }}

{{- /* The flags, as a YAML list. */ -}}
{{- define "eagleray.arguments" -}}
{{- $flags := list -}}
{{- if .Values.configuration.enabled -}}
{{- $flags = list "--config=/etc/kuberay/config.yaml" -}}
{{- else -}}
{{- with .Values.batchScheduler -}}
{{- if .enabled -}}{{- $flags = append $flags "--enable-batch-scheduler" -}}{{- end -}}
{{- end -}}
{{- if not (.Values.batchScheduler | default dict).enabled -}}
{{- with include "eagleray.scheduler" . -}}{{- $flags = append $flags (printf "--batch-scheduler=%s" .) -}}{{- end -}}
{{- end -}}
{{- with include "eagleray.watched" . -}}{{- $flags = append $flags (printf "--watch-namespace=%s" .) -}}{{- end -}}
{{- with include "eagleray.logFile" . -}}{{- $flags = append $flags (printf "--log-file-path=%s" .) -}}{{- end -}}
{{- with .Values.logging.stdoutEncoder -}}{{- $flags = append $flags (printf "--log-stdout-encoder=%s" .) -}}{{- end -}}
{{- with .Values.logging.fileEncoder -}}{{- $flags = append $flags (printf "--log-file-encoder=%s" .) -}}{{- end -}}
{{- if kindIs "bool" .Values.useKubernetesProxy -}}
{{- $flags = append $flags (printf "--use-kubernetes-proxy=%t" .Values.useKubernetesProxy) -}}
{{- end -}}
{{- $flags = append $flags (printf "--enable-leader-election=%t" .Values.leaderElectionEnabled) -}}
{{- if .Values.metrics.enabled -}}{{- $flags = append $flags "--enable-metrics=true" -}}{{- end -}}
{{- with .Values.reconcileConcurrency -}}
{{- $flags = append $flags (printf "--reconcile-concurrency=%s" (toString .)) -}}
{{- end -}}
{{- with .Values.kubeClient -}}
{{- if hasKey . "qps" -}}{{- $flags = append $flags (printf "--qps=%s" (toString .qps)) -}}{{- end -}}
{{- if hasKey . "burst" -}}{{- $flags = append $flags (printf "--burst=%s" (toString .burst)) -}}{{- end -}}
{{- end -}}
{{- if .Values.webhooks.enabled -}}
{{- $flags = append $flags (printf "--webhook-service=%s" (include "eagleray.webhookService" .)) -}}
{{- $flags = append $flags (printf "--webhook-configuration=%s" (include "eagleray.webhookConfiguration" .)) -}}
{{- end -}}
{{- end -}}
{{- with include "eagleray.gates" . -}}{{- $flags = append $flags (printf "--feature-gates=%s" .) -}}{{- end -}}
{{- toYaml $flags -}}
{{- end }}
