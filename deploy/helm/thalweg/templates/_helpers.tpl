{{- define "thalweg.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "thalweg.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "thalweg.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "thalweg.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "thalweg.selector" -}}
app.kubernetes.io/name: {{ include "thalweg.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "thalweg.labels" -}}
{{ include "thalweg.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "thalweg.apiKeySecret" -}}
{{- default (include "thalweg.fullname" .) .Values.apiKey.existingSecret }}
{{- end }}

{{- define "thalweg.saslSecret" -}}
{{- default (include "thalweg.fullname" .) .Values.kafka.sasl.existingSecret }}
{{- end }}

{{- define "thalweg.tag" -}}
{{- default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{- /* What both containers are told. The data directory is a folder of the volume, whose root may hold lost+found. */}}
{{- define "thalweg.env" -}}
- name: THALWEG_STORAGE__DATA_DIR
  value: /data/thalweg
- name: THALWEG_KAFKA__BOOTSTRAP_SERVERS
  value: {{ required "kafka.bootstrapServers is needed: host:port[,host:port]" .Values.kafka.bootstrapServers | quote }}
- name: THALWEG_KAFKA__SECURITY_PROTOCOL
  value: {{ .Values.kafka.securityProtocol }}
- name: THALWEG_KAFKA__TOPIC_PREFIX
  value: {{ .Values.kafka.topicPrefix | quote }}
- name: THALWEG_KAFKA__PARTITIONS
  value: {{ .Values.kafka.partitions | quote }}
{{- with .Values.kafka.sasl.mechanism }}
- name: THALWEG_KAFKA__SASL_MECHANISM
  value: {{ . }}
- name: THALWEG_KAFKA__SASL_USERNAME
  valueFrom:
    secretKeyRef: { name: {{ include "thalweg.saslSecret" $ }}, key: sasl-username }
- name: THALWEG_KAFKA__SASL_PASSWORD
  valueFrom:
    secretKeyRef: { name: {{ include "thalweg.saslSecret" $ }}, key: sasl-password }
{{- end }}
{{- if .Values.kafka.caSecret }}
- name: THALWEG_KAFKA__SSL_CAFILE
  value: /etc/thalweg/kafka/ca.crt
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "thalweg.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "thalweg.kafkaCaMount" -}}
{{- if .Values.kafka.caSecret }}
- name: kafka-ca
  mountPath: /etc/thalweg/kafka
  readOnly: true
{{- end }}
{{- end }}
