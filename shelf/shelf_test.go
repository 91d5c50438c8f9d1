package shelf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/shelf"
)

var hexes = strings.Repeat("0123456789abcdef", 4)

// bundle is the path of the n-th bundle.
func bundle(n int) string { return "bundles/" + fmt.Sprintf("%02x", n) + hexes[2:] }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, root string) *shelf.Shelf {
	t.Helper()
	s, err := shelf.Open(root)
	check(t, err)
	return s
}

// put writes files below root, the names of directories ending in a slash.
func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(root, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			check(t, os.MkdirAll(at, 0o755))
			continue
		}
		check(t, os.MkdirAll(filepath.Dir(at), 0o755))
		check(t, os.WriteFile(at, []byte(files[name]), 0o644))
	}
}

// used sets when a thing was last used.
func used(t *testing.T, root, at string, when time.Time) {
	t.Helper()
	check(t, os.Chtimes(filepath.Join(root, at), when, when))
}

func list(t *testing.T, s *shelf.Shelf, kinds ...slipway.ShelfKind) map[string]slipway.Shelved {
	t.Helper()
	all, err := s.List(t.Context(), kinds...)
	check(t, err)
	out := map[string]slipway.Shelved{}
	for _, item := range all {
		out[item.Path] = item
	}
	return out
}

func paths(of map[string]slipway.Shelved) []string { return slices.Sorted(maps.Keys(of)) }

// tree lists everything below root.
func tree(t *testing.T, root string) (all []string) {
	t.Helper()
	check(t, filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, name)
		if rel != "." {
			all = append(all, rel)
		}
		return err
	}))
	return all
}

func TestListSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	root, at := t.TempDir(), time.Now().Add(-48*time.Hour).Truncate(time.Second)
	s := open(t, root)
	if got := list(t, s); len(got) != 0 {
		t.Errorf("a new shelf has %v", got)
	}
	put(t, root, map[string]string{
		bundle(1) + "/bundle.json":       `{"shared":["layers/node-1","tools/tsx-1"]}`,
		bundle(1) + "/app/graph.mjs":     strings.Repeat("x", 10_000),
		bundle(2) + "/bundle.json":       `{}`,
		bundle(3) + "/bundle.json":       `{"shared":`,
		bundle(4) + "/":                  "",
		bundle(5) + "/bundle.json":       `{"shared":[]}`,
		"layers/node-1/package.json":     "{}",
		"layers/python-2/venv/bin/x":     "",
		"tools/tsx-1/index.js":           "",
		"cache/npm/index":                strings.Repeat("y", 5000),
		"layers/.tmp-3/half":             "",
		"bundles/README":                 "foreign",
		"bundles/backup/bundle.json":     `{"shared":[]}`,
		"bundles/" + hexes + "0/x":       "",
		"layers/somebody-elses/x":        "",
		"blobs/" + hexes:                 "no thing of the shelf",
		"deployments/d1/data.db":         "",
		"cache/loose-file":               "",
		"tools/loose-file":               "",
		"layers/node-file-not-directory": "",
	})
	check(t, os.Symlink(filepath.Join(root, "deployments"), filepath.Join(root, "layers", "node-link")))
	used(t, root, bundle(1), at)
	got := list(t, s)
	want := []string{bundle(1), bundle(2), bundle(3), bundle(4), bundle(5), "cache/npm", "layers/node-1", "layers/python-2", "tools/tsx-1"}
	if !slices.Equal(paths(got), want) {
		t.Fatalf("got %q\nwant %q", paths(got), want)
	}
	one := got[bundle(1)]
	if !one.UsedAt.Equal(at) || one.Size < 10_000 || one.Size > 40_000 || !slices.Equal(one.Needs, []string{"layers/node-1", "tools/tsx-1"}) || one.NeedsUnknown {
		t.Errorf("the first bundle is %+v", one)
	}
	// Nobody knows what a bundle shares that does not say it, whether it is old or cannot be read.
	for n, unknown := range map[int]bool{2: true, 3: true, 4: true, 5: false} {
		if got[bundle(n)].NeedsUnknown != unknown {
			t.Errorf("bundle %d: needs unknown is %v, want %v", n, !unknown, unknown)
		}
	}
	if some := list(t, s, slipway.ShelfLayer, slipway.ShelfTool); !slices.Equal(paths(some), []string{"layers/node-1", "layers/python-2", "tools/tsx-1"}) {
		t.Errorf("of two kinds: %q", paths(some))
	}
}

