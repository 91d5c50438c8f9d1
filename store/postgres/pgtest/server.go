package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// startLimit is how long a cluster may take until it answers, on a busy machine.
const startLimit = time.Minute

// server runs the programs of PostgreSQL over one data directory.
type server struct {
	bin, dir, data string
	owner          owner
	process        *os.Process
	ended          chan error
}

// binaries finds the directory of PostgreSQL's programs; the Debian package is installed where there is none.
func binaries() (string, error) {
	if dir := installed(); dir != "" {
		return dir, nil
	}
	install := exec.Command("apt-get", "install", "-y", "--no-install-recommends", "postgresql")
	install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("PostgreSQL is absent and cannot be installed: %w: %s; install the Debian package postgresql", err, out)
	}
	if dir := installed(); dir != "" {
		return dir, nil
	}
	return "", errors.New("the package postgresql is installed but has no programs below /usr/lib/postgresql")
}

func installed() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well formed
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

// owner is who runs the cluster: PostgreSQL refuses to be root.
type owner struct {
	uid, gid int
	other    bool // not who we are
}

func unprivileged() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errU := strconv.Atoi(u.Uid)
		gid, errG := strconv.Atoi(u.Gid)
		return owner{uid: uid, gid: gid, other: true}, errors.Join(errU, errG)
	}
	return owner{}, errors.New("there is no unprivileged user to run PostgreSQL; add the user postgres")
}

// give makes the directory the owner's.
func (o owner) give(dir string) error {
	if !o.other {
		return nil
	}
	return os.Chown(dir, o.uid, o.gid)
}

func (o owner) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT, Setpgid: true} // it goes with us, however we go
	if o.other {
		a.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}
	}
	return a
}

// access lets everybody in who comes by the socket, but the locked role with its password only.
const access = "local all " + Locked + " scram-sha-256\nlocal all all trust\n"

func (s *server) initialise() error {
	cmd := exec.Command(filepath.Join(s.bin, "initdb"), "-D", s.data, "-U", User, "-A", "trust", "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync", "--no-instructions")
	cmd.Dir, cmd.SysProcAttr = s.dir, s.owner.attributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return os.WriteFile(filepath.Join(s.data, "pg_hba.conf"), []byte(access), 0o600)
}

// Restart ends the server, if it runs, and starts it.
func (s *server) Restart() error {
	if err := s.Halt(); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data, "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=on",
		"-c", "synchronous_commit=on", "-c", "max_connections=400", "-c", "shared_buffers=64MB", "-c", "logging_collector=off")
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.dir, log, log, s.owner.attributes()
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the signal of our death is that of this thread's
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	s.process, s.ended = cmd.Process, ended
	return s.await()
}

// await waits until the server answers.
func (s *server) await() error {
	for deadline := time.Now().Add(startLimit); ; {
		c, err := pgx.Connect(context.Background(), "host="+s.dir+" user="+User+" dbname=postgres")
		if err == nil {
			return c.Close(context.Background())
		}
		select {
		case <-s.ended:
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			s.process = nil
			return fmt.Errorf("postgres ended: %s", log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("postgres does not answer: %w", err)
		}
	}
}

// Halt ends the server at once, cutting its connections; the data stay.
func (s *server) Halt() error {
	if s.process == nil {
		return nil
	}
	if err := s.process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.ended
	s.process = nil
	return nil
}
