{{/* The pod of an agent. Takes (dict "root" . "name" NAME-OF-THE-AGENT "dirs" LOG-DIRS "volumes" VOLUMES "mounts" MOUNTS "beside" THE TERM OF POD AFFINITY THAT IT NEEDS "labels" LABELS "letsGo" WHETHER IT ENDS WITH ITS BROKER). */}}
{{- define "segtail.agentPod" -}}
{{- $root := .root -}}
{{- $agents := .root.Values.agents -}}
metadata:
  labels:
    {{- include "segtail.selector" (dict "root" $root "component" "agent") | nindent 4 }}
    {{- with .labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $agents.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include (print $root.Template.BasePath "/config-agent.yaml") $root | sha256sum }}
    {{- with $agents.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "segtail.plainAccount" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with include "segtail.pullSecrets" $root }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- if .letsGo }}
  restartPolicy: Never
  {{- end }}
  terminationGracePeriodSeconds: {{ $agents.terminationGracePeriodSeconds }}
  {{- with $agents.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- toYaml $agents.podSecurityContext | nindent 4 }}
  containers:
    - name: agent
      image: {{ include "segtail.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        - agent
        - --config=/etc/segtail/config/segtail.yaml
        - --name={{ .name }}
        - --log-dirs={{ join "," .dirs }}
        - --listen=0.0.0.0:{{ $agents.port }}
        - --metrics-listen=0.0.0.0:{{ $agents.metricsPort }}
        {{- if .letsGo }}
        - --let-go-after=30s
        {{- end }}
        - --tls-cert=/etc/segtail/tls/tls.crt
        - --tls-key=/etc/segtail/tls/tls.key
        - --tls-client-ca=/etc/segtail/tls/ca.crt
        {{- if $root.Values.token.secretName }}
        - --token-file=/etc/segtail/token/token
        {{- end }}
        {{- if $agents.web.configSecret }}
        - --web-config=/etc/segtail/web/web.yml
        {{- end }}
      env:
        - name: NODE_NAME
          valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
        {{- with $agents.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - {name: agent, containerPort: {{ $agents.port }}}
        - {name: metrics, containerPort: {{ $agents.metricsPort }}}
      livenessProbe:
        {{- include "segtail.probe" (dict "path" "/-/healthy" "port" "metrics" "scheme" $agents.web.scheme "probe" $agents.livenessProbe) | nindent 8 }}
      readinessProbe:
        {{- include "segtail.probe" (dict "path" "/-/ready" "port" "metrics" "scheme" $agents.web.scheme "probe" $agents.readinessProbe) | nindent 8 }}
      resources:
        {{- toYaml $agents.resources | nindent 8 }}
      securityContext:
        {{- toYaml $agents.securityContext | nindent 8 }}
      volumeMounts:
        {{- toYaml .mounts | nindent 8 }}
        - name: config
          mountPath: /etc/segtail/config
          readOnly: true
        {{- include "segtail.secretMounts" $root | nindent 8 }}
        {{- with include "segtail.webMount" $agents.web }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with $agents.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- toYaml .volumes | nindent 4 }}
    - name: config
      configMap:
        name: {{ include "segtail.fullname" $root }}-agent
    {{- include "segtail.secretVolumes" (dict "root" $root "secret" (include "segtail.agentSecret" $root)) | nindent 4 }}
    {{- with include "segtail.webVolume" $agents.web }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $agents.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if and $agents.nodeSelector (not .beside) }}
  nodeSelector:
    {{- toYaml $agents.nodeSelector | nindent 4 }}
  {{- end }}
  {{- with $agents.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- $affinity := $agents.affinity }}
  {{- if .beside }}
  {{- $own := get $affinity "podAffinity" | default dict }}
  {{- $terms := get $own "requiredDuringSchedulingIgnoredDuringExecution" | default list | concat (list .beside) }}
  {{- $affinity = merge (dict "podAffinity" (merge (dict "requiredDuringSchedulingIgnoredDuringExecution" $terms) $own)) $affinity }}
  {{- end }}
  {{- with $affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
