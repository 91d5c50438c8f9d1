// Package blobtest is the conformance suite of slipway.Blob.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/slipway-dev/slipway"
)

// limit is what the suite's blobs may have at most.
const limit = 1 << 20

// Run checks an implementation. Open returns an empty one each time it is called.
func Run(t *testing.T, open func(t *testing.T) slipway.Blob) {
	for name, test := range map[string]func(*testing.T, slipway.Blob){
		"put and open": putAndOpen, "same bytes": sameBytes, "limit": limits, "absent": absent, "hostile names": hostileNames,
		"delete": deletes, "list": lists, "expire": expires, "broken reader": brokenReader, "ended context": endedContext, "concurrently": concurrently,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func put(t *testing.T, b slipway.Blob, content string) string {
	t.Helper()
	got, size, err := b.Put(t.Context(), strings.NewReader(content), limit)
	if err != nil || got != digest([]byte(content)) || size != int64(len(content)) {
		t.Fatalf("Put of %d bytes = %s, %d, %v", len(content), got, size, err)
	}
	return got
}

func read(t *testing.T, b slipway.Blob, d string) string {
	t.Helper()
	r, err := b.Open(t.Context(), d)
	if err != nil {
		t.Fatalf("Open(%s): %v", d, err)
	}
	defer r.Close()
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func digests(t *testing.T, b slipway.Blob) (all []string) {
	t.Helper()
	if err := b.List(t.Context(), func(i slipway.BlobInfo) error { all = append(all, i.Digest); return nil }); err != nil {
		t.Fatalf("List: %v", err)
	}
	return all
}

func putAndOpen(t *testing.T, b slipway.Blob) {
	for _, content := range []string{"", "a", "line\nline\x00\xff", strings.Repeat("long", 50_000)} {
		if got := read(t, b, put(t, b, content)); got != content {
			t.Errorf("got %d bytes, want the %d that were put", len(got), len(content))
		}
	}
}

func sameBytes(t *testing.T, b slipway.Blob) {
	first := put(t, b, "same")
	r, err := b.Open(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if second := put(t, b, "same"); second != first || len(digests(t, b)) != 1 {
		t.Errorf("got %s and %v, want one blob %s", second, digests(t, b), first)
	}
	if raw, err := io.ReadAll(r); err != nil || string(raw) != "same" {
		t.Errorf("an open blob reads %q, %v after it was put again", raw, err)
	}
}

func limits(t *testing.T, b slipway.Blob) {
	if _, size, err := b.Put(t.Context(), strings.NewReader("12345"), 5); err != nil || size != 5 {
		t.Errorf("as much as the limit: got %d, %v", size, err)
	}
	if _, _, err := b.Put(t.Context(), strings.NewReader("123456"), 5); slipway.ErrorCode(err) != slipway.CodeTooLarge {
		t.Errorf("more than the limit: got %v, want %s", err, slipway.CodeTooLarge)
	}
	if all := digests(t, b); len(all) != 1 {
		t.Errorf("a refused blob is stored: %v", all)
	}
}

func absent(t *testing.T, b slipway.Blob) {
	if r, err := b.Open(t.Context(), digest([]byte("never put"))); slipway.ErrorCode(err) != slipway.CodeNotFound || r != nil {
		t.Errorf("got %v, %v, want nothing and %s", r, err, slipway.CodeNotFound)
	}
}

func hostileNames(t *testing.T, b slipway.Blob) {
	for _, d := range []string{"", "sha256:", "sha256:../../etc/passwd", "../x", "sha256:" + strings.Repeat("A", 64), "sha512:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("a", 65), "sha256:\x00"} {
		if _, err := b.Open(t.Context(), d); slipway.ErrorCode(err) != slipway.CodeNotFound {
			t.Errorf("Open(%q) = %v, want %s", d, err, slipway.CodeNotFound)
		}
		if err := b.Delete(t.Context(), d); err != nil {
			t.Errorf("Delete(%q) = %v", d, err)
		}
	}
}

func deletes(t *testing.T, b slipway.Blob) {
	one, two := put(t, b, "one"), put(t, b, "two")
	for range 2 {
		if err := b.Delete(t.Context(), one); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	if _, err := b.Open(t.Context(), one); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("a deleted blob: got %v, want %s", err, slipway.CodeNotFound)
	}
	if got := read(t, b, two); got != "two" {
		t.Errorf("the other blob reads %q", got)
	}
}

// What is touched or stored again does not expire; what is not does.
func expires(t *testing.T, b slipway.Blob) {
	used := func(d string) (at time.Time) {
		t.Helper()
		if err := b.List(t.Context(), func(i slipway.BlobInfo) error {
			if i.Digest == d {
				at = i.UsedAt
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return at
	}
	expire := func(d string, before time.Time, want bool) {
		t.Helper()
		if gone, err := b.Expire(t.Context(), d, before); err != nil || gone != want {
			t.Errorf("Expire(%s, %s) = %v, %v, want %v", d, before, gone, err, want)
		}
	}
	touched, again, old := put(t, b, "touched"), put(t, b, "again"), put(t, b, "old")
	early := used(touched).Add(-time.Second)
	for _, d := range []string{touched, again, old} {
		expire(d, early, false)
	}
	if err := b.Touch(t.Context(), touched); err != nil {
		t.Fatal(err)
	}
	put(t, b, "again")
	if got := read(t, b, touched) + read(t, b, again) + read(t, b, old); got != "touchedagainold" {
		t.Errorf("got %q", got)
	}
	expire(old, used(old), true)
	expire(old, used(old), true)
	expire(digest([]byte("never stored")), early, true)
	if _, err := b.Open(t.Context(), old); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("after Expire: %v, want not_found", err)
	}
	if err := b.Touch(t.Context(), old); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("Touch of what has expired: %v, want not_found", err)
	}
	expire("../../etc/passwd", early, true)
	put(t, b, "old")
	if got := read(t, b, old); got != "old" {
		t.Errorf("stored again: got %q", got)
	}
}

func lists(t *testing.T, b slipway.Blob) {
	if all := digests(t, b); len(all) != 0 {
		t.Errorf("an empty store lists %v", all)
	}
	want := []string{put(t, b, "one"), put(t, b, "three"), put(t, b, "five")}
	slices.Sort(want)
	got := digests(t, b)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	stop, calls := errors.New("enough"), 0
	if err := b.List(t.Context(), func(slipway.BlobInfo) error { calls++; return stop }); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("got %v after %d calls, want %v after one", err, calls, stop)
	}
	sizes := map[int64]bool{}
	_ = b.List(t.Context(), func(i slipway.BlobInfo) error { sizes[i.Size] = true; return nil })
	if !sizes[3] || !sizes[5] || !sizes[4] {
		t.Errorf("got the sizes %v", sizes)
	}
}

func brokenReader(t *testing.T, b slipway.Blob) {
	broken := errors.New("the connection was cut")
	r := io.MultiReader(strings.NewReader("the first half"), iotest.ErrReader(broken))
	if _, _, err := b.Put(t.Context(), r, limit); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if all := digests(t, b); len(all) != 0 {
		t.Errorf("half a blob is stored: %v", all)
	}
}

func endedContext(t *testing.T, b slipway.Blob) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := b.Put(ctx, strings.NewReader("x"), limit); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if all := digests(t, b); len(all) != 0 {
		t.Errorf("a blob of an ended context is stored: %v", all)
	}
}

func concurrently(t *testing.T, b slipway.Blob) {
	content := bytes.Repeat([]byte("together"), 10_000)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if d, _, err := b.Put(t.Context(), bytes.NewReader(content), limit); err != nil || d != digest(content) {
				t.Errorf("got %s, %v", d, err)
			}
		})
	}
	group.Wait()
	if got := read(t, b, digest(content)); got != string(content) || len(digests(t, b)) != 1 {
		t.Errorf("got %d bytes in %d blobs, want %d in one", len(got), len(digests(t, b)), len(content))
	}
}
