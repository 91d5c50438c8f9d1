package robust_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/builder"
	"github.com/slipway-dev/slipway/source/git"
	"github.com/slipway-dev/slipway/source/tarball"
)

// hostile is one source that must be refused: an archive, or a repository with a job that fetches it.
type hostile struct {
	name    string
	archive func() io.Reader
	repo    func(r *trap) slipway.BuildJob
	want    string // in the reason
}

// trap is where a hostile repository is set: nothing may be written to outside, nothing may be read from it.
type trap struct {
	t       *testing.T
	root    string // of the repositories that may be fetched
	repo    string
	outside string
	marker  string // made by whatever gets to run
}

const app = `{"graphs": {"a": "./a.mjs:graph"}}`

// TestHostileSources builds every hostile source by the real fetchers and the real builder. Each is refused by one sentence
// that says what to do, writes nothing outside of the bundle being made, runs nothing and leaves nothing.
func TestHostileSources(t *testing.T) {
	t.Parallel()
	all := append(hostileArchives(), hostileRepositories()...)
	if len(all) < 40 {
		t.Errorf("got %d hostile sources, want 40 or more", len(all))
	}
	seen := map[string]bool{}
	for _, h := range all {
		if seen[h.name] {
			t.Errorf("%s is there twice", h.name)
		}
		seen[h.name] = true
		t.Run(strings.ReplaceAll(h.name, " ", "_"), func(t *testing.T) { h.check(t) })
	}
}

func (h hostile) check(t *testing.T) {
	base := t.TempDir()
	r := &trap{t: t, root: filepath.Join(base, "repos"), repo: filepath.Join(base, "repos", "app"), outside: filepath.Join(base, "outside"), marker: filepath.Join(base, "outside", "ran")}
	for _, dir := range []string{r.repo, r.outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.outside, "secret.json"), []byte(app), 0o600); err != nil {
		t.Fatal(err)
	}
	job := slipway.BuildJob{Source: slipway.SourceInternalSource}
	if h.repo != nil {
		job = h.repo(r)
		job.Source = slipway.SourceGithost
	}
	data := filepath.Join(base, "data")
	reason := refusal(t, data, job, h.archive, r.root)
	if !strings.Contains(reason, h.want) || strings.ContainsAny(reason, "\n") || strings.Contains(reason, data) {
		t.Errorf("got the reason %q, want %q in it, one line, without paths of this machine", reason, h.want)
	}
	if _, err := os.Stat(r.marker); err == nil {
		t.Error("something of it ran")
	}
	left, err := filepath.Glob(filepath.Join(base, "*"))
	if err != nil || len(left) != 3 {
		t.Errorf("it wrote outside: %v, %v", left, err)
	}
	if raw, err := os.ReadFile(filepath.Join(r.outside, "secret.json")); err != nil || string(raw) != app {
		t.Errorf("the file outside is now %q, %v", raw, err)
	}
	if bundles, _ := os.ReadDir(filepath.Join(data, "bundles")); len(bundles) > 0 {
		t.Errorf("it left %v", bundles)
	}
}

// once hands out one job and keeps the reason of its failure.
type once struct {
	jobs    chan slipway.BuildJob
	reasons chan string
}

func (q once) Claim(ctx context.Context, _ string) (slipway.BuildJob, error) {
	select {
	case job := <-q.jobs:
		return job, nil
	case <-ctx.Done():
		return slipway.BuildJob{}, ctx.Err()
	}
}
func (once) Renew(context.Context, slipway.BuildJob) error                   { return nil }
func (once) Log(context.Context, slipway.BuildJob, []slipway.LogEntry) error { return nil }
func (q once) Complete(context.Context, slipway.BuildJob, slipway.BuildResult) error {
	q.reasons <- "it was built"
	return nil
}

func (q once) Fail(_ context.Context, _ slipway.BuildJob, reason string) error {
	q.reasons <- reason
	return nil
}

// upload fetches an archive.
type upload func() io.Reader

func (u upload) Fetch(ctx context.Context, _ slipway.BuildJob, dir string, _ func(string)) (string, error) {
	return "", tarball.Unpack(ctx, u(), dir, tarball.Limits{Bytes: 100 << 20, Entries: 2000})
}

// ready is a toolchain that has nothing to install.
type ready struct{}

func (ready) Prepare(context.Context, slipway.Project, func(string)) (slipway.Prepared, error) {
	return slipway.Prepared{Node: &slipway.NodeBundle{Interpreter: "node"}, Key: "k"}, nil
}

