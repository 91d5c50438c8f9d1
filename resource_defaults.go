package slipway

import "math"

// Rounded returns the spec with every CPU value rounded to one decimal (spec 2.4).
func (s ResourceSpec) Rounded() ResourceSpec {
	for _, cpu := range []**float64{
		&s.CPU, &s.CPULimit, &s.QueueCPU, &s.QueueCPULimit, &s.CacheCPU, &s.CacheCPULimit, &s.DBCPU, &s.DBCPULimit,
		&s.OrchestratorCPU, &s.OrchestratorCPULim, &s.ExecutorCPU, &s.ExecutorCPULimit,
	} {
		if *cpu != nil {
			rounded := math.Round(**cpu*10) / 10
			*cpu = &rounded
		}
	}
	return s
}

// WithDefaults returns the rounded spec with every default that follows from another field (spec 2.4, 8): the queue takes
// after the API, limits are twice the request, the cache's memory limit is its request. It is idempotent.
func (s ResourceSpec) WithDefaults() ResourceSpec {
	s = s.Rounded()
	s.QueueMinScale, s.QueueMaxScale = or(s.QueueMinScale, s.MinScale), or(s.QueueMaxScale, s.MaxScale)
	s.QueueCPU, s.QueueMemoryMB = or(s.QueueCPU, s.CPU), or(s.QueueMemoryMB, s.MemoryMB)

	s.CPULimit, s.QueueCPULimit = or(s.CPULimit, twice(s.CPU)), or(s.QueueCPULimit, twice(s.QueueCPU))
	s.CacheCPULimit, s.DBCPULimit = or(s.CacheCPULimit, twice(s.CacheCPU)), or(s.DBCPULimit, twice(s.DBCPU))
	s.MemoryLimitMB = or(s.MemoryLimitMB, twice(s.MemoryMB))
	s.QueueMemoryLimitMB = or(s.QueueMemoryLimitMB, twice(s.QueueMemoryMB))
	s.DBMemoryLimitMB = or(s.DBMemoryLimitMB, twice(s.DBMemoryMB))
	s.CacheMemoryLimitMB = or(s.CacheMemoryLimitMB, s.CacheMemoryMB)
	return s.Rounded()
}

func twice[T int | float64](value *T) *T {
	if value == nil {
		return nil
	}
	doubled := *value * 2
	return &doubled
}
