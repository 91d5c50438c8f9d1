package slipway

import (
	"regexp"
	"strings"
)

// Bounds on a listener's fields.
const (
	MaxComputeIDLength = 253
	MaxVersionLength   = 128
	MaxNamespaces      = 1000
)

var (
	namespaceForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	versionForm   = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]*$`)
)

// ListenerCreate is the request to make a listener (control-plane reference 3). Nil means absent or null.
type ListenerCreate struct {
	ComputeType string
	ComputeID   string
	Namespaces  *[]string
	Version     *string
}

// ListenerPatch is the request to change a listener. Nil means absent or null: unchanged.
type ListenerPatch struct {
	Version *string
	// Config is the new compute_config as a whole; its Namespaces may be nil.
	Config *ListenerCompute
	// ComputeType and ComputeID are immutable; sent with their stored value they are no conflict.
	ComputeType, ComputeID *string
}

// ListenerCompute is a listener's compute_config.
type ListenerCompute struct {
	Namespaces *[]string // nil = every namespace
}

// Validate checks every rule about a new listener and collects what is broken in one CodeInvalid.
func (in ListenerCreate) Validate() error {
	var problems Problems
	if in.ComputeType != ComputeCluster {
		problems.Add(at("compute_type"), "compute_type %q is unknown; use %q", short(in.ComputeType), ComputeCluster)
	}
	if id := in.ComputeID; id == "" || len(id) > MaxComputeIDLength || strings.ContainsFunc(id, unprintable) {
		problems.Add(at("compute_id"), "compute_id %q must be 1 to %d printable characters, such as the cluster's name", short(id), MaxComputeIDLength)
	}
	validateNamespaces(&problems, in.Namespaces)
	validateVersion(&problems, in.Version)
	return problems.Err()
}

// Validate checks the form of what a patch sends: CodeInvalid. What clashes with the stored listener is CodeBadRequest.
func (in ListenerPatch) Validate(stored Listener) error {
	var problems Problems
	if in.Config != nil {
		validateNamespaces(&problems, in.Config.Namespaces)
	}
	validateVersion(&problems, in.Version)
	if err := problems.Err(); err != nil {
		return err
	}
	for _, f := range []struct {
		name, stored string
		in           *string
	}{{"compute_type", stored.ComputeType, in.ComputeType}, {"compute_id", stored.ComputeID, in.ComputeID}} {
		if f.in != nil && *f.in != f.stored {
			return Errorf(CodeBadRequest, "%s cannot be changed after creation (it is %q); leave it out or make a new listener", f.name, f.stored)
		}
	}
	return nil
}

func validateNamespaces(problems *Problems, namespaces *[]string) {
	if namespaces == nil {
		return
	}
	loc := []any{"compute_config", "cluster_namespaces"}
	if n := len(*namespaces); n == 0 || n > MaxNamespaces {
		problems.Add(at(loc...), "cluster_namespaces has %d entries; name 1 to %d namespaces, or use null for all of the cluster", n, MaxNamespaces)
		return
	}
	seen := map[string]bool{}
	for i, namespace := range *namespaces {
		here := at(append(loc[:2:2], i)...)
		switch {
		case !namespaceForm.MatchString(namespace):
			problems.Add(here, "%q is no name of a namespace; use at most 63 of a-z, 0-9 and '-', beginning and ending with a letter or digit", short(namespace))
		case seen[namespace]:
			problems.Add(here, "%q is named twice; name it once", namespace)
		}
		seen[namespace] = true
	}
}

func validateVersion(problems *Problems, version *string) {
	if version != nil && *version != "" && !ListenerVersion(*version) {
		problems.Add(at("version"), "version %q is no version; use one such as 0.1.0, of at most %d characters", short(*version), MaxVersionLength)
	}
}

// ListenerVersion says whether the text can be the version of a listener.
func ListenerVersion(text string) bool {
	return len(text) <= MaxVersionLength && versionForm.MatchString(text)
}

func unprintable(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }

// Place checks that a new deployment can go where it asks to, and returns its configuration with the namespace filled in
// when the listener has only one. l is the tenant's listener that cfg names, nil = it has none of that id.
func (cfg SourceConfig) Place(l *Listener) (SourceConfig, error) {
	var problems Problems
	namespace := cfg.namespace()
	loc := at("source_config", "listener_config", "cluster_namespace")
	switch {
	case l == nil && cfg.ListenerID != nil:
		problems.Add(at("source_config", "listener_id"), "there is no listener %q; GET /v2/listeners lists those there are", *cfg.ListenerID)
	case l == nil && namespace != nil:
		problems.Add(loc, "cluster_namespace %q belongs to a listener; name it with listener_id", short(*namespace))
	case l == nil:
	case namespace != nil && (!namespaceForm.MatchString(*namespace) || !l.Watches(*namespace)):
		problems.Add(loc, "listener %q does not look after the namespace %q; use one of its cluster_namespaces%s", l.ComputeID, short(*namespace), listing(l.Namespaces))
	case namespace == nil && len(l.Namespaces) == 1:
		cfg.ListenerConfig = &ListenerConfig{ClusterNamespace: &l.Namespaces[0]}
	case namespace == nil && len(l.Namespaces) > 1:
		problems.Add(loc, "listener %q looks after several namespaces; name one%s", l.ComputeID, listing(l.Namespaces))
	}
	return cfg, problems.Err()
}

func listing(names []string) string {
	if len(names) == 0 {
		return ""
	}
	if len(names) > 10 {
		names = append(names[:10:10], "…")
	}
	return ": " + strings.Join(names, ", ")
}
