package slipway_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func p[T any](v T) *T { return &v }

// ids yields rising ids, anew for every call of ids.
func ids() slipway.IDs {
	n := 0
	return func() string {
		n++
		return fmt.Sprintf("id-%d", n)
	}
}

var hosted = slipway.Installation{Sources: []slipway.Source{slipway.SourceGithost, slipway.SourceInternalSource, slipway.SourceInternalTemplate}}

var everything = slipway.Installation{Sources: append([]slipway.Source{slipway.SourceExternalContainer, slipway.SourceInternalContainer}, hosted.Sources...)}

// valid is a request of every source that breaks no rule.
func valid(source slipway.Source) slipway.DeploymentCreate {
	in := slipway.DeploymentCreate{Name: "desk", Source: source}
	switch source {
	case slipway.SourceGithost:
		in.SourceConfig.RepoURL = p("https://example.com/a/b.git")
		in.SourceRevisionConfig.AgentgraphConfigPath = p("agentgraph.json")
	case slipway.SourceInternalTemplate:
		in.SourceConfig.TemplateID = p("relay")
	case slipway.SourceExternalContainer:
		in.SourceRevisionConfig.ImageURI = p("example.com/a:1")
	}
	return in
}

// places lists where the problems of err are, as "body.a.b".
func places(err error) []string {
	var e *slipway.Error
	if !errors.As(err, &e) {
		return nil
	}
	var out []string
	for _, problem := range e.Problems {
		parts := make([]string, len(problem.Loc))
		for i, part := range problem.Loc {
			parts[i] = fmt.Sprint(part)
		}
		out = append(out, strings.Join(parts, "."))
	}
	return out
}

func TestCreateMakesARevisionWhenThereIsSomethingToBuild(t *testing.T) {
	t.Parallel()
	for source, want := range map[slipway.Source]bool{
		slipway.SourceGithost: true, slipway.SourceInternalTemplate: true, slipway.SourceExternalContainer: true,
		slipway.SourceInternalSource: false, slipway.SourceInternalContainer: false,
	} {
		c, err := slipway.Create("t", valid(source), everything, "key:x", at, ids())
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got := c.Revision != nil; got != want {
			t.Errorf("%s: revision = %v, want %v", source, got, want)
		}
		status := map[bool]slipway.DeploymentStatus{true: slipway.DeploymentAwaitingDatabase, false: slipway.DeploymentUnused}[want]
		if c.Deployment.Status != status {
			t.Errorf("%s: status = %s, want %s", source, c.Deployment.Status, status)
		}
		if want && (c.Deployment.LatestRevisionID != c.Revision.ID || c.Revision.Number != 1 || c.Revision.Status != slipway.Creating) {
			t.Errorf("%s: revision = %+v", source, c.Revision)
		}
	}
}

