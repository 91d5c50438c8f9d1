package broadcast

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

const (
	// maxPiece is how many bytes of messages one text carries; in base64 and with its head it is shorter than 8000 bytes,
	// which is what a notification of PostgreSQL may have.
	maxPiece = 5700
	// maxMessage bounds one message; a sender that announces more is not understood.
	maxMessage = 64 << 20
	maxTopic   = 1024
)

// Kinds of pieces.
const (
	pieceStart  = 'S' // begins with a message
	pieceMore   = 'C' // continues the message that the one before has begun
	pieceHello  = 'H' // somebody has come, or come back: whoever hears it answers
	pieceHere   = 'A' // the answer
	pieceLeaves = 'B' // the last one of its sender
)

// piece is one text on the line.
type piece struct {
	from string
	seq  uint64
	kind byte
	data []byte
}

func (p piece) text() string {
	return p.from + " " + strconv.FormatUint(p.seq, 10) + " " + string(p.kind) + base64.StdEncoding.EncodeToString(p.data)
}

func parsePiece(text string) (piece, error) {
	from, rest, _ := strings.Cut(text, " ")
	number, rest, found := strings.Cut(rest, " ")
	seq, err := strconv.ParseUint(number, 10, 64)
	if !found || err != nil || rest == "" {
		return piece{}, fmt.Errorf("the text %.80q is no piece of a bus", text)
	}
	data, err := base64.StdEncoding.DecodeString(rest[1:])
	if err != nil {
		return piece{}, fmt.Errorf("a piece of %s cannot be read: %w", from, err)
	}
	return piece{from: from, seq: seq, kind: rest[0], data: data}, nil
}

// message is what Publish was called with.
type message struct {
	topic   string
	payload []byte
}

func (m message) size() int { return 8 + len(m.topic) + len(m.payload) }

func (m message) appendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.topic)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.payload)))
	return append(append(b, m.topic...), m.payload...)
}

// cut makes pieces of messages: small ones travel together, large ones in several.
func cut(list []message, add func(kind byte, data []byte)) {
	var together []byte
	flush := func() {
		if len(together) > 0 {
			add(pieceStart, together)
			together = nil
		}
	}
	for _, m := range list {
		if len(together)+m.size() > maxPiece {
			flush()
		}
		if m.size() <= maxPiece {
			together = m.appendTo(together)
			continue
		}
		whole, kind := m.appendTo(make([]byte, 0, m.size())), byte(pieceStart)
		for len(whole) > 0 {
			n := min(len(whole), maxPiece)
			add(kind, whole[:n])
			whole, kind = whole[n:], pieceMore
		}
	}
	flush()
}

// sender is what is known of another process on the line.
type sender struct {
	seq    uint64 // of its last piece
	buffer []byte // of a message whose end is still to come
}

// take adds a piece and returns the messages that are complete; whole is false if something before it is missing.
func (s *sender) take(p piece) (complete []message, whole bool, err error) {
	whole = s.seq == 0 || p.seq == s.seq+1
	begun := len(s.buffer) > 0
	s.seq = p.seq
	switch {
	case p.kind == pieceStart:
		s.buffer = append([]byte(nil), p.data...)
	case p.kind == pieceMore && whole && begun:
		s.buffer = append(s.buffer, p.data...)
	default:
		s.buffer = nil
		return nil, whole, nil
	}
	for {
		m, rest, ok, err := first(s.buffer)
		if err != nil || !ok {
			return complete, whole, err
		}
		complete, s.buffer = append(complete, m), rest
	}
}

// first splits off the first message, if it is there to its end.
func first(b []byte) (m message, rest []byte, ok bool, err error) {
	if len(b) < 8 {
		return m, b, false, nil
	}
	topic, payload := int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))
	if topic > maxTopic || payload > maxMessage {
		return m, nil, false, fmt.Errorf("a message of %d and %d bytes is too large", topic, payload)
	}
	end := 8 + topic + payload
	if len(b) < end {
		return m, b, false, nil
	}
	return message{topic: string(b[8 : 8+topic]), payload: b[8+topic : end : end]}, b[end:], true, nil
}
