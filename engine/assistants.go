package engine

import (
	"context"
	"crypto/sha1" //nolint:gosec // uuid5 is defined with it
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

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
	list := make([]agent.Assistant, 0, len(e.cfg.Graphs))
	for id, g := range e.cfg.Graphs {
		a := agent.Assistant{
			ID: AssistantID(id), GraphID: id, Name: id, System: true,
			Config: object(g.Config), Context: object(g.Context), Metadata: json.RawMessage(`{"created_by":"system"}`),
		}
		if g.Description != "" {
			a.Description = &g.Description
		}
		list = append(list, a)
	}
	if err := e.store.SyncAssistants(ctx, list, e.clock()); err != nil {
		return fmt.Errorf("sync system assistants: %w", err)
	}
	return nil
}

// assistantChanged makes every instance forget what it knows of a system assistant.
func (e *Engine) assistantChanged(a agent.Assistant) {
	if a.System {
		e.system.drop(a.ID)
		e.say(topicAssistant, note{AssistantID: a.ID})
	}
}

// Assistant returns an assistant by uuid or graph id; an unknown one is CodeNotFound.
func (e *Engine) Assistant(ctx context.Context, id string) (agent.Assistant, error) {
	id = e.assistantID(id)
	a, ok, changes := e.system.get(id)
	if ok {
		return a, nil
	}
	a, err := e.store.Assistant(ctx, id)
	if err == nil {
		e.system.put(a, changes)
	}
	return a, err
}

// assistantID returns the uuid that an id, or the name of a graph, stands for.
func (e *Engine) assistantID(id string) string {
	if _, isGraph := e.cfg.Graphs[id]; isGraph {
		return AssistantID(id)
	}
	return id
}

// Assistants lists assistants (reference 2).
func (e *Engine) Assistants(ctx context.Context, q agent.AssistantQuery) ([]agent.Assistant, error) {
	return e.store.Assistants(ctx, q)
}

// CountAssistants counts assistants.
func (e *Engine) CountAssistants(ctx context.Context, q agent.AssistantQuery) (int, error) {
	return e.store.CountAssistants(ctx, q)
}

// CreateAssistant makes an assistant; an empty ID gets a new one. An unknown graph is CodeNotFound; an id that exists is
// CodeConflict, or with reuse the stored one (reference 2).
func (e *Engine) CreateAssistant(ctx context.Context, a agent.Assistant, reuse bool) (agent.Assistant, error) {
	if err := e.knownGraph(a.GraphID); err != nil {
		return a, err
	}
	var err error
	if a.Config, a.Context, err = shareContext(a.Config, a.Context); err != nil {
		return a, err
	}
	a.ID = or(a.ID, e.ids())
	a.Metadata = withoutReserved(object(a.Metadata))
	a.CreatedAt = e.clock()
	a.UpdatedAt = a.CreatedAt
	return e.store.CreateAssistant(ctx, a, reuse)
}

// PatchAssistant makes a new version of an assistant and makes it the current one.
func (e *Engine) PatchAssistant(ctx context.Context, id string, p agent.AssistantPatch) (agent.Assistant, error) {
	if p.GraphID != nil {
		if err := e.knownGraph(*p.GraphID); err != nil {
			return agent.Assistant{}, err
		}
	}
	config, runContext, err := shareContext(p.Config, p.Context)
	if err != nil {
		return agent.Assistant{}, err
	}
	if p.Config != nil || string(config) != "{}" {
		p.Config = config
	}
	if p.Context != nil || string(runContext) != "{}" {
		p.Context = runContext
	}
	p.Metadata = withoutReserved(object(p.Metadata))
	a, err := e.store.PatchAssistant(ctx, e.assistantID(id), p, e.clock())
	if err == nil {
		e.assistantChanged(a)
	}
	return a, err
}

// AssistantVersions lists the versions of an assistant, newest first.
func (e *Engine) AssistantVersions(ctx context.Context, q agent.VersionQuery) ([]agent.Assistant, error) {
	q.AssistantID = e.assistantID(q.AssistantID)
	return e.store.AssistantVersions(ctx, q)
}

// SetLatestVersion makes an earlier version of an assistant the current one.
func (e *Engine) SetLatestVersion(ctx context.Context, id string, version int) (agent.Assistant, error) {
	a, err := e.store.SetLatestVersion(ctx, e.assistantID(id), version, e.clock())
	if err == nil {
		e.assistantChanged(a)
	}
	return a, err
}

// DeleteAssistant removes an assistant with its versions, cancels its runs that are in flight and, with threads, deletes the
// threads whose metadata.assistant_id names it. The assistants that stand for the graphs themselves cannot be deleted.
func (e *Engine) DeleteAssistant(ctx context.Context, id string, threads bool) error {
	a, err := e.Assistant(ctx, id)
	if err != nil {
		return err
	}
	if a.System {
		return slipway.Errorf(slipway.CodeInvalid, "assistant %s stands for the graph %q itself; take the graph out of the configuration instead", a.ID, a.GraphID)
	}
	if err := e.store.DeleteAssistant(ctx, a.ID); err != nil {
		return err
	}
	err = e.CancelMany(ctx, CancelSelection{AssistantID: a.ID}, agent.CancelInterrupt, "assistant deleted")
	if err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
		return err
	}
	if threads {
		return e.deleteThreadsOf(ctx, a.ID)
	}
	return nil
}

func (e *Engine) deleteThreadsOf(ctx context.Context, assistantID string) error {
	q := agent.ThreadQuery{Metadata: fields{"assistant_id": quote(assistantID)}.json(), Limit: 100}
	for {
		found, err := e.store.Threads(ctx, q)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, t := range found {
			if err := e.DeleteThread(ctx, t.ID); err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
				return err
			}
		}
	}
}

func (e *Engine) knownGraph(id string) error {
	if _, ok := e.cfg.Graphs[id]; !ok {
		return slipway.Errorf(slipway.CodeNotFound, "Graph %q not found", id)
	}
	return nil
}

// shareContext gives config.configurable and context the same content when only one of them has any; both with different
// content is CodeBadRequest (reference 2).
func shareContext(config, runContext json.RawMessage) (json.RawMessage, json.RawMessage, error) {
	c, configurable, over := parse(config), parse(parse(config)["configurable"]), parse(runContext)
	switch {
	case len(configurable) > 0 && len(over) > 0 && !sameJSON(configurable.json(), over.json()):
		return nil, nil, slipway.Errorf(slipway.CodeBadRequest, "Cannot specify both configurable and context.")
	case len(over) > 0 && len(configurable) == 0:
		c["configurable"] = over.json()
	case len(configurable) > 0 && len(over) == 0:
		over = configurable
	}
	return c.json(), over.json(), nil
}

// sameJSON compares documents, not their texts.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}
