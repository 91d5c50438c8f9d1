package telemetry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slipway-dev/slipway"
)

func openTest(t *testing.T, dir string, change func(*journalConfig)) *journal {
	t.Helper()
	cfg := journalConfig{dir: dir, segmentBytes: 200, maxBytes: 1 << 20}
	if change != nil {
		change(&cfg)
	}
	j, err := openJournal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	return j
}

func put(t *testing.T, j *journal, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := j.append([]record{{kindTransaction, fmt.Appendf(nil, `{"id":"%d"}`, n)}}); err != nil {
			t.Fatal(err)
		}
	}
}

// held are the numbers of what waits.
func held(j *journal) (out []string) {
	_, records := j.peek(1<<20, 1<<30)
	for _, r := range records {
		out = append(out, name(r))
	}
	return out
}

func numbers(from, to int) (out []string) {
	for n := from; n < to; n++ {
		out = append(out, fmt.Sprint(n))
	}
	return out
}

func wantHeld(t *testing.T, what string, j *journal, want []string) {
	t.Helper()
	if got := held(j); !slices.Equal(got, want) {
		t.Errorf("%s: held %v, want %v", what, got, want)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// What was appended and not taken is there after any end of the process, in order, with its failed attempts.
func TestJournalOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, nil)
	put(t, j, 0, 50)
	entries, _ := j.peek(7, 1<<20)
	j.failed(entries)
	j.failed(entries[:3])
	again := openTest(t, dir, nil) // nothing was closed: like after a kill
	wantHeld(t, "after a kill", again, numbers(0, 50))
	entries, _ = again.peek(9, 1<<20)
	var got []int64
	for _, e := range entries {
		got = append(got, e.attempts)
	}
	if want := []int64{2, 2, 2, 1, 1, 1, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("failed attempts %v, want %v", got, want)
	}
	again.done(entries)
	put(t, again, 50, 60)
	wantHeld(t, "after taking", again, numbers(9, 60))
	third := openTest(t, dir, nil)
	wantHeld(t, "reopened", third, numbers(9, 60))
	entries, _ = third.peek(1000, 1<<20)
	third.done(entries)
	wantHeld(t, "emptied", third, nil)
	if n := len(files(t, dir)); n > 1 {
		t.Errorf("%d segments are left of nothing", n)
	}
	put(t, openTest(t, dir, nil), 60, 61)
	wantHeld(t, "used again", openTest(t, dir, nil), numbers(60, 61))
}

// A record that was cut off or altered is counted and left out; those around it are not lost.
func TestJournalReadsAroundDamage(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]func([]byte) []byte{
		"cut off": func(b []byte) []byte { return b[:len(b)-3] },
		"altered": func(b []byte) []byte { b[len(b)-2] ^= 1; return b },
		"zeroed":  func(b []byte) []byte { clear(b[len(b)-24:]); return b },
		"length":  func(b []byte) []byte { b[len(b)-24+4] = 0xff; return b },
	} {
		dir := t.TempDir()
		put(t, openTest(t, dir, nil), 10, 30) // 24 bytes each
		path := files(t, dir)[1]
		raw, err := os.ReadFile(path)
		if err != nil || len(raw)%24 != 0 {
			t.Fatal(err, len(raw))
		}
		if err := os.WriteFile(path, damage(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		var lost []string
		j := openTest(t, dir, func(c *journalConfig) { c.lost = func(id string) { lost = append(lost, id) } })
		want := numbers(10, 30)
		want = slices.Delete(want, 17, 18)
		wantHeld(t, what, j, want)
		if _, _, _, _, corrupt := j.size(); corrupt == 0 {
			t.Errorf("%s: nothing was counted as corrupt", what)
		}
	}
}

// Damage that comes while the journal is open is found when the record is read; whoever counted it hears of it.
func TestJournalFindsDamageLater(t *testing.T) {
	t.Parallel()
	dir, k := t.TempDir(), newKnown()
	j := openTest(t, dir, func(c *journalConfig) { c.name, c.lost = k.note, k.lost })
	put(t, j, 0, 3)
	raw, err := os.ReadFile(files(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 0xff
	if err := os.WriteFile(files(t, dir)[0], raw, 0o600); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, "the others", j, []string{"0", "2"})
	if _, ok := k.queued["1"]; ok || len(k.queued) != 2 {
		t.Errorf("queued is %v", k.queued)
	}
}

func TestJournalWithoutProgressSendsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, nil)
	put(t, j, 0, 5)
	entries, _ := j.peek(2, 1<<20)
	j.done(entries)
	if err := os.WriteFile(filepath.Join(dir, progressFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, "all that is on the disk", openTest(t, dir, nil), numbers(0, 5))
}

// Full: billing is refused as a whole and nothing is dropped; operational telemetry drops the oldest and counts it.
func TestJournalBounds(t *testing.T) {
	t.Parallel()
	small := func(c *journalConfig) { c.maxBytes = 240 }
	billing := openTest(t, t.TempDir(), small)
	put(t, billing, 10, 20)
	err := billing.append([]record{{kindTransaction, []byte(`{"id":"20"}`)}, {kindTransaction, []byte(`{"id":"21"}`)}})
	if slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("a full outbox answers %v", err)
	}
	wantHeld(t, "billing", billing, numbers(10, 20))

	dir := t.TempDir()
	bounded := func(c *journalConfig) { c.maxBytes, c.dropOldest, c.segmentBytes = 240, true, 72 }
	operational := openTest(t, dir, bounded)
	put(t, operational, 10, 25)
	got := held(operational)
	if _, _, _, dropped, _ := operational.size(); len(got)+int(dropped) != 15 || got[len(got)-1] != "24" || dropped == 0 {
		t.Errorf("held %v, dropped %d", got, dropped)
	}
	again := openTest(t, dir, bounded)
	wantHeld(t, "reopened", again, got)
	if _, _, _, dropped, _ := again.size(); int(dropped) != 15-len(got) {
		t.Errorf("dropped is %d after a restart", dropped)
	}
}

// A disk that takes nothing more: nothing is lost of what was accepted, nothing that was refused appears later.
func TestJournalOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, nil)
	put(t, j, 0, 3)
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	j.mu.Lock()
	kept := j.active
	j.active = full
	j.mu.Unlock()
	if err := j.append([]record{{kindTransaction, []byte(`{"id":"3"}`)}}); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Fatalf("a full disk answers %v", err)
	}
	if err := kept.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
	wantHeld(t, "what was accepted", j, numbers(0, 3))
	put(t, j, 4, 6) // there is room again
	want := append(numbers(0, 3), numbers(4, 6)...)
	wantHeld(t, "later", j, want)
	wantHeld(t, "reopened", openTest(t, dir, nil), want)
}
