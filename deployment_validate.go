package slipway

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on what a request may carry; every list and text has one.
const (
	MaxNameLength    = 63
	MaxDisplayName   = 200
	MaxFieldLength   = 2048
	MaxCommandLength = 4096
	MaxSecrets       = 500
	MaxSecretValue   = 64 << 10
)

var (
	nameForm      = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)
	uuidForm      = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	repoURLForm   = regexp.MustCompile(`^((https?|ssh|git|file)://[^\s]+|[A-Za-z0-9_.][A-Za-z0-9_.-]*@[A-Za-z0-9.-]+:[^\s:][^\s]*)$`)
	customURLForm = regexp.MustCompile(`^https?://[^\s/?#]+[^\s]*$`)
	refForm       = regexp.MustCompile(`^[A-Za-z0-9_.@+#%=/-]+$`)
	ampersands    = regexp.MustCompile(`&+`)
)

// at is the place of a field of the request body.
func at(path ...any) []any { return append([]any{"body"}, path...) }

// Known says whether s is one of the sources of spec 2.1.
func (s Source) Known() bool {
	switch s {
	case SourceGithost, SourceExternalContainer, SourceInternalContainer, SourceInternalSource, SourceInternalTemplate:
		return true
	}
	return false
}

// Built says whether revisions of the source go through a build (control-plane reference 4).
func (s Source) Built() bool {
	return s == SourceGithost || s == SourceInternalSource || s == SourceInternalTemplate
}

// Buildable says whether the deployment knows enough to make a revision of the given effective source.
func (d Deployment) Buildable(source Source) bool {
	rev := d.SourceRevisionConfig
	switch source {
	case SourceGithost:
		return d.SourceConfig.RepoURL != nil && rev.AgentgraphConfigPath != nil
	case SourceInternalSource:
		return rev.SourceTarballPath != nil && rev.AgentgraphConfigPath != nil
	case SourceInternalTemplate:
		return d.SourceConfig.TemplateID != nil
	case SourceExternalContainer, SourceInternalContainer:
		return rev.ImageURI != nil
	}
	return false
}

func validateName(problems *Problems, name string) {
	switch {
	case name == "":
		problems.Add(at("name"), "name is empty; use letters, digits, '-' and '_'")
	case len(name) > MaxNameLength:
		problems.Add(at("name"), "name has %d characters; use at most %d", len(name), MaxNameLength)
	case !nameForm.MatchString(name):
		problems.Add(at("name"), "name %q may hold only letters, digits, '-' and '_', and not begin with '-'", name)
	}
}

