package process

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// state is what a later Runtime must know about a workload. It never holds a secret.
type state struct {
	DeploymentID string `json:"deployment_id"`
	RevisionID   string `json:"revision_id"`

	Attempt   int       `json:"attempt"`            // names the ready file
	PID       int       `json:"pid,omitempty"`      // 0 = being started
	PIDStart  uint64    `json:"pid_start,omitzero"` // start time of the process, in clock ticks since boot
	BootID    string    `json:"boot_id"`
	StartedAt time.Time `json:"started_at"`
	LogStart  int64     `json:"log_start"` // where the attempt begins in the log file
	Restarts  int       `json:"restarts"`
	Grace     int       `json:"grace_seconds"`

	Endpoint   string    `json:"endpoint,omitempty"`
	ReadyAt    time.Time `json:"ready_at,omitzero"`
	DrainUntil time.Time `json:"drain_until,omitzero"`

	ExitedAt time.Time `json:"exited_at,omitzero"`
	ExitCode int       `json:"exit_code,omitempty"`
	ExitNote string    `json:"exit_note,omitempty"`
}

const (
	stateFile  = "state.json"
	logFile    = "output.log"
	offsetFile = "output.offset"
	trashMark  = ".trash-"
)

func (s state) save(dir string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	tmp := filepath.Join(dir, stateFile+".new")
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, stateFile)); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	return nil
}

func loadState(dir string) (state, error) {
	var s state
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return s, fmt.Errorf("load state: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("load state %s: %w", dir, err)
	}
	return s, nil
}

func (s state) readyFile(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("ready.%d.json", s.Attempt))
}

func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without one, all boots look alike: start times still differ
	return strings.TrimSpace(string(data))
}
