package slipway_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway"
)

func TestResourceDefaults(t *testing.T) {
	t.Parallel()
	got := slipway.ResourceSpec{
		CPU: p(0.55), MemoryMB: p(512), MinScale: p(1), MaxScale: p(3), CacheMemoryMB: p(256), CacheCPU: p(1.0), DBCPU: p(2.0), DBMemoryMB: p(100),
	}.WithDefaults()
	want := slipway.ResourceSpec{
		CPU: p(0.6), CPULimit: p(1.2), MemoryMB: p(512), MemoryLimitMB: p(1024), MinScale: p(1), MaxScale: p(3),
		QueueMinScale: p(1), QueueMaxScale: p(3), QueueCPU: p(0.6), QueueCPULimit: p(1.2), QueueMemoryMB: p(512), QueueMemoryLimitMB: p(1024),
		CacheMemoryMB: p(256), CacheMemoryLimitMB: p(256), CacheCPU: p(1.0), CacheCPULimit: p(2.0), DBCPU: p(2.0), DBCPULimit: p(4.0),
		DBMemoryMB: p(100), DBMemoryLimitMB: p(200),
	}
	if !reflect.DeepEqual(got, want) {
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		t.Errorf("got  %s\nwant %s", a, b)
	}
	if empty := (slipway.ResourceSpec{}).WithDefaults(); !reflect.DeepEqual(empty, slipway.ResourceSpec{}) {
		t.Errorf("defaults of nothing = %+v, want nothing", empty)
	}
}

func TestDefaultsAreIdempotentAndRounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cpu := rapid.Float64Range(0.05, 8).Draw(t, "cpu")
		once := slipway.ResourceSpec{CPU: &cpu, CacheCPU: &cpu}.WithDefaults()
		if twice := once.WithDefaults(); !reflect.DeepEqual(once, twice) {
			t.Fatalf("once %+v, twice %+v", once, twice)
		}
		for _, v := range []*float64{once.CPU, once.CPULimit, once.QueueCPU, once.CacheCPULimit} {
			if tenths := *v * 10; math.Abs(tenths-math.Round(tenths)) > 1e-9 {
				t.Fatalf("%v has more than one decimal", *v)
			}
		}
	})
}

