package local

import (
	"encoding/binary"
	"net"
	"sync"
)

// peer is the line to another process; messages that come together leave together.
type peer struct {
	conn net.Conn

	mu     sync.Mutex
	ready  *sync.Cond
	unsent []byte
	closed bool
}

func newPeer(conn net.Conn) *peer {
	p := &peer{conn: conn}
	p.ready = sync.NewCond(&p.mu)
	return p
}

func (p *peer) send(topic string, payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.unsent)+len(payload) > maxUnsent {
		return // delivery is at most once
	}
	p.unsent = binary.BigEndian.AppendUint32(p.unsent, uint32(len(topic)))
	p.unsent = binary.BigEndian.AppendUint32(p.unsent, uint32(len(payload)))
	p.unsent = append(append(p.unsent, topic...), payload...)
	p.ready.Signal()
}

// write sends until the line is closed; what was queued before leaves first.
func (p *peer) write() {
	for {
		p.mu.Lock()
		for len(p.unsent) == 0 && !p.closed {
			p.ready.Wait()
		}
		batch := p.unsent
		p.unsent = nil
		p.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		if _, err := p.conn.Write(batch); err != nil {
			p.close()
			return
		}
	}
}

func (p *peer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.ready.Broadcast()
}
