package seal

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

// IssuerKeys keeps the Ed25519 keys that sign licences and tokens in a file, mode 0600; it implements beacon.Keys. Several
// processes may hold the same file: a rotation by one is seen by the others at their next look. Whoever loses the file can
// verify none of the licences it issued; a damaged one is an error, never replaced.
type IssuerKeys struct {
	path string
	now  func() time.Time

	mu    sync.Mutex
	ring  beacon.KeyRing
	state fs.FileInfo // the file the ring was read from
}

var _ beacon.Keys = (*IssuerKeys)(nil)

// storedKey is one key as the file holds it, newest first.
type storedKey struct {
	Seed      []byte    `json:"seed"`
	CreatedAt time.Time `json:"created_at"`
}

// OpenIssuerKeys reads the keys at path, or makes the file with a first key.
func OpenIssuerKeys(path string, now func() time.Time) (*IssuerKeys, error) {
	k := &IssuerKeys{path: path, now: now}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := k.change(func(ring []storedKey) ([]storedKey, error) {
			if len(ring) > 0 {
				return nil, nil // another process was first
			}
			return k.prepend(nil)
		}); err != nil {
			return nil, err
		}
	}
	_, err := k.Ring()
	return k, err
}

// Ring returns the keys, reading the file again if it was replaced.
func (k *IssuerKeys) Ring() (beacon.KeyRing, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	state, err := os.Stat(k.path)
	if err != nil {
		return nil, fmt.Errorf("issuer keys: %w; restore the file from a backup", err)
	}
	if k.state != nil && os.SameFile(k.state, state) && k.state.ModTime().Equal(state.ModTime()) {
		return k.ring, nil
	}
	stored, err := k.read()
	if err != nil {
		return nil, err
	}
	if len(stored) == 0 {
		return nil, fmt.Errorf("issuer keys %s: the file holds no key; restore it from a backup", k.path)
	}
	k.ring = nil
	for _, s := range stored {
		k.ring = append(k.ring, beacon.NewSigningKey(s.Seed, s.CreatedAt))
	}
	k.state = state
	return k.ring, nil
}

// Rotate puts a new key in front.
func (k *IssuerKeys) Rotate() (beacon.SigningKey, error) {
	if err := k.change(k.prepend); err != nil {
		return beacon.SigningKey{}, err
	}
	ring, err := k.Ring()
	if err != nil {
		return beacon.SigningKey{}, err
	}
	return ring.Current(), nil
}

func (k *IssuerKeys) prepend(ring []storedKey) ([]storedKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := rand.Read(seed); err != nil {
		return nil, fmt.Errorf("draw an issuer key: %w", err)
	}
	return append([]storedKey{{Seed: seed, CreatedAt: k.now().UTC()}}, ring...), nil
}

// change replaces the file atomically, one process at a time; a nil ring changes nothing.
func (k *IssuerKeys) change(fn func([]storedKey) ([]storedKey, error)) error {
	lock, err := os.OpenFile(k.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("issuer keys: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("issuer keys: lock %s: %w", lock.Name(), err)
	}
	ring, err := k.read()
	if err != nil {
		return err
	}
	if ring, err = fn(ring); err != nil || ring == nil {
		return err
	}
	return k.write(ring)
}

func (k *IssuerKeys) read() ([]storedKey, error) {
	text, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("issuer keys: %w", err)
	}
	var ring []storedKey
	err = json.Unmarshal(text, &ring)
	for _, s := range ring {
		if len(s.Seed) != ed25519.SeedSize {
			err = errors.New("a key has the wrong length")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("issuer keys %s: %w; restore the file from a backup", k.path, err)
	}
	return ring, nil
}

func (k *IssuerKeys) write(ring []storedKey) error {
	text, err := json.Marshal(ring)
	if err != nil {
		return fmt.Errorf("issuer keys: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(k.path), ".issuer-*") // mode 0600
	if err != nil {
		return fmt.Errorf("issuer keys: %w", err)
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(text); err != nil {
		return errors.Join(fmt.Errorf("issuer keys: %w", err), f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("issuer keys: %w", err)
	}
	if err := os.Rename(f.Name(), k.path); err != nil {
		return fmt.Errorf("issuer keys: %w", err)
	}
	return syncDir(filepath.Dir(k.path))
}
