package slipway_test

import (
	"testing"

	"github.com/slipway-dev/slipway"
)

var sources = []slipway.Source{
	slipway.SourceGithost, slipway.SourceInternalSource, slipway.SourceInternalContainer, slipway.SourceInternalTemplate, slipway.SourceExternalContainer,
}

// TestWhichSourceHasWhichField is the table of control-plane reference 3, cell by cell: on create a field that the source
// does not have is 422 at the field.
func TestWhichSourceHasWhichField(t *testing.T) {
	t.Parallel()
	const uuid = "01900000-0000-7000-8000-000000000001"
	for _, f := range []struct {
		name string
		loc  string
		set  func(*slipway.DeploymentCreate)
		has  string // a letter per source in the order of sources: y = may set, n = 422, i = ignored
	}{
		{"integration_id", "source_config.integration_id", func(d *slipway.DeploymentCreate) { d.SourceConfig.IntegrationID = p(uuid) }, "ynnnn"},
		{"repo_url", "source_config.repo_url", func(d *slipway.DeploymentCreate) { d.SourceConfig.RepoURL = p("https://example.com/a") }, "ynnnn"},
		{"build_on_push", "source_config.build_on_push", func(d *slipway.DeploymentCreate) { d.SourceConfig.BuildOnPush = p(true) }, "ynnnn"},
		{"build_on_push off", "source_config.build_on_push", func(d *slipway.DeploymentCreate) { d.SourceConfig.BuildOnPush = p(false) }, "yyyyy"},
		{"deployment_type", "source_config.deployment_type", func(d *slipway.DeploymentCreate) { d.SourceConfig.DeploymentType = p("prod") }, "yyyyy"},
		{"custom_url", "source_config.custom_url", func(d *slipway.DeploymentCreate) { d.SourceConfig.CustomURL = p("https://x.example.com") }, "iiiiy"},
		{"resource_spec", "source_config.resource_spec", func(d *slipway.DeploymentCreate) { d.SourceConfig.ResourceSpec = &slipway.ResourceSpec{} }, "nnnny"},
		{"listener_id", "source_config.listener_id", func(d *slipway.DeploymentCreate) { d.SourceConfig.ListenerID = p(uuid) }, "nnnny"},
		{"listener_config", "source_config.listener_config", func(d *slipway.DeploymentCreate) { d.SourceConfig.ListenerConfig = &slipway.ListenerConfig{} }, "nnnny"},
		{"install_command", "source_config.install_command", func(d *slipway.DeploymentCreate) { d.SourceConfig.InstallCommand = p("npm ci") }, "yyyyy"},
		{"build_command", "source_config.build_command", func(d *slipway.DeploymentCreate) { d.SourceConfig.BuildCommand = p("npm run build") }, "yyyyy"},
		{"repo_ref", "source_revision_config.repo_ref", func(d *slipway.DeploymentCreate) { d.SourceRevisionConfig.RepoRef = p("main") }, "ynnnn"},
		{"agentgraph_config_path", "source_revision_config.agentgraph_config_path", func(d *slipway.DeploymentCreate) { d.SourceRevisionConfig.AgentgraphConfigPath = p("a.json") }, "yynnn"},
		{"image_uri", "source_revision_config.image_uri", func(d *slipway.DeploymentCreate) { d.SourceRevisionConfig.ImageURI = p("example.com/a") }, "nnyny"},
		{"source_tarball_path", "source_revision_config.source_tarball_path", func(d *slipway.DeploymentCreate) { d.SourceRevisionConfig.SourceTarballPath = p("uploads/x") }, "nnnnn"},
		{"repo_commit_sha", "source_revision_config.repo_commit_sha", func(d *slipway.DeploymentCreate) { d.SourceRevisionConfig.RepoCommitSHA = p("c0ffee") }, "iiiii"},
		{"secret_references", "secret_references", func(d *slipway.DeploymentCreate) { d.SecretReferences = &[]slipway.SecretReference{} }, "nnnny"},
	} {
		for i, source := range sources {
			in := valid(source)
			f.set(&in)
			c, err := slipway.Create("t", in, everything, "", at, ids())
			named := false
			for _, place := range places(err) {
				named = named || place == "body."+f.loc
			}
			switch want := f.has[i]; {
			case want == 'n' && !named:
				t.Errorf("%s for %s: %v, want a problem at %s", f.name, source, err, f.loc)
			case want != 'n' && err != nil:
				t.Errorf("%s for %s: %v, want it taken", f.name, source, err)
			case want == 'i' && (c.Deployment.SourceConfig.CustomURL != nil || c.Deployment.SourceRevisionConfig.RepoCommitSHA != nil):
				t.Errorf("%s for %s was stored, want it ignored", f.name, source)
			}
		}
	}
}

func TestImmutableFieldsTakeTheirStoredValueOnly(t *testing.T) {
	t.Parallel()
	const one, two = "01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002"
	for _, f := range []struct {
		name   string
		source slipway.Source
		set    func(*slipway.SourceConfig, bool)
	}{
		{"integration_id", slipway.SourceGithost, func(c *slipway.SourceConfig, b bool) { c.IntegrationID = p(pick(b, one, two)) }},
		{"repo_url", slipway.SourceGithost, func(c *slipway.SourceConfig, b bool) {
			c.RepoURL = p(pick(b, "https://example.com/a", "https://example.com/b"))
		}},
		{"deployment_type", slipway.SourceInternalSource, func(c *slipway.SourceConfig, b bool) { c.DeploymentType = p(pick(b, "dev", "prod")) }},
		{"template_id", slipway.SourceInternalTemplate, func(c *slipway.SourceConfig, b bool) { c.TemplateID = p(pick(b, "relay", "other")) }},
		{"listener_id", slipway.SourceExternalContainer, func(c *slipway.SourceConfig, b bool) { c.ListenerID = p(pick(b, one, two)) }},
		{"cluster_namespace", slipway.SourceExternalContainer, func(c *slipway.SourceConfig, b bool) {
			c.ListenerConfig = &slipway.ListenerConfig{ClusterNamespace: p(pick(b, "a", "b"))}
		}},
	} {
		in := valid(f.source)
		f.set(&in.SourceConfig, false)
		c, err := slipway.Create("t", in, everything, "", at, ids())
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		for other, want := range map[bool]slipway.Code{false: "", true: slipway.CodeBadRequest} {
			var patch slipway.DeploymentPatch
			f.set(&patch.SourceConfig, other)
			if _, err := slipway.Patch(c.Deployment, patch, everything, slipway.Facts{}, at, ids()); slipway.ErrorCode(err) != want {
				t.Errorf("%s, another value %v: %v, want code %q", f.name, other, err, want)
			}
		}
	}
}

func pick(second bool, a, b string) string {
	if second {
		return b
	}
	return a
}

func TestDisplayName(t *testing.T) {
	t.Parallel()
	d := stored(t, nil)
	for name, want := range map[string]slipway.Code{"Front desk ☎": "", "": slipway.CodeInvalid, " \t": slipway.CodeInvalid, "a\nb": slipway.CodeInvalid} {
		c, err := slipway.Patch(d, slipway.DeploymentPatch{DisplayName: &name}, hosted, slipway.Facts{}, at, ids())
		if slipway.ErrorCode(err) != want || want == "" && (c.Deployment.DisplayName != name || c.Revision != nil) {
			t.Errorf("%q: %+v, %v; want code %q and no revision", name, c.Deployment.DisplayName, err, want)
		}
	}
}
