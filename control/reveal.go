package control

import (
	"context"
	"slices"

	"github.com/slipway-dev/slipway"
)

// revealed is the last step of a use case that answers one deployment: err goes on, and a role that may read secrets gets
// their values.
func (s *Service) revealed(ctx context.Context, who slipway.Principal, d Deployment, err error) (Deployment, error) {
	if err != nil {
		return Deployment{}, err
	}
	list := []Deployment{d}
	if err := s.reveal(ctx, who, list); err != nil {
		return Deployment{}, wrap("reveal secrets", err)
	}
	return list[0], nil
}

// reveal puts the values of secrets in the place of their masks, if the caller's role may read secrets (control-plane
// reference 1), and records that once. Values that cannot be opened stay masked. A deploy key never reads secrets.
func (s *Service) reveal(ctx context.Context, who slipway.Principal, list []Deployment) error {
	if !slices.Contains(s.cfg.SecretReaders, who.Role) || who.DeploymentID != "" {
		return nil
	}
	read := map[string][]string{}
	err := s.store.View(ctx, func(tx slipway.Tx) error {
		for i, d := range list {
			if len(d.Secrets) == 0 {
				continue
			}
			set, err := secretSet(tx, d.SecretSetID)
			if err != nil {
				return err
			}
			list[i].Secrets, read[d.ID] = s.opened(set)
		}
		return nil
	})
	if err != nil || len(read) == 0 {
		return err
	}
	subject := ""
	if len(read) == 1 {
		for subject = range read {
		}
	}
	return s.store.Update(ctx, func(tx slipway.Tx) error {
		return s.audit(tx, who, "read_secrets", subject, map[string]any{"secrets": read})
	})
}

// opened returns the secrets of a set with their values, and the names of those that could be opened.
func (s *Service) opened(set slipway.SecretSet) ([]slipway.Secret, []string) {
	out, names := make([]slipway.Secret, len(set.Secrets)), []string{}
	for i, secret := range set.Secrets {
		value, err := s.sealer.Open(set.TenantID, set.DeploymentID, secret.Name, secret.Sealed)
		if err != nil {
			out[i] = slipway.Secret{Name: secret.Name, Value: slipway.MaskedSecret}
			continue
		}
		out[i] = slipway.Secret{Name: secret.Name, Value: value}
		names = append(names, secret.Name)
	}
	return out, names
}
