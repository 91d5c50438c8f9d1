package telemetry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/slipway-dev/slipway"
)

// record is one item of a journal. The kind says how it is sent.
type record struct {
	kind    byte
	payload []byte
}

// entry is where a record is.
type entry struct {
	segment  uint64
	offset   int64
	size     int32 // with its head
	kind     byte
	attempts int64  // failed sends
	name     string // as journalConfig.name says
}

// journalConfig are the bounds of a journal.
type journalConfig struct {
	dir          string
	segmentBytes int64
	maxBytes     int64
	dropOldest   bool // full: the oldest segment goes; else appending fails
	// name finds what an entry is known by; lost hears of one that was indexed and cannot be read any more. nil = not needed.
	name func(record) string
	lost func(name string)
}

// A record on the disk: the magic, the length of the payload, the checksum of kind and payload, the kind, the payload.
const (
	magic     = "sLw\x01"
	headBytes = len(magic) + 4 + 4 + 1
	maxRecord = 8 << 20
)

// journal is a queue of records in files. It is safe for concurrent use.
type journal struct {
	cfg journalConfig
	crc *crc32.Table

	mu       sync.Mutex
	entries  []entry // waiting, oldest first
	sizes    map[uint64]int64
	active   *os.File
	segment  uint64 // of active, or the one before the next
	waiting  int64  // bytes of entries
	dropped  int64
	corrupt  int64
	progress progress
}

// openJournal reads what a journal's directory holds. What cannot be read is counted and left out.
func openJournal(cfg journalConfig) (*journal, error) {
	if err := os.MkdirAll(cfg.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the outbox: %w", err)
	}
	j := &journal{cfg: cfg, crc: crc32.MakeTable(crc32.Castagnoli), sizes: map[uint64]int64{}}
	var readable bool
	if j.progress, readable = readProgress(cfg.dir); !readable {
		j.corrupt++ // everything is sent again, which is counted once
	}
	names, err := segments(cfg.dir)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	for _, n := range names {
		if err := j.load(n); err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
	}
	j.segment = max(j.segment, j.progress.Segment)
	j.restoreAttempts()
	return j, nil
}

func segments(dir string) ([]uint64, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".seg"); ok {
			if n, err := strconv.ParseUint(name, 10, 64); err == nil {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

func (j *journal) path(segment uint64) string {
	return filepath.Join(j.cfg.dir, fmt.Sprintf("%020d.seg", segment))
}

// load indexes a segment, or removes it when all of it was sent.
func (j *journal) load(segment uint64) error {
	j.segment = max(j.segment, segment)
	if segment < j.progress.Segment {
		return os.Remove(j.path(segment))
	}
	raw, err := os.ReadFile(j.path(segment))
	if err != nil {
		return err
	}
	j.sizes[segment] = int64(len(raw))
	for at := 0; at < len(raw); {
		n, ok := j.parse(raw[at:])
		if !ok {
			j.corrupt++
			if at = next(raw, at+1); at < 0 {
				break
			}
			continue
		}
		if segment > j.progress.Segment || int64(at) >= j.progress.Offset {
			r := record{kind: raw[at+headBytes-1], payload: raw[at+headBytes : at+n]}
			j.entries = append(j.entries, entry{segment: segment, offset: int64(at), size: int32(n), kind: r.kind, name: j.named(r)})
			j.waiting += int64(n)
		}
		at += n
	}
	return nil
}

func (j *journal) named(r record) string {
	if j.cfg.name == nil {
		return ""
	}
	return j.cfg.name(r)
}

// next finds where a record may begin.
func next(raw []byte, from int) int {
	i := strings.Index(string(raw[min(from, len(raw)):]), magic)
	if i < 0 {
		return -1
	}
	return from + i
}

// parse returns the length of the record at the beginning of raw, if there is a whole one.
func (j *journal) parse(raw []byte) (n int, ok bool) {
	if len(raw) < headBytes || string(raw[:len(magic)]) != magic {
		return 0, false
	}
	size := binary.LittleEndian.Uint32(raw[len(magic):])
	n = headBytes + int(size)
	if size > maxRecord || n > len(raw) {
		return 0, false
	}
	return n, crc32.Checksum(raw[headBytes-1:n], j.crc) == binary.LittleEndian.Uint32(raw[len(magic)+4:])
}

func (j *journal) encode(to []byte, r record) []byte {
	to = append(to, magic...)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(r.payload)))
	body := append([]byte{r.kind}, r.payload...)
	to = binary.LittleEndian.AppendUint32(to, crc32.Checksum(body, j.crc))
	return append(to, body...)
}

// append adds records, all or none, and returns when they are on the disk.
func (j *journal) append(list []record) error {
	if len(list) == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var raw []byte
	var added []entry
	for _, r := range list {
		if len(r.payload) > maxRecord {
			return slipway.Errorf(slipway.CodeTooLarge, "an item of telemetry has %d bytes; %d is the most", len(r.payload), maxRecord)
		}
		before := len(raw)
		raw = j.encode(raw, r)
		added = append(added, entry{offset: int64(before), size: int32(len(raw) - before), kind: r.kind, name: j.named(r)})
	}
	if err := j.makeRoom(int64(len(raw))); err != nil {
		return err
	}
	base, err := j.write(raw)
	if err != nil {
		return slipway.Errorf(slipway.CodeUnavailable, "the outbox cannot be written: %w", err)
	}
	for _, e := range added {
		e.segment, e.offset = j.segment, base+e.offset
		j.entries = append(j.entries, e)
	}
	j.waiting += int64(len(raw))
	return nil
}