func TestSizesAreOfTheDiskAndCachesGrow(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	put(t, root, map[string]string{"cache/npm/a": strings.Repeat("a", 8192), "layers/node-1/b": strings.Repeat("b", 8192), "layers/node-2/": ""})
	check(t, os.Link(filepath.Join(root, "layers/node-1/b"), filepath.Join(root, "layers/node-2/b"))) // two names, one file
	before := list(t, s)
	if one, two := before["layers/node-1"].Size, before["layers/node-2"].Size; one < 4096 || one+two > 8192+4*4096 {
		t.Errorf("a file that two layers share counts %d and %d", one, two)
	}
	put(t, root, map[string]string{"cache/npm/c": strings.Repeat("c", 100_000)})
	if grown := list(t, s)["cache/npm"].Size - before["cache/npm"].Size; grown < 100_000 {
		t.Errorf("the cache grew by %d, want 100000 at least", grown)
	}
}

func TestRemoveLeavesWhatWasUsed(t *testing.T) {
	t.Parallel()
	root, old := t.TempDir(), time.Now().Add(-time.Hour)
	s := open(t, root)
	put(t, root, map[string]string{"layers/node-1/a": "a", "layers/node-2/a": "a"})
	used(t, root, "layers/node-1", old)
	used(t, root, "layers/node-2", old)
	if !s.Has("layers/node-2") || s.Has("layers/node-3") {
		t.Error("Has does not say what is there")
	}
	for at, want := range map[string]bool{"layers/node-1": true, "layers/node-2": false, "layers/node-3": true} {
		if gone, err := s.Remove(t.Context(), at, old.Add(time.Minute)); err != nil || gone != want {
			t.Errorf("Remove(%s) = %v, %v, want %v", at, gone, err, want)
		}
	}
	if got := tree(t, filepath.Join(root, "layers")); !slices.Equal(got, []string{"node-2", "node-2/a"}) {
		t.Errorf("left: %q", got)
	}
}

func TestRemoveTakesNothingElse(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	put(t, root, map[string]string{"deployments/d1/data.db": "x", "run/r1/state.json": "x", "layers/mine/x": "x", "bundles/mine/x": "x", "layers/.tmp-1/x": "x", "blobs/x": "x"})
	before := tree(t, root)
	for _, at := range []string{
		"", ".", "..", "layers", "layers/", "deployments/d1", "run/r1", "layers/mine", "bundles/mine", "layers/.tmp-1", "blobs/x", "layers/../deployments/d1",
		"/etc/x", "../x", "layers/node-1/deeper", "cache/..", "cache/.x", "cache/", "cache/a/b", "tools/..", "bundles/" + hexes + "/app",
	} {
		if gone, err := s.Remove(t.Context(), at, time.Now().Add(time.Hour)); err == nil || gone {
			t.Errorf("Remove(%q) = %v, %v, want a refusal", at, gone, err)
		}
	}
	if after := tree(t, root); !slices.Equal(after, before) {
		t.Errorf("left %q, want %q", after, before)
	}
}

func TestReadOnlyThingsGo(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, map[string]string{"cache/go/mod/pkg/file": "x"})
	for _, dir := range []string{"cache/go/mod/pkg", "cache/go/mod", "cache/go"} {
		check(t, os.Chmod(filepath.Join(root, dir), 0o500))
	}
	if gone, err := open(t, root).Remove(t.Context(), "cache/go", time.Now().Add(time.Hour)); err != nil || !gone {
		t.Errorf("Remove = %v, %v", gone, err)
	}
	if left := tree(t, filepath.Join(root, "cache")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestCrashAtEachStep opens the shelf again after a removal that stopped at each of its steps: what was whole is whole, and
// nothing that lost a part has its name.
func TestCrashAtEachStep(t *testing.T) {
	t.Parallel()
	files := map[string]string{"layers/node-1/a/x": "x", "layers/node-1/b/y": "y", "layers/node-1/c": "z", "layers/node-2/a": "other"}
	for step, whole := range map[string]bool{"": false, shelf.StepTaken: true, shelf.StepDoomed: false, shelf.StepRemoving: false} {
		t.Run("after "+step, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			put(t, root, files)
			before := tree(t, root)
			s := open(t, root)
			s.Step = func(at string) {
				if at == step {
					panic(step)
				}
			}
			func() {
				defer func() { _ = recover() }()
				_, err := s.Remove(t.Context(), "layers/node-1", time.Now().Add(time.Hour))
				check(t, err)
			}()
			if names := paths(list(t, s)); !slices.Equal(names, []string{"layers/node-2"}) {
				t.Errorf("in the middle of it there is %q", names)
			}
			s = open(t, root)
			want := []string{"layers", "layers/node-2", "layers/node-2/a"}
			if whole {
				want = before
			}
			if got := tree(t, root); !slices.Equal(got, want) {
				t.Errorf("left %q, want %q", got, want)
			}
			if gone, err := s.Remove(t.Context(), "layers/node-1", time.Now().Add(time.Hour)); err != nil || !gone {
				t.Errorf("Remove again = %v, %v", gone, err)
			}
		})
	}
}

