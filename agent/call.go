package agent

import (
	"context"
	"encoding/json"
	"fmt"
)

// The calls of worker/wire/DESIGN.md as functions over any Worker. Their errors are those of Worker.Call; a worker that was
// not given the part in question refuses with CodeInvalid.

// Authentication is a request whose sender is not known yet.
type Authentication struct {
	Method     string            `json:"method"`
	URL        string            `json:"url"`
	Path       string            `json:"path"`
	Query      string            `json:"query"`
	Headers    [][2]string       `json:"headers"`
	PathParams map[string]string `json:"path_params"`
	Body       []byte            `json:"-"`
}

// Authenticate asks the application who sent a request. The answer is a JSON object with identity, display_name,
// is_authenticated, permissions and whatever else the handler gave. An unknown sender is an HTTPRefusal.
func Authenticate(ctx context.Context, w Worker, a Authentication) (json.RawMessage, error) {
	type members Authentication
	return ask[json.RawMessage](ctx, w, struct {
		Verb string `json:"verb"`
		members
	}{"auth.authenticate", members(a)}, a.Body)
}

// Authorization is something a user wants to do (reference 12).
type Authorization struct {
	User     json.RawMessage `json:"user"` // as Authenticate returned it
	Resource string          `json:"resource"`
	Action   string          `json:"action"`
	Value    json.RawMessage `json:"value"`
}

// Verdict is the application's word on an Authorization.
type Verdict struct {
	Allow  bool            `json:"allow"`
	Filter json.RawMessage `json:"filter"` // null = none
	Value  json.RawMessage `json:"value"`  // as the handler left it
}

// Authorize asks the application whether a user may do something.
func Authorize(ctx context.Context, w Worker, a Authorization) (Verdict, error) {
	return ask[Verdict](ctx, w, struct {
		Verb string `json:"verb"`
		Authorization
	}{"auth.authorize", a}, nil)
}

// Embed returns one vector per text.
func Embed(ctx context.Context, w Worker, texts []string) ([][]float32, error) {
	vectors, err := ask[[][]float32](ctx, w, map[string]any{"verb": "embed.texts", "texts": texts}, nil)
	if err == nil && len(vectors) != len(texts) {
		err = fmt.Errorf("the embedding function returned %d vectors for %d texts", len(vectors), len(texts))
	}
	return vectors, err
}

// Sealing is a value to be encrypted or decrypted by the application.
type Sealing struct {
	Kind    string          `json:"kind"`  // "json" or "blob"
	Model   string          `json:"model"` // such as "thread"
	Field   string          `json:"field"` // such as "metadata"
	Context json.RawMessage `json:"context"`
	Value   json.RawMessage `json:"value"` // JSON, or a string of base64 for a blob
}

// Encrypt returns the encrypted value, in the form of the one given.
func Encrypt(ctx context.Context, w Worker, s Sealing) (json.RawMessage, error) {
	return crypt(ctx, w, "crypt.encrypt", s)
}

// Decrypt returns what Encrypt was given.
func Decrypt(ctx context.Context, w Worker, s Sealing) (json.RawMessage, error) {
	return crypt(ctx, w, "crypt.decrypt", s)
}

func crypt(ctx context.Context, w Worker, verb string, s Sealing) (json.RawMessage, error) {
	return ask[json.RawMessage](ctx, w, struct {
		Verb string `json:"verb"`
		Sealing
	}{verb, s}, nil)
}

// SaverDeleteThread deletes a thread's checkpoints in the application's checkpointer.
func SaverDeleteThread(ctx context.Context, w Worker, threadID string) error {
	return tell(ctx, w, map[string]any{"verb": "checkpoint.delete_thread", "thread_id": threadID})
}

// SaverDeleteRuns deletes the checkpoints that runs wrote; CodeInvalid if the checkpointer cannot.
func SaverDeleteRuns(ctx context.Context, w Worker, runIDs []string) error {
	return tell(ctx, w, map[string]any{"verb": "checkpoint.delete_for_runs", "run_ids": runIDs})
}

// SaverCopyThread copies a thread's checkpoints to another thread.
func SaverCopyThread(ctx context.Context, w Worker, source, target string) error {
	return tell(ctx, w, map[string]any{"verb": "checkpoint.copy_thread", "source": source, "target": target})
}

// SaverPrune keeps only the latest checkpoint of threads, or none; CodeInvalid if the checkpointer cannot.
func SaverPrune(ctx context.Context, w Worker, threadIDs []string, keepLatest bool) error {
	strategy := "delete"
	if keepLatest {
		strategy = "keep_latest"
	}
	return tell(ctx, w, map[string]any{"verb": "checkpoint.prune", "thread_ids": threadIDs, "strategy": strategy})
}

// CustomStoreBatch executes operations in the application's store; results are in the order of ops.
func CustomStoreBatch(ctx context.Context, w Worker, ops []StoreOp) ([]StoreResult, error) {
	results, err := ask[[]StoreResult](ctx, w, map[string]any{"verb": "store.batch", "ops": ops}, nil)
	if err == nil && len(results) != len(ops) {
		err = fmt.Errorf("the application's store returned %d results for %d operations", len(results), len(ops))
	}
	return results, err
}

func tell(ctx context.Context, w Worker, call any) error {
	_, err := ask[json.RawMessage](ctx, w, call, nil)
	return err
}

// ask makes a call and reads its answer.
func ask[T any](ctx context.Context, w Worker, call any, payload []byte) (out T, err error) {
	envelope, err := json.Marshal(call)
	if err != nil {
		return out, fmt.Errorf("encode a question to a worker: %w", err)
	}
	raw, err := w.Call(ctx, envelope, payload)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("read a worker's answer: %w", err)
	}
	return out, nil
}
