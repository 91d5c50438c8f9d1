// Package agentapi is the HTTP face of the agent server (agent-server reference): it decodes requests, calls the engine
// and encodes what it answers. It keeps no state and knows no rule of runs or threads.
package agentapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

// Engine is what the API asks of the engine; Over makes one of an *engine.Engine. The methods are documented there.
type Engine interface {
	Authenticate(ctx context.Context, s engine.Sender) (*agent.User, error)
	Health(ctx context.Context) engine.Health
	Info() engine.Info
	Metrics(ctx context.Context) (engine.Metrics, error)

	Assistant(ctx context.Context, id string) (agent.Assistant, error)
	Assistants(ctx context.Context, q agent.AssistantQuery) ([]agent.Assistant, error)
	CountAssistants(ctx context.Context, q agent.AssistantQuery) (int, error)
	CreateAssistant(ctx context.Context, a agent.Assistant, reuse bool) (agent.Assistant, error)
	PatchAssistant(ctx context.Context, id string, p agent.AssistantPatch) (agent.Assistant, error)
	AssistantVersions(ctx context.Context, q agent.VersionQuery) ([]agent.Assistant, error)
	SetLatestVersion(ctx context.Context, id string, version int) (agent.Assistant, error)
	DeleteAssistant(ctx context.Context, id string, threads bool) error
	Schemas(ctx context.Context, assistantID string) (json.RawMessage, error)
	Drawing(ctx context.Context, assistantID string, xray engine.Xray) (json.RawMessage, error)
	Subgraphs(ctx context.Context, assistantID, namespace string, recurse bool) (json.RawMessage, error)
	App(ctx context.Context) (*agent.PartInfo, error)
	AppExchange(ctx context.Context, r agent.HTTPRequest) (agent.Exchange, error)

	CreateThread(ctx context.Context, t agent.Thread, reuse bool) (agent.Thread, error)
	Thread(ctx context.Context, id string) (agent.Thread, error)
	Threads(ctx context.Context, q agent.ThreadQuery) ([]agent.Thread, error)
	CountThreads(ctx context.Context, q agent.ThreadQuery) (int, error)
	CreateThreadWith(ctx context.Context, t agent.Thread, reuse bool, steps [][]engine.NodeUpdate) (agent.Thread, error)
	PatchThread(ctx context.Context, id string, metadata json.RawMessage, ttl *agent.TTL) (agent.Thread, error)
	Prune(ctx context.Context, ids []string, keepLatest bool) (int, error)
	Storage(ctx context.Context, id string) (agent.Storage, error)
	DeleteThread(ctx context.Context, id string) error
	CopyThread(ctx context.Context, id string) (agent.Thread, error)

	State(ctx context.Context, q engine.StateRequest) (json.RawMessage, error)
	History(ctx context.Context, q engine.HistoryRequest) (json.RawMessage, error)
	PatchState(ctx context.Context, threadID string, metadata json.RawMessage) (json.RawMessage, error)
	UpdateState(ctx context.Context, u engine.StateUpdate) (json.RawMessage, error)

	CreateRun(ctx context.Context, r engine.RunRequest) (agent.Run, error)
	CreateRuns(ctx context.Context, list []engine.RunRequest) ([]agent.Run, error)
	StreamRun(ctx context.Context, r engine.RunRequest) (agent.Run, Stream, error)
	WaitRun(ctx context.Context, r engine.RunRequest) (agent.Run, Waiter, error)
	JoinStream(ctx context.Context, threadID, runID string, from engine.From) (Stream, error)
	FollowThread(ctx context.Context, threadID, lastEventID string) (Stream, error)
	Wait(ctx context.Context, threadID, runID string) (engine.Result, error)
	Run(ctx context.Context, threadID, runID string) (agent.Run, error)
	Runs(ctx context.Context, q agent.RunQuery) ([]agent.Run, error)
	DeleteRun(ctx context.Context, threadID, runID string) error
	Cancel(ctx context.Context, threadID, runID string, action agent.CancelAction, reason string, wait bool) error
	MayCancel(ctx context.Context, threadID, runID string, action agent.CancelAction) error
	Disconnected(ctx context.Context, threadID, runID, reason string) error
	CancelMany(ctx context.Context, s engine.CancelSelection, action agent.CancelAction, reason string) error

	CreateCron(ctx context.Context, c agent.Cron, run engine.RunRequest) (agent.Cron, error)
	Cron(ctx context.Context, id string) (agent.Cron, error)
	Crons(ctx context.Context, q agent.CronQuery) ([]agent.Cron, error)
	CountCrons(ctx context.Context, q agent.CronQuery) (int, error)
	ChangeCron(ctx context.Context, id string, change func(agent.Cron) (agent.Cron, engine.RunRequest, error)) (agent.Cron, error)
	DeleteCron(ctx context.Context, id string) error

	StoreBatch(ctx context.Context, ops []agent.StoreOp) ([]agent.StoreResult, error)
}