// makeRoom drops the oldest segments until n bytes fit, or refuses them.
func (j *journal) makeRoom(n int64) error {
	for j.waiting+n > j.cfg.maxBytes {
		if !j.cfg.dropOldest || len(j.entries) == 0 {
			return slipway.Errorf(slipway.CodeUnavailable, "the outbox holds %d of %d bytes; what was counted waits where it is", j.waiting, j.cfg.maxBytes)
		}
		oldest, count := j.entries[0].segment, 0
		for count < len(j.entries) && j.entries[count].segment == oldest {
			count++
		}
		j.dropped += int64(count)
		j.take(count)
	}
	return nil
}

// write puts raw at the end of the active segment and returns where it begins. After an error nothing of it counts.
func (j *journal) write(raw []byte) (base int64, err error) {
	if j.active != nil && j.sizes[j.segment] >= j.cfg.segmentBytes {
		j.rotate()
	}
	if j.active == nil {
		if err := j.begin(); err != nil {
			return 0, err
		}
	}
	base = j.sizes[j.segment]
	_, err = j.active.WriteAt(raw, base)
	if err == nil {
		err = j.active.Sync()
	}
	if err != nil { // what was written of it must never be read: a new segment begins where this one is cut
		err = errors.Join(err, j.active.Truncate(base))
		j.rotate()
		return 0, err
	}
	j.sizes[j.segment] = base + int64(len(raw))
	return base, nil
}

func (j *journal) rotate() {
	_ = j.active.Close() // what counts was synced
	j.active = nil
}

func (j *journal) begin() error {
	f, err := os.OpenFile(j.path(j.segment+1), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syncDir(j.cfg.dir); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	j.segment++
	j.active, j.sizes[j.segment] = f, 0
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// peek returns up to most entries from the front that fit into a number of bytes (but at least one), with their records.
// A record that can no longer be read is counted and passed over.
func (j *journal) peek(most int, bytes int64) ([]entry, []record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		entries, records, bad := j.read(most, bytes)
		if bad < 0 {
			return entries, records
		}
		j.corrupt++
		j.waiting -= int64(j.entries[bad].size)
		if j.cfg.lost != nil {
			j.cfg.lost(j.entries[bad].name)
		}
		j.entries = slices.Delete(j.entries, bad, bad+1)
	}
}

// read returns records from the front; bad is the place of one that cannot be read, or -1.
func (j *journal) read(most int, bytes int64) (entries []entry, records []record, bad int) {
	var open uint64
	var raw []byte
	for i, e := range j.entries {
		if bytes -= int64(e.size); i >= most || bytes < 0 && i > 0 {
			break
		}
		if e.segment != open || raw == nil {
			var err error
			if raw, err = os.ReadFile(j.path(e.segment)); err != nil {
				return nil, nil, i
			}
			open = e.segment
		}
		end := e.offset + int64(e.size)
		if end > int64(len(raw)) {
			return nil, nil, i
		}
		if n, ok := j.parse(raw[e.offset:end]); !ok || n != int(e.size) {
			return nil, nil, i
		}
		entries = append(entries, e)
		records = append(records, record{kind: e.kind, payload: slices.Clone(raw[e.offset+int64(headBytes) : end])})
	}
	return entries, records, -1
}

// done removes entries that peek returned from the front; those that went meanwhile are passed over.
func (j *journal) done(entries []entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(entries) == 0 {
		return
	}
	last, count := entries[len(entries)-1], 0
	for count < len(j.entries) && !last.before(j.entries[count]) {
		count++
	}
	j.take(count)
}

func (e entry) before(other entry) bool {
	return e.segment < other.segment || e.segment == other.segment && e.offset < other.offset
}

// take removes count entries from the front, and segments that hold nothing any more. Called with mu held.
func (j *journal) take(count int) {
	if count == 0 {
		return
	}
	last := j.entries[count-1]
	for _, e := range j.entries[:count] {
		j.waiting -= int64(e.size)
	}
	j.entries = slices.Clone(j.entries[count:]) // lets go of the front
	first := last.segment
	if len(j.entries) > 0 {
		first = j.entries[0].segment
	} else if j.active != nil && j.sizes[j.segment] >= j.cfg.segmentBytes/2 {
		j.rotate()
	}
	if len(j.entries) == 0 && j.active == nil {
		first = j.segment + 1
	}
	j.progress = progress{Segment: max(first, last.segment), Dropped: j.dropped}
	if j.progress.Segment == last.segment {
		j.progress.Offset = last.offset + int64(last.size)
	}
	j.saveProgress()
	for segment := range j.sizes {
		if segment < j.progress.Segment {
			if err := os.Remove(j.path(segment)); err == nil || errors.Is(err, fs.ErrNotExist) {
				delete(j.sizes, segment)
			}
		}
	}
}

// failed counts a failed attempt for entries that peek returned.
func (j *journal) failed(entries []entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(entries) == 0 {
		return
	}
	last := entries[len(entries)-1]
	for i := range j.entries {
		if last.before(j.entries[i]) {
			break
		}
		j.entries[i].attempts++
	}
	j.saveProgress()
}

// size tells how much waits.
func (j *journal) size() (items, bytes, attempts, dropped, corrupt int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.entries) > 0 {
		attempts = j.entries[0].attempts
	}
	return int64(len(j.entries)), j.waiting, attempts, j.dropped, j.corrupt
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.active == nil {
		return nil
	}
	err := j.active.Close()
	j.active = nil
	return err
}
