package control

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"

	"github.com/slipway-dev/slipway"
)

// RevisionDiff is what changed from one revision to another.
type RevisionDiff struct {
	RevisionID, Against string
	Changes             []slipway.FieldChange
}

// Diff says what changed from the revision against to the revision id, both of one deployment; "" = the one before it.
// Values of secrets are never told.
func (s *Service) Diff(ctx context.Context, who slipway.Principal, deploymentID, id, against string) (RevisionDiff, error) {
	if err := authorize(who, mayRead); err != nil {
		return RevisionDiff{}, err
	}
	var before, after slipway.Blueprinted
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		if after, err = s.blueprinted(tx, who.TenantID, deploymentID, id); err != nil {
			return err
		}
		if against == "" {
			if against, err = previous(tx, after.Revision); err != nil || against == "" {
				return err
			}
		}
		before, err = s.blueprinted(tx, who.TenantID, deploymentID, against)
		return err
	})
	if err != nil {
		return RevisionDiff{}, wrap("compare revisions", err)
	}
	for _, b := range []*slipway.Blueprinted{&before, &after} {
		if s.packages != nil && b.ArtifactDigest != "" && b.Source.Built() {
			b.Packages = s.packages(b.ArtifactDigest)
		}
	}
	changes, err := slipway.DiffRevisions(before, after)
	return RevisionDiff{RevisionID: id, Against: against, Changes: changes}, err
}

// previous returns the id of the revision before r, "" if it is the first.
func previous(tx slipway.Tx, r slipway.Revision) (string, error) {
	all, err := tx.Revisions(slipway.RevisionQuery{DeploymentID: r.DeploymentID})
	for _, other := range all {
		if other.Number < r.Number {
			return other.ID, err
		}
	}
	return "", err
}

func (s *Service) blueprinted(tx slipway.Tx, tenantID, deploymentID, id string) (slipway.Blueprinted, error) {
	r, err := visibleRevision(tx, tenantID, deploymentID, id)
	if err != nil {
		return slipway.Blueprinted{}, err
	}
	out := slipway.Blueprinted{Revision: r, Secrets: map[string]string{}}
	for _, set := range []string{r.BuildSecretSetID, r.SecretSetID} {
		values, err := s.openSecrets(tx, set)
		if err != nil {
			return out, err
		}
		for name, value := range values {
			mac := hmac.New(sha256.New, s.cfg.UploadKey)
			mac.Write([]byte("compare " + value))
			out.Secrets[name] = string(mac.Sum(nil))
		}
	}
	if path := text(r.SourceRevisionConfig.SourceTarballPath); path != "" {
		upload, err := tx.UploadByPath(r.DeploymentID, path)
		if err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
			return out, err
		}
		out.TarballDigest = upload.Digest
	}
	return out, nil
}
