package robust_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

// canary is what must not be found in a file of the database.
const canary = "canary-of-the-state"

const handlersPython = `
from langgraph_sdk import Encryption, EncryptionContext
encryption = Encryption()

def turn(data: bytes) -> bytes:
    return bytes(b ^ 0x5A for b in data)

@encryption.encrypt.blob
async def seal(ctx: EncryptionContext, data: bytes) -> bytes:
    return turn(data)

@encryption.decrypt.blob
async def unseal(ctx: EncryptionContext, data: bytes) -> bytes:
    return turn(data)
`

const keepPython = `
from typing import TypedDict
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore

class State(TypedDict, total=False):
    text: str

async def keep(state: State, *, store: BaseStore):
    await store.aput(("notes",), "one", {"text": state["text"]})
    return {"text": state["text"] + "!"}

g = StateGraph(State)
g.add_node("keep", keep)
g.add_edge(START, "keep")
steps = g.compile()
`

// encrypted makes an application that keeps what it gets in its state and in the store.
func encrypted(t *testing.T, handlers bool, env ...string) *fleet {
	t.Helper()
	f := newFleet(t, slipway.Python, "", func(b *slipway.Bundle, dir string) {
		write(t, filepath.Join(dir, "graphs.py"), keepPython)
		if handlers {
			write(t, filepath.Join(dir, "crypt.py"), handlersPython)
			b.Config = json.RawMessage(`{"encryption":{"path":"./crypt.py:encryption"}}`)
		}
	})
	f.env = env
	return f
}

// speak runs the graph with the canary, resumable and with a webhook that nobody answers, and returns its thread.
func (m *member) speak(t *testing.T) (thread string) {
	t.Helper()
	var made struct {
		ThreadID string `json:"thread_id"`
	}
	if err := ask(http.MethodPost, m.address+"/threads", `{}`, &made); err != nil {
		t.Fatal(err)
	}
	body := `{"assistant_id":"steps","input":{"text":"` + canary + `"},"context":{"text":"` + canary + `"},"stream_resumable":true,
"config":{"configurable":{"text":"` + canary + `"}},"webhook":"https://unanswered.invalid/hook"}`
	if err := ask(http.MethodPost, m.address+"/threads/"+made.ThreadID+"/runs/wait", body, nil); err != nil {
		t.Fatal(err)
	}
	cron := `{"assistant_id":"steps","schedule":"0 0 1 1 *","input":{"text":"` + canary + `"}}`
	if err := ask(http.MethodPost, m.address+"/runs/crons", cron, nil); err != nil {
		t.Fatal(err)
	}
	return made.ThreadID
}

// heard says what is wrong with what the server tells of a thread.
func (m *member) heard(t *testing.T, thread string) {
	t.Helper()
	for path, body := range map[string]string{"/threads/" + thread: "", "/threads/" + thread + "/state": "", "/threads/" + thread + "/history": "", "/threads/" + thread + "/runs": "", "/store/items?namespace=notes&key=one": ""} {
		status, answer, err := call(http.MethodGet, m.address+path, body)
		if err != nil || status != http.StatusOK || !bytes.Contains(answer, []byte(canary)) {
			t.Errorf("GET %s: %d %.300s %v", path, status, answer, err)
		}
	}
}

// inClear returns the files of the database in which the canary stands.
func (f *fleet) inClear(t *testing.T) (found []string) {
	t.Helper()
	err := filepath.WalkDir(f.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(d.Name(), "agent.db") {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(canary)) {
			found = append(found, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// With encryption nothing of a thread, a run, an item or a cron stands in clear in the database's files, and everything is
// readable after a restart; without it the search for the canary finds it.
func TestNothingIsInClearInTheDatabase(t *testing.T) {
	t.Parallel()
	const key = "LANGGRAPH_AES_KEY=0123456789abcdef"
	for name, test := range map[string]struct {
		handlers bool
		env      []string
		clear    bool
	}{
		"with a key":      {env: []string{key}},
		"with handlers":   {handlers: true},
		"without, proof!": {clear: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := encrypted(t, test.handlers, test.env...)
			m := f.start()
			thread := m.speak(t)
			m.heard(t, thread)
			if found := f.inClear(t); (len(found) > 0) != test.clear {
				t.Errorf("in clear in %q, want %v", found, test.clear)
			}
			if test.handlers {
				m.saysContext(t, f)
			}
			m.kill()
			f.start().heard(t, thread)
			if found := f.inClear(t); (len(found) > 0) != test.clear {
				t.Errorf("after a restart: in clear in %q, want %v", found, test.clear)
			}
		})
	}
}

// saysContext sends what handlers get with each value and what stands in clear beside it (reference 13).
func (m *member) saysContext(t *testing.T, f *fleet) {
	t.Helper()
	send := func(said string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.address+"/runs/wait",
			strings.NewReader(`{"assistant_id":"steps","input":{"text":"`+canary+`"},"on_completion":"keep"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Encryption-Context", said)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		answer, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(answer)
	}
	for _, bad := range []string{"!", base64.StdEncoding.EncodeToString([]byte("[1]")), base64.StdEncoding.EncodeToString(make([]byte, 5000))} {
		if status, answer := send(bad); status != http.StatusUnprocessableEntity || !strings.Contains(answer, "X-Encryption-Context") {
			t.Errorf("%.20q: got %d %s, want 422 that names the header", bad, status, answer)
		}
	}
	if status, answer := send(base64.StdEncoding.EncodeToString([]byte(`{"tenant":"tenant-of-the-context"}`))); status != http.StatusOK {
		t.Errorf("got %d %s", status, answer)
	}
	found := false
	for _, name := range []string{"agent.db", "agent.db-wal"} {
		raw, err := os.ReadFile(filepath.Join(f.data, name))
		found = found || err == nil && bytes.Contains(raw, []byte("tenant-of-the-context"))
	}
	if !found {
		t.Error("the context does not stand beside the values")
	}
}

func TestAnotherKeyIsRefused(t *testing.T) {
	t.Parallel()
	f := encrypted(t, false, "LANGGRAPH_AES_KEY=0123456789abcdef")
	m := f.start()
	m.speak(t)
	m.kill()
	for env, want := range map[string]string{
		"LANGGRAPH_AES_KEY=fedcba9876543210": "encrypted with another key", "LANGGRAPH_AES_KEY=short": "has 5 bytes", "LANGGRAPH_AES_KEY=": "no key is set",
	} {
		m, err := f.begin(env)
		if err == nil {
			<-m.ended
		}
		if m == nil || !strings.Contains(m.said(), want) {
			t.Errorf("%s: got %v, want %q", env, err, want)
		}
	}
}
