package agent

import "encoding/json"

// PartName names a part of an application that workers load beside its graphs (worker/wire/DESIGN.md, Starting).
type PartName string

// The parts.
const (
	PartAuth         PartName = "auth"
	PartApp          PartName = "app"
	PartEmbed        PartName = "embed"
	PartCheckpointer PartName = "checkpointer"
	PartStore        PartName = "store"
	PartEncryption   PartName = "encryption"
)

// Key returns the key of the graph configuration that names the part.
func (n PartName) Key() string {
	switch n {
	case PartApp:
		return "http.app"
	case PartEmbed:
		return "store.index.embed"
	}
	return string(n) + ".path"
}

// KeepsRuns says whether a run needs the part: a worker that cannot load it would keep a run's state in the wrong place,
// or in clear.
func (n PartName) KeepsRuns() bool {
	return n == PartCheckpointer || n == PartStore || n == PartEncryption
}

// Parts says which parts a worker is to load; nil = none. A part is given only to workers of its language. It is the
// `parts` member of LOAD.
type Parts struct {
	Auth         *CodePart         `json:"auth,omitempty"`
	App          *AppPart          `json:"app,omitempty"`
	Embed        *EmbedPart        `json:"embed,omitempty"`
	Checkpointer *CheckpointerPart `json:"checkpointer,omitempty"`
	Store        *CodePart         `json:"store,omitempty"`
	Encryption   *EncryptionPart   `json:"encryption,omitempty"`
}

// CodePart is a part that is nothing but a name of code.
type CodePart struct {
	Path string `json:"path"` // a spec as those of graphs
}

// AppPart is the application's own HTTP app.
type AppPart struct {
	Path            string `json:"path"`
	MiddlewareFirst bool   `json:"middleware_first"`
}

// EmbedPart is the embedding function of the store's index.
type EmbedPart struct {
	Spec string `json:"spec"` // "provider:model" or a spec as those of graphs
}

// CheckpointerPart is a checkpointer of the application, or only the types its checkpoints may hold.
type CheckpointerPart struct {
	Path  string          `json:"path,omitempty"`
	Serde json.RawMessage `json:"serde,omitempty"`
}

// EncryptionPart is what encrypts values of checkpoints: handlers of the application, or AES with the key of LANGGRAPH_AES_KEY.
type EncryptionPart struct {
	Path string `json:"path,omitempty"`
	AES  bool   `json:"aes,omitempty"`
}

// Names returns the parts that are there.
func (p Parts) Names() []PartName {
	var names []PartName
	for _, part := range []struct {
		name  PartName
		there bool
	}{
		{PartAuth, p.Auth != nil},
		{PartApp, p.App != nil},
		{PartEmbed, p.Embed != nil},
		{PartCheckpointer, p.Checkpointer != nil},
		{PartStore, p.Store != nil},
		{PartEncryption, p.Encryption != nil},
	} {
		if part.there {
			names = append(names, part.name)
		}
	}
	return names
}

// PartInfo is what a worker told of a part it was asked to load. It is, but for the failure, the member of LOADED.
type PartInfo struct {
	// Failure says why the part cannot be loaded; nil = it is.
	Failure *Failure `json:"-"`

	// Of auth: the events it handles ("threads:create", "threads", "*:read", "*") and whether it authenticates.
	Handlers      []string `json:"handlers"`
	Authenticates bool     `json:"authenticates"`
	// Body says whether authenticating looks at requests' bodies; nil = it may.
	Body *bool `json:"body"`

	// Of an app: its routes in order, nil when it cannot tell (every path is the app's to try), and whether its middleware
	// wraps more than its own routes.
	Routes     []AppRoute `json:"routes"`
	Middleware bool       `json:"middleware"`

	// Of a checkpointer: the optional methods it has, such as "adelete_for_runs".
	Methods []string `json:"methods"`

	// Of encryption: whether it has handlers for JSON and for bytes.
	JSON bool `json:"json"`
	Blob bool `json:"blob"`
}

// WantsBody says whether an Auth object is to be shown the bodies of requests.
func (p *PartInfo) WantsBody() bool { return p.Body == nil || *p.Body }

// AppRoute is one route of an application's HTTP app.
type AppRoute struct {
	Path    string   `json:"path"`    // with {name} and {name:path} parameters
	Methods []string `json:"methods"` // nil = all
	Kind    string   `json:"kind"`    // "http", "websocket" or "mount"
}

// Loaded tells of a part that the worker has loaded, nil of one it was not given or could not load.
func (i WorkerInfo) Loaded(name PartName) *PartInfo {
	if p := i.Parts[name]; p != nil && p.Failure == nil {
		return p
	}
	return nil
}
