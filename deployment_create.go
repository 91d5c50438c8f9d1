package slipway

import "time"

// Create checks every rule about a new deployment of the tenant (spec 2, 7, 8) and returns what to write. All broken
// rules are collected in one CodeInvalid. The name's uniqueness is the store's matter.
func Create(tenantID string, in DeploymentCreate, inst Installation, by string, now time.Time, ids IDs) (Change, error) {
	var problems Problems
	validateName(&problems, in.Name)
	if in.DisplayName != "" {
		validateDisplayName(&problems, in.DisplayName)
	}
	validateSource(&problems, at("source"), in.Source, inst)
	validateFields(&problems, inst, in.Source, in.SourceConfig, in.SourceRevisionConfig, in.SecretReferences)
	validateRequired(&problems, in)
	validateTemplate(&problems, in.SourceConfig.TemplateID, inst.Templates)
	validateSecrets(&problems, in.Source, in.Secrets, nil)
	validateFilledOnce(&problems, in.Secrets, deref(in.SecretReferences))
	validatePush(&problems, in.SourceConfig.BuildOnPush, in.SourceRevisionConfig.RepoRef)
	if err := problems.Err(); err != nil {
		return Change{}, err
	}
	return created(tenantID, in, by, now, ids), nil
}

func created(tenantID string, in DeploymentCreate, by string, now time.Time, ids IDs) Change {
	d := Deployment{
		ID: ids(), TenantID: tenantID, Name: in.Name, DisplayName: in.DisplayName, Source: in.Source, Generation: 1, CreatedAt: now, UpdatedAt: now,
		SourceConfig: in.SourceConfig.settable(in.Source), SourceRevisionConfig: in.SourceRevisionConfig.settable(),
		TracingProjectID: ids(),
	}
	if in.SecretReferences != nil {
		d.SecretReferences = *in.SecretReferences
	}
	c := Change{Deployment: d}
	if len(in.Secrets) > 0 {
		c.Secrets = &SecretChange{SetID: ids(), Values: in.Secrets}
		c.Deployment.SecretSetID = c.Secrets.SetID
	}
	if c.Deployment.Buildable(in.Source) {
		c.addRevision(in.Source, 1, by, now, ids)
	}
	c.Deployment.Status = c.Deployment.statusWith(c.Revision != nil)
	return c
}

// validateRequired checks what a source cannot do without (control-plane reference 3).
func validateRequired(problems *Problems, in DeploymentCreate) {
	switch in.Source {
	case SourceGithost:
		requireText(problems, in.SourceConfig.RepoURL, "source_config", "repo_url")
		requireText(problems, in.SourceRevisionConfig.AgentgraphConfigPath, "source_revision_config", "agentgraph_config_path")
	case SourceInternalSource:
		if in.SourceRevisionConfig.SourceTarballPath != nil {
			problems.Add(at("source_revision_config", "source_tarball_path"), "source_tarball_path %q was not issued to this deployment; create it without, ask for an upload-url, upload, then PATCH", *in.SourceRevisionConfig.SourceTarballPath)
		}
	case SourceInternalTemplate:
		requireText(problems, in.SourceConfig.TemplateID, "source_config", "template_id")
	case SourceExternalContainer:
		requireText(problems, in.SourceRevisionConfig.ImageURI, "source_revision_config", "image_uri")
	case SourceInternalContainer:
	}
}

func requireText(problems *Problems, value *string, loc ...any) {
	if value == nil {
		problems.Missing(at(loc...))
	}
}
