package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/worker/wire"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

type vector struct {
	Name     string `json:"name"`
	Kind     int    `json:"kind"`
	Stream   uint32 `json:"stream"`
	Envelope string `json:"envelope"`    // the envelope's exact text
	Payload  string `json:"payload_hex"` // hex
	Frame    string `json:"frame_hex"`   // the whole frame in hex
}

func vectors() []vector {
	return []vector{
		{Name: "hello", Kind: int(wire.Hello), Envelope: `{"protocol":1,"language":"node","pid":123,"versions":{"node":"20.11.0","langgraph":null}}`},
		{Name: "load", Kind: int(wire.Load), Envelope: `{"graphs":{"agent":"./agent.py:graph"},"slots":10,"delta_max_supersteps":5000}`},
		{Name: "cancel", Kind: int(wire.Cancel), Stream: 7, Envelope: `{"action":"interrupt","reason":"enough"}`},
		{Name: "chunk with JSON payload", Kind: int(wire.Chunk), Stream: 4294967295, Envelope: `{"event":"values|weather:1"}`, Payload: hex.EncodeToString([]byte(`{"n":12345678901234567890}`))},
		{Name: "text beyond ASCII", Kind: int(wire.Log), Envelope: `{"level":"info","message":"Grüße 🚢","logger":"worker"}`},
		{Name: "done without payload", Kind: int(wire.Done), Stream: 1, Envelope: `{"status":"error","error":{"error":"ValueError","message":"no"},"retriable":false}`},
		{Name: "checkpoint put with two blobs", Kind: int(wire.Tell), Envelope: `{"op":"checkpoint.put","run":1,"thread_id":"t","checkpoint_ns":"","checkpoint_id":"c","parent_id":null,"header":{},"metadata":{},"run_id":"r","blobs":[{"channel":"a","version":"1","type":"bytes","size":3},{"channel":"b","version":"2","type":"empty","size":0}]}`, Payload: "00ff80"},
		{Name: "empty envelope object", Kind: int(wire.Abort), Stream: 2, Envelope: `{}`},
	}
}

func TestVectors(t *testing.T) {
	t.Parallel()
	const file = "testdata/vectors.json"
	if *update {
		writeVectors(t, file)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != len(vectors()) {
		t.Fatalf("got %d vectors, want %d", len(all), len(vectors()))
	}
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			if got := v.encode(t); got != v.Frame {
				t.Errorf("encode: got %s, want %s", got, v.Frame)
			}
			b, err := hex.DecodeString(v.Frame)
			if err != nil {
				t.Fatal(err)
			}
			f, err := wire.Read(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if int(f.Kind) != v.Kind || f.Stream != v.Stream || string(f.Envelope) != v.Envelope || hex.EncodeToString(f.Payload) != v.Payload {
				t.Errorf("decode: got %+v, want %+v", f, v)
			}
		})
	}
}

func (v vector) encode(t *testing.T) string {
	t.Helper()
	payload, err := hex.DecodeString(v.Payload)
	if err != nil {
		t.Fatal(err)
	}
	f := wire.Frame{Kind: wire.Kind(v.Kind), Stream: v.Stream, Envelope: json.RawMessage(v.Envelope), Payload: payload}
	b, err := f.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(b)
}

func writeVectors(t *testing.T, file string) {
	t.Helper()
	all := vectors()
	for i := range all {
		all[i].Frame = all[i].encode(t)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(all); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReadRefusesWhatIsNoFrame(t *testing.T) {
	t.Parallel()
	frame := func(length, n uint32, body int) []byte {
		b := binary.BigEndian.AppendUint32(nil, length)
		b = append(b, 1, 0, 0, 0, 0)
		b = binary.BigEndian.AppendUint32(b, n)
		return append(b, make([]byte, body)...)
	}
	for name, b := range map[string][]byte{
		"too large":               frame(wire.MaxFrame+1, 0, 0),
		"too small":               frame(3, 0, 0),
		"envelope beyond the end": frame(11, 3, 2),
		"announced but not there": frame(wire.MaxFrame, 10, 100),
		"cut in the header":       frame(9, 0, 0)[:6],
	} {
		if _, err := wire.Read(bytes.NewReader(b)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
	if _, err := wire.Read(strings.NewReader("")); !errors.Is(err, io.EOF) {
		t.Errorf("end between frames: got %v, want EOF", err)
	}
}
