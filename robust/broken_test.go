package robust_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

// A server whose worker cannot load the graph library never becomes ready, and what waits for it ends with a sentence that
// says what is missing.
func TestAWorkerWithoutItsLibrary(t *testing.T) {
	t.Parallel()
	bare := t.TempDir()
	if err := run(bare, "python3", "-m", "venv", "--without-pip", "venv"); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, slipway.Python, "", func(b *slipway.Bundle, _ string) {
		b.Python.Interpreter = filepath.Join(bare, "venv", "bin", "python")
	})
	m, err := f.begin()
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.run(1, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	var joined struct {
		Error struct{ Error, Message string } `json:"__error__"`
	}
	if err := ask(http.MethodGet, m.address+"/threads/"+a.ThreadID+"/runs/"+a.RunID+"/join", "", &joined); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(joined.Error.Message, "langgraph") {
		t.Errorf("got %+v, want an error that names the library", joined.Error)
	}
	status, body, err := call(http.MethodGet, m.address+"/ok?check_db=1", "")
	if err != nil || status == http.StatusOK || !strings.Contains(string(body), "langgraph") {
		t.Error(fmt.Errorf("readiness: got %d %s (%w), want a refusal that names the library", status, body, err))
	}
}
