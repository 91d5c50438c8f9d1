package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	memoFile = "memo.json"
	// usageHour is when a day of usage ends (control-plane reference 9).
	usageHour = 2 * time.Hour
	// usageRest is how long a snapshot rests that could not be taken.
	usageRest = time.Minute
)

// readMemo reads what is remembered; a damaged file counts as none.
func (s *Sender) readMemo() (m memo) {
	raw, err := os.ReadFile(filepath.Join(s.cfg.Dir, memoFile))
	if err != nil || json.Unmarshal(raw, &m) != nil {
		return memo{}
	}
	return m
}

func (s *Sender) saveMemo(m memo) error {
	raw, err := json.Marshal(m)
	if err == nil {
		err = writeFile(filepath.Join(s.cfg.Dir, memoFile), raw)
	}
	if err != nil {
		return fmt.Errorf("keep the state of telemetry: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memo = m
	return nil
}

// rememberOnline notes when the installation began to send.
func (s *Sender) rememberOnline() error {
	m := s.readMemo()
	if m.OnlineSince.IsZero() {
		m = memo{OnlineSince: s.cfg.Now()}
	}
	return s.saveMemo(m)
}

// forgetOnline notes that nothing is sent: what is counted from now on never will be.
func (s *Sender) forgetOnline() error {
	if _, err := os.Stat(filepath.Join(s.cfg.Dir, memoFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.saveMemo(memo{})
}

// boundary is the last end of an interval of usage at or before a time.
func (s *Sender) boundary(now time.Time) time.Time {
	shift := usageHour % s.cfg.UsageEvery
	return now.Add(-shift).Truncate(s.cfg.UsageEvery).Add(shift).UTC()
}

// snapshots queues a usage snapshot at the end of every interval: what there is at that moment. One that came due while the
// installation was down is taken at the next start.
func (s *Sender) snapshots(ctx context.Context) {
	if !s.streams.Usage || s.cfg.Usage == nil {
		return
	}
	for ctx.Err() == nil {
		end := s.boundary(s.cfg.Now())
		s.mu.Lock()
		m := s.memo
		s.mu.Unlock()
		wait := end.Add(s.cfg.UsageEvery).Sub(s.cfg.Now())
		if m.UsageTo.Before(end) {
			if err := s.snapshot(ctx, m, end); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("usage snapshot not taken", "error", err.Error())
				wait = usageRest
			}
		}
		sleep(ctx, max(wait, time.Millisecond))
	}
}

func (s *Sender) snapshot(ctx context.Context, m memo, end time.Time) error {
	measures, err := s.cfg.Usage(ctx)
	if err != nil {
		return err
	}
	from := m.UsageTo
	if from.IsZero() || end.Sub(from) > 365*24*time.Hour {
		from = end.Add(-s.cfg.UsageEvery)
	}
	payload, err := json.Marshal(map[string]any{
		"from_timestamp": stamp(from), "to_timestamp": stamp(end), "measures": measures,
	})
	if err != nil {
		return err
	}
	if err := s.billing.add([]record{{kindUsage, payload}}); err != nil {
		return err
	}
	m.UsageTo = end // after a crash before this the same snapshot is sent again, which counts once
	return s.saveMemo(m)
}

// stamp writes a time with its UTC offset (spec 4.5).
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000-07:00") }
