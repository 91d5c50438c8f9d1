package controlapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
)

// DeploymentTierRequest is the body of PATCH deployment-tier (control-plane reference 2).
type DeploymentTierRequest struct {
	DeploymentTier string `json:"deployment_tier" required:"true" enum:"SERVERLESS_S,SERVERLESS_M,SERVERLESS_L,DEDICATED_S,DEDICATED_M,DEDICATED_L" doc:"the tier of compute and database"`
}

// ResourceTiersRequest is the body of PATCH resource-tiers: at least one of them; null keeps what is stored.
type ResourceTiersRequest struct {
	ComputeTier  *string `json:"compute_tier" enum:"SERVERLESS_S,SERVERLESS_M,SERVERLESS_L,DEDICATED_S,DEDICATED_M,DEDICATED_L" doc:"null keeps what is stored"`
	DatabaseTier *string `json:"database_tier" enum:"DEDICATED_S,DEDICATED_M,DEDICATED_L" doc:"null keeps what is stored"`
}

type deploymentTierInput struct {
	DeploymentPath
	Body DeploymentTierRequest
}

type resourceTiersInput struct {
	DeploymentPath
	Body ResourceTiersRequest
}

type countOutput struct {
	Body struct {
		Count int `json:"count" required:"true" doc:"how many there are"`
	}
}

func (a *api) tiers() {
	one := deploymentsPath + "/{deployment_id}"
	huma.Register(a.huma, operation("count_free_deployments", http.MethodGet, deploymentsPath+"/free-count", "Count the deployments of type dev_free"), a.freeCount)
	huma.Register(a.huma, operation("change_deployment_tier", http.MethodPatch, one+"/deployment-tier", "Change a deployment's tier", 400, 404), a.changeDeploymentTier)
	huma.Register(a.huma, operation("change_resource_tiers", http.MethodPatch, one+"/resource-tiers", "Change the tiers of compute and database", 400, 404), a.changeResourceTiers)
}

func (a *api) freeCount(ctx context.Context, _ *struct{}) (*countOutput, error) {
	n, err := a.svc.FreeCount(ctx, authn.Principal(ctx))
	if err != nil {
		return nil, a.problem(err)
	}
	out := &countOutput{}
	out.Body.Count = n
	return out, nil
}

// changeDeploymentTier sets both tiers from one; a serverless database is shared and has none.
func (a *api) changeDeploymentTier(ctx context.Context, in *deploymentTierInput) (*deploymentOutput, error) {
	tier := slipway.Tier(in.Body.DeploymentTier)
	change := slipway.TierChange{Compute: &tier, Field: "deployment_tier"}
	if tier.Dedicated() {
		change.Database = &tier
	}
	return a.answer(a.svc.ChangeTier(ctx, authn.Principal(ctx), in.DeploymentID, change))
}

func (a *api) changeResourceTiers(ctx context.Context, in *resourceTiersInput) (*deploymentOutput, error) {
	change := slipway.TierChange{Compute: tierOrNil(in.Body.ComputeTier), Database: tierOrNil(in.Body.DatabaseTier)}
	return a.answer(a.svc.ChangeTier(ctx, authn.Principal(ctx), in.DeploymentID, change))
}

func tierOrNil(name *string) *slipway.Tier {
	if name == nil {
		return nil
	}
	tier := slipway.Tier(*name)
	return &tier
}