// Stream is the stream of a run or of a thread; Next returns io.EOF after the last frame.
type Stream interface {
	Next(ctx context.Context) (agent.Frame, error)
	Close()
}

// Waiter waits for the end of a run; Result or Close must be called.
type Waiter interface {
	Result(ctx context.Context) (engine.Result, error)
	Close()
}

// Config holds the settings of the API; zero values take the defaults.
type Config struct {
	MaxBody      int64    // HTTP_MAX_REQUEST_BODY_BYTES (300 MB)
	AllowOrigins []string // http.cors.allow_origins, CORS_ALLOW_ORIGINS ("*")
	CORS         CORS
	FixedCORS    bool          // the origins were configured: the application's own middleware does not decide
	MountPrefix  string        // MOUNT_PREFIX: "/x", or "" for none
	Heartbeat    time.Duration // of streams and waits (5 s, reference 10.1)
	Version      string        // of slipway
	Security     Security      // auth.openapi of the graph configuration
	Metrics      MetricsConfig
	Tracing      bool // user code traces to LangSmith
	App          AppConfig
	Disable      []string // groups of routes that are not there: assistants, threads, runs, store, meta, ui
	UI           UI
	// ConfigurableHeaders are the request headers that runs get as configurable, LoggingHeaders those that stand in the log.
	ConfigurableHeaders, LoggingHeaders HeaderRule

	IDs slipway.IDs // for x-request-id
	Log *slog.Logger
}

// API is the handler.
type API struct {
	engine Engine
	cfg    Config
	mux    *http.ServeMux
	front  http.Handler

	meter    *meter
	patterns []string // of the routes
	document func() []byte
	page     func() []byte
}

// New makes the handler.
func New(e Engine, cfg Config) *API {
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 300 << 20
	}
	if len(cfg.AllowOrigins) == 0 && cfg.CORS.OriginPattern == nil {
		cfg.AllowOrigins = []string{"*"}
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 5 * time.Second
	}
	a := &API{engine: e, cfg: cfg, mux: http.NewServeMux()}
	a.meter = newMeter(e, cfg.Metrics)
	a.routes()
	a.document = sync.OnceValue(a.describe)
	a.page = sync.OnceValue(func() []byte { return docsPage(a.document()) })
	a.front = a.below(cfg.MountPrefix)
	return a
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.identify(w, r)
	defer a.recoverPanic(w, r)
	if a.cfg.MountPrefix != "" && r.URL.Path == "/ok" { // whoever looks after the process knows no prefix
		a.builtIn(w, r)
		return
	}
	a.front.ServeHTTP(w, r)
}

// below serves what lies below a prefix of whole path segments; all else is not there.
func (a *API) below(prefix string) http.Handler {
	inside := http.StripPrefix(prefix, http.HandlerFunc(a.outer))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, prefix); ok && strings.HasPrefix(rest, "/") {
			inside.ServeHTTP(w, r)
		} else if !a.cors(w, r) {
			writeDetail(w, http.StatusNotFound, "Not Found")
		}
	})
}

// Routes lists the patterns of the router, for those who hold every call to account.
func (a *API) Routes() []string { return slices.Clone(a.patterns) }

// handler is an endpoint: it answers, or returns the error to answer with.
type handler func(w http.ResponseWriter, r *http.Request) error

func (a *API) handle(pattern string, h handler) {
	if slices.Contains(a.cfg.Disable, groupOf(pattern)) {
		return
	}
	a.patterns = append(a.patterns, pattern)
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		r, err := withEncryptionContext(r)
		if err == nil {
			err = h(w, r)
		}
		if err != nil {
			a.fail(w, r, err)
		}
	})
}

// groupOf is the group of routes that `http.disable_<group>` names.
func groupOf(pattern string) string {
	_, path, _ := strings.Cut(pattern, " ")
	switch first, _, _ := strings.Cut(path[1:], "/"); {
	case strings.Contains(path, "/runs"):
		return "runs"
	case slices.Contains([]string{"info", "metrics", "docs", "openapi.json"}, first):
		return "meta"
	default:
		return first
	}
}

