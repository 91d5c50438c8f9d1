package slipway

import (
	"bytes"
	"encoding/json"
	"regexp"
)

var (
	dnsLabelForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	dnsNameForm  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
)

// Bounds of CPU values, in cores (spec 8).
const (
	MinCPU      = 0.1
	MaxCPU      = 8.0
	MaxCPULimit = 16.0
	// MaxLiftedCPU bounds them where the installation lifts the caps; no machine has more.
	MaxLiftedCPU = 4096.0
	// MaxSpecList bounds each list and map of a ResourceSpec.
	MaxSpecList = 200
)

func inSpec(path ...any) []any { return append(at("source_config", "resource_spec"), path...) }

// validate checks the bounds of spec 2.4 and 8 on the rounded values, and that limits and maxima are not below requests
// and minima. lifted takes the upper bounds off CPU values.
func (s ResourceSpec) validate(problems *Problems, lifted bool) {
	given := s.Rounded()
	given.validateCPU(problems, lifted) // a default that follows from a wrong value is not another mistake
	given.validateCounts(problems)
	full := s.WithDefaults()
	full.validateOrder(problems)
	if s.bounded(problems) {
		validatePod(problems, s)
	}
}

// bounded checks that no list or map is longer than anybody means it.
func (s ResourceSpec) bounded(problems *Problems) bool {
	before := len(*problems)
	for _, f := range []struct {
		name   string
		length int
	}{
		{"labels", len(s.Labels)},
		{"annotations", len(s.Annotations)},
		{"image_pull_secrets", len(s.ImagePullSecrets)},
		{"volumes", len(s.Volumes)},
		{"volume_mounts", len(s.VolumeMounts)},
		{"init_containers", len(s.InitContainers)},
		{"sidecars", len(s.Sidecars)},
	} {
		if f.length > MaxSpecList {
			problems.Add(inSpec(f.name), "%s has %d elements; use at most %d", f.name, f.length, MaxSpecList)
		}
	}
	return len(*problems) == before
}

func (s ResourceSpec) validateCPU(problems *Problems, lifted bool) {
	most, mostLimit := MaxCPU, MaxCPULimit
	if lifted {
		most, mostLimit = MaxLiftedCPU, MaxLiftedCPU
	}
	for _, f := range []struct {
		name  string
		value *float64
		max   float64
	}{
		{"cpu", s.CPU, most},
		{"cpu_limit", s.CPULimit, mostLimit},
		{"queue_cpu", s.QueueCPU, most},
		{"queue_cpu_limit", s.QueueCPULimit, mostLimit},
		{"cache_cpu", s.CacheCPU, most},
		{"cache_cpu_limit", s.CacheCPULimit, mostLimit},
	} {
		if f.value != nil && !(*f.value >= MinCPU && *f.value <= f.max) {
			problems.Add(inSpec(f.name), "%s %v is outside %v to %v cores", f.name, *f.value, MinCPU, f.max)
		}
	}
	for name, value := range map[string]*float64{"db_cpu": s.DBCPU, "db_cpu_limit": s.DBCPULimit} {
		if value != nil && !(*value > 0) {
			problems.Add(inSpec(name), "%s %v is no amount of cores; use more than 0", name, *value)
		}
	}
}

func (s ResourceSpec) validateCounts(problems *Problems) {
	for _, f := range []struct {
		name  string
		value *int
		min   int
	}{
		{"min_scale", s.MinScale, 0},
		{"max_scale", s.MaxScale, 1},
		{"queue_min_scale", s.QueueMinScale, 0},
		{"queue_max_scale", s.QueueMaxScale, 0},
		{"memory_mb", s.MemoryMB, 1},
		{"memory_limit_mb", s.MemoryLimitMB, 1},
		{"queue_memory_mb", s.QueueMemoryMB, 1},
		{"queue_memory_limit_mb", s.QueueMemoryLimitMB, 1},
		{"cache_memory_mb", s.CacheMemoryMB, 1},
		{"cache_memory_limit_mb", s.CacheMemoryLimitMB, 1},
		{"db_memory_mb", s.DBMemoryMB, 1},
		{"db_memory_limit_mb", s.DBMemoryLimitMB, 1},
		{"db_storage_gi", s.DBStorageGi, 1},
		{"db_max_connections", s.DBMaxConnections, 1},
	} {
		if f.value != nil && *f.value < f.min {
			problems.Add(inSpec(f.name), "%s %d is too small; use at least %d", f.name, *f.value, f.min)
		}
	}
}

func (s ResourceSpec) validateOrder(problems *Problems) {
	ordered(problems, "min_scale", s.MinScale, "max_scale", s.MaxScale)
	ordered(problems, "queue_min_scale", s.QueueMinScale, "queue_max_scale", s.QueueMaxScale)
	ordered(problems, "cpu", s.CPU, "cpu_limit", s.CPULimit)
	ordered(problems, "queue_cpu", s.QueueCPU, "queue_cpu_limit", s.QueueCPULimit)
	ordered(problems, "cache_cpu", s.CacheCPU, "cache_cpu_limit", s.CacheCPULimit)
	ordered(problems, "db_cpu", s.DBCPU, "db_cpu_limit", s.DBCPULimit)
	ordered(problems, "memory_mb", s.MemoryMB, "memory_limit_mb", s.MemoryLimitMB)
	ordered(problems, "queue_memory_mb", s.QueueMemoryMB, "queue_memory_limit_mb", s.QueueMemoryLimitMB)
	ordered(problems, "cache_memory_mb", s.CacheMemoryMB, "cache_memory_limit_mb", s.CacheMemoryLimitMB)
	ordered(problems, "db_memory_mb", s.DBMemoryMB, "db_memory_limit_mb", s.DBMemoryLimitMB)
}

