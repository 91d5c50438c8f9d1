package engine

import (
	"context"
	"crypto/sha1" //nolint:gosec // uuid5 is defined with it
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// graphNamespace is 6ba7b821-9dad-11d1-80b4-00c04fd430c8 (agent-server reference 1).
const graphNamespace = "\x6b\xa7\xb8\x21\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8"

// AssistantID returns the id of a graph's system assistant: uuid5 of the graph id (agent-server reference 1).
func AssistantID(graphID string) string {
	sum := sha1.Sum([]byte(graphNamespace + graphID)) //nolint:gosec // uuid5
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x50
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func (e *Engine) syncAssistants(ctx context.Context) error {
	now := e.clock()
	e.system = make(map[string]agent.Assistant, len(e.cfg.Graphs))
	list := make([]agent.Assistant, 0, len(e.cfg.Graphs))
	for id, g := range e.cfg.Graphs {
		a := agent.Assistant{
			ID: AssistantID(id), GraphID: id, Name: id, Version: 1, System: true, CreatedAt: now, UpdatedAt: now,
			Config: object(g.Config), Context: object(g.Context), Metadata: json.RawMessage(`{"created_by":"system"}`),
		}
		if g.Description != "" {
			a.Description = &g.Description
		}
		list = append(list, a)
	}
	if err := e.store.SyncAssistants(ctx, list, now); err != nil {
		return fmt.Errorf("sync system assistants: %w", err)
	}
	for _, a := range list {
		stored, err := e.store.Assistant(ctx, a.ID)
		if err != nil {
			return fmt.Errorf("read system assistant %s: %w", a.GraphID, err)
		}
		e.system[stored.ID] = stored
	}
	return nil
}

// Assistant returns an assistant by uuid or graph id; an unknown one is CodeNotFound.
func (e *Engine) Assistant(ctx context.Context, id string) (agent.Assistant, error) {
	if _, isGraph := e.cfg.Graphs[id]; isGraph {
		id = AssistantID(id)
	}
	if a, ok := e.system[id]; ok {
		return a, nil
	}
	a, err := e.store.Assistant(ctx, id)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return a, slipway.Errorf(slipway.CodeNotFound, "Assistant not found")
	}
	return a, err
}

// Assistants lists assistants (reference 2).
func (e *Engine) Assistants(ctx context.Context, q agent.AssistantQuery) ([]agent.Assistant, error) {
	return e.store.Assistants(ctx, q)
}

// CountAssistants counts assistants.
func (e *Engine) CountAssistants(ctx context.Context, q agent.AssistantQuery) (int, error) {
	return e.store.CountAssistants(ctx, q)
}

// StoreBatch runs operations of the key-value store in order (reference 7, 15).
func (e *Engine) StoreBatch(ctx context.Context, ops []agent.StoreOp) ([]agent.StoreResult, error) {
	return e.store.StoreBatch(ctx, ops, e.clock())
}
