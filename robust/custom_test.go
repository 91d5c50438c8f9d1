package robust_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

// customPython is a checkpointer and a store of the application that keep everything in files: what was written outlives
// the worker.
const customPython = `
import contextlib, os, pickle
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

HERE = os.environ["KEPT"]

class Saver(InMemorySaver):
    def __init__(self):
        super().__init__()
        self.path = os.path.join(HERE, "checkpoints")
        if os.path.exists(self.path):
            with open(self.path, "rb") as f:
                for name, kept in pickle.load(f).items():
                    getattr(self, name).update(kept)

    def keep(self):
        kept = {
            "storage": {t: {n: dict(c) for n, c in ns.items()} for t, ns in self.storage.items()},
            "writes": {k: dict(v) for k, v in self.writes.items()},
            "blobs": dict(self.blobs),
        }
        with open(self.path + ".new", "wb") as f:
            pickle.dump(kept, f)
        os.replace(self.path + ".new", self.path)

    async def aput(self, *args):
        out = await super().aput(*args)
        self.keep()
        with open(os.path.join(HERE, "puts"), "a") as f:
            f.write(args[0]["configurable"]["thread_id"] + "\n")
        return out

    async def aput_writes(self, *args):
        await super().aput_writes(*args)
        self.keep()

    async def aget_tuple(self, config):
        return await super().aget_tuple(config)

    async def alist(self, *args, **kwargs):
        async for item in super().alist(*args, **kwargs):
            yield item

    async def adelete_thread(self, thread_id):
        await super().adelete_thread(thread_id)
        self.keep()

@contextlib.asynccontextmanager
async def checkpointer():
    yield Saver()

@contextlib.asynccontextmanager
async def store():
    yield InMemoryStore()
`

func (f *fleet) kept() string { return filepath.Join(f.data, "kept") }

// custom makes an application with a checkpointer and a store of its own.
func custom(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, slipway.Python, "", func(b *slipway.Bundle, dir string) {
		write(t, filepath.Join(dir, "custom.py"), customPython)
		b.Config = json.RawMessage(`{"checkpointer":{"path":"./custom.py:checkpointer"},"store":{"path":"./custom.py:store"}}`)
	})
	f.env = []string{"KEPT=" + f.kept()}
	if err := os.Mkdir(f.kept(), 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

// What concerns the state of threads and the items of the store goes to the application's own checkpointer and store; the
// server's database has no checkpoint, and a killed server's run goes on from the checkpointer's last one.
func TestTheApplicationsOwnCheckpointerAndStore(t *testing.T) {
	t.Parallel()
	f := custom(t)
	m := f.start()
	a, err := m.run(3, 0, "")
	if err == nil {
		err = m.whole(a)
	}
	if err != nil {
		t.Fatal(err)
	}
	thread := m.address + "/threads/" + a.ThreadID
	var history []json.RawMessage
	if err := ask(http.MethodGet, thread+"/history", "", &history); err != nil || len(history) != 5 {
		t.Errorf("history: got %d states (%v), want 5", len(history), err)
	}
	if err := ask(http.MethodPost, thread+"/state", `{"values":{"total":7}}`, nil); err != nil {
		t.Error(err)
	}
	var state struct{ Values struct{ Total int } }
	if err := ask(http.MethodGet, thread+"/state", "", &state); err != nil || state.Values.Total != 7 {
		t.Errorf("state: got %+v (%v)", state, err)
	}
	var copied struct {
		ThreadID string `json:"thread_id"`
	}
	if err := ask(http.MethodPost, thread+"/copy", "", &copied); err != nil {
		t.Fatal(err)
	}
	if err := ask(http.MethodGet, m.address+"/threads/"+copied.ThreadID+"/history", "", &history); err != nil || len(history) != 6 {
		t.Errorf("history of the copy: got %d states (%v), want 6", len(history), err)
	}
	status, answer, err := call(http.MethodPost, thread+"/runs", `{"assistant_id":"steps","input":{"total":1},"multitask_strategy":"rollback"}`)
	if err != nil || status != http.StatusUnprocessableEntity || !strings.Contains(string(answer), "adelete_for_runs") {
		t.Errorf("rollback: got %d %s (%v), want 422 that names the method", status, answer, err)
	}
	if err := ask(http.MethodPut, m.address+"/store/items", `{"namespace":["a"],"key":"k","value":{"n":1}}`, nil); err != nil {
		t.Error(err)
	}
	var item struct{ Value struct{ N int } }
	if err := ask(http.MethodGet, m.address+"/store/items?namespace=a&key=k", "", &item); err != nil || item.Value.N != 1 {
		t.Errorf("item: got %+v (%v)", item, err)
	}
	if err := ask(http.MethodDelete, thread, "", nil); err != nil {
		t.Error(err)
	}
	raw, err := os.ReadFile(filepath.Join(f.kept(), "checkpoints"))
	if err != nil || bytes.Contains(raw, []byte(a.ThreadID)) || !bytes.Contains(raw, []byte(copied.ThreadID)) {
		t.Errorf("after the deletion: the checkpointer has the thread still, or lacks its copy (%v)", err)
	}
	b, err := m.run(6, 300, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := eventually(func() error { return f.counted(b, 3) }); err != nil {
		t.Fatal(err)
	}
	m.kill()
	if err := f.start().whole(b); err != nil {
		t.Error(err)
	}
}

// counted says whether the checkpointer has n checkpoints of the run's thread yet.
func (f *fleet) counted(a acknowledged, n int) error {
	raw, err := os.ReadFile(filepath.Join(f.kept(), "puts"))
	if err == nil && bytes.Count(raw, []byte(a.ThreadID)) < n {
		err = os.ErrNotExist
	}
	return err
}
