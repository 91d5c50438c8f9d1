package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// platform is a slipway started for measuring.
type platform struct {
	binary, data, url string
	cmd               *exec.Cmd
	http              *http.Client
	startup           time.Duration // from exec to the first answer
}

func start(binary, data string, flags ...string) (*platform, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	listen := l.Addr().String()
	l.Close()
	abs, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	p := &platform{binary: abs, data: data, url: "http://" + listen, http: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 2048,
	}}}
	log, err := os.CreateTemp("", "slipway-bench-*.log")
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(abs, append([]string{"up", "--data-dir", data, "--listen", listen, "--no-example"}, flags...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for time.Since(began) < 10*time.Second {
		if res, err := p.http.Get(p.url + "/ok"); err == nil {
			res.Body.Close()
			p.startup = time.Since(began)
			return p, nil
		}
		time.Sleep(time.Millisecond)
	}
	return nil, fmt.Errorf("slipway does not answer; its log is %s", log.Name())
}

func (p *platform) stop() {
	_ = exec.Command(p.binary, "down", "--data-dir", p.data).Run()
	_ = p.cmd.Wait()
}

// deploy deploys a directory under a name and returns how long it took until it served.
func (p *platform) deploy(dir, name string) (time.Duration, error) {
	began := time.Now()
	cmd := exec.Command(p.binary, "deploy", dir, "--name", name, "--json", "--data-dir", p.data)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("deploy %s: %w\n%s", dir, err, out)
	}
	return time.Since(began), nil
}

// bundle returns the directory of the newest bundle that holds a file.
func (p *platform) bundle(file string) (string, error) {
	found, err := filepath.Glob(filepath.Join(p.data, "bundles", "*", "app", file))
	if err != nil || len(found) == 0 {
		return "", errors.Join(err, fmt.Errorf("no bundle holds %s", file))
	}
	return filepath.Dir(filepath.Dir(found[len(found)-1])), nil
}

// post sends JSON below the deployment's address and decodes the answer.
func (p *platform) post(path string, in, out any) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	res, err := p.http.Post(p.url+path, "application/json", bytes.NewReader(raw))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("POST %s: %s: %s", path, res.Status, body)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(body, out)
}

// thread makes a thread and returns its id.
func (p *platform) thread(name string) (string, error) {
	var t struct {
		ThreadID string `json:"thread_id"`
	}
	err := p.post("/d/"+name+"/threads", map[string]any{}, &t)
	return t.ThreadID, err
}
