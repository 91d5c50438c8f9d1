package telemetry

import (
	"encoding/json"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

const progressFile = "progress.json"

// progress says from where on records of a journal still wait: from an offset of a segment. Losing it makes records be sent
// again, no more.
type progress struct {
	Segment  uint64     `json:"segment"`
	Offset   int64      `json:"offset"`
	Dropped  int64      `json:"dropped"`
	Attempts []attempts `json:"attempts,omitempty"` // from the front; what is behind them was never tried
}

// attempts is a row of entries that failed equally often.
type attempts struct {
	Entries int   `json:"entries"`
	Failed  int64 `json:"failed"`
}

type sealedProgress struct {
	Sum  uint32          `json:"crc32"`
	Body json.RawMessage `json:"progress"`
}

// readProgress returns where a journal was; readable is false if the file is damaged.
func readProgress(dir string) (p progress, readable bool) {
	raw, err := os.ReadFile(filepath.Join(dir, progressFile))
	if err != nil {
		return p, errors.Is(err, fs.ErrNotExist)
	}
	var s sealedProgress
	if json.Unmarshal(raw, &s) != nil || crc32.ChecksumIEEE(s.Body) != s.Sum || json.Unmarshal(s.Body, &p) != nil {
		return progress{}, false
	}
	return p, true
}

// saveProgress writes the progress with the attempts of what waits. An error only means that more is sent again after a
// crash, so there is nothing to do about it. Called with mu held.
func (j *journal) saveProgress() {
	p := j.progress
	p.Dropped, p.Attempts = j.dropped, nil
	for _, e := range j.entries {
		if e.attempts == 0 {
			break
		}
		if n := len(p.Attempts); n > 0 && p.Attempts[n-1].Failed == e.attempts {
			p.Attempts[n-1].Entries++
			continue
		}
		p.Attempts = append(p.Attempts, attempts{Entries: 1, Failed: e.attempts})
	}
	body, _ := json.Marshal(p) // both always marshal
	raw, _ := json.Marshal(sealedProgress{Sum: crc32.ChecksumIEEE(body), Body: body})
	_ = writeFile(filepath.Join(j.cfg.dir, progressFile), raw)
}

// restoreAttempts gives the entries at the front the attempts that were saved.
func (j *journal) restoreAttempts() {
	j.dropped = j.progress.Dropped
	i := 0
	for _, a := range j.progress.Attempts {
		for n := 0; n < a.Entries && i < len(j.entries); n++ {
			j.entries[i].attempts = a.Failed
			i++
		}
	}
}

// writeFile replaces a file as a whole, on the disk when it returns.
func writeFile(path string, raw []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
