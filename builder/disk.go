package builder

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway"
)

// watchEvery is the least time between two looks at what a build has written.
const watchEvery = time.Second

// watch stops a build that writes more than it may, or that fills the disk. The looks take a twentieth of a processor at
// most. The returned function ends it.
func (b *Builder) watch(ctx context.Context, dir string, exceeded context.CancelCauseFunc) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause := watchEvery; ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			began := time.Now()
			if err := b.within(ctx, dir); err != nil {
				exceeded(err)
				return
			}
			pause = max(watchEvery, 20*time.Since(began))
		}
	}()
	return func() { cancel(); <-ended }
}

// within says what of its bounds a build has exceeded.
func (b *Builder) within(ctx context.Context, dir string) error {
	if size := written(ctx, dir); size > b.cfg.MaxBytes {
		return slipway.Errorf(slipway.CodeTooLarge, "the build wrote more than %d MiB, which is the limit: leave out what the graphs do not need, or ask the operator to raise --build-disk", b.cfg.MaxBytes>>20)
	}
	if free(dir) < b.cfg.MinimumFree/4 {
		return slipway.Errorf(slipway.CodeUnavailable, "the disk ran full while the build was under way: free some of it, for example with `slipway gc --all`, and deploy again")
	}
	return nil
}

// written adds up the disk that everything below dir takes. What goes away meanwhile does not count.
func written(ctx context.Context, dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return ctx.Err()
		}
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += st.Blocks * 512
			}
		}
		return ctx.Err()
	})
	return sum
}

// free is how many bytes of the disk are free; all, where that cannot be told.
func free(dir string) uint64 {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return ^uint64(0)
	}
	return disk.Bavail * uint64(disk.Bsize)
}

// touchCaches tells whoever cleans up that the installers' caches are in use.
func (b *Builder) touchCaches() {
	entries, err := os.ReadDir(filepath.Join(b.cfg.Root, "cache"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	now := time.Now()
	for _, e := range entries {
		_ = os.Chtimes(filepath.Join(b.cfg.Root, "cache", e.Name()), now, now) // gone meanwhile: it is made again
	}
}