func TestCreateRules(t *testing.T) {
	t.Parallel()
	type request = slipway.DeploymentCreate
	git, upload, template, external := slipway.SourceGithost, slipway.SourceInternalSource, slipway.SourceInternalTemplate, slipway.SourceExternalContainer
	for _, c := range []struct {
		name   string
		source slipway.Source
		change func(*request)
		want   string // place of the one problem; "" = none
	}{
		{"empty name", git, func(r *request) { r.Name = "" }, "body.name"},
		{"underscore", git, func(r *request) { r.Name = "my_deployment" }, ""},
		{"space in the name", git, func(r *request) { r.Name = "a b" }, "body.name"},
		{"slash in the name", git, func(r *request) { r.Name = "a/b" }, "body.name"},
		{"63 characters", git, func(r *request) { r.Name = strings.Repeat("a", 63) }, ""},
		{"64 characters", git, func(r *request) { r.Name = strings.Repeat("a", 64) }, "body.name"},
		{"no repository", git, func(r *request) { r.SourceConfig.RepoURL = nil }, "body.source_config.repo_url"},
		{"no configuration path", git, func(r *request) { r.SourceRevisionConfig.AgentgraphConfigPath = nil }, "body.source_revision_config.agentgraph_config_path"},
		{"configuration path outside", git, func(r *request) { r.SourceRevisionConfig.AgentgraphConfigPath = p("../x.json") }, "body.source_revision_config.agentgraph_config_path"},
		{"absolute configuration path", git, func(r *request) { r.SourceRevisionConfig.AgentgraphConfigPath = p("/x.json") }, "body.source_revision_config.agentgraph_config_path"},
		{"scp-like repository", git, func(r *request) { r.SourceConfig.RepoURL = p("git@example.com:a/b.git") }, ""},
		{"option as repository", git, func(r *request) { r.SourceConfig.RepoURL = p("--upload-pack=x") }, "body.source_config.repo_url"},
		{"ext protocol", git, func(r *request) { r.SourceConfig.RepoURL = p("ext::sh -c x") }, "body.source_config.repo_url"},
		{"tag with push", git, func(r *request) {
			r.SourceRevisionConfig.RepoRef, r.SourceConfig.BuildOnPush = p("refs/tags/v1"), p(true)
		}, "body.source_config.build_on_push"},
		{"tag without push", git, func(r *request) {
			r.SourceRevisionConfig.RepoRef, r.SourceConfig.BuildOnPush = p("refs/tags/v1"), p(false)
		}, ""},
		{"branch with push", git, func(r *request) {
			r.SourceRevisionConfig.RepoRef, r.SourceConfig.BuildOnPush = p("main"), p(true)
		}, ""},
		{"full branch ref", git, func(r *request) { r.SourceRevisionConfig.RepoRef = p("refs/heads/main") }, "body.source_revision_config.repo_ref"},
		{"option as ref", git, func(r *request) { r.SourceRevisionConfig.RepoRef = p("--x") }, "body.source_revision_config.repo_ref"},
		{"unknown deployment type", git, func(r *request) { r.SourceConfig.DeploymentType = p("dev_zero") }, "body.source_config.deployment_type"},
		{"deployment type of another source is stored", upload, func(r *request) { r.SourceConfig.DeploymentType = p("dev") }, ""},
		{"custom_url is ignored", upload, func(r *request) { r.SourceConfig.CustomURL = p("http://x") }, ""},
		{"integration that is no uuid", git, func(r *request) { r.SourceConfig.IntegrationID = p("x") }, "body.source_config.integration_id"},
		{"tarball on create", upload, func(r *request) {
			r.SourceRevisionConfig.SourceTarballPath, r.SourceRevisionConfig.AgentgraphConfigPath = p("uploads/x"), p("a.json")
		}, "body.source_revision_config.source_tarball_path"},
		{"configuration path without tarball", upload, func(r *request) { r.SourceRevisionConfig.AgentgraphConfigPath = p("a.json") }, ""},
		{"repository of an upload", upload, func(r *request) { r.SourceConfig.RepoURL = p("https://x/y") }, "body.source_config.repo_url"},
		{"resources of an upload", upload, func(r *request) { r.SourceConfig.ResourceSpec = &slipway.ResourceSpec{} }, "body.source_config.resource_spec"},
		{"references of an upload", upload, func(r *request) { r.SecretReferences = &[]slipway.SecretReference{} }, "body.secret_references"},
		{"template without id", template, func(r *request) { r.SourceConfig.TemplateID = nil }, "body.source_config.template_id"},
		{"template with configuration path", template, func(r *request) { r.SourceRevisionConfig.AgentgraphConfigPath = p("a.json") }, "body.source_revision_config.agentgraph_config_path"},
		{"image missing", external, func(r *request) { r.SourceRevisionConfig.ImageURI = nil }, "body.source_revision_config.image_uri"},
		{"unknown source", "ftp", func(*request) {}, "body.source"},
		{"reserved secret", git, func(r *request) { r.Secrets = []slipway.Secret{{Name: "POSTGRES_URI"}} }, "body.secrets.0.name"},
		{"secret reserved when hosted", git, func(r *request) { r.Secrets = []slipway.Secret{{Name: "PORT"}} }, "body.secrets.0.name"},
		{"same secret self-hosted", external, func(r *request) { r.Secrets = []slipway.Secret{{Name: "PORT"}} }, ""},
		{"secret twice", git, func(r *request) { r.Secrets = []slipway.Secret{{Name: "A"}, {Name: "A"}} }, "body.secrets.1.name"},
		{"secret that is no variable", git, func(r *request) { r.Secrets = []slipway.Secret{{Name: "A-B"}} }, "body.secrets.0.name"},
		{"mask for an unknown secret", git, func(r *request) { r.Secrets = []slipway.Secret{{Name: "A", Value: slipway.MaskedSecret}} }, "body.secrets.0.value"},
		{"and-chain", git, func(r *request) { r.SourceConfig.InstallCommand = p("npm ci && npm test") }, ""},
		{"pipe", git, func(r *request) { r.SourceConfig.InstallCommand = p("a | b") }, "body.source_config.install_command"},
		{"substitution", git, func(r *request) { r.SourceConfig.BuildCommand = p("$(x)") }, "body.source_config.build_command"},
		{"background", git, func(r *request) { r.SourceConfig.BuildCommand = p("a & b") }, "body.source_config.build_command"},
		{"three ampersands", git, func(r *request) { r.SourceConfig.BuildCommand = p("a &&& b") }, "body.source_config.build_command"},
	} {
		in := valid(c.source)
		in.Source = c.source
		c.change(&in)
		_, err := slipway.Create("t", in, everything, "key:x", at, ids())
		got := places(err)
		if c.want == "" && err != nil || c.want != "" && !reflect.DeepEqual(got, []string{c.want}) {
			t.Errorf("%s: %v (%v), want %q", c.name, got, err, c.want)
		}
	}
}

