package process

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway"
)

const (
	tailChunk   = 256 << 10 // bytes read at once; a line that is longer is cut
	tailHistory = 64 << 10  // bytes kept before what the sink took, for Observed.LastLines
	tailIdle    = 200 * time.Millisecond
	tailBusy    = 20 * time.Millisecond
)

// tailer brings the lines of one workload's output file to the sink, in order, and remembers how far it came. The
// workload writes to the file itself, so that it needs nobody at the other end; what was taken is freed by punching
// holes, so that the file's place on disk stays bounded while offsets never move.
type tailer struct {
	cfg      Config
	file     *os.File
	mark     *os.File // holds offset
	offset   int64
	freed    int64
	buf      []byte
	kick     chan chan struct{} // closed by the tailer once it reached the end of the file
	template slipway.LogEntry
	redact   func() *redactor
}

func newTailer(cfg Config, dir string, template slipway.LogEntry, redact func() *redactor) (*tailer, error) {
	file, err := os.OpenFile(filepath.Join(dir, logFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("tail log: %w", err)
	}
	mark, err := os.OpenFile(filepath.Join(dir, offsetFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("tail log: %w", err)
	}
	t := &tailer{cfg: cfg, file: file, mark: mark, template: template, redact: redact, kick: make(chan chan struct{})}
	var b [8]byte
	if n, _ := mark.ReadAt(b[:], 0); n == len(b) {
		t.offset = int64(binary.LittleEndian.Uint64(b[:]))
	}
	return t, nil
}

// run tails until ctx ends.
func (t *tailer) run(ctx context.Context) {
	defer t.file.Close()
	defer t.mark.Close()
	pause := tailBusy
	timer := time.NewTimer(0)
	defer timer.Stop()
	var caught chan struct{}
	for {
		select {
		case <-ctx.Done():
			return
		case caught = <-t.kick:
		case <-timer.C:
		}
		moved := t.drain(ctx)
		if caught != nil && ctx.Err() == nil {
			close(caught)
			caught = nil
		}
		pause = min(pause*2, tailIdle)
		if moved {
			pause = tailBusy
		}
		timer.Reset(pause)
	}
}

// flush waits until the sink took everything that is in the file now, or ctx ends.
func (t *tailer) flush(ctx context.Context) {
	done := make(chan struct{})
	select {
	case t.kick <- done:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// drain delivers all complete lines and reports whether there were any.
func (t *tailer) drain(ctx context.Context) bool {
	moved := false
	for ctx.Err() == nil && t.more(ctx) {
		n, _ := t.file.ReadAt(t.buf, t.offset)
		end := bytes.LastIndexByte(t.buf[:n], '\n') + 1
		if end == 0 && n < len(t.buf) {
			return moved
		}
		if end == 0 {
			end = n // a line without end: what there is of it counts as one
		}
		if !t.deliver(ctx, t.entries(t.buf[:end])) {
			return moved
		}
		t.advance(t.offset + int64(end))
		moved = true
	}
	return moved
}

// more reports whether there is something to read, after dropping what is too much.
func (t *tailer) more(ctx context.Context) bool {
	info, err := t.file.Stat()
	if err != nil || info.Size() <= t.offset {
		return false
	}
	if t.buf == nil {
		t.buf = make([]byte, tailChunk)
	}
	if info.Size()-t.offset > t.cfg.MaxLogBacklog {
		t.skipBacklog(ctx, info.Size()-t.cfg.MaxLogBacklog/2)
	}
	return true
}

func (t *tailer) entries(data []byte) []slipway.LogEntry {
	now, r := time.Now().UTC(), t.redact()
	var out []slipway.LogEntry
	for _, line := range lines(data) {
		e := parseLine(line, now, r)
		e.DeploymentID, e.RevisionID = t.template.DeploymentID, t.template.RevisionID
		out = append(out, e)
	}
	return out
}

// deliver repeats until the sink took the entries; false means ctx ended first.
func (t *tailer) deliver(ctx context.Context, entries []slipway.LogEntry) bool {
	if t.cfg.Sink == nil || len(entries) == 0 {
		return ctx.Err() == nil
	}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := t.cfg.Sink(ctx, entries)
		if err == nil || slipway.ErrorCode(err) == slipway.CodeNotFound {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// advance remembers the offset and frees what lies well before it.
func (t *tailer) advance(offset int64) {
	t.offset = offset
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(offset))
	_, _ = t.mark.WriteAt(b[:], 0) // if it cannot be written, lines are delivered again after a restart
	if free := offset - tailHistory; free-t.freed > t.cfg.PunchLogBehind {
		// Where the file system cannot punch holes the file merely keeps its size until the workload is removed.
		_ = unix.Fallocate(int(t.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, free)
		t.freed = free
	}
}

// skipBacklog drops the oldest lines of a workload that writes faster than the sink takes, and says so in its log.
func (t *tailer) skipBacklog(ctx context.Context, to int64) {
	e := t.template
	e.Kind, e.At, e.Level = slipway.LogDeploy, time.Now().UTC(), "WARNING"
	e.Message = fmt.Sprintf("%d bytes of log were dropped: the agent server writes faster than they can be stored", to-t.offset)
	if t.deliver(ctx, []slipway.LogEntry{e}) {
		t.advance(to)
	}
}

// lastLines returns the last messages of the output file from offset from on.
func lastLines(dir string, from int64, r *redactor) []string {
	file, err := os.Open(filepath.Join(dir, logFile))
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	start := max(from, info.Size()-tailHistory)
	data := make([]byte, max(0, info.Size()-start))
	n, _ := file.ReadAt(data, start)
	data = data[:n]
	if start > from { // the first line is most likely not whole
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	all := lines(data)
	all = all[max(0, len(all)-slipway.MaxLastLines):]
	out := make([]string, 0, len(all))
	for _, line := range all {
		out = append(out, parseLine(line, time.Time{}, r).Message)
	}
	return out
}

// endLine makes sure that the output of an ended process does not run into that of the next one.
func endLine(dir string) {
	file, err := os.OpenFile(filepath.Join(dir, logFile), os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return
	}
	var last [1]byte
	if n, _ := file.ReadAt(last[:], info.Size()-1); n == 1 && last[0] != '\n' {
		_, _ = file.WriteString("\n")
	}
}