// validateDisplayName takes any line of text: it is for people.
func validateDisplayName(problems *Problems, name string) {
	switch {
	case strings.TrimSpace(name) == "":
		problems.Add(at("display_name"), "display_name is empty; it can be changed but not cleared")
	case utf8.RuneCountInString(name) > MaxDisplayName:
		problems.Add(at("display_name"), "display_name has %d characters; use at most %d", utf8.RuneCountInString(name), MaxDisplayName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		problems.Add(at("display_name"), "display_name %q holds a control character; use one line of text", short(name))
	}
}

func validateSource(problems *Problems, loc []any, s Source, inst Installation) {
	switch {
	case !s.Known():
		problems.Add(loc, "%q is no source; use one of %s", s, listed(inst.Sources))
	case !inst.Serves(s):
		problems.Add(loc, "source %q is not available on this installation; use one of %s", s, listed(inst.Sources))
	}
}

// validateRevisionSource checks the override of spec 4.1, which knows three of the sources.
func validateRevisionSource(problems *Problems, s Source, inst Installation) {
	loc := at("revision_source")
	if s == SourceExternalContainer || s == SourceInternalTemplate {
		problems.Add(loc, "revision_source cannot be %q; use githost, internal_container or internal_source, or leave it out", s)
		return
	}
	validateSource(problems, loc, s, inst)
}

func listed(sources []Source) string {
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// validateFields checks the form of every field and, with a source, that the source has the field. A patch passes no
// source: there a field of another source is a conflict with what is stored, not a malformed request.
func validateFields(problems *Problems, inst Installation, source Source, cfg SourceConfig, rev SourceRevisionConfig, refs *[]SecretReference) {
	if source.Known() {
		for _, f := range misplaced(source, cfg, rev, refs) {
			problems.Add(f.loc, "%s", f.message(source))
		}
	}
	validateConfig(problems, inst, cfg)
	validateRevisionConfig(problems, rev)
	validateReferences(problems, deref(refs))
}

func validateConfig(problems *Problems, inst Installation, cfg SourceConfig) {
	validateUUID(problems, cfg.IntegrationID, "source_config", "integration_id")
	validateUUID(problems, cfg.ListenerID, "source_config", "listener_id")
	if v := cfg.RepoURL; v != nil && (!repoURLForm.MatchString(*v) || len(*v) > MaxFieldLength) {
		problems.Add(at("source_config", "repo_url"), "repo_url %q is no address of a git repository; use https://, ssh:// or user@host:path", short(*v))
	}
	if v := cfg.DeploymentType; v != nil && *v != "dev_free" && *v != "dev" && *v != "prod" {
		problems.Add(at("source_config", "deployment_type"), "deployment_type %q is unknown; use dev_free, dev or prod", short(*v))
	}
	if v := cfg.TemplateID; v != nil && (*v == "" || !nameForm.MatchString(*v)) {
		problems.Add(at("source_config", "template_id"), "template_id %q is no name of a template", short(*v))
	}
	if v := cfg.CustomURL; v != nil && (!customURLForm.MatchString(*v) || len(*v) > MaxFieldLength) {
		problems.Add(at("source_config", "custom_url"), "custom_url %q is no address; use one such as https://agents.example.com", short(*v))
	}
	if v := cfg.namespace(); v != nil && !dnsLabelForm.MatchString(*v) {
		problems.Add(at("source_config", "listener_config", "cluster_namespace"), "cluster_namespace %q is no DNS label", short(*v))
	}
	validateCommand(problems, cfg.InstallCommand, "install_command")
	validateCommand(problems, cfg.BuildCommand, "build_command")
	if cfg.ResourceSpec != nil {
		cfg.ResourceSpec.validate(problems, inst.LiftResourceCaps)
	}
}

func validateRevisionConfig(problems *Problems, rev SourceRevisionConfig) {
	if rev.RepoRef != nil {
		validateRef(problems, *rev.RepoRef)
	}
	if v := rev.AgentgraphConfigPath; v != nil && !insidePath(*v) {
		problems.Add(at("source_revision_config", "agentgraph_config_path"), "agentgraph_config_path %q must be a relative path inside the source, such as \"agentgraph.json\"", short(*v))
	}
	if v := rev.ImageURI; v != nil {
		if _, err := ParseImageName(*v); err != nil {
			problems.Add(at("source_revision_config", "image_uri"), "%s", err.Error())
		}
	}
}

func insidePath(p string) bool {
	if p == "" || len(p) > MaxFieldLength || strings.HasPrefix(p, "/") || strings.ContainsAny(p, "\\\x00\r\n") {
		return false
	}
	clean := path.Clean(p)
	return clean != "." && clean != ".." && !strings.HasPrefix(clean, "../")
}

// validateRef takes a bare branch name or a full tag ref (spec 2.3).
func validateRef(problems *Problems, ref string) {
	loc := at("source_revision_config", "repo_ref")
	switch {
	case strings.HasPrefix(ref, "refs/") && !isTag(&ref):
		problems.Add(loc, "repo_ref %q must be a bare branch name, such as %q, or a tag as refs/tags/NAME", short(ref), strings.TrimPrefix(ref, "refs/heads/"))
	case !refForm.MatchString(ref), strings.HasPrefix(ref, "-"), strings.Contains(ref, ".."), strings.HasSuffix(ref, "/"), len(ref) > MaxFieldLength:
		problems.Add(loc, "repo_ref %q is no name of a branch or tag", short(ref))
	}
}

func isTag(ref *string) bool { return ref != nil && strings.HasPrefix(*ref, "refs/tags/") }

// A tag is a fixed point: building on push to it would never happen (spec 2.2, 2.3).
func validatePush(problems *Problems, push *bool, ref *string) {
	if push != nil && *push && isTag(ref) {
		problems.Add(at("source_config", "build_on_push"), "build_on_push cannot be true when repo_ref is a tag (%q); use a branch or set it to false", *ref)
	}
}

func validateUUID(problems *Problems, value *string, loc ...any) {
	if value != nil && !uuidForm.MatchString(*value) {
		problems.Add(at(loc...), "%q is no uuid", short(*value))
	}
}

// validateCommand keeps shell tricks out of install and build commands (control-plane reference 7): no quoting,
// piping, redirection or substitution; && chains are fine.
func validateCommand(problems *Problems, command *string, field string) {
	if command == nil {
		return
	}
	loc := at("source_config", field)
	if len(*command) > MaxCommandLength {
		problems.Add(loc, "%s has %d bytes; use at most %d", field, len(*command), MaxCommandLength)
	}
	if i := strings.IndexAny(*command, "\"`\\\n\r\x00\t|;$><"); i >= 0 {
		problems.Add(loc, "%s may not contain %q; put the steps into a script of the repository and call that", field, (*command)[i])
	}
	for _, run := range ampersands.FindAllString(*command, -1) {
		if len(run)%2 == 1 {
			problems.Add(loc, "%s may chain with && but not contain %q", field, run)
			return
		}
	}
}

// short keeps error texts readable whatever was sent.
func short(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

// field is one place of a request together with the sources that have it (control-plane reference 3).
type field struct {
	loc     []any
	sources []Source
}

func (f field) message(source Source) string {
	return fmt.Sprintf("%s cannot be set for source %q, only for %s; leave it out", f.loc[len(f.loc)-1], source, listed(f.sources))
}

// misplaced lists the fields that are set though the source does not have them. Read-only ones, custom_url and
// repo_commit_sha, are not among them: they are ignored on input.
func misplaced(source Source, cfg SourceConfig, rev SourceRevisionConfig, refs *[]SecretReference) []field {
	git, external := []Source{SourceGithost}, []Source{SourceExternalContainer}
	var found []field
	check := func(set bool, sources []Source, loc ...any) {
		if set && !(Installation{Sources: sources}).Serves(source) {
			found = append(found, field{at(loc...), sources})
		}
	}
	check(cfg.IntegrationID != nil, git, "source_config", "integration_id")
	check(cfg.RepoURL != nil, git, "source_config", "repo_url")
	check(cfg.BuildOnPush != nil && *cfg.BuildOnPush, git, "source_config", "build_on_push")
	check(cfg.TemplateID != nil, []Source{SourceInternalTemplate}, "source_config", "template_id")
	check(cfg.ResourceSpec != nil, external, "source_config", "resource_spec")
	check(cfg.ListenerID != nil, external, "source_config", "listener_id")
	check(cfg.ListenerConfig != nil, external, "source_config", "listener_config")
	check(refs != nil, external, "secret_references")
	check(rev.RepoRef != nil, git, "source_revision_config", "repo_ref")
	check(rev.AgentgraphConfigPath != nil, []Source{SourceGithost, SourceInternalSource}, "source_revision_config", "agentgraph_config_path")
	check(rev.SourceTarballPath != nil, []Source{SourceInternalSource}, "source_revision_config", "source_tarball_path")
	check(rev.ImageURI != nil, []Source{SourceExternalContainer, SourceInternalContainer}, "source_revision_config", "image_uri")
	return found
}

// wrongForSource is misplaced as sentences. Immutable fields are judged by immutableChanged alone: a stored value sent
// back is fine whatever the source of this revision is.
func wrongForSource(source Source, cfg SourceConfig, rev SourceRevisionConfig, refs *[]SecretReference) []string {
	cfg.IntegrationID, cfg.RepoURL, cfg.TemplateID, cfg.ListenerID, cfg.ListenerConfig = nil, nil, nil, nil, nil
	var found []string
	for _, f := range misplaced(source, cfg, rev, refs) {
		found = append(found, f.message(source))
	}
	return found
}