func TestResourceRules(t *testing.T) {
	t.Parallel()
	volume := []slipway.Volume{{Name: "data"}}
	const spec = "body.source_config.resource_spec."
	for _, c := range []struct {
		name string
		spec slipway.ResourceSpec
		want []string
	}{
		{"empty", slipway.ResourceSpec{}, nil},
		{"least", slipway.ResourceSpec{CPU: p(0.1), CPULimit: p(0.1)}, nil},
		{"most", slipway.ResourceSpec{CPU: p(8.0)}, nil},
		{"rounds up to the least", slipway.ResourceSpec{CPU: p(0.05)}, nil},
		{"too little", slipway.ResourceSpec{CPU: p(0.04), QueueCPU: p(1.0)}, []string{"cpu"}},
		{"too much", slipway.ResourceSpec{CacheCPU: p(8.1)}, []string{"cache_cpu"}},
		{"limit too high", slipway.ResourceSpec{CPU: p(1.0), CPULimit: p(16.1)}, []string{"cpu_limit"}},
		{"limit below request", slipway.ResourceSpec{CPU: p(2.0), CPULimit: p(1.0)}, []string{"cpu_limit"}},
		{"database has no bounds", slipway.ResourceSpec{DBCPU: p(64.0)}, nil},
		{"no memory", slipway.ResourceSpec{CacheMemoryMB: p(0)}, []string{"cache_memory_mb"}},
		{"more minimum than maximum", slipway.ResourceSpec{MinScale: p(3), MaxScale: p(2), QueueMinScale: p(1)}, []string{"max_scale"}},
		{"volume twice", slipway.ResourceSpec{Volumes: append(volume, volume...)}, []string{"volumes.1.name"}},
		{"volume that is no label", slipway.ResourceSpec{Volumes: []slipway.Volume{{Name: "A_b"}}}, []string{"volumes.0.name"}},
		{"mount of nothing", slipway.ResourceSpec{Volumes: volume, VolumeMounts: []slipway.VolumeMount{{Name: "x", MountPath: "/x"}}}, []string{"volume_mounts.0.name"}},
		{"mount nowhere", slipway.ResourceSpec{Volumes: volume, VolumeMounts: []slipway.VolumeMount{{Name: "data"}}}, []string{"volume_mounts.0.mountPath"}},
		{"sidecar", slipway.ResourceSpec{Sidecars: []slipway.Container{{Name: "s", Image: "i", RestartPolicy: p("Never")}}}, []string{"sidecars.0.restartPolicy"}},
		{"database without cores", slipway.ResourceSpec{DBCPU: p(0.0)}, []string{"db_cpu"}},
		{"do not use, and inert", slipway.ResourceSpec{OrchestratorCPU: p(99.0), ExecutorMemoryMB: p(-1), OrchestratorMinimum: p(9), OrchestratorMaximum: p(1)}, nil},
		{"a volume source that is no object", slipway.ResourceSpec{Volumes: []slipway.Volume{{Name: "v", EmptyDir: json.RawMessage(` 5`)}}}, []string{"volumes.0.emptyDir"}},
		{"a volume source", slipway.ResourceSpec{Volumes: []slipway.Volume{{Name: "v", CSI: json.RawMessage(` {"driver":"x"}`)}}}, nil},
		{"too many volumes", slipway.ResourceSpec{Volumes: make([]slipway.Volume, slipway.MaxSpecList+1)}, []string{"volumes"}},
		{"account", slipway.ResourceSpec{ServiceAccountName: p("Bad Name")}, []string{"service_account_name"}},
		{"pull secret", slipway.ResourceSpec{ImagePullSecrets: []slipway.LocalObjectReference{{}}}, []string{"image_pull_secrets.0.name"}},
		{"containers of one name", slipway.ResourceSpec{
			InitContainers: []slipway.Container{{Name: "s", Image: "i"}}, Sidecars: []slipway.Container{{Name: "s", Image: "i"}},
		}, []string{"sidecars.0.name"}},
		{"container", slipway.ResourceSpec{Sidecars: []slipway.Container{{
			Name: "S_", ImagePullPolicy: p("Sometimes"), SecurityContext: json.RawMessage(`[]`), EnvFrom: []json.RawMessage{json.RawMessage(`"x"`)},
			Env: []slipway.EnvVar{{Name: "1A"}}, VolumeMounts: []slipway.VolumeMount{{Name: "data", MountPath: "/x"}},
		}}}, []string{
			"sidecars.0.name", "sidecars.0.securityContext", "sidecars.0.envFrom.0", "sidecars.0.image", "sidecars.0.imagePullPolicy",
			"sidecars.0.env.0.name", "sidecars.0.volumeMounts.0.name",
		}},
		{"env with both", slipway.ResourceSpec{InitContainers: []slipway.Container{{
			Name: "s", Image: "i", Env: []slipway.EnvVar{{Name: "A", Value: "b", ValueFrom: json.RawMessage(`{}`)}},
		}}}, []string{"init_containers.0.env.0.valueFrom"}},
	} {
		in := valid(slipway.SourceExternalContainer)
		in.SourceConfig.ResourceSpec = &c.spec
		_, err := slipway.Create("t", in, everything, "", at, ids())
		var want []string
		for _, place := range c.want {
			want = append(want, spec+place)
		}
		if got := places(err); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
	}
}

func TestLiftedCaps(t *testing.T) {
	t.Parallel()
	lifted := everything
	lifted.LiftResourceCaps = true
	for _, c := range []struct {
		name         string
		spec         slipway.ResourceSpec
		want, capped int // problems with the caps lifted, and without
	}{
		{"large", slipway.ResourceSpec{CPU: p(32.0), QueueCPU: p(64.0), CacheCPULimit: p(96.0)}, 0, 3},
		{"the lower bound stays", slipway.ResourceSpec{CPU: p(0.04)}, 1, 1},
		{"no machine has it", slipway.ResourceSpec{CPU: p(1e9)}, 1, 1},
		{"the order stays", slipway.ResourceSpec{CPU: p(32.0), CPULimit: p(16.0)}, 1, 2},
	} {
		in := valid(slipway.SourceExternalContainer)
		in.SourceConfig.ResourceSpec = &c.spec
		_, err := slipway.Create("t", in, lifted, "", at, ids())
		_, capped := slipway.Create("t", in, everything, "", at, ids())
		if got, without := len(places(err)), len(places(capped)); got != c.want || without != c.capped {
			t.Errorf("%s: %d problems (%v), %d with the caps; want %d, %d", c.name, got, err, without, c.want, c.capped)
		}
		change, err := slipway.Create("t", valid(slipway.SourceExternalContainer), lifted, "", at, ids())
		if err != nil {
			t.Fatal(err)
		}
		patch := slipway.DeploymentPatch{SourceConfig: slipway.SourceConfig{ResourceSpec: &c.spec}}
		if _, err := slipway.Patch(change.Deployment, patch, lifted, slipway.Facts{}, at, ids()); len(places(err)) != c.want {
			t.Errorf("%s, patched: %v, want %d problems", c.name, err, c.want)
		}
	}
}
