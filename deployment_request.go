package slipway

// MaskedSecret stands for a secret's value in answers. Sent back for a name that exists it keeps the stored value
// (control-plane reference 1).
const MaskedSecret = "••••••••"

// Installation says what this installation serves; rules that depend on it take it as an argument.
type Installation struct {
	// Sources that may be used. By spec 2.1 githost and internal_* belong to hosted installations and
	// external_container to self-hosted ones; slipway serves whatever is configured.
	Sources []Source
	// Templates that internal_template may name; none = any name, which the build then judges.
	Templates []Template
	// LiftResourceCaps takes the upper bounds off the CPU fields of a ResourceSpec (spec 8): an operator whose machines are
	// larger may (control-plane reference 3).
	LiftResourceCaps bool
}

// Serves says whether deployments of the source can be made here.
func (i Installation) Serves(s Source) bool {
	for _, known := range i.Sources {
		if known == s {
			return true
		}
	}
	return false
}

// DeploymentCreate is the request to make a deployment (control-plane reference 3). Nil means absent or null.
type DeploymentCreate struct {
	Name                 string
	DisplayName          string // "" = none
	Source               Source
	SourceConfig         SourceConfig
	SourceRevisionConfig SourceRevisionConfig
	Secrets              []Secret
	SecretReferences     *[]SecretReference
}

// DeploymentPatch is the request to change a deployment (spec 4.1). Nil means absent or null: unchanged. Secrets,
// references and the resource spec replace what is stored as a whole.
type DeploymentPatch struct {
	RevisionSource       *Source
	SourceConfig         SourceConfig
	SourceRevisionConfig SourceRevisionConfig
	Secrets              *[]Secret
	SecretReferences     *[]SecretReference
	DisplayName          *string // cannot be cleared
}

// MakesRevision says whether the request asks for a revision by itself: any non-null field of source_revision_config,
// secrets (even empty), resource_spec or secret_references (spec 3; control-plane reference 4).
func (p DeploymentPatch) MakesRevision() bool {
	rev := p.SourceRevisionConfig
	return rev.RepoRef != nil || rev.AgentgraphConfigPath != nil || rev.ImageURI != nil || rev.SourceTarballPath != nil ||
		p.Secrets != nil || p.SecretReferences != nil || p.SourceConfig.ResourceSpec != nil
}

// SecretChange is a new version of a deployment's secrets, in clear, on its way to the sealer.
type SecretChange struct {
	SetID  string   // of the SecretSet to write
	Values []Secret // new values
	Keep   []string // names whose sealed value is taken over from the version before
}

// Change is what a create or a patch comes to: records to write, nothing written yet.
type Change struct {
	Deployment Deployment
	Revision   *Revision     // in CREATING; nil = none is made
	Secrets    *SecretChange // nil = unchanged
}

// Facts are the stored things, beside the deployment itself, that Patch needs to know.
type Facts struct {
	SecretNames  []string // of the current set
	LatestNumber int64    // of the newest revision; 0 = none
	// Upload is the slot that the request's source_tarball_path names; nil = this deployment never got it.
	Upload *Upload
	By     string // the principal that makes the revision
}
