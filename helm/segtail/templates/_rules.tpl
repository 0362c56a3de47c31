{{/* Addresses and single alerts as the values want them. */}}

{{/* Where runbooks are, "" if nobody has said. */}}
{{- define "segtail.runbooks" -}}
{{- $urls := .Values.monitoring.urls -}}
{{- if $urls.runbooks -}}
{{- trimSuffix "/" $urls.runbooks -}}
{{- else if $urls.page -}}
{{- printf "%s/runbooks" (trimSuffix "/" $urls.page) -}}
{{- end -}}
{{- end -}}

{{/* Where people reach this job's page; without a value where alerts lead, or by its Service. */}}
{{- define "segtail.page" -}}
{{- $service := printf "%s://%s-job.%s.svc:%d" (lower .Values.job.web.scheme) (include "segtail.fullname" .) .Release.Namespace (int .Values.job.web.port) -}}
{{- coalesce .Values.job.publicUrl .Values.monitoring.urls.page $service | trimSuffix "/" -}}
{{- end -}}

{{/* A rule, of an alert with its overrides and links; nothing for an alert that is not wanted. Takes root, rule and links. */}}
{{- define "segtail.rule" -}}
{{- $monitoring := .root.Values.monitoring -}}
{{- $rule := .rule -}}
{{- $change := $rule.alert | default "" | get $monitoring.prometheusRule.overrides | default dict -}}
{{- if ne (toString (get $change "enabled")) "false" -}}
{{- if hasKey $change "for" -}}{{- $_ := set $rule "for" $change.for -}}{{- end -}}
{{- if hasKey $change "severity" -}}{{- $_ := set $rule.labels "severity" $change.severity -}}{{- end -}}
{{- with get .links ($rule.alert | default "") -}}
{{- $annotations := $rule.annotations -}}
{{- with $monitoring.urls.runbooks -}}
{{- $_ := set $annotations "runbook_url" (printf "%s/%s.md" (include "segtail.runbooks" $.root) $rule.alert) -}}
{{- else -}}
{{- with include "segtail.runbooks" $.root -}}{{- $_ := set $annotations "runbook_url" (printf "%s/%s" . $rule.alert) -}}{{- end -}}
{{- end -}}
{{- $link := . -}}
{{- with $monitoring.urls.page -}}{{- $_ := set $annotations "page" (printf "%s%s" (trimSuffix "/" .) $link.page) -}}{{- end -}}
{{- with $monitoring.urls.grafana -}}{{- $_ := set $annotations "dashboard" (printf "%s%s" (trimSuffix "/" .) $link.dashboard) -}}{{- end -}}
{{- end -}}
{{- toYaml $rule -}}
{{- end -}}
{{- end -}}
