package slipway

import (
	"strings"
	"time"
)

// Patch checks every rule about changing the stored deployment d (spec 2, 3, 4.1, 7, 8) and returns what to write. What
// is wrong within the request is CodeInvalid with all problems; what only clashes with the stored deployment is
// CodeBadRequest (control-plane reference 1). At most one revision comes of it, and none while there is nothing to build.
func Patch(d Deployment, in DeploymentPatch, inst Installation, facts Facts, now time.Time, ids IDs) (Change, error) {
	if err := validatePatch(d, in, inst, facts); err != nil {
		return Change{}, err
	}
	c := patched(d, in, facts, now, ids)
	if in.MakesRevision() && c.Deployment.Buildable(d.effective(in)) {
		c.addRevision(d.effective(in), facts.LatestNumber+1, facts.By, now, ids)
	}
	return c, nil
}

// Revise is Patch that always makes a revision: CodeBadRequest if there is nothing to build (control-plane reference 2).
func Revise(d Deployment, in DeploymentPatch, inst Installation, facts Facts, now time.Time, ids IDs) (Change, error) {
	if err := validatePatch(d, in, inst, facts); err != nil {
		return Change{}, err
	}
	c := patched(d, in, facts, now, ids)
	if !c.Deployment.Buildable(d.effective(in)) {
		return Change{}, Errorf(CodeBadRequest, "deployment %q has nothing to build yet: upload a source and PATCH source_tarball_path and agentgraph_config_path first", d.Name)
	}
	c.addRevision(d.effective(in), facts.LatestNumber+1, facts.By, now, ids)
	return c, nil
}

func (d Deployment) effective(in DeploymentPatch) Source {
	if in.RevisionSource != nil {
		return *in.RevisionSource
	}
	return d.Source
}

func validatePatch(d Deployment, in DeploymentPatch, inst Installation, facts Facts) error {
	source := d.effective(in)
	var problems Problems
	if in.RevisionSource != nil {
		validateRevisionSource(&problems, *in.RevisionSource, inst)
	}
	if in.DisplayName != nil {
		validateDisplayName(&problems, *in.DisplayName)
	}
	validateFields(&problems, inst, "", in.SourceConfig, in.SourceRevisionConfig, in.SecretReferences)
	validateSecrets(&problems, source, deref(in.Secrets), facts.SecretNames)
	validateFilledOnce(&problems, deref(in.Secrets), deref(in.SecretReferences))
	validatePush(&problems, in.SourceConfig.BuildOnPush, in.SourceRevisionConfig.RepoRef)
	validateUpload(&problems, d, in.SourceRevisionConfig, facts.Upload)
	if err := problems.Err(); err != nil {
		return err
	}
	return conflicts(d, source, in, facts)
}

func validateUpload(problems *Problems, d Deployment, rev SourceRevisionConfig, upload *Upload) {
	if rev.SourceTarballPath == nil {
		return
	}
	loc := at("source_revision_config", "source_tarball_path")
	switch {
	case upload == nil || upload.DeploymentID != d.ID || upload.ObjectPath != *rev.SourceTarballPath:
		problems.Add(loc, "source_tarball_path %q was not issued to this deployment; use the object_path that its upload-url call answered", *rev.SourceTarballPath)
	case upload.UploadedAt.IsZero():
		problems.Add(loc, "nothing was uploaded to %q yet; PUT the archive to its upload_url first", *rev.SourceTarballPath)
	case !upload.CollectedAt.IsZero():
		problems.Add(loc, "what was uploaded to %q is not stored any more, as no revision needed it; ask for a new upload-url and upload it again", *rev.SourceTarballPath)
	}
	if rev.AgentgraphConfigPath == nil && d.SourceRevisionConfig.AgentgraphConfigPath == nil {
		problems.Missing(at("source_revision_config", "agentgraph_config_path"))
	}
}

// conflicts returns what of the request clashes with the stored deployment, as one sentence.
func conflicts(d Deployment, source Source, in DeploymentPatch, facts Facts) error {
	var found []string
	found = append(found, wrongForSource(source, in.SourceConfig, in.SourceRevisionConfig, in.SecretReferences)...)
	found = append(found, immutableChanged(d.SourceConfig, in.SourceConfig)...)
	if source == SourceGithost && d.SourceConfig.RepoURL == nil {
		found = append(found, "deployment "+d.Name+" has no repo_url, so no revision of it can come from githost; leave revision_source out")
	}
	found = append(found, filledTwice(d, in, facts)...)
	merged := d.SourceRevisionConfig.merge(in.SourceRevisionConfig)
	push := or(in.SourceConfig.BuildOnPush, d.SourceConfig.BuildOnPush)
	if isTag(merged.RepoRef) && push != nil && *push {
		found = append(found, "build_on_push cannot be true when repo_ref is a tag ("+*merged.RepoRef+"); use a branch or set build_on_push to false")
	}
	if len(found) == 0 {
		return nil
	}
	return Errorf(CodeBadRequest, "%s", strings.Join(found, "; "))
}

