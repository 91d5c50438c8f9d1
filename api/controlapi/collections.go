package controlapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/control"
)

// CollectionRequest is the body of POST /v2/collections.
type CollectionRequest struct {
	DryRun bool `json:"dry_run" doc:"only say what would go"`
	All    bool `json:"all" doc:"everything that no running or redeployable revision needs, also while there is room"`
}

// Collection says what a collection removed from the installation's disk, or would.
type Collection struct {
	Removals    []Removal `json:"removals" required:"true" nullable:"false" doc:"what went, or would, in this order"`
	FreedBytes  int64     `json:"freed_bytes" required:"true" doc:"disk that it took"`
	KeptBytes   int64     `json:"kept_bytes" required:"true" doc:"disk that the rest takes"`
	NeededBytes int64     `json:"needed_bytes" required:"true" doc:"of that, what running and redeployable revisions and running builds need"`
}

// Removal is one thing that went, or would.
type Removal struct {
	Path      string    `json:"path" required:"true" doc:"what it is, relative to the data directory"`
	SizeBytes int64     `json:"size_bytes" required:"true" doc:"disk that it took"`
	UsedAt    time.Time `json:"used_at" required:"true" doc:"when a build last used it"`
	Reason    string    `json:"reason" required:"true" doc:"why nobody needs it"`
}

func (a *api) collections() {
	huma.Register(a.huma, reaching(control.ReachOrganisation, operation("collect_garbage", http.MethodPost, "/v2/collections",
		"Remove what builds left and nobody needs from the installation's disk")), a.collect)
}

func (a *api) collect(ctx context.Context, in *struct{ Body *CollectionRequest }) (*struct{ Body Collection }, error) {
	if in.Body == nil {
		in.Body = &CollectionRequest{}
	}
	done, err := a.svc.CollectNow(ctx, authn.Principal(ctx), control.CollectionRequest{DryRun: in.Body.DryRun, All: in.Body.All})
	if err != nil {
		return nil, a.problem(err)
	}
	out := Collection{Removals: []Removal{}, FreedBytes: done.Freed, KeptBytes: done.Kept, NeededBytes: done.Needed}
	for _, r := range done.Removals {
		out.Removals = append(out.Removals, Removal{Path: r.Path, SizeBytes: r.Size, UsedAt: r.UsedAt.UTC(), Reason: r.Why})
	}
	return &struct{ Body Collection }{out}, nil
}

// RevisionDiff says what changed from one revision to another.
type RevisionDiff struct {
	RevisionID string           `json:"revision_id" required:"true" doc:"the later of the two"`
	Against    string           `json:"against" required:"true" doc:"what it is compared with; empty = it is the first"`
	Changes    []RevisionChange `json:"changes" required:"true" nullable:"false" doc:"what differs, by field; values of secrets are never told"`
}

// RevisionChange is one thing that differs.
type RevisionChange struct {
	Field  string  `json:"field" required:"true" doc:"such as source_revision_config.repo_commit_sha, secrets.NAME or packages.python idna"`
	Before *string `json:"before" required:"true" doc:"null = it was not there"`
	After  *string `json:"after" required:"true" doc:"null = it is gone"`
}

type diffInput struct {
	RevisionPath
	Against string `query:"against" maxLength:"36" doc:"id of the revision to compare with; without it the one before"`
}

func (a *api) diffRevisions(ctx context.Context, in *diffInput) (*struct{ Body RevisionDiff }, error) {
	d, err := a.svc.Diff(ctx, authn.Principal(ctx), in.DeploymentID, in.RevisionID, in.Against)
	if err != nil {
		return nil, a.problem(err)
	}
	out := RevisionDiff{RevisionID: d.RevisionID, Against: d.Against, Changes: []RevisionChange{}}
	for _, c := range d.Changes {
		out.Changes = append(out.Changes, RevisionChange{Field: c.Field, Before: c.Before, After: c.After})
	}
	return &struct{ Body RevisionDiff }{out}, nil
}