func TestCreateCollectsEveryProblem(t *testing.T) {
	t.Parallel()
	in := slipway.DeploymentCreate{Source: slipway.SourceGithost, Secrets: []slipway.Secret{{Name: "1"}}}
	_, err := slipway.Create("t", in, hosted, "", at, ids())
	if got := len(places(err)); got != 4 {
		t.Errorf("%d problems %v, want name, repo_url, agentgraph_config_path and the secret", got, places(err))
	}
}

func TestSourceThatIsNotServedNamesTheServedOnes(t *testing.T) {
	t.Parallel()
	_, err := slipway.Create("t", valid(slipway.SourceExternalContainer), hosted, "", at, ids())
	if err == nil || !strings.Contains(err.Error(), "githost, internal_source, internal_template") {
		t.Errorf("err = %v", err)
	}
}

// stored is a githost deployment with one revision.
func stored(t *testing.T, change func(*slipway.DeploymentCreate)) slipway.Deployment {
	t.Helper()
	in := valid(slipway.SourceGithost)
	if change != nil {
		change(&in)
	}
	c, err := slipway.Create("t", in, everything, "", at, ids())
	if err != nil {
		t.Fatal(err)
	}
	return c.Deployment
}

func TestPatchRules(t *testing.T) {
	t.Parallel()
	type request = slipway.DeploymentPatch
	tagged := func(in *slipway.DeploymentCreate) { in.SourceRevisionConfig.RepoRef = p("refs/tags/v1") }
	pushed := func(in *slipway.DeploymentCreate) {
		in.SourceRevisionConfig.RepoRef, in.SourceConfig.BuildOnPush = p("main"), p(true)
	}
	for _, c := range []struct {
		name     string
		stored   func(*slipway.DeploymentCreate)
		in       request
		want     slipway.Code
		revision bool
	}{
		{"nothing", nil, request{}, "", false},
		{"build on push makes none", nil, request{SourceConfig: slipway.SourceConfig{BuildOnPush: p(true)}}, "", false},
		{"a branch makes one", nil, request{SourceRevisionConfig: slipway.SourceRevisionConfig{RepoRef: p("dev")}}, "", true},
		{"the same configuration path makes one", nil, request{SourceRevisionConfig: slipway.SourceRevisionConfig{AgentgraphConfigPath: p("agentgraph.json")}}, "", true},
		{"a commit is read-only and makes none", nil, request{SourceRevisionConfig: slipway.SourceRevisionConfig{RepoCommitSHA: p("x")}}, "", false},
		{"secrets make one", nil, request{Secrets: &[]slipway.Secret{{Name: "A", Value: "b"}}}, "", true},
		{"even none", nil, request{Secrets: &[]slipway.Secret{}}, "", true},
		{"stored repository", nil, request{SourceConfig: slipway.SourceConfig{RepoURL: p("https://example.com/a/b.git")}}, "", false},
		{"another repository", nil, request{SourceConfig: slipway.SourceConfig{RepoURL: p("https://example.com/x")}}, slipway.CodeBadRequest, false},
		{"deployment type set late", nil, request{SourceConfig: slipway.SourceConfig{DeploymentType: p("dev")}}, slipway.CodeBadRequest, false},
		{"resources of githost", nil, request{SourceConfig: slipway.SourceConfig{ResourceSpec: &slipway.ResourceSpec{}}}, slipway.CodeBadRequest, false},
		{"image of githost", nil, request{SourceRevisionConfig: slipway.SourceRevisionConfig{ImageURI: p("a:1")}}, slipway.CodeBadRequest, false},
		{"push on a stored tag", tagged, request{SourceConfig: slipway.SourceConfig{BuildOnPush: p(true)}}, slipway.CodeBadRequest, false},
		{"a tag under a stored push", pushed, request{SourceRevisionConfig: slipway.SourceRevisionConfig{RepoRef: p("refs/tags/v1")}}, slipway.CodeBadRequest, false},
		{"both in the body", nil, request{
			SourceConfig: slipway.SourceConfig{BuildOnPush: p(true)}, SourceRevisionConfig: slipway.SourceRevisionConfig{RepoRef: p("refs/tags/v1")},
		}, slipway.CodeInvalid, false},
		{"a tag and push off", pushed, request{
			SourceConfig: slipway.SourceConfig{BuildOnPush: p(false)}, SourceRevisionConfig: slipway.SourceRevisionConfig{RepoRef: p("refs/tags/v1")},
		}, "", true},
		{"a tarball it never got", nil, request{
			RevisionSource: p(slipway.SourceInternalSource), SourceRevisionConfig: slipway.SourceRevisionConfig{SourceTarballPath: p("uploads/x")},
		}, slipway.CodeInvalid, false},
		{"an override that is none", nil, request{RevisionSource: p(slipway.SourceInternalTemplate)}, slipway.CodeInvalid, false},
	} {
		got, err := slipway.Patch(stored(t, c.stored), c.in, hosted, slipway.Facts{LatestNumber: 1}, at, ids())
		if slipway.ErrorCode(err) != c.want || (got.Revision != nil) != c.revision {
			t.Errorf("%s: %v, revision = %v; want code %q, revision %v", c.name, err, got.Revision != nil, c.want, c.revision)
		}
	}
}

