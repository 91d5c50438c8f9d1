package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/store/sqlite"
)

// childEnv makes the test binary a writer on the database it names, until it is killed.
const childEnv = "SLIPWAY_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		fmt.Fprintln(os.Stderr, writeForever(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForever admits a run as instance "child", then prints the number of every thread once it is durable.
func writeForever(path string) error {
	s, err := sqlite.OpenAgent(path)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := s.Register(ctx, "child"); err != nil {
		return err
	}
	run := agent.Run{ID: "child-run", ThreadID: "child-thread", GraphID: "g", CreatedAt: time.UnixMicro(1)}
	if _, err := s.Admit(ctx, agent.Admission{Run: run, CreateThread: true, ClaimFor: "child", Now: time.UnixMicro(1)}); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if _, err := s.CreateThread(ctx, agent.Thread{ID: strconv.Itoa(i), CreatedAt: time.UnixMicro(1)}, false); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

func TestKilledProcessLosesNothingAndIsDead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "agent.db")
	s := openAgent(t, path)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last, lines := "", bufio.NewScanner(out)
	for n := 0; n < 20 && lines.Scan(); n++ {
		last = strings.TrimSpace(lines.Text())
		// The other process writes all the while: neither may see the other's lock.
		if _, err := s.CreateThread(ctx, agent.Thread{ID: fmt.Sprint("own", n), CreatedAt: time.UnixMicro(1)}, false); err != nil {
			t.Error(err)
		}
	}
	if dead, err := s.Dead(ctx); err != nil || len(dead) != 0 {
		t.Errorf("while the child lives: got dead %v, %v, want none", dead, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if dead, err := s.Dead(ctx); err != nil || len(dead) != 1 || dead[0] != "child" {
		t.Errorf("after the kill: got dead %v, %v, want child", dead, err)
	}
	n, err := strconv.Atoi(last)
	if err != nil {
		t.Fatalf("the child printed %q, want numbers", last)
	}
	for i := range n + 1 {
		if _, err := s.Thread(ctx, strconv.Itoa(i)); err != nil {
			t.Fatalf("acknowledged thread %d: %v", i, err)
		}
	}
}
