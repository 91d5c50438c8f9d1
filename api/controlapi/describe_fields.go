package controlapi

import "strings"

// explain writes what each property of a schema means, unless its own type says so.
func explain(name string, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for field, property := range properties {
		property := property.(map[string]any)
		if property["description"] != nil {
			continue
		}
		if text := meaning(name, field); text != "" {
			property["description"] = text
		}
	}
}

func explainParameters(op map[string]any) {
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		p := p.(map[string]any)
		if schema, ok := p["schema"].(map[string]any); ok {
			delete(schema, "description") // said once, beside it
		}
		if text := meaning("parameter", p["name"].(string)); p["description"] == nil && text != "" {
			p["description"] = text
		}
	}
}

// meaning finds the text for a field of a schema: its own, else that of its name.
func meaning(schema, field string) string {
	if text, ok := meanings[schema+"."+field]; ok {
		return text
	}
	if schema == "ResourceSpec" && (strings.HasPrefix(field, "orchestrator_") || strings.HasPrefix(field, "executor_")) {
		return "do not use: accepted and without effect"
	}
	return meanings[field]
}

// meanings holds the texts, by "Schema.field" or by the name of a field that means the same everywhere.
var meanings = map[string]string{
	// What many things have.
	"id":                "its id",
	"name":              "its name",
	"tenant_id":         "the tenant that owns it",
	"created_at":        "when it was made",
	"updated_at":        "when it was changed last",
	"created_by":        "who made it",
	"deployment_id":     "id of the deployment",
	"revision_id":       "id of the revision",
	"project_id":        "id of the project, which is that of its deployment",
	"resources":         "the things of this page, newest first",
	"offset":            "the offset of the next page",
	"version":           "version of slipway",
	"status_reason":     "why it stands where it stands, one sentence; null while all is well",
	"status_message":    "the same as status_reason",
	"source":            "where the code comes from",
	"secrets":           "the environment variables of the graphs; a request replaces the whole set",
	"secret_references": "environment variables filled from secrets of the cluster; only for external_container",
	"artifact_digest":   "digest of what runs; null until it is built",
	"integration_id":    "the githost integration that reads the repository; only for githost, immutable",
	"repo_url":          "address of the git repository; only for githost, immutable",
	"repo_ref":          "branch, or a tag as refs/tags/NAME; only for githost",
	"repo_commit_sha":   "the commit that was built; read-only",
	"deployment_type":   "dev_free, dev or prod; immutable",
	"build_on_push":     "make a revision with every push to the branch; only for githost, not with a tag",
	"custom_url":        "address of the agent server; settable only for external_container",
	"listener_id":       "the listener that runs the deployment; only for external_container, immutable",
	"listener_config":   "where in the listener's data plane the deployment lies; immutable",
	"install_command":   "replaces the package manager's installation in JavaScript builds",
	"build_command":     "runs after the installation in JavaScript builds",
	"template_id":       "the prebuilt template; only for internal_template, immutable",
	"resource_spec":     "how much of what the deployment gets; replaces the stored one as a whole",
	"image_uri":         "the container image; pinned to its digest on arrival for internal_container",
	"image_version":     "version of the agent server that the latest revision runs; null if unknown",
	"cluster_namespace": "one of the namespaces that the listener watches",

	"agentgraph_config_path": "path of the graph configuration inside the source",
	"source_tarball_path":    "the object_path that an upload-url call answered; only for internal_source",

	// Deployments and revisions.
	"Deployment.name":                                "its name, unique in the tenant, immutable",
	"Deployment.source_config":                       "configuration that makes no revision or cannot be changed",
	"Deployment.source_revision_config":              "configuration of the latest revision",
	"Deployment.secrets":                             "its environment variables; the values are masked unless the caller's role may read them",
	"Deployment.status":                              "where it stands",
	"Deployment.latest_revision_id":                  "its newest revision; null without one",
	"Deployment.active_revision_id":                  "the revision that serves; null while none does",
	"DeploymentCreateRequest.name":                   "letters, digits, '-' and '_', at most 63; unique in the tenant, immutable",
	"DeploymentCreateRequest.source_config":          "configuration that makes no revision or cannot be changed",
	"DeploymentCreateRequest.source_revision_config": "configuration of the first revision",
	"DeploymentPatchRequest.revision_source":         "source of this revision alone, when it is another than the deployment's",
	"DeploymentPatchRequest.source_config":           "what to change; null and absent fields stay as they are",
	"DeploymentPatchRequest.source_revision_config":  "what to change; any field that is not null makes a revision",
	"Revision.status":                                "where it stands on its way to serving",
	"Revision.source_config":                         "what it was made with, defaults filled in",
	"Revision.source_revision_config":                "what it was made of",
	"Revision.replay_of":                             "the revision whose blueprint it repeats; null for one of its own",
	"RevisionEvent.seq":                              "number of the step; they rise",
	"RevisionEvent.status":                           "the status that the revision took",
	"RevisionEvent.reason":                           "why, one sentence; null while all was well",
	"RevisionEvent.at":                               "when",
	"Secret.name":                                    "name of the environment variable",
	"Secret.value":                                   "its value; the mask of an answer sent back keeps the stored value",
	"SecretReference.name":                           "name of the environment variable",
	"SecretReference.secret_name":                    "name of the secret in the cluster",
	"SecretReference.secret_key":                     "key in that secret",

	// Logs and uploads.
	"LogEntry.id":                    "unique id of the line",
	"LogEntry.timestamp":             "milliseconds since 1970, with a fraction",
	"LogEntry.level":                 "DEBUG, INFO, WARNING, ERROR or CRITICAL",
	"LogEntry.message":               "the line",
	"LogsResponse.logs":              "the lines of this page",
	"LogsResponse.next_offset":       "the offset of the next page; null at the end of a finished stream",
	"DeploymentLogsList.items":       "the lines of this page",
	"DeploymentLogsList.next_cursor": "the cursor of the next page; null at the end of a finished stream",
	"LogsRequest.order":              "asc (oldest first, the default) or desc",
	"LogsRequest.limit":              "lines of a page",
	"LogsRequest.offset":             "next_offset of the page before",
	"LogsRequest.level":              "lines of this level",
	"LogsRequest.query":              "part of the message, any case",
	"LogsRequest.start_time":         "lines from then on, inclusive",
	"LogsRequest.end_time":           "lines up to then, inclusive",

	// Resource specs.
	"ResourceSpec.min_scale":             "fewest replicas of the API",
	"ResourceSpec.max_scale":             "most replicas of the API",
	"ResourceSpec.cpu":                   "cores of the API, 0.1 to 8, one decimal",
	"ResourceSpec.cpu_limit":             "most cores of the API, 0.1 to 16; twice cpu without it",
	"ResourceSpec.memory_mb":             "memory of the API in MB",
	"ResourceSpec.memory_limit_mb":       "most memory of the API in MB; twice memory_mb without it",
	"ResourceSpec.queue_min_scale":       "fewest replicas of the queue; min_scale without it",
	"ResourceSpec.queue_max_scale":       "most replicas of the queue; max_scale without it",
	"ResourceSpec.queue_cpu":             "cores of the queue; cpu without it",
	"ResourceSpec.queue_cpu_limit":       "most cores of the queue; twice queue_cpu without it",
	"ResourceSpec.queue_memory_mb":       "memory of the queue in MB; memory_mb without it",
	"ResourceSpec.queue_memory_limit_mb": "most memory of the queue in MB; twice queue_memory_mb without it",
	"ResourceSpec.cache_cpu":             "cores of the cache",
	"ResourceSpec.cache_cpu_limit":       "most cores of the cache; twice cache_cpu without it",
	"ResourceSpec.cache_memory_mb":       "memory of the cache in MB",
	"ResourceSpec.cache_memory_limit_mb": "most memory of the cache in MB; cache_memory_mb without it",
	"ResourceSpec.db_cpu":                "cores of the database",
	"ResourceSpec.db_cpu_limit":          "most cores of the database; twice db_cpu without it",
	"ResourceSpec.db_memory_mb":          "memory of the database in MB",
	"ResourceSpec.db_memory_limit_mb":    "most memory of the database in MB; twice db_memory_mb without it",
	"ResourceSpec.db_storage_gi":         "disk of the database in GiB; 10 without it",
	"ResourceSpec.db_max_connections":    "connections that the database takes; 100 without it",
	"ResourceSpec.labels":                "labels of the pods",
	"ResourceSpec.annotations":           "annotations of the pods",
	"ResourceSpec.service_account_name":  "service account of the pods; it exists in the namespace",
	"ResourceSpec.image_pull_secrets":    "secrets to pull the image with",
	"ResourceSpec.volumes":               "volumes of the pods",
	"ResourceSpec.volume_mounts":         "where volumes are mounted in the main container",
	"ResourceSpec.init_containers":       "containers that run before the main one",
	"ResourceSpec.sidecars":              "containers that run beside the main one",
	"Volume.name":                        "its name, a DNS label, unique in the spec",
	"Volume.configMap":                   "a config map, as the cluster takes it",
	"Volume.secret":                      "a secret, as the cluster takes it",
	"Volume.emptyDir":                    "an empty directory, as the cluster takes it",
	"Volume.persistentVolumeClaim":       "a persistent volume claim, as the cluster takes it",
	"Volume.nfs":                         "an NFS share, as the cluster takes it",
	"Volume.projected":                   "a projected volume, as the cluster takes it",
	"Volume.downwardAPI":                 "the downward API, as the cluster takes it",
	"Volume.csi":                         "a CSI volume, as the cluster takes it",
	"VolumeMount.name":                   "name of a volume of the spec",
	"VolumeMount.mountPath":              "where it is mounted",
	"VolumeMount.subPath":                "path inside the volume",
	"VolumeMount.subPathExpr":            "path inside the volume with variables",
	"VolumeMount.mountPropagation":       "how mounts propagate, as the cluster takes it",
	"VolumeMount.readOnly":               "mount it read-only",
	"Container.name":                     "its name, a DNS label",
	"Container.image":                    "its image",
	"Container.imagePullPolicy":          "Always, Never or IfNotPresent",
	"Container.command":                  "replaces the image's entrypoint",
	"Container.args":                     "arguments of the command",
	"Container.workingDir":               "working directory",
	"Container.env":                      "environment variables",
	"Container.envFrom":                  "sources of more environment variables, as the cluster takes them",
	"Container.resources":                "what it gets",
	"Container.volumeMounts":             "where volumes are mounted in it",
	"Container.securityContext":          "its security context, as the cluster takes it",
	"Container.restartPolicy":            "Always or OnFailure",
	"ContainerResources.limits":          "most it may take, as the cluster writes quantities",
	"ContainerResources.requests":        "what is set aside for it, as the cluster writes quantities",
	"EnvVar.name":                        "name of the variable, a C identifier",
	"EnvVar.value":                       "its value; empty without it",
	"EnvVar.valueFrom":                   "where the value comes from, only with an empty value",
	"LocalObjectReference.name":          "name of the object in the deployment's namespace",

	// Parameters.
	"parameter.limit":             "entries of a page",
	"parameter.offset":            "entries to skip; for logs, next_offset of the page before",
	"parameter.page_size":         "entries of a page",
	"parameter.cursor":            "next_cursor of the page before",
	"parameter.order":             "asc (oldest first) or desc",
	"parameter.sort_order":        "asc (oldest first) or desc",
	"parameter.type":              "which log",
	"parameter.log_type":          "which log",
	"parameter.level":             "lines of this level",
	"parameter.image_version":     "deployments whose latest revision runs this version of the agent server",
	"parameter.deployment_type":   "deployments of this type",
	"parameter.remote_reconciled": "whether a listener elsewhere looks after the deployment",
	"parameter.upload_id":         "id of the upload",
	"parameter.expires":           "when the address ends, in seconds since 1970; part of what is signed",
	"parameter.signature":         "the signature",
}
