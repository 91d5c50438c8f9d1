// Package local is an agent.Bus over Unix sockets in a directory: all processes of one machine that use the directory hear
// each other. A bus without peers costs no system call per message.
package local

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/bus/topics"
)

// maxMessage bounds one message; a peer that announces more is dropped.
const maxMessage = 64 << 20

// maxUnsent bounds what waits for a peer that does not read; beyond it messages to it are dropped.
const maxUnsent = 16 << 20

const suffix = ".sock"

// Bus is one process's place on the bus.
type Bus struct {
	name     string
	root     *os.File // the directory, so that socket paths stay short however deep it lies
	listener net.Listener
	log      *slog.Logger
	work     sync.WaitGroup

	hub topics.Hub

	mu     sync.Mutex
	peers  map[string]*peer // connections this bus sends on
	heard  map[net.Conn]struct{}
	closed bool
}

// Open joins the bus in dir, which is made if needed. name is unique per process.
func Open(dir, name string, log *slog.Logger) (*Bus, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the bus directory: %w", err)
	}
	root, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the bus directory: %w", err)
	}
	b := &Bus{name: name, root: root, log: log, peers: map[string]*peer{}, heard: map[net.Conn]struct{}{}}
	if b.listener, err = net.Listen("unix", b.path(name)); err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("listen on the bus: %w", err)
	}
	b.work.Go(b.accept)
	if err := b.meet(); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// path names a socket in the directory by its open descriptor where that is possible: Unix socket paths are limited to
// about a hundred bytes.
func (b *Bus) path(name string) string {
	short := fmt.Sprintf("/proc/self/fd/%d", b.root.Fd())
	if _, err := os.Stat(short); err == nil {
		return short + "/" + name + suffix
	}
	return filepath.Join(b.root.Name(), name+suffix)
}

// meet connects to everybody who is there and removes the sockets of the dead.
func (b *Bus) meet() error {
	entries, err := os.ReadDir(b.root.Name())
	if err != nil {
		return fmt.Errorf("read the bus directory: %w", err)
	}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), suffix)
		if !ok || name == b.name {
			continue
		}
		if err := b.connect(name); err != nil && old(entry) {
			_ = os.Remove(filepath.Join(b.root.Name(), entry.Name())) // nobody listens any more
		}
	}
	return nil
}

// old spares the socket of a process that has bound it and does not listen yet.
func old(entry os.DirEntry) bool {
	info, err := entry.Info()
	return err == nil && time.Since(info.ModTime()) > 5*time.Second
}

// connect opens this bus's line to a peer and introduces itself, so that the peer opens one back.
func (b *Bus) connect(name string) error {
	b.mu.Lock()
	_, known := b.peers[name]
	closed := b.closed
	b.mu.Unlock()
	if known || closed {
		return nil
	}
	conn, err := net.Dial("unix", b.path(name))
	if err != nil {
		return err
	}
	p := newPeer(conn)
	b.mu.Lock()
	if _, known := b.peers[name]; known || b.closed {
		b.mu.Unlock()
		return conn.Close()
	}
	b.peers[name] = p
	b.mu.Unlock()
	p.send("", []byte(b.name))
	b.work.Go(func() {
		p.write()
		b.forget(name, p)
	})
	b.work.Go(func() { // the peer never writes here; a read ends when it goes
		_, _ = io.Copy(io.Discard, conn)
		p.close()
	})
	return nil
}

func (b *Bus) forget(name string, p *peer) {
	b.mu.Lock()
	if b.peers[name] == p {
		delete(b.peers, name)
	}
	b.mu.Unlock()
	_ = p.conn.Close()
}

func (b *Bus) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		if b.closed {
			b.mu.Unlock()
			_ = conn.Close()
			return
		}
		b.heard[conn] = struct{}{}
		b.mu.Unlock()
		b.work.Go(func() { b.hear(conn) })
	}
}

// hear delivers what a peer publishes.
func (b *Bus) hear(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		b.mu.Lock()
		delete(b.heard, conn)
		b.mu.Unlock()
	}()
	in := bufio.NewReader(conn)
	for {
		topic, payload, err := read(in)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				b.log.Debug("peer on the bus went away", "error", err)
			}
			return
		}
		if topic == "" {
			if err := b.connect(string(payload)); err != nil {
				return
			}
			continue
		}
		b.hub.Deliver(topic, payload)
	}
}

// Publish sends a message to every subscriber of the topic in every process on the bus. It never blocks.
func (b *Bus) Publish(topic string, payload []byte) {
	b.hub.Deliver(topic, payload)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.peers {
		p.send(topic, payload)
	}
}

// Subscribe calls fn for every message of the topic, one at a time and in order, until cancel is called. fn may publish,
// subscribe and cancel. A message that is being handled when cancel is called may still be running when it returns.
func (b *Bus) Subscribe(topic string, fn func(payload []byte)) (cancel func()) {
	return b.hub.Subscribe(topic, fn)
}

// Close leaves the bus.
func (b *Bus) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	for _, p := range b.peers {
		p.close()
	}
	for conn := range b.heard {
		_ = conn.Close()
	}
	b.mu.Unlock()
	err := b.listener.Close() // removes the socket
	b.work.Wait()
	return errors.Join(err, b.root.Close())
}

func read(in *bufio.Reader) (topic string, payload []byte, err error) {
	var h [8]byte
	if _, err := io.ReadFull(in, h[:]); err != nil {
		return "", nil, err
	}
	nTopic, nPayload := binary.BigEndian.Uint32(h[:4]), binary.BigEndian.Uint32(h[4:])
	if nTopic > 1024 || nPayload > maxMessage {
		return "", nil, fmt.Errorf("message of %d and %d bytes is too large", nTopic, nPayload)
	}
	body := make([]byte, nTopic+nPayload)
	if _, err := io.ReadFull(in, body); err != nil {
		return "", nil, err
	}
	return string(body[:nTopic]), body[nTopic:], nil
}
