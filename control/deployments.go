package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
)

// Deployment is a deployment as it is shown: its secrets by name, their values masked (control-plane reference 1).
type Deployment struct {
	slipway.Deployment
	Secrets []slipway.Secret // in the order they were given
}

// Create makes a deployment, its tracing project and, where there is something to build, its first revision.
func (s *Service) Create(ctx context.Context, who slipway.Principal, in slipway.DeploymentCreate) (Deployment, error) {
	if err := authorize(who, mayCreate); err != nil {
		return Deployment{}, err
	}
	var out Deployment
	var err error
	if in.SourceRevisionConfig, err = s.pin(ctx, who, in.Source, in.SourceRevisionConfig); err != nil {
		return out, wrap("create deployment", err)
	}
	if err := s.checkRepository(ctx, who, in); err != nil {
		return out, wrap("create deployment", err)
	}
	err = s.update(ctx, func(tx slipway.Tx) error {
		lost, err := place(tx, who.TenantID, &in)
		if err != nil {
			return err
		}
		change, err := slipway.Create(who.TenantID, in, s.inst, who.ID, s.clock(), s.ids)
		if err != nil {
			return err
		}
		if lost {
			change.Deployment = change.Deployment.Unreached(s.clock())
		}
		if err := nameFree(tx, who.TenantID, in.Name); err != nil {
			return err
		}
		project, err := tracingProject(tx, &change.Deployment)
		if err != nil {
			return err
		}
		if err := s.write(tx, change); err != nil {
			return err
		}
		if err := tx.PutTracingProject(project); err != nil {
			return err
		}
		if err := s.auditChange(tx, who, "create_deployment", slipway.Deployment{}, nil, change); err != nil {
			return err
		}
		out, err = s.shown(tx, who.TenantID, change.Deployment.ID)
		return err
	})
	return s.revealed(ctx, who, out, wrap("create deployment", err))
}

func nameFree(tx slipway.Tx, tenantID, name string) error {
	taken, err := tx.DeploymentByName(tenantID, name)
	switch {
	case slipway.ErrorCode(err) == slipway.CodeNotFound:
		return nil
	case err != nil:
		return err
	case taken.Status == slipway.DeploymentAwaitingDelete:
		return slipway.Errorf(slipway.CodeConflict, "the name %q is reserved until the deleted deployment of that name is gone; use another or try again", name)
	}
	return slipway.Errorf(slipway.CodeConflict, "a deployment named %q exists already; use another name or PATCH %s", name, taken.ID)
}

// tracingProject makes the project that bears the deployment's name (spec 2.1), or takes over the one that an earlier
// deployment of the name left.
func tracingProject(tx slipway.Tx, d *slipway.Deployment) (slipway.TracingProject, error) {
	project, err := tx.TracingProjectByName(d.TenantID, d.Name)
	switch {
	case slipway.ErrorCode(err) == slipway.CodeNotFound:
		project = slipway.TracingProject{ID: d.TracingProjectID, TenantID: d.TenantID, Name: d.Name, CreatedAt: d.CreatedAt}
	case err != nil:
		return project, err
	}
	d.TracingProjectID, project.DeploymentID = project.ID, d.ID
	return project, nil
}

// Get returns one deployment of the caller's tenant; a deleted one is not found from the moment of its deletion.
func (s *Service) Get(ctx context.Context, who slipway.Principal, id string) (Deployment, error) {
	if err := authorize(who, mayRead); err != nil {
		return Deployment{}, err
	}
	var out Deployment
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		out, err = s.shown(tx, who.TenantID, id)
		return err
	})
	return s.revealed(ctx, who, out, wrap("get deployment", err))
}

// List returns one page of the caller's tenant, newest first.
func (s *Service) List(ctx context.Context, who slipway.Principal, q slipway.DeploymentQuery) ([]Deployment, error) {
	if err := authorize(who, mayRead); err != nil {
		return nil, err
	}
	q.TenantID = who.TenantID
	if !seesOnly(who, &q) {
		return []Deployment{}, nil
	}
	out := []Deployment{}
	err := s.store.View(ctx, func(tx slipway.Tx) error {
		found, err := tx.Deployments(q)
		if err != nil {
			return err
		}
		out, err = maskedAll(tx, found)
		return err
	})
	if err != nil {
		return nil, wrap("list deployments", err)
	}
	return out, wrap("list deployments", s.reveal(ctx, who, out))
}

// seesOnly narrows a query to the deployment of a deploy key; false if that leaves nothing.
func seesOnly(who slipway.Principal, q *slipway.DeploymentQuery) bool {
	if who.DeploymentID == "" {
		return true
	}
	if len(q.IDs) > 0 && !slices.Contains(q.IDs, who.DeploymentID) {
		return false
	}
	q.IDs = []string{who.DeploymentID}
	return true
}

// Patch changes a deployment (spec 4.1). An identical request that arrives while the first is in flight joins it, so that
// a client's retry makes no second revision; also when another process of the service has the first.
func (s *Service) Patch(ctx context.Context, who slipway.Principal, id string, in slipway.DeploymentPatch) (Deployment, error) {
	if err := authorize(who, mayUpdate); err != nil {
		return Deployment{}, err
	}
	text, err := json.Marshal(in)
	if err != nil {
		return Deployment{}, fmt.Errorf("patch deployment: %w", err)
	}
	key, arrived := s.keyed("patch", who.TenantID, who.ID, id, string(text)), s.clock()
	out, err, _ := s.patches.Do(key, func() (any, error) {
		return s.patch(context.WithoutCancel(ctx), who, id, in, patchRule{check: slipway.Patch, key: key, arrived: arrived})
	})
	if err != nil {
		return Deployment{}, wrap("patch deployment", err)
	}
	return s.revealed(ctx, who, out.(Deployment), nil)
}