func ordered[T int | float64](problems *Problems, low string, lower *T, high string, higher *T) {
	if lower != nil && higher != nil && *lower > *higher {
		problems.Add(inSpec(high), "%s %v is below %s %v; raise it or leave it out", high, *higher, low, *lower)
	}
}

// validatePod checks what goes into a pod template as it is: names, and mounts that name a volume.
func validatePod(problems *Problems, s ResourceSpec) {
	volumes := map[string]bool{}
	for i, v := range s.Volumes {
		if !dnsLabelForm.MatchString(v.Name) {
			problems.Add(inSpec("volumes", i, "name"), "volume name %q is no DNS label", short(v.Name))
		}
		if volumes[v.Name] {
			problems.Add(inSpec("volumes", i, "name"), "volume %q is given twice; keep one", v.Name)
		}
		volumes[v.Name] = true
		validateVolume(problems, inSpec("volumes", i), v)
	}
	validateMounts(problems, inSpec("volume_mounts"), s.VolumeMounts, volumes)
	for i, r := range s.ImagePullSecrets {
		if r.Name == "" {
			problems.Add(inSpec("image_pull_secrets", i, "name"), "name is empty; name an existing pull secret")
		}
	}
	names := map[string]bool{}
	validateContainers(problems, "init_containers", s.InitContainers, volumes, names)
	validateContainers(problems, "sidecars", s.Sidecars, volumes, names)
	if v := s.ServiceAccountName; v != nil && !dnsNameForm.MatchString(*v) {
		problems.Add(inSpec("service_account_name"), "service_account_name %q is no name of a service account", short(*v))
	}
}

// validateVolume checks that each source is the object that the cluster wants; what it holds is the cluster's matter.
func validateVolume(problems *Problems, loc []any, v Volume) {
	for _, f := range []struct {
		name string
		raw  json.RawMessage
	}{
		{"configMap", v.ConfigMap},
		{"secret", v.Secret},
		{"emptyDir", v.EmptyDir},
		{"persistentVolumeClaim", v.PersistentVolumeClaim},
		{"nfs", v.NFS},
		{"projected", v.Projected},
		{"downwardAPI", v.DownwardAPI},
		{"csi", v.CSI},
	} {
		validateObject(problems, below(loc, f.name), f.raw)
	}
}

func validateObject(problems *Problems, loc []any, raw json.RawMessage) {
	if text := bytes.TrimSpace(raw); isSet(raw) && text[0] != '{' {
		problems.Add(loc, "%s must be an object", loc[len(loc)-1])
	}
}

func validateMounts(problems *Problems, loc []any, mounts []VolumeMount, volumes map[string]bool) {
	for i, m := range mounts {
		if !volumes[m.Name] {
			problems.Add(below(loc, i, "name"), "mount names volume %q, which is not among volumes", short(m.Name))
		}
		if m.MountPath == "" {
			problems.Add(below(loc, i, "mountPath"), "mountPath is empty; name a directory")
		}
	}
}

func validateContainers(problems *Problems, list string, containers []Container, volumes, names map[string]bool) {
	for i, c := range containers {
		loc := inSpec(list, i)
		if !dnsLabelForm.MatchString(c.Name) {
			problems.Add(below(loc, "name"), "container name %q is no DNS label", short(c.Name))
		}
		if names[c.Name] {
			problems.Add(below(loc, "name"), "container %q is given twice; names are unique among init_containers and sidecars", c.Name)
		}
		names[c.Name] = true
		validateObject(problems, below(loc, "securityContext"), c.SecurityContext)
		for j, from := range c.EnvFrom {
			validateObject(problems, below(loc, "envFrom", j), from)
		}
		if c.Image == "" {
			problems.Add(below(loc, "image"), "image is empty; name the image of the container")
		}
		oneOf(problems, below(loc, "imagePullPolicy"), c.ImagePullPolicy, "Always", "Never", "IfNotPresent")
		oneOf(problems, below(loc, "restartPolicy"), c.RestartPolicy, "Always", "OnFailure")
		validateEnv(problems, loc, c.Env)
		validateMounts(problems, below(loc, "volumeMounts"), c.VolumeMounts, volumes)
	}
}

func validateEnv(problems *Problems, loc []any, env []EnvVar) {
	for i, e := range env {
		if !envNameForm.MatchString(e.Name) {
			problems.Add(below(loc, "env", i, "name"), "%q is no C identifier", short(e.Name))
		}
		validateObject(problems, below(loc, "env", i, "valueFrom"), e.ValueFrom)
		if e.Value != "" && isSet(e.ValueFrom) {
			problems.Add(below(loc, "env", i, "valueFrom"), "valueFrom of %q cannot be used beside a value; keep one", e.Name)
		}
	}
}

func oneOf(problems *Problems, loc []any, value *string, allowed ...string) {
	if value != nil && !has(allowed, *value) {
		problems.Add(loc, "%q is not one of %q", short(*value), allowed)
	}
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func below(loc []any, path ...any) []any { return append(append([]any{}, loc...), path...) }