// TestMadeAnewBesideARemoval opens the shelf after a crash between taking a name and giving it back, when somebody has made
// the thing anew: that is what stays.
func TestMadeAnewBesideARemoval(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, map[string]string{
		"layers/.gone-node-1/old": "", "layers/node-1/new": "", "layers/.gone-node-2/old": "",
		"layers/.tmp-1/half": "", "bundles/.tmp-2/half": "", "tools/.dead-x-1/half": "", "cache/.gone-npm/index": "",
	})
	open(t, root)
	want := []string{"bundles", "cache", "cache/npm", "cache/npm/index", "layers", "layers/node-1", "layers/node-1/new", "layers/node-2", "layers/node-2/old", "tools"}
	if got := tree(t, root); !slices.Equal(got, want) {
		t.Errorf("left %q\nwant %q", got, want)
	}
}

// TestUsersAndRemoversTogether lets builders use, or make anew, what is removed all the time: after a removal that began
// before the use, everything is there.
func TestUsersAndRemoversTogether(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	var turn sync.RWMutex   // held by users: what a removal may take was used before it began
	var removing sync.Mutex // held by the remover
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 100 {
				turn.RLock()
				if use(t, s, root, fmt.Sprintf("%d-%d", worker, i)) {
					if err := whole(root); err != nil { // it may be looked at just now
						removing.Lock()
						err = whole(root)
						removing.Unlock()
						if err != nil {
							t.Error(err)
						}
					}
				}
				turn.RUnlock()
			}
		})
	}
	group.Go(func() {
		for range 200 {
			turn.Lock()
			began := time.Now()
			turn.Unlock()
			removing.Lock()
			if _, err := s.Remove(t.Context(), "layers/node-1", began); err != nil {
				t.Error(err)
			}
			removing.Unlock()
		}
	})
	group.Wait()
}

func whole(root string) (err error) {
	for _, name := range []string{"a", "b", "c"} {
		_, missing := os.Stat(filepath.Join(root, "layers/node-1", name))
		err = errors.Join(err, missing)
	}
	return err
}

// use is what a build does: it takes the layer that is there, or makes it; false = it would begin anew.
func use(t *testing.T, s *shelf.Shelf, root, name string) bool {
	if s.Has("layers/node-1") {
		return true
	}
	made := filepath.Join(root, "layers/.tmp-"+name)
	for _, file := range []string{"a", "b", "c"} {
		if err := errors.Join(os.MkdirAll(made, 0o755), os.WriteFile(filepath.Join(made, file), nil, 0o644)); err != nil {
			t.Error(err)
		}
	}
	return os.Rename(made, filepath.Join(root, "layers/node-1")) == nil || s.Has("layers/node-1")
}

// asNobody is set in the process that has no special rights.
const asNobody = "SHELF_TEST_AS_NOBODY"

// TestThingsThatMayNotBeTouched runs as a user without special rights: a directory that cannot be read or removed is told,
// and hides nothing else.
func TestThingsThatMayNotBeTouched(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		again(t)
		return
	}
	root := t.TempDir()
	put(t, root, map[string]string{"cache/closed/secret/x": "x", "cache/open/x": strings.Repeat("x", 4096), "layers/node-1/x": "x"})
	check(t, os.Chmod(filepath.Join(root, "cache/closed/secret"), 0))
	t.Cleanup(func() {
		_ = os.Chmod(filepath.Join(root, "cache/closed/secret"), 0o700)
		_ = os.Chmod(filepath.Join(root, "layers"), 0o700)
	})
	s := open(t, root)
	got := list(t, s)
	if !slices.Equal(paths(got), []string{"cache/closed", "cache/open", "layers/node-1"}) || got["cache/open"].Size < 4096 {
		t.Errorf("got %+v", got)
	}
	check(t, os.Chmod(filepath.Join(root, "layers"), 0o500))
	if gone, err := s.Remove(t.Context(), "layers/node-1", time.Now().Add(time.Hour)); err == nil || gone || !strings.Contains(err.Error(), "layers/node-1") {
		t.Errorf("Remove = %v, %v, want an error that names it", gone, err)
	}
	check(t, os.Chmod(filepath.Join(root, "layers"), 0o700))
	if _, there := list(t, s)["layers/node-1"]; !there {
		t.Error("what could not be removed has lost its name")
	}
	if gone, err := s.Remove(t.Context(), "cache/closed", time.Now().Add(time.Hour)); err != nil || !gone {
		t.Errorf("Remove of one's own closed directory = %v, %v", gone, err)
	}
}

// again runs the calling test in a process of a user without special rights.
func again(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "shelf-nobody-")
	check(t, err)
	defer os.RemoveAll(dir)
	program, err := os.ReadFile(os.Args[0])
	check(t, err)
	check(t, errors.Join(os.Chmod(dir, 0o777), os.WriteFile(filepath.Join(dir, "test"), program, 0o755)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "test"), "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = dir, []string{asNobody + "=1", "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}