func TestPatchWithAnUpload(t *testing.T) {
	t.Parallel()
	d := stored(t, nil)
	in := slipway.DeploymentPatch{RevisionSource: p(slipway.SourceInternalSource), SourceRevisionConfig: slipway.SourceRevisionConfig{SourceTarballPath: p("uploads/x")}}
	upload := slipway.Upload{DeploymentID: d.ID, ObjectPath: "uploads/x"}
	if _, err := slipway.Patch(d, in, hosted, slipway.Facts{Upload: &upload}, at, ids()); slipway.ErrorCode(err) != slipway.CodeInvalid {
		t.Errorf("nothing uploaded: %v, want CodeInvalid", err)
	}
	upload.UploadedAt = at
	c, err := slipway.Patch(d, in, hosted, slipway.Facts{Upload: &upload}, at, ids())
	if err != nil || c.Revision == nil || c.Revision.Source != slipway.SourceInternalSource {
		t.Fatalf("uploaded: %+v, %v; want a revision from internal_source", c.Revision, err)
	}
	upload.DeploymentID = "another"
	if _, err := slipway.Patch(d, in, hosted, slipway.Facts{Upload: &upload}, at, ids()); slipway.ErrorCode(err) != slipway.CodeInvalid {
		t.Errorf("another deployment's upload: %v, want CodeInvalid", err)
	}
}

func TestMaskKeepsTheStoredSecret(t *testing.T) {
	t.Parallel()
	in := slipway.DeploymentPatch{Secrets: &[]slipway.Secret{{Name: "OLD", Value: slipway.MaskedSecret}, {Name: "NEW", Value: "v"}}}
	c, err := slipway.Patch(stored(t, nil), in, hosted, slipway.Facts{SecretNames: []string{"OLD"}}, at, ids())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c.Secrets.Keep, []string{"OLD"}) || !reflect.DeepEqual(c.Secrets.Values, []slipway.Secret{{Name: "NEW", Value: "v"}}) {
		t.Errorf("secrets = %+v", c.Secrets)
	}
	if c.Revision.SecretSetID != c.Secrets.SetID {
		t.Error("the revision does not run with the new secrets")
	}
}

func TestReplayRepeatsTheBlueprint(t *testing.T) {
	t.Parallel()
	old := slipway.Revision{
		ID: "old", DeploymentID: "d", Number: 3, Status: slipway.Deployed, ArtifactDigest: "sha256:a", SecretSetID: "s1", BuildSecretSetID: "b1",
		Source: slipway.SourceGithost, SourceRevisionConfig: slipway.SourceRevisionConfig{RepoCommitSHA: p("c0ffee")}, LeaseEpoch: 4,
	}
	c := slipway.Replay(slipway.Deployment{ID: "d", SecretSetID: "s2"}, old, 7, "key:x", at, ids())
	r := *c.Revision
	if r.ArtifactDigest != "sha256:a" || r.SecretSetID != "s1" || r.BuildSecretSetID != "b1" || *r.SourceRevisionConfig.RepoCommitSHA != "c0ffee" {
		t.Errorf("blueprint = %+v", r)
	}
	if r.ID == "old" || r.Number != 8 || r.Status != slipway.Creating || r.ReplayOf != "old" || r.LeaseEpoch != 0 {
		t.Errorf("record = %+v", r)
	}
	if r.Ready() != slipway.AwaitingDeploy {
		t.Error("a replay of an artifact goes through build states")
	}
	if c.Deployment.LatestRevisionID != r.ID || c.Deployment.SecretSetID != "s1" {
		t.Errorf("deployment = %+v", c.Deployment)
	}
}