// immutableChanged lists the immutable fields sent with another value than the stored one. The stored value is no
// conflict: clients read, modify and write.
func immutableChanged(stored, in SourceConfig) []string {
	var found []string
	for _, f := range []struct {
		name       string
		stored, in *string
	}{
		{"integration_id", stored.IntegrationID, in.IntegrationID},
		{"repo_url", stored.RepoURL, in.RepoURL},
		{"deployment_type", stored.DeploymentType, in.DeploymentType},
		{"listener_id", stored.ListenerID, in.ListenerID},
		{"template_id", stored.TemplateID, in.TemplateID},
		{"listener_config.cluster_namespace", stored.namespace(), in.namespace()},
	} {
		if f.in != nil && (f.stored == nil || *f.stored != *f.in) {
			found = append(found, f.name+" cannot be changed after creation (it is "+shown(f.stored)+"); leave it out or make a new deployment")
		}
	}
	return found
}

func (s SourceConfig) namespace() *string {
	if s.ListenerConfig == nil {
		return nil
	}
	return s.ListenerConfig.ClusterNamespace
}

func shown(value *string) string {
	if value == nil {
		return "not set"
	}
	return `"` + *value + `"`
}

func patched(d Deployment, in DeploymentPatch, facts Facts, now time.Time, ids IDs) Change {
	d.SourceConfig = d.SourceConfig.merge(in.SourceConfig.settable(d.Source))
	d.SourceRevisionConfig = d.SourceRevisionConfig.merge(in.SourceRevisionConfig.settable())
	if in.SecretReferences != nil {
		d.SecretReferences = *in.SecretReferences
	}
	d.DisplayName = *or(in.DisplayName, &d.DisplayName)
	d.UpdatedAt = now
	c := Change{Deployment: d}
	if in.Secrets != nil {
		c.Secrets = secretChange(*in.Secrets, ids())
		c.Deployment.SecretSetID = c.Secrets.SetID
	}
	return c
}

func secretChange(secrets []Secret, setID string) *SecretChange {
	c := &SecretChange{SetID: setID}
	for _, s := range secrets {
		if s.Value == MaskedSecret {
			c.Keep = append(c.Keep, s.Name)
			continue
		}
		c.Values = append(c.Values, s)
	}
	return c
}

// merge lays the non-null fields of in over s; the immutable ones are left to s.
func (s SourceConfig) merge(in SourceConfig) SourceConfig {
	s.BuildOnPush = or(in.BuildOnPush, s.BuildOnPush)
	s.CustomURL = or(in.CustomURL, s.CustomURL)
	s.ResourceSpec = or(in.ResourceSpec, s.ResourceSpec)
	s.InstallCommand = or(in.InstallCommand, s.InstallCommand)
	s.BuildCommand = or(in.BuildCommand, s.BuildCommand)
	return s
}

// merge lays the non-null fields of in over s. The commit is not inherited: a new revision finds out its own.
func (s SourceRevisionConfig) merge(in SourceRevisionConfig) SourceRevisionConfig {
	s.RepoRef = or(in.RepoRef, s.RepoRef)
	s.AgentgraphConfigPath = or(in.AgentgraphConfigPath, s.AgentgraphConfigPath)
	s.ImageURI = or(in.ImageURI, s.ImageURI)
	s.SourceTarballPath = or(in.SourceTarballPath, s.SourceTarballPath)
	return s
}

// settable drops what a caller cannot set: read-only fields are ignored on input (control-plane reference 3).
func (s SourceConfig) settable(source Source) SourceConfig {
	if source != SourceExternalContainer {
		s.CustomURL = nil
	}
	if s.ResourceSpec != nil {
		rounded := s.ResourceSpec.Rounded()
		s.ResourceSpec = &rounded
	}
	return s
}

func (s SourceRevisionConfig) settable() SourceRevisionConfig {
	s.RepoCommitSHA = nil
	return s
}

func or[T any](first, second *T) *T {
	if first != nil {
		return first
	}
	return second
}

func deref[T any](p *[]T) []T {
	if p == nil {
		return nil
	}
	return *p
}
