{{/* What the schema cannot say in words: values that do not go together. Included once, by the configuration. */}}
{{- define "segtail.validate" -}}
{{- $agents := .Values.agents -}}
{{- $job := .Values.job -}}
{{- if not (or $agents.enabled $job.enabled) -}}
{{- fail "nothing to install: agents.enabled and job.enabled are both false" -}}
{{- end -}}
{{- if and $agents.enabled (eq $agents.mode "volumes") (not $agents.volumes.brokers) -}}
{{- fail "agents.mode is volumes: name the brokers and their claims in agents.volumes.brokers" -}}
{{- end -}}
{{- if and $agents.enabled (eq $agents.mode "hostPath") $agents.volumes.brokers -}}
{{- fail "agents.volumes.brokers is for agents.mode volumes, and agents.mode is hostPath" -}}
{{- end -}}
{{- if and $job.enabled (not $agents.enabled) (not $job.agents) -}}
{{- fail "the job has no agents: set agents.enabled, or name them in job.agents" -}}
{{- end -}}
{{- if eq .Values.tls.source "secrets" -}}
{{- if and $agents.enabled (not .Values.tls.agentSecret) -}}
{{- fail "tls.source is secrets: name the agents' Secret in tls.agentSecret" -}}
{{- end -}}
{{- if and $job.enabled (not .Values.tls.jobSecret) -}}
{{- fail "tls.source is secrets: name the job's Secret in tls.jobSecret" -}}
{{- end -}}
{{- else if or .Values.tls.agentSecret .Values.tls.jobSecret -}}
{{- fail "tls.agentSecret and tls.jobSecret are for tls.source secrets, and tls.source is certManager" -}}
{{- end -}}
{{- if $job.executors.enabled -}}
{{- if and (not $job.checkpoint.uri) (not $job.checkpoint.existingClaim) (ne $job.checkpoint.accessMode "ReadWriteMany") -}}
{{- fail "job.executors keep state in the checkpoint: set job.checkpoint.uri to a Hadoop file system, or job.checkpoint.accessMode to ReadWriteMany" -}}
{{- end -}}
{{- if and $agents.enabled (eq $agents.mode "volumes") .Values.rbac.create (not .Values.rbac.overBrokers) -}}
{{- fail "job.executors.enabled with agents.mode volumes: the job's account could delete every pod of this namespace, the brokers' too. Install the job as a release of its own in another namespace (job.enabled false here; agents.enabled false and job.agents there), or accept it with rbac.overBrokers true" -}}
{{- end -}}
{{- range $option := list "spark.kubernetes.driver.pod.name" "spark.kubernetes.namespace" "spark.kubernetes.executor.podTemplateFile" -}}
{{- if hasKey $job.spark $option -}}
{{- fail (printf "job.spark.%s is set by the chart" $option) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $agents.enabled (eq (int $agents.port) (int $agents.metricsPort)) -}}
{{- fail "agents.port and agents.metricsPort are the same" -}}
{{- end -}}
{{- $pods := dict -}}
{{- range $agents.volumes.brokers -}}
{{- if hasKey $pods .pod -}}{{- fail (printf "agents.volumes.brokers has the pod %s twice" .pod) -}}{{- end -}}
{{- $_ := set $pods .pod true -}}
{{- end -}}
{{- end -}}
