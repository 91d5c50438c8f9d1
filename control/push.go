package control

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/slipway-dev/slipway"
)

// deliveryWindow is how long deliveries are remembered, so that none counts twice.
const deliveryWindow = 30 * 24 * time.Hour

// Delivered says what came of a delivery.
type Delivered struct {
	Revisions []PushedRevision
	Ignored   []IgnoredPush // deployments of the repository that make no revision of it, and why
	Reason    string        // why nothing at all came of it; "" if something did
}

// PushedRevision is a revision that a push made.
type PushedRevision struct{ DeploymentID, RevisionID string }

// IgnoredPush is a deployment that a push leaves alone.
type IgnoredPush struct{ DeploymentID, Name, Reason string }

// KnowsIntegration says, before a delivery is read, whether there is the integration it is for; CodeNotFound if not.
func (s *Service) KnowsIntegration(ctx context.Context, id string) error {
	if !slipway.IsUUID(id) {
		return slipway.Errorf(slipway.CodeNotFound, "Integration ID %.40s not found.", id)
	}
	return wrap("receive delivery", s.store.View(ctx, func(tx slipway.Tx) error {
		_, err := tx.Integration("", id)
		if err != nil {
			return integrationNotFound(id, err)
		}
		return nil
	}))
}

// Deliver takes what a git host sent to an integration's webhook (spec 2.2, 3; control-plane reference 4). The host's
// signature is the whole authorisation: CodeUnauthenticated without it. A repetition does nothing, and neither does what
// does not concern any deployment; the answer says why. Recognising a repetition and making the revisions is one transaction.
func (s *Service) Deliver(ctx context.Context, integrationID string, header func(string) string, body []byte) (Delivered, error) {
	i, host, err := s.host(ctx, "", integrationID)
	if err != nil {
		return Delivered{}, wrap("receive delivery", err)
	}
	hook, err := host.ReadHook(header, body)
	if err != nil {
		return Delivered{}, wrap("receive delivery", err)
	}
	var out Delivered
	err = s.update(ctx, func(tx slipway.Tx) error {
		out = Delivered{}
		first, err := s.firstDelivery(tx, i.ID, hook.Keys)
		switch {
		case err != nil:
			return err
		case !first:
			out.Reason = "this delivery was received before"
			return nil
		case hook.Installation != nil:
			out.Reason = hook.About
			return s.installed(tx, i, *hook.Installation)
		case hook.Push == nil:
			out.Reason = hook.About
			return nil
		}
		out, err = s.push(tx, i, *hook.Push)
		return err
	})
	return out, wrap("receive delivery", err)
}

func (s *Service) firstDelivery(tx slipway.Tx, integrationID string, keys []string) (bool, error) {
	now, first := s.clock(), true
	for _, key := range keys {
		fresh, err := tx.AddDelivery(integrationID, key, now)
		if err != nil {
			return false, err
		}
		first = first && fresh
	}
	return first, tx.PruneDeliveries(integrationID, now.Add(-deliveryWindow))
}

// installed keeps where a GitHub App is installed.
func (s *Service) installed(tx slipway.Tx, i slipway.Integration, e slipway.InstallationEvent) error {
	i, err := tx.Integration(i.TenantID, i.ID)
	if err != nil {
		return err
	}
	switch {
	case e.Removed && i.InstallationID != e.ID:
		return nil
	case e.Removed:
		e.ID = 0
	}
	before := i
	i.InstallationID, i.UpdatedAt = e.ID, s.clock()
	if err := tx.PutIntegration(i); err != nil {
		return err
	}
	return s.auditDiff(tx, pusher(i), "update_integration", i.ID, map[string]any{"name": i.Name}, integrationView(before), integrationView(i))
}

// pusher is whoever pushes to the host, as audit entries name them.
func pusher(i slipway.Integration) slipway.Principal {
	host := i.HostURL
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		host = u.Host
	}
	return slipway.Principal{ID: "push:" + host, TenantID: i.TenantID, Role: slipway.RoleEditor}
}

// push makes a revision of every deployment that follows the pushed branch.
func (s *Service) push(tx slipway.Tx, i slipway.Integration, p slipway.PushEvent) (Delivered, error) {
	var out Delivered
	all, err := tx.Deployments(slipway.DeploymentQuery{TenantID: i.TenantID, Integration: i.ID})
	if err != nil {
		return out, err
	}
	for _, d := range all {
		if !builtFrom(d, p) {
			continue
		}
		if why := slipway.PushRefusal(d, p); why != "" {
			out.Ignored = append(out.Ignored, IgnoredPush{d.ID, d.Name, why})
			continue
		}
		revision, err := s.pushed(tx, d, p, pusher(i))
		if err != nil {
			return out, err
		}
		out.Revisions = append(out.Revisions, PushedRevision{d.ID, revision})
	}
	switch {
	case len(out.Revisions)+len(out.Ignored) == 0:
		out.Reason = fmt.Sprintf("no deployment is built from %s with this integration", repositoryOf(p))
	case len(out.Revisions) == 0:
		out.Reason = "no deployment is to be built for this push: " + out.Ignored[0].Name + ": " + out.Ignored[0].Reason
	}
	return out, nil
}

func repositoryOf(p slipway.PushEvent) string {
	if len(p.RepoURLs) == 0 {
		return "the repository"
	}
	return slipway.RepositoryName(p.RepoURLs[0])
}

func builtFrom(d slipway.Deployment, p slipway.PushEvent) bool {
	for _, address := range p.RepoURLs {
		if d.SourceConfig.RepoURL != nil && slipway.SameRepository(*d.SourceConfig.RepoURL, address) {
			return true
		}
	}
	return false
}

func (s *Service) pushed(tx slipway.Tx, d slipway.Deployment, p slipway.PushEvent, by slipway.Principal) (string, error) {
	latest, err := latestNumber(tx, d.ID)
	if err != nil {
		return "", err
	}
	change := slipway.Pushed(d, p, latest, by.ID, s.clock(), s.ids)
	if err := s.write(tx, change); err != nil {
		return "", err
	}
	detail := map[string]any{"name": d.Name, "revision_id": change.Revision.ID, "ref": p.Ref, "repo_commit_sha": p.Commit}
	return change.Revision.ID, s.auditDiff(tx, by, "update_deployment", d.ID, detail, auditView(d), auditView(change.Deployment))
}