// refusal builds a job and returns why that failed.
func refusal(t *testing.T, data string, job slipway.BuildJob, archive upload, repos string) string {
	t.Helper()
	q := once{jobs: make(chan slipway.BuildJob, 1), reasons: make(chan string, 1)}
	b := builder.New(builder.Config{Root: data, Concurrency: 1}, builder.Deps{
		Queue: q, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
		Fetchers: map[slipway.Source]slipway.SourceFetcher{
			slipway.SourceInternalSource: archive,
			slipway.SourceGithost:        git.New(git.Config{FileRoots: []string{repos}, MaxBytes: 8 << 20}),
		},
		Toolchains: map[slipway.Language]slipway.Toolchain{slipway.Node: ready{}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	q.jobs <- job
	reason := <-q.reasons
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the builder ended with %v", err)
	}
	return reason
}

// good is what every archive also has, so that only the hostile part can be refused.
func good() []entry {
	return []entry{{Header: tar.Header{Name: "agentgraph.json"}, body: app}, {Header: tar.Header{Name: "a.mjs"}, body: "1"}}
}

// entry is one entry of an archive.
type entry struct {
	tar.Header
	body string
}

// packed makes an archive of good files and the entries.
func packed(entries ...entry) func() io.Reader {
	return func() io.Reader { return bytes.NewReader(zipped(tarred(append(good(), entries...)...))) }
}

func tarred(entries ...entry) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := e.Header
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if h.Size == 0 {
			h.Size = int64(len(e.body))
		}
		if err := w.WriteHeader(&h); err != nil {
			panic(fmt.Sprint(h.Name, ": ", err))
		}
		if _, err := io.CopyN(w, io.MultiReader(strings.NewReader(e.body), zeros{}), h.Size); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func zipped(raw []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(raw)
	_ = z.Close()
	return out.Bytes()
}

// raw is one entry as no honest program writes it; size -1 = that of the body.
func raw(name string, kind byte, size int64, body string) []byte {
	if size < 0 {
		size = int64(len(body))
	}
	block := make([]byte, 512)
	copy(block, name)
	copy(block[100:], "0000644\x00")
	copy(block[124:], fmt.Sprintf("%011o\x00", size))
	copy(block[136:], "00000000000\x00")
	block[156] = kind
	copy(block[257:], "ustar\x0000")
	copy(block[148:], fmt.Sprintf("%06o\x00 ", checksum(block)))
	padding := make([]byte, (512-len(body)%512)%512)
	return append(append(block, body...), padding...)
}

// checksum of a header block; its own field counts as spaces.
func checksum(block []byte) (sum int) {
	for i, b := range block {
		if i >= 148 && i < 156 {
			b = ' '
		}
		sum += int(b)
	}
	return sum
}

// records are pax records of names and values.
func records(pairs ...string) string {
	var out strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		text := " " + pairs[i] + "=" + pairs[i+1] + "\n"
		n := len(text)
		for len(fmt.Sprint(n))+len(text) != n {
			n = len(fmt.Sprint(n)) + len(text)
		}
		fmt.Fprint(&out, n, text)
	}
	return out.String()
}

// made makes an archive of good files and raw entries.
func made(entries ...[]byte) func() io.Reader {
	return func() io.Reader {
		all := tarredOpen()
		for _, e := range entries {
			all = append(all, e...)
		}
		return bytes.NewReader(zipped(append(all, make([]byte, 1024)...)))
	}
}

// tarredOpen is an archive of good files without its end.
func tarredOpen() []byte {
	raw := tarred(good()...)
	return raw[:len(raw)-1024]
}

func many(n int, name string) []entry {
	all := make([]entry, n)
	for i := range all {
		all[i].Name = strings.ReplaceAll(name, "%d", fmt.Sprint(i))
	}
	return all
}

func link(name, to string) entry {
	return entry{Header: tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}}
}

