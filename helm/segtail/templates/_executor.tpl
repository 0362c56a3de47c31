{{/* The pod template of Spark's executors: what Spark's own options cannot say. Spark adds name, image, resources, ports and command. */}}
{{- define "segtail.executorTemplate" -}}
{{- $executors := .Values.job.executors -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    {{- include "segtail.selector" (dict "root" . "component" "executor") | nindent 4 }}
    {{- with $executors.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $executors.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext:
    {{- toYaml .Values.job.podSecurityContext | nindent 4 }}
  containers:
    - name: executor
      image: {{ include "segtail.image" . }}
      securityContext:
        {{- toYaml .Values.job.securityContext | nindent 8 }}
      {{- with .Values.job.extraEnv }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- include "segtail.secretMounts" . | nindent 8 }}
        {{- if include "segtail.sharedCheckpoint" . }}
        - name: checkpoint
          mountPath: /var/lib/segtail
        {{- end }}
        {{- with .Values.job.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- include "segtail.secretVolumes" (dict "root" . "secret" (include "segtail.jobSecret" .)) | nindent 4 }}
    {{- if include "segtail.sharedCheckpoint" . }}
    - name: checkpoint
      persistentVolumeClaim:
        claimName: {{ include "segtail.checkpointClaim" . }}
    {{- end }}
    {{- with .Values.job.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $executors.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $executors.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $executors.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
