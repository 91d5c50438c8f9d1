package control

import (
	"fmt"
	"sort"
	"strings"

	"github.com/slipway-dev/slipway"
)

// secretSet returns a version of secrets; the empty id is the empty set.
func secretSet(tx slipway.Tx, id string) (slipway.SecretSet, error) {
	if id == "" {
		return slipway.SecretSet{}, nil
	}
	return tx.SecretSet(id)
}

// sealed makes the new version of the deployment's secrets, taking over the stored values that are kept.
func (s *Service) sealed(tx slipway.Tx, c slipway.Change) (slipway.SecretSet, error) {
	if c.Secrets == nil {
		return slipway.SecretSet{}, nil
	}
	kept, err := s.keep(tx, c.Deployment, c.Secrets.Keep)
	if err != nil {
		return slipway.SecretSet{}, err
	}
	return s.sealSet(c.Deployment, c.Secrets.SetID, kept, c.Secrets.Values)
}

func (s *Service) sealSet(d slipway.Deployment, id string, kept []slipway.SealedSecret, values []slipway.Secret) (slipway.SecretSet, error) {
	set := slipway.SecretSet{ID: id, DeploymentID: d.ID, TenantID: d.TenantID, CreatedAt: s.clock(), Secrets: kept}
	for _, secret := range values {
		text, err := s.sealer.Seal(d.TenantID, d.ID, secret.Name, secret.Value)
		if err != nil {
			return set, fmt.Errorf("seal secret %s: %w", secret.Name, err)
		}
		set.Secrets = append(set.Secrets, slipway.SealedSecret{Name: secret.Name, Sealed: text})
	}
	sort.Slice(set.Secrets, func(i, j int) bool { return set.Secrets[i].Name < set.Secrets[j].Name })
	return set, nil
}

func (s *Service) keep(tx slipway.Tx, d slipway.Deployment, names []string) ([]slipway.SealedSecret, error) {
	if len(names) == 0 {
		return nil, nil
	}
	stored, err := tx.Deployment(d.TenantID, d.ID)
	if err != nil {
		return nil, err
	}
	set, err := secretSet(tx, stored.SecretSetID)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var kept []slipway.SealedSecret
	for _, secret := range set.Secrets {
		if wanted[secret.Name] {
			kept = append(kept, secret)
		}
	}
	return kept, nil
}

// openSecrets returns the values of a version in clear. CodeInvalid names those that cannot be opened: that is the matter of
// their deployment alone, and setting them again is what helps.
func (s *Service) openSecrets(tx slipway.Tx, id string) (map[string]string, error) {
	set, err := secretSet(tx, id)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(set.Secrets))
	var closed []string
	for _, secret := range set.Secrets {
		value, err := s.sealer.Open(set.TenantID, set.DeploymentID, secret.Name, secret.Sealed)
		if err != nil {
			closed = append(closed, secret.Name)
			continue
		}
		values[secret.Name] = value
	}
	if len(closed) > 0 {
		return nil, slipway.Errorf(slipway.CodeInvalid,
			"the stored values of %s cannot be opened with this installation's master key: restore master.key from a backup, or set them again",
			strings.Join(closed, ", "))
	}
	return values, nil
}