func hostileArchives() []hostile {
	file := func(name string) entry { return entry{Header: tar.Header{Name: name}, body: "x"} }
	typed := func(kind byte) entry { return entry{Header: tar.Header{Name: "x", Typeflag: kind}} }
	all := []hostile{
		{name: "archive: zip slip", archive: packed(file("../outside/x")), want: "leads out of it"},
		{name: "archive: zip slip inside", archive: packed(file("a/../../outside/x")), want: "leads out of it"},
		{name: "archive: zip slip of Windows", archive: packed(file(`..\outside\x`)), want: "leads out of it"},
		{name: "archive: zip slip by a pax path", archive: made(raw("p", tar.TypeXHeader, -1, records("path", "../outside/x")), raw("x", tar.TypeReg, 1, "x")), want: "leads out of it"},
		{name: "archive: absolute name", archive: packed(file("/etc/slipway-hostile")), want: "absolute name"},
		{name: "archive: absolute name of Windows", archive: packed(file(`\\host\share\x`)), want: "absolute name"},
		{name: "archive: symbolic link", archive: packed(link("x", "../outside/secret.json")), want: "has the link"},
		{name: "archive: file through a link", archive: packed(link("d", "/tmp"), file("d/x")), want: "has the link"},
		{name: "archive: chain of links", archive: packed(link("a", "b"), link("b", ".."), file("a/x")), want: "has the link"},
		{name: "archive: link as the configuration", archive: packed(link("langgraph.json", "/etc/passwd")), want: "has the link"},
		{name: "archive: hard link", archive: packed(entry{Header: tar.Header{Name: "x", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}}), want: "has the link"},
		{name: "archive: hard link inside", archive: packed(entry{Header: tar.Header{Name: "x", Linkname: "a.mjs", Typeflag: tar.TypeLink}}), want: "has the link"},
		{name: "archive: character device", archive: packed(typed(tar.TypeChar)), want: "neither a file nor a directory"},
		{name: "archive: block device", archive: packed(typed(tar.TypeBlock)), want: "neither a file nor a directory"},
		{name: "archive: FIFO", archive: packed(typed(tar.TypeFifo)), want: "neither a file nor a directory"},
		{name: "archive: contiguous file", archive: packed(typed(tar.TypeCont)), want: "neither a file nor a directory"},
		{name: "archive: bomb by ratio", archive: packed(entry{Header: tar.Header{Name: "x", Size: 90 << 20}}), want: "times its size"},
		{name: "archive: bomb in a header", archive: made(raw("x", tar.TypeReg, 101<<20, "")), want: "more than 100 MiB"},
		{name: "archive: bomb by entries", archive: packed(many(3000, "f%d")...), want: "more than 2000 entries"},
		{name: "archive: bomb by directories", archive: packed(many(60, "d%d/"+strings.Repeat("d/", 60)+"x")...), want: "more than 2000 entries"},
		{name: "archive: bomb by one name again and again", archive: packed(many(3000, "f")...), want: "more than 2000 entries"},
		{name: "archive: bomb inside of a bomb", archive: func() io.Reader { return bytes.NewReader(zipped(zipped(tarred(good()...)))) }, want: "damaged"},
		{name: "archive: long name", archive: packed(file(strings.Repeat("a/", 700) + "x")), want: "1024 is the limit"},
		{name: "archive: long part of a name", archive: packed(file(strings.Repeat("a", 300))), want: "cannot be written"},
		{name: "archive: names that differ by case", archive: packed(file("A.mjs")), want: "one name on other systems"},
		{name: "archive: directories that differ by case", archive: packed(file("lib/x"), file("LIB/y")), want: "one name on other systems"},
		{name: "archive: names that differ by composing", archive: packed(file("caf\u00e9.py"), file("cafe\u0301.py")), want: "one name on other systems"},
		{name: "archive: name that reads backwards", archive: packed(file("evil\u202eyp.exe")), want: "cannot be seen"},
		{name: "archive: name with nothing to see", archive: packed(file("a\u200b.mjs")), want: "cannot be seen"},
		{name: "archive: name with an escape sequence", archive: packed(file("a\x1b[2J")), want: "cannot be seen"},
		{name: "archive: name with a line break", archive: packed(file("a\nb")), want: "cannot be seen"},
		{name: "archive: name that is not UTF-8", archive: made(raw("\xff\xfe", tar.TypeReg, -1, "x")), want: "not UTF-8"},
		{name: "archive: file as a directory", archive: packed(file("a.mjs/x")), want: "twice, as a file and as a directory"},
		{name: "archive: size that lies", archive: func() io.Reader {
			return bytes.NewReader(zipped(append(tarredOpen(), raw("x", tar.TypeReg, 1<<20, "12345")...)))
		}, want: "ends within"},
		{name: "archive: size below zero", archive: made(belowZero()), want: "damaged"},
		{name: "archive: checksum that lies", archive: func() io.Reader { raw := tarred(good()...); raw[0] ^= 1; return bytes.NewReader(zipped(raw)) }, want: "damaged"},
		{name: "archive: pax records that lie", archive: made(raw("p", tar.TypeXHeader, -1, "99 path=x\n"), raw("s", tar.TypeReg, 1, "x")), want: "damaged"},
		{name: "archive: pax size that lies", archive: made(raw("p", tar.TypeXHeader, -1, records("size", "1000000")), raw("s", tar.TypeReg, 1, "x")), want: "ends within"},
		{name: "archive: huge pax header", archive: made(raw("p", tar.TypeXHeader, -1, records("comment", strings.Repeat("x", 2<<20))), raw("s", tar.TypeReg, 1, "x")), want: "damaged"},
		{name: "archive: sparse file that claims a lot", archive: made(raw("p", tar.TypeXHeader, -1, records("GNU.sparse.major", "0", "GNU.sparse.minor", "1", "GNU.sparse.name", "s", "GNU.sparse.size", "68719476736", "GNU.sparse.numblocks", "1", "GNU.sparse.map", "0,1")), raw("s", tar.TypeReg, 1, "x")), want: "more than 100 MiB"},
		{name: "archive: cut off", archive: func() io.Reader { raw := zipped(tarred(good()...)); return bytes.NewReader(raw[:len(raw)/2]) }, want: "source archive"},
		{name: "archive: not an archive", archive: func() io.Reader { return strings.NewReader("PK\x03\x04 a zip") }, want: "not gzip"},
	}
	return all
}

// belowZero is an entry with a negative size.
func belowZero() []byte {
	all := raw("x", tar.TypeReg, 1, "x")
	copy(all[124:136], bytes.Repeat([]byte{0xff}, 12))
	copy(all[148:], fmt.Sprintf("%06o\x00 ", checksum(all[:512])))
	return all
}
