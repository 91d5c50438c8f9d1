package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// builds measures builds of an application on platforms of their own, whose data directories begin empty: from the command
// to BUILT and to DEPLOYED, cold (nothing is there but what registries and the system have), warm (dependencies are
// installed anew, package caches are full), and of changed code alone.
func builds(app buildApp) func(settings, *platform) ([]figure, error) {
	return func(s settings, _ *platform) ([]figure, error) { return app.measure(s) }
}

// buildApp is an application in one language, and how to change it so that only code, or its dependencies too, are new.
type buildApp struct{ language, code, codeLine, dependencies, dependenciesLine string }

func buildJS() buildApp {
	return buildApp{"js", "graph.mjs", "// change %d\n", ".npmrc", "; change %d\n"}
}
func buildPy() buildApp {
	return buildApp{"py", "graph.py", "# change %d\n", "requirements.txt", "# change %d\n"}
}

// change writes a new line to the code, and to what decides about the dependencies if they are to be installed anew.
func (a buildApp) change(dir string, n int, dependencies bool) error {
	err := appendTo(filepath.Join(dir, a.code), fmt.Sprintf(a.codeLine, n))
	if err == nil && dependencies {
		err = appendTo(filepath.Join(dir, a.dependencies), fmt.Sprintf(a.dependenciesLine, n))
	}
	return err
}

// copy is the application in a directory of its own.
func (a buildApp) copy() (string, error) {
	dir, err := copyOf(filepath.Join("bench/apps", a.language))
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(filepath.Join(dir, a.dependencies), os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return dir, err
	}
	return dir, f.Close()
}

func (a buildApp) measure(s settings) ([]figure, error) {
	var all []figure
	times := map[string][][]float64{}
	for round := range s.rounds {
		if err := a.round(s, round, times); err != nil {
			return nil, err
		}
	}
	for _, kind := range []string{"cold", "warm", "code only"} {
		built, deployed := times[kind][0], times[kind][1]
		bar := "-"
		if kind == "code only" {
			bar = "<= 2"
		}
		all = append(all, figure{Name: "build, " + a.language + ", " + kind + ", to BUILT", Value: median(built), Unit: "s", Bar: "-"},
			figure{Name: "build, " + a.language + ", " + kind + ", to DEPLOYED", Value: median(deployed), Unit: "s", Bar: bar})
	}
	return all, nil
}

// round measures the three kinds on a new platform.
func (a buildApp) round(s settings, round int, times map[string][][]float64) error {
	p, remove, err := newPlatform(s)
	if err != nil {
		return err
	}
	defer remove()
	dir, err := a.copy()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for n, kind := range []string{"cold", "warm", "code only"} {
		if err := a.change(dir, 10*round+n, kind == "warm"); err != nil {
			return err
		}
		built, deployed, err := p.timed(dir, "app")
		if err != nil {
			return fmt.Errorf("%s, %s: %w", a.language, kind, err)
		}
		if times[kind] == nil {
			times[kind] = make([][]float64, 2)
		}
		times[kind][0], times[kind][1] = append(times[kind][0], built.Seconds()), append(times[kind][1], deployed.Seconds())
	}
	return nil
}

// newPlatform starts a platform on an empty data directory.
func newPlatform(s settings, flags ...string) (*platform, func(), error) {
	dir, err := os.MkdirTemp("", "slipway-bench-builds-")
	if err != nil {
		return nil, nil, err
	}
	p, err := start(s.binary, filepath.Join(dir, "data"), flags...)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, func() { p.stop(); _ = os.RemoveAll(dir) }, nil
}

// atOnce is how many builds run into each other.
const atOnce = 20