func (a *API) routes() {
	a.handle("GET /ok", a.ok)
	a.handle("GET /info", a.info)
	a.handle("GET /metrics", a.metrics)
	a.handle("GET /openapi.json", a.openapi)
	a.handle("GET /docs", a.docs)

	a.handle("POST /ui/{graph}", a.loadUI)
	a.handle("GET /ui/{graph}/{file}", a.getUI)

	a.handle("POST /assistants/search", a.searchAssistants)
	a.handle("POST /assistants/count", a.countAssistants)
	a.handle("POST /assistants", a.createAssistant)
	a.handle("GET /assistants/{assistant_id}", a.getAssistant)
	a.handle("PATCH /assistants/{assistant_id}", a.patchAssistant)
	a.handle("DELETE /assistants/{assistant_id}", a.deleteAssistant)
	a.handle("POST /assistants/{assistant_id}/versions", a.listVersions)
	a.handle("POST /assistants/{assistant_id}/latest", a.setLatest)
	a.handle("GET /assistants/{assistant_id}/schemas", a.getSchemas)
	a.handle("GET /assistants/{assistant_id}/graph", a.getDrawing)
	a.handle("GET /assistants/{assistant_id}/subgraphs", a.getSubgraphs)
	a.handle("GET /assistants/{assistant_id}/subgraphs/{namespace}", a.getSubgraphs)

	a.handle("POST /threads", a.createThread)
	a.handle("POST /threads/search", a.searchThreads)
	a.handle("POST /threads/count", a.countThreads)
	a.handle("POST /threads/prune", a.pruneThreads)
	a.handle("GET /threads/{thread_id}/storage", a.getStorage)
	a.handle("GET /threads/{thread_id}", a.getThread)
	a.handle("PATCH /threads/{thread_id}", a.patchThread)
	a.handle("DELETE /threads/{thread_id}", a.deleteThread)
	a.handle("POST /threads/{thread_id}/copy", a.copyThread)
	a.handle("GET /threads/{thread_id}/state", a.getState)
	a.handle("POST /threads/{thread_id}/state", a.updateState)
	a.handle("PATCH /threads/{thread_id}/state", a.patchState)
	a.handle("GET /threads/{thread_id}/state/{checkpoint_id}", a.getState)
	a.handle("POST /threads/{thread_id}/state/checkpoint", a.postStateCheckpoint)
	a.handle("GET /threads/{thread_id}/history", a.getHistory)
	a.handle("POST /threads/{thread_id}/history", a.postHistory)
	a.handle("GET /threads/{thread_id}/stream", a.followThread)

	for _, base := range []string{"/threads/{thread_id}/runs", "/runs"} {
		a.handle("POST "+base, a.createRun)
		a.handle("POST "+base+"/stream", a.streamRun)
		a.handle("POST "+base+"/wait", a.waitRun)
	}
	a.handle("GET /threads/{thread_id}/runs/{run_id}/stream", a.joinStream)
	a.handle("GET /runs/{first}/{second}", a.getStatelessOrCron)
	a.handle("POST /runs/batch", a.createRuns)
	a.handle("POST /runs/cancel", a.cancelRuns)
	a.handle("GET /threads/{thread_id}/runs", a.listRuns)
	a.handle("GET /threads/{thread_id}/runs/{run_id}", a.getRun)
	a.handle("DELETE /threads/{thread_id}/runs/{run_id}", a.deleteRun)
	a.handle("GET /threads/{thread_id}/runs/{run_id}/join", a.joinRun)
	a.handle("POST /threads/{thread_id}/runs/{run_id}/cancel", a.cancelRun)

	a.handle("POST /runs/crons", a.createCron)
	a.handle("POST /threads/{thread_id}/runs/crons", a.createCron)
	a.handle("POST /runs/crons/search", a.searchCrons)
	a.handle("POST /runs/crons/count", a.countCrons)
	a.handle("PATCH /runs/crons/{cron_id}", a.patchCron)
	a.handle("DELETE /runs/crons/{cron_id}", a.deleteCron)

	a.handle("PUT /store/items", a.putItem)
	a.handle("GET /store/items", a.getItem)
	a.handle("DELETE /store/items", a.deleteItem)
	a.handle("POST /store/items/search", a.searchItems)
	a.handle("POST /store/namespaces", a.listNamespaces)
}