// FreeCount returns how many deployments of the caller's tenant are of type dev_free.
func (s *Service) FreeCount(ctx context.Context, who slipway.Principal) (n int, err error) {
	if err := authorize(who, mayRead); err != nil {
		return 0, err
	}
	err = s.store.View(ctx, func(tx slipway.Tx) (err error) {
		n, err = tx.CountDeployments(slipway.DeploymentQuery{TenantID: who.TenantID, Type: "dev_free"})
		return err
	})
	return n, wrap("count free deployments", err)
}

type patchRule struct {
	check   func(slipway.Deployment, slipway.DeploymentPatch, slipway.Installation, slipway.Facts, time.Time, slipway.IDs) (slipway.Change, error)
	key     string    // by which its repetition is known; "" = it is always carried out
	arrived time.Time // when the request did
}

// joins says whether the newest revision was made by an identical request while this one was under way.
func (r patchRule) joins(newest *slipway.Revision) bool {
	return newest != nil && r.key != "" && newest.RequestKey == r.key && newest.CreatedAt.After(r.arrived)
}

func (s *Service) patch(ctx context.Context, who slipway.Principal, id string, in slipway.DeploymentPatch, rule patchRule) (Deployment, error) {
	var out Deployment
	in, err := s.pinPatch(ctx, who, id, in)
	if err != nil {
		return out, err
	}
	err = s.update(ctx, func(tx slipway.Tx) error {
		d, err := visible(tx, who.TenantID, id)
		if err != nil {
			return err
		}
		newest, err := newestRevision(tx, d.ID)
		if err != nil {
			return err
		}
		if rule.joins(newest) {
			out, err = masked(tx, d)
			return err
		}
		facts, err := s.facts(tx, d, newest, in, who)
		if err != nil {
			return err
		}
		change, err := rule.check(d, in, s.inst, facts, s.clock(), s.ids)
		if err != nil {
			return err
		}
		if change.Revision != nil {
			change.Revision.RequestKey = rule.key
		}
		if err := s.write(tx, change); err != nil {
			return err
		}
		if err := s.auditChange(tx, who, "update_deployment", d, facts.SecretNames, change); err != nil {
			return err
		}
		out, err = s.shown(tx, who.TenantID, id)
		return err
	})
	return out, err
}

func (s *Service) facts(tx slipway.Tx, d slipway.Deployment, newest *slipway.Revision, in slipway.DeploymentPatch, who slipway.Principal) (slipway.Facts, error) {
	facts := slipway.Facts{By: who.ID, LatestNumber: numberOf(newest)}
	set, err := secretSet(tx, d.SecretSetID)
	if err != nil {
		return facts, err
	}
	for _, secret := range set.Secrets {
		facts.SecretNames = append(facts.SecretNames, secret.Name)
	}
	if path := in.SourceRevisionConfig.SourceTarballPath; path != nil {
		upload, err := tx.UploadByPath(d.ID, *path)
		if err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
			return facts, err
		}
		if err == nil {
			facts.Upload = &upload
		}
	}
	return facts, nil
}

// visible returns a deployment that is not deleted; anything else is not found, in the words of control-plane reference 1.
func visible(tx slipway.Tx, tenantID, id string) (slipway.Deployment, error) {
	d, err := tx.Deployment(tenantID, id)
	if err != nil {
		return d, deploymentNotFound(id, err)
	}
	if d.Status == slipway.DeploymentAwaitingDelete {
		return slipway.Deployment{}, deploymentNotFound(id, slipway.Errorf(slipway.CodeNotFound, "deleted"))
	}
	return d, nil
}

func deploymentNotFound(id string, err error) error {
	if slipway.ErrorCode(err) != slipway.CodeNotFound {
		return err
	}
	return slipway.Errorf(slipway.CodeNotFound, "Deployment ID %s not found.", id)
}

func (s *Service) shown(tx slipway.Tx, tenantID, id string) (Deployment, error) {
	d, err := visible(tx, tenantID, id)
	if err != nil {
		return Deployment{}, err
	}
	return masked(tx, d)
}

// maskedAll masks a list, reading the secrets' names at once.
func maskedAll(tx slipway.Tx, list []slipway.Deployment) ([]Deployment, error) {
	var ids []string
	for _, d := range list {
		if d.SecretSetID != "" {
			ids = append(ids, d.SecretSetID)
		}
	}
	sets := map[string]slipway.SecretSet{}
	if len(ids) > 0 {
		found, err := tx.SecretSets(ids)
		if err != nil {
			return nil, err
		}
		for _, set := range found {
			sets[set.ID] = set
		}
	}
	out := make([]Deployment, len(list))
	for i, d := range list {
		out[i] = maskedBy(d, sets[d.SecretSetID])
	}
	return out, nil
}

func masked(tx slipway.Tx, d slipway.Deployment) (Deployment, error) {
	set, err := secretSet(tx, d.SecretSetID)
	return maskedBy(d, set), err
}

func maskedBy(d slipway.Deployment, set slipway.SecretSet) Deployment {
	out := Deployment{Deployment: d, Secrets: []slipway.Secret{}}
	for _, secret := range set.Secrets {
		out.Secrets = append(out.Secrets, slipway.Secret{Name: secret.Name, Value: slipway.MaskedSecret})
	}
	return out
}
