{{/* Name of the chart, or what stands for it. */}}
{{- define "segtail.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* What the names of all objects begin with; short enough for what is appended. */}}
{{- define "segtail.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "segtail.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What pods are selected by. Takes (dict "root" . "component" NAME). */}}
{{- define "segtail.selector" -}}
app.kubernetes.io/name: {{ include "segtail.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object. Takes (dict "root" . "component" NAME). */}}
{{- define "segtail.labels" -}}
{{ include "segtail.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The metadata of an object. Takes (dict "root" . "component" NAME "name" NAME), and "labels", "annotations" for more of them. */}}
{{- define "segtail.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "segtail.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "segtail.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "segtail.pullSecrets" -}}
{{- with .Values.image.pullSecrets -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "segtail.jobAccount" -}}
{{- if .Values.serviceAccount.create -}}{{ include "segtail.fullname" . }}-job{{- else -}}{{ .Values.serviceAccount.job | default "default" }}{{- end -}}
{{- end -}}

{{- define "segtail.plainAccount" -}}
{{- if .Values.serviceAccount.create -}}{{ include "segtail.fullname" . }}{{- else -}}{{ .Values.serviceAccount.plain | default "default" }}{{- end -}}
{{- end -}}

{{- define "segtail.agentsHost" -}}
{{ include "segtail.fullname" . }}-agents.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "segtail.agentSecret" -}}
{{- if eq .Values.tls.source "certManager" -}}{{ include "segtail.fullname" . }}-agent-tls{{- else -}}{{ .Values.tls.agentSecret }}{{- end -}}
{{- end -}}

{{- define "segtail.jobSecret" -}}
{{- if eq .Values.tls.source "certManager" -}}{{ include "segtail.fullname" . }}-job-tls{{- else -}}{{ .Values.tls.jobSecret }}{{- end -}}
{{- end -}}

{{/* What the names of an agent's objects begin with in mode volumes. Its CronJob adds a hash, of 52 in all. Alerts and routes know an agent by
-agent-, which stays however long the release's name is. Takes (dict "root" . "pod" NAME-OF-THE-BROKER'S-POD). */}}
{{- define "segtail.agentName" -}}
{{- $fullname := include "segtail.fullname" .root -}}
{{- $name := printf "%s-agent-%s" $fullname .pod -}}
{{- if le (len $name) 43 -}}
{{- $name -}}
{{- else if le (len $fullname) 27 -}}
{{- printf "%s-%s" ($name | trunc 34) (sha256sum .pod | trunc 8) -}}
{{- else -}}
{{- $short := printf "%s-agent-%s" (include "segtail.name" .root | trunc 20 | trimSuffix "-") .pod -}}
{{- printf "%s-%s" ($short | trunc 34) (sha256sum $name | trunc 8) -}}
{{- end -}}
{{- end -}}

{{/* Where a claim is mounted: where Strimzi mounts it in the broker's pod (data-ID-POD of its disk ID, data-POD of the only one), so that alerts
name the broker's own paths; another one by its place in the list. Takes (dict "pod" NAME "claim" NAME "index" NUMBER). */}}
{{- define "segtail.claimMount" -}}
{{- $id := trimSuffix (printf "-%s" .pod) .claim | trimPrefix "data-" -}}
{{- if eq .claim (printf "data-%s" .pod) -}}
/var/lib/kafka/data
{{- else if and (regexMatch "^[0-9]+$" $id) (eq .claim (printf "data-%s-%s" $id .pod)) -}}
/var/lib/kafka/data-{{ $id }}
{{- else -}}
/var/lib/kafka/data-{{ .index }}
{{- end -}}
{{- end -}}

{{/* Where the agents are, as a list of addresses. */}}
{{- define "segtail.agentAddresses" -}}
{{- if .Values.job.agents -}}
{{- toJson .Values.job.agents -}}
{{- else -}}
{{- list (printf "dns:///%s:%d" (include "segtail.agentsHost" .) (int .Values.agents.port)) | toJson -}}
{{- end -}}
{{- end -}}

{{/* Whether driver and executors share the checkpoint's volume. */}}
{{- define "segtail.sharedCheckpoint" -}}
{{- if and .Values.job.executors.enabled (not .Values.job.checkpoint.uri) -}}true{{- end -}}
{{- end -}}

{{- define "segtail.checkpointClaim" -}}
{{- .Values.job.checkpoint.existingClaim | default (printf "%s-checkpoint" (include "segtail.fullname" .)) -}}
{{- end -}}

{{/* The options of Spark: the chart's own, over which the user's win. */}}
{{- define "segtail.sparkOptions" -}}
{{- $options := dict -}}
{{- if .Values.job.executors.enabled -}}
{{- $fullname := include "segtail.fullname" . -}}
{{- $executors := .Values.job.executors -}}
{{- $options = dict
  "spark.driver.host" (printf "%s-job-0.%s-driver.%s.svc" $fullname $fullname .Release.Namespace)
  "spark.driver.bindAddress" "0.0.0.0"
  "spark.driver.port" "7078"
  "spark.driver.blockManager.port" "7079"
  "spark.blockManager.port" "7079"
  "spark.executor.instances" (toString $executors.instances)
  "spark.executor.cores" (toString $executors.cores)
  "spark.executor.memory" $executors.memory
  "spark.executor.memoryOverhead" $executors.memoryOverhead
  "spark.kubernetes.namespace" .Release.Namespace
  "spark.kubernetes.driver.pod.name" (printf "%s-job-0" $fullname)
  "spark.kubernetes.container.image" (include "segtail.image" .)
  "spark.kubernetes.container.image.pullPolicy" .Values.image.pullPolicy
  "spark.kubernetes.executor.podNamePrefix" (printf "%s-exec" $fullname)
  "spark.kubernetes.executor.podTemplateFile" "/etc/segtail/config/executor.yaml"
  "spark.kubernetes.executor.podTemplateContainerName" "executor"
  "spark.kubernetes.authenticate.executor.serviceAccountName" (include "segtail.plainAccount" .)
  "spark.kubernetes.driver.ownPersistentVolumeClaim" "false"
  "spark.kubernetes.driver.service.deleteOnTermination" "false"
  "spark.kubernetes.executor.disableConfigMap" "true"
-}}
{{- with .Values.image.pullSecrets }}{{- $_ := set $options "spark.kubernetes.container.image.pullSecrets" (join "," .) }}{{- end -}}
{{- with $executors.requestCores }}{{- $_ := set $options "spark.kubernetes.executor.request.cores" . }}{{- end -}}
{{- with $executors.limitCores }}{{- $_ := set $options "spark.kubernetes.executor.limit.cores" . }}{{- end -}}
{{- end -}}
{{- merge (dict) .Values.job.spark $options | toYaml -}}
{{- end -}}

{{/* A probe over HTTP. Takes (dict "path" PATH "port" NAME "scheme" SCHEME "probe" VALUES). */}}
{{- define "segtail.probe" -}}
httpGet:
  path: {{ .path }}
  port: {{ .port }}
  scheme: {{ .scheme }}
{{ toYaml .probe }}
{{- end -}}

{{/* The volumes of a pod that hold its certificate and the token. Takes (dict "root" . "secret" NAME). */}}
{{- define "segtail.secretVolumes" -}}
- name: tls
  secret:
    secretName: {{ .secret }}
    defaultMode: 288  # 0440; in decimal, because Spark reads a pod template as YAML 1.2
{{- with .root.Values.token.secretName }}
- name: token
  secret:
    secretName: {{ . }}
    defaultMode: 288  # 0440; in decimal, because Spark reads a pod template as YAML 1.2
    items:
      - key: {{ $.root.Values.token.key }}
        path: token
{{- end }}
{{- end -}}

{{- define "segtail.secretMounts" -}}
- name: tls
  mountPath: /etc/segtail/tls
  readOnly: true
{{- if .Values.token.secretName }}
- name: token
  mountPath: /etc/segtail/token
  readOnly: true
{{- end }}
{{- end -}}

{{/* The web configuration of what is served over HTTP, if there is one. Both take the values of it. */}}
{{- define "segtail.webMount" -}}
{{- if .configSecret -}}
- name: web
  mountPath: /etc/segtail/web
  readOnly: true
{{- end }}
{{- end -}}

{{- define "segtail.webVolume" -}}
{{- if .configSecret -}}
- name: web
  secret:
    secretName: {{ .configSecret }}
    defaultMode: 288  # 0440
{{- end }}
{{- end -}}

{{/* Whether Spark runs its tasks in the job's own pod. */}}
{{- define "segtail.localMaster" -}}
{{- if and (not .Values.job.executors.enabled) (regexMatch "^local(\\[.*\\])?$" .Values.job.master) }}true{{ end -}}
{{- end -}}

{{/* Whether the job calls more than this release's agents: the API server, a cluster of Spark, a file system elsewhere, other agents. */}}
{{- define "segtail.openEgress" -}}
{{- if or (not (include "segtail.localMaster" .)) .Values.job.checkpoint.uri .Values.job.agents (not .Values.agents.enabled) }}true{{ end -}}
{{- end -}}
