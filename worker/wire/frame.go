package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kind says what a frame means.
type Kind uint8

// The kinds of frames.
const (
	Hello  Kind = 1
	Load   Kind = 2
	Loaded Kind = 3
	Run    Kind = 10
	Cancel Kind = 11
	Credit Kind = 12
	Chunk  Kind = 13
	Done   Kind = 14
	Call   Kind = 20
	Return Kind = 21
	Abort  Kind = 22
	Ask    Kind = 30
	Answer Kind = 31
	Tell   Kind = 32
	Log    Kind = 40

	Request  Kind = 50
	Response Kind = 51
	Body     Kind = 52
	Room     Kind = 53
	Hangup   Kind = 54
)

// MaxFrame is the largest length a frame may announce.
const MaxFrame = 64 << 20

const header = 4 + 1 + 4 + 4

// Frame is one frame of the worker protocol.
type Frame struct {
	Kind     Kind
	Stream   uint32
	Envelope json.RawMessage
	Payload  []byte
}

// Append appends the frame's bytes to b. A frame over MaxFrame is an error.
func (f Frame) Append(b []byte) ([]byte, error) {
	length := header - 4 + len(f.Envelope) + len(f.Payload)
	if length > MaxFrame {
		return b, fmt.Errorf("frame of %d bytes is larger than the limit of %d", length, MaxFrame)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(length))
	b = append(b, byte(f.Kind))
	b = binary.BigEndian.AppendUint32(b, f.Stream)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.Envelope)))
	b = append(b, f.Envelope...)
	return append(b, f.Payload...), nil
}

// Read reads one frame; its bytes are the caller's to keep. io.EOF means that the stream ended between frames.
func Read(r io.Reader) (Frame, error) {
	var h [header]byte
	if _, err := io.ReadFull(r, h[:4]); err != nil {
		return Frame{}, err
	}
	length := binary.BigEndian.Uint32(h[:4])
	if length > MaxFrame || length < header-4 {
		return Frame{}, fmt.Errorf("frame announces %d bytes, allowed are %d to %d", length, header-4, MaxFrame)
	}
	if _, err := io.ReadFull(r, h[4:]); err != nil {
		return Frame{}, unexpected(err)
	}
	n := binary.BigEndian.Uint32(h[9:])
	if n > length-(header-4) {
		return Frame{}, fmt.Errorf("envelope of %d bytes does not fit into a frame of %d", n, length)
	}
	body, err := readBody(r, int(length)-(header-4))
	if err != nil {
		return Frame{}, err
	}
	return Frame{
		Kind: Kind(h[4]), Stream: binary.BigEndian.Uint32(h[5:]), Envelope: body[:n:n], Payload: body[n:],
	}, nil
}

// readBody grows with what arrives, so that a false length does not cost memory.
func readBody(r io.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	body := make([]byte, 0, min(n, step))
	for len(body) < n {
		from := len(body)
		want := min(n-from, step)
		body = append(body, make([]byte, want)...)
		if _, err := io.ReadFull(r, body[from:]); err != nil {
			return nil, unexpected(err)
		}
	}
	return body, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
