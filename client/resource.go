package client

import "encoding/json"

// ResourceSpec says how much of what a deployment gets (spec 2.4). Nil leaves a field out; CPU is in cores with one decimal,
// memory in MB, storage in GiB. The fields that the specification marks "do not use" are left out.
type ResourceSpec struct {
	MinScale           *int     `json:"min_scale,omitempty"`
	MaxScale           *int     `json:"max_scale,omitempty"`
	CPU                *float64 `json:"cpu,omitempty"`
	CPULimit           *float64 `json:"cpu_limit,omitempty"`
	MemoryMB           *int     `json:"memory_mb,omitempty"`
	MemoryLimitMB      *int     `json:"memory_limit_mb,omitempty"`
	QueueMinScale      *int     `json:"queue_min_scale,omitempty"`
	QueueMaxScale      *int     `json:"queue_max_scale,omitempty"`
	QueueCPU           *float64 `json:"queue_cpu,omitempty"`
	QueueCPULimit      *float64 `json:"queue_cpu_limit,omitempty"`
	QueueMemoryMB      *int     `json:"queue_memory_mb,omitempty"`
	QueueMemoryLimitMB *int     `json:"queue_memory_limit_mb,omitempty"`
	CacheCPU           *float64 `json:"cache_cpu,omitempty"`
	CacheCPULimit      *float64 `json:"cache_cpu_limit,omitempty"`
	CacheMemoryMB      *int     `json:"cache_memory_mb,omitempty"`
	CacheMemoryLimitMB *int     `json:"cache_memory_limit_mb,omitempty"`
	DBCPU              *float64 `json:"db_cpu,omitempty"`
	DBCPULimit         *float64 `json:"db_cpu_limit,omitempty"`
	DBMemoryMB         *int     `json:"db_memory_mb,omitempty"`
	DBMemoryLimitMB    *int     `json:"db_memory_limit_mb,omitempty"`
	DBStorageGi        *int     `json:"db_storage_gi,omitempty"`
	DBMaxConnections   *int     `json:"db_max_connections,omitempty"`

	Labels             map[string]string      `json:"labels,omitempty"`
	Annotations        map[string]string      `json:"annotations,omitempty"`
	ServiceAccountName *string                `json:"service_account_name,omitempty"`
	ImagePullSecrets   []LocalObjectReference `json:"image_pull_secrets,omitempty"`
	Volumes            []Volume               `json:"volumes,omitempty"`
	VolumeMounts       []VolumeMount          `json:"volume_mounts,omitempty"`
	InitContainers     []Container            `json:"init_containers,omitempty"`
	Sidecars           []Container            `json:"sidecars,omitempty"`
}

// LocalObjectReference names an object in the deployment's own namespace.
type LocalObjectReference struct {
	Name string `json:"name"`
}

// Volume is a pod volume; each source is passed on as the cluster understands it (spec 2.4).
type Volume struct {
	Name                  string          `json:"name"`
	ConfigMap             json.RawMessage `json:"configMap,omitempty"`
	Secret                json.RawMessage `json:"secret,omitempty"`
	EmptyDir              json.RawMessage `json:"emptyDir,omitempty"`
	PersistentVolumeClaim json.RawMessage `json:"persistentVolumeClaim,omitempty"`
	NFS                   json.RawMessage `json:"nfs,omitempty"`
	Projected             json.RawMessage `json:"projected,omitempty"`
	DownwardAPI           json.RawMessage `json:"downwardAPI,omitempty"`
	CSI                   json.RawMessage `json:"csi,omitempty"`
}

// VolumeMount mounts a volume of the same spec into the main container (spec 2.4).
type VolumeMount struct {
	Name             string  `json:"name"`
	MountPath        string  `json:"mountPath"`
	SubPath          *string `json:"subPath,omitempty"`
	MountPropagation *string `json:"mountPropagation,omitempty"`
	ReadOnly         *bool   `json:"readOnly,omitempty"`
	SubPathExpr      *string `json:"subPathExpr,omitempty"`
}

// Container is an init container or a sidecar (spec 2.4).
type Container struct {
	Name            string              `json:"name"`
	Image           string              `json:"image"`
	ImagePullPolicy *string             `json:"imagePullPolicy,omitempty"`
	Command         []string            `json:"command,omitempty"`
	Args            []string            `json:"args,omitempty"`
	WorkingDir      *string             `json:"workingDir,omitempty"`
	Env             []EnvVar            `json:"env,omitempty"`
	EnvFrom         []json.RawMessage   `json:"envFrom,omitempty"`
	Resources       *ContainerResources `json:"resources,omitempty"`
	VolumeMounts    []VolumeMount       `json:"volumeMounts,omitempty"`
	SecurityContext json.RawMessage     `json:"securityContext,omitempty"`
	RestartPolicy   *string             `json:"restartPolicy,omitempty"`
}

// ContainerResources are the limits and requests of one container.
type ContainerResources struct {
	Limits   map[string]string `json:"limits,omitempty"`
	Requests map[string]string `json:"requests,omitempty"`
}

// EnvVar is an environment variable of a Container; ValueFrom only with an empty Value (spec 2.4).
type EnvVar struct {
	Name      string          `json:"name"`
	Value     string          `json:"value,omitempty"`
	ValueFrom json.RawMessage `json:"valueFrom,omitempty"`
}