// manyBuilds deploys twenty applications at once, half of each language. Each installs its own dependencies; the package
// caches are full.
func manyBuilds(s settings, _ *platform) ([]figure, error) {
	p, remove, err := newPlatform(s, "--builds", "4")
	if err != nil {
		return nil, err
	}
	defer remove()
	var dirs []string
	defer func() {
		for _, dir := range dirs {
			_ = os.RemoveAll(dir)
		}
	}()
	apps := []buildApp{buildJS(), buildPy()}
	for _, a := range apps { // fills the caches
		dir, err := a.copy()
		dirs = append(dirs, dir)
		if err == nil {
			_, err = p.deploy(dir, "first-"+a.language)
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range atOnce {
		a := apps[i%len(apps)]
		dir, err := a.copy()
		dirs = append(dirs, dir)
		if err == nil {
			err = a.change(dir, 1000+i, true)
		}
		if err != nil {
			return nil, err
		}
	}
	began, errs := time.Now(), make(chan error, atOnce)
	for i, dir := range dirs[len(apps):] {
		go func() { errs <- p.toBuilt(dir, "many-"+strconv.Itoa(i)) }()
	}
	failed, reason := 0, ""
	for range atOnce {
		if err := <-errs; err != nil {
			failed, reason = failed+1, err.Error()
		}
	}
	took := time.Since(began)
	memory, err := p.peak()
	return []figure{
		{Name: "20 builds at once, all BUILT", Value: took.Seconds(), Unit: "s", Bar: "-"},
		{Name: "20 builds at once, throughput", Value: (atOnce - float64(failed)) / took.Minutes(), Unit: "/min", Bar: "-"},
		{Name: "20 builds at once, failed", Value: float64(failed), Unit: "count", Bar: "0", Note: reason},
		{Name: "20 builds at once, platform's peak memory", Value: memory, Unit: "MB", Bar: "-"},
	}, err
}

// peak is the most memory that the platform's process has had, in MB.
func (p *platform) peak() (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kb, err := strconv.ParseFloat(fields[1], 64)
			return kb / 1024, err
		}
	}
	return 0, errors.New("the system tells no VmHWM")
}

// timed deploys and returns how long it took until the revision was built, and until it served.
func (p *platform) timed(dir, name string) (built, deployed time.Duration, err error) {
	began := time.Now()
	revision, err := p.begin(dir, name)
	if err != nil {
		return 0, 0, err
	}
	if err := p.await(revision, "AWAITING_DEPLOY", "DEPLOYING", "DEPLOYED"); err != nil {
		return 0, 0, err
	}
	built = time.Since(began)
	err = p.await(revision, "DEPLOYED")
	return built, time.Since(began), err
}

// toBuilt deploys and returns when the revision is built.
func (p *platform) toBuilt(dir, name string) error {
	revision, err := p.begin(dir, name)
	if err != nil {
		return err
	}
	return p.await(revision, "AWAITING_DEPLOY", "DEPLOYING", "DEPLOYED")
}

// begin deploys and returns the path of the new revision.
func (p *platform) begin(dir, name string) (string, error) {
	out, err := output("", p.binary, "deploy", dir, "--name", name, "--no-wait", "--json", "--data-dir", p.data)
	if err != nil {
		return "", err
	}
	var made struct {
		ID       string `json:"deployment_id"`
		Revision string `json:"revision_id"`
	}
	lines := strings.Split(out, "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &made); err != nil || made.Revision == "" {
		return "", fmt.Errorf("deploy answers %q, which names no revision", out)
	}
	return "/v2/deployments/" + made.ID + "/revisions/" + made.Revision, nil
}

// await looks at a revision until it has one of the statuses.
func (p *platform) await(revision string, statuses ...string) error {
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var r struct {
			Status string `json:"status"`
			Reason string `json:"status_reason"`
		}
		if err := p.control(revision, &r); err != nil {
			return err
		}
		if slices.Contains(statuses, r.Status) {
			return nil
		}
		if strings.HasSuffix(r.Status, "_FAILED") || r.Status == "SKIPPED" || r.Status == "INTERRUPTED" {
			return fmt.Errorf("revision %s is %s: %s", revision, r.Status, r.Reason)
		}
	}
	return fmt.Errorf("revision %s never became one of %v", revision, statuses)
}

// control reads from the control API as the installation's administrator.
func (p *platform) control(path string, out any) error {
	raw, err := os.ReadFile(filepath.Join(p.data, "credentials.json"))
	if err != nil {
		return err
	}
	var credentials map[string]string
	if err := json.Unmarshal(raw, &credentials); err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodGet, p.url+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-Api-Key", credentials["api_key"])
	res, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(out)
}
