package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

const (
	// describePatience is how long a worker may take to describe a graph: types of a large JavaScript project take long.
	describePatience = 45 * time.Second
	// maxDescribed bounds the bytes of answers that are kept; beyond it all are forgotten, which costs only time.
	maxDescribed = 64 << 20
)

// Xray says how far a drawing goes into subgraphs: -1 = all the way, 0 = not at all, else so many levels.
type Xray int

// XrayAll draws every subgraph.
const XrayAll Xray = -1

// MarshalJSON writes what workers read: true, false or a depth.
func (x Xray) MarshalJSON() ([]byte, error) {
	switch {
	case x < 0:
		return []byte("true"), nil
	case x == 0:
		return []byte("false"), nil
	}
	return fmt.Appendf(nil, "%d", int(x)), nil
}

// Schemas returns the schemas of an assistant's graph with its graph_id (reference 16): state_schema at least, others where
// they can be derived.
func (e *Engine) Schemas(ctx context.Context, assistantID string) (json.RawMessage, error) {
	a, err := e.Assistant(ctx, assistantID)
	if err != nil {
		return nil, err
	}
	raw, err := e.describe(ctx, a, map[string]any{"verb": "graph.schemas"})
	if err != nil {
		return nil, err
	}
	out := schemas(raw)
	out.set("graph_id", a.GraphID)
	return out.json(), nil
}

// Drawing returns nodes and edges of an assistant's graph (reference 2).
func (e *Engine) Drawing(ctx context.Context, assistantID string, xray Xray) (json.RawMessage, error) {
	a, err := e.Assistant(ctx, assistantID)
	if err != nil {
		return nil, err
	}
	return e.describe(ctx, a, map[string]any{"verb": "graph.draw", "xray": xray})
}

// Subgraphs returns the schemas of the subgraphs of an assistant's graph by namespace; "" = of every namespace. An unknown
// one has none.
func (e *Engine) Subgraphs(ctx context.Context, assistantID, namespace string, recurse bool) (json.RawMessage, error) {
	a, err := e.Assistant(ctx, assistantID)
	if err != nil {
		return nil, err
	}
	call := map[string]any{"verb": "graph.subgraphs", "namespace": nil, "recurse": recurse}
	if namespace != "" {
		call["namespace"] = namespace
	}
	raw, err := e.describe(ctx, a, call)
	if err != nil {
		return nil, err
	}
	out := parse(raw)
	for at, one := range out {
		out[at] = schemas(one).json()
	}
	return out.json(), nil
}

// schemas reads a worker's schemas; what it could not derive is left out.
func schemas(raw json.RawMessage) fields {
	in, out := parse(raw), fields{}
	for _, name := range []string{"state_schema", "input_schema", "output_schema", "config_schema", "context_schema"} {
		if !absent(in[name]) {
			out[name] = in[name]
		}
	}
	if out["state_schema"] == nil {
		out["state_schema"] = json.RawMessage(`{}`)
	}
	return out
}

// descriptions keeps what workers say of graphs, whose code never changes while the server lives.
type descriptions struct {
	flight singleflight.Group
	mu     sync.Mutex
	size   int
	kept   map[string]json.RawMessage
}

func (d *descriptions) get(key string) (json.RawMessage, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	raw, ok := d.kept[key]
	return raw, ok
}

func (d *descriptions) put(key string, raw json.RawMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.size += len(key) + len(raw); d.kept == nil || d.size > maxDescribed {
		d.kept, d.size = map[string]json.RawMessage{}, len(key)+len(raw)
	}
	d.kept[key] = raw
}

// describe asks a worker about an assistant's graph, once for a compiled graph and once per configuration for a factory.
// Those who ask the same at the same time share the answer.
func (e *Engine) describe(ctx context.Context, a agent.Assistant, call map[string]any) (json.RawMessage, error) {
	w, err := e.workerFor(ctx, a.GraphID)
	if err != nil {
		return nil, err
	}
	call["graph_id"] = a.GraphID
	key, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("encode a question to a worker: %w", err)
	}
	config := describeConfig(ctx, a)
	if !w.Info().Compiled[a.GraphID] {
		key = append(append(key, ' '), config...)
	}
	if raw, ok := e.described.get(string(key)); ok {
		return raw, nil
	}
	call["config"] = config
	result := e.described.flight.DoChan(string(key), func() (any, error) { return e.askDescription(w, string(key), call) })
	select {
	case r := <-result:
		raw, _ := r.Val.(json.RawMessage)
		return raw, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// askDescription outlives the client that asked first.
func (e *Engine) askDescription(w agent.Worker, key string, call map[string]any) (json.RawMessage, error) {
	if raw, ok := e.described.get(key); ok {
		return raw, nil // it was answered between the look and the flight
	}
	ctx, cancel := context.WithTimeout(e.life, describePatience)
	defer cancel()
	envelope, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("encode a question to a worker: %w", err)
	}
	raw, err := w.Call(ctx, envelope, nil)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil, slipway.Errorf(slipway.CodeUnavailable, "the worker has not described graph %q in time; try again later", call["graph_id"])
	}
	if err != nil {
		return nil, err
	}
	raw = bytes.Clone(raw) // of a frame that may be larger
	e.described.put(key, raw)
	return raw, nil
}

// describeConfig is what a factory gets to make the graph of an assistant for the user of the context.
func describeConfig(ctx context.Context, a agent.Assistant) json.RawMessage {
	out := parse(a.Config)
	configurable := parse(out["configurable"])
	configurable.set("graph_id", a.GraphID)
	configurable.set("assistant_id", a.ID)
	out["configurable"] = identified(configurable, agent.UserFrom(ctx)).json()
	out["metadata"] = json.RawMessage(`{}`)
	return out.json()
}
