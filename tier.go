package slipway

import "time"

// Tier is a size of a deployment that the platform chooses resources for (control-plane reference 2, 8).
type Tier string

// The tiers. Those of one kind may replace each other, those of different kinds may not.
const (
	ServerlessS Tier = "SERVERLESS_S"
	ServerlessM Tier = "SERVERLESS_M"
	ServerlessL Tier = "SERVERLESS_L"
	DedicatedS  Tier = "DEDICATED_S"
	DedicatedM  Tier = "DEDICATED_M"
	DedicatedL  Tier = "DEDICATED_L"
)

// Tiers lists every tier, smallest first.
func Tiers() []Tier {
	return []Tier{ServerlessS, ServerlessM, ServerlessL, DedicatedS, DedicatedM, DedicatedL}
}

// TierResources are what a tier stands for: cores, memory in MB; of the database only where it is the deployment's own.
type TierResources struct {
	CPU        float64
	MemoryMB   int
	DBCPU      float64 // 0 = the database is shared
	DBMemoryMB int
}

// Resources returns what the tier stands for (control-plane reference 8); ok is false for an unknown tier.
func (t Tier) Resources() (r TierResources, ok bool) {
	switch t {
	case ServerlessS:
		return TierResources{CPU: 1, MemoryMB: 2 << 10}, true
	case ServerlessM:
		return TierResources{CPU: 2, MemoryMB: 5 << 10}, true
	case ServerlessL:
		return TierResources{CPU: 4, MemoryMB: 9 << 10}, true
	case DedicatedS:
		return TierResources{CPU: 3, MemoryMB: 6 << 10, DBCPU: 1, DBMemoryMB: 4 << 10}, true
	case DedicatedM:
		return TierResources{CPU: 5, MemoryMB: 12 << 10, DBCPU: 2, DBMemoryMB: 8 << 10}, true
	case DedicatedL:
		return TierResources{CPU: 10, MemoryMB: 24 << 10, DBCPU: 4, DBMemoryMB: 16 << 10}, true
	}
	return TierResources{}, false
}

// Dedicated says whether the tier has a database of its own; tiers without one scale to zero.
func (t Tier) Dedicated() bool {
	r, _ := t.Resources()
	return r.DBCPU > 0
}

// TierSpec returns the resource spec of a pair of tiers, with its defaults; nil without any.
func TierSpec(compute, database Tier) *ResourceSpec {
	var s ResourceSpec
	if r, ok := compute.Resources(); ok {
		s.CPU, s.MemoryMB = &r.CPU, &r.MemoryMB
		s.CPULimit, s.MemoryLimitMB = &r.CPU, &r.MemoryMB // a tier is what is paid for, not what may be borrowed
		if !compute.Dedicated() {
			zero := 0
			s.MinScale = &zero
		}
	}
	if r, ok := database.Resources(); ok && database.Dedicated() {
		s.DBCPU, s.DBMemoryMB = &r.DBCPU, &r.DBMemoryMB
		s.DBCPULimit, s.DBMemoryLimitMB = &r.DBCPU, &r.DBMemoryMB
	}
	if s.CPU == nil && s.DBCPU == nil {
		return nil
	}
	full := s.WithDefaults()
	return &full
}

// TierChange is the request to change a deployment's tiers; nil = unchanged (control-plane reference 2).
type TierChange struct {
	Compute  *Tier
	Database *Tier
	// Field is the member of the body that both come from, such as "deployment_tier"; "" = compute_tier, database_tier.
	Field string
}

// ChangeTier checks the rules about tiers and returns what to write: a revision of the newest blueprint with the new
// resources, its artifact if it has one, so that a change of size never deploys newer code. Tiers that are set already
// change nothing. newest is the deployment's newest revision, nil = none. CodeBadRequest: the source sizes itself by
// resource_spec, or the tier is of the other kind.
func ChangeTier(d Deployment, in TierChange, newest *Revision, facts Facts, now time.Time, ids IDs) (Change, error) {
	if err := validateTiers(in); err != nil {
		return Change{}, err
	}
	if err := tierConflict(d, in); err != nil {
		return Change{}, err
	}
	c := Change{Deployment: d}
	compute, database := tierOr(in.Compute, d.ComputeTier), tierOr(in.Database, d.DatabaseTier)
	if compute == d.ComputeTier && database == d.DatabaseTier {
		return c, nil
	}
	c.Deployment.ComputeTier, c.Deployment.DatabaseTier, c.Deployment.UpdatedAt = compute, database, now
	if newest == nil && !c.Deployment.Buildable(d.Source) {
		return c, nil
	}
	source := d.Source
	if newest != nil {
		source = newest.Source
	}
	c.addRevision(source, facts.LatestNumber+1, facts.By, now, ids)
	if newest != nil {
		c.keepArtifact(*newest)
	}
	return c, nil
}

// keepArtifact lets the change's revision run what old was built to.
func (c *Change) keepArtifact(old Revision) {
	r := c.Revision
	r.SourceRevisionConfig, r.ArtifactDigest, r.BuildSecretSetID = old.SourceRevisionConfig, old.ArtifactDigest, old.BuildSecretSetID
	c.Deployment.SourceRevisionConfig = old.SourceRevisionConfig
}

func validateTiers(in TierChange) error {
	var problems Problems
	compute, database := in.Field, in.Field
	if in.Field == "" {
		compute, database = "compute_tier", "database_tier"
		if in.Compute == nil && in.Database == nil {
			problems.Add(at(), "give compute_tier, database_tier or both")
		}
	}
	if in.Compute != nil {
		validateTier(&problems, compute, *in.Compute)
	}
	if in.Database != nil && (in.Field == "" || in.Compute == nil) {
		validateTier(&problems, database, *in.Database)
		if _, known := in.Database.Resources(); known && !in.Database.Dedicated() && in.Field == "" {
			problems.Add(at(database), "database_tier %q has no database of its own; use DEDICATED_S, DEDICATED_M or DEDICATED_L", *in.Database)
		}
	}
	return problems.Err()
}

func validateTier(problems *Problems, field string, t Tier) {
	if _, ok := t.Resources(); !ok {
		problems.Add(at(field), "%s %q is no tier; use one of %v", field, short(string(t)), Tiers())
	}
}

// tierConflict finds what of the request clashes with the stored deployment.
func tierConflict(d Deployment, in TierChange) error {
	if d.Source == SourceExternalContainer {
		return Errorf(CodeBadRequest, "deployment %q is of source external_container, which has no tiers; PATCH source_config.resource_spec instead", d.Name)
	}
	compute := tierOr(in.Compute, d.ComputeTier)
	if d.ComputeTier != "" && compute.Dedicated() != d.ComputeTier.Dedicated() {
		return Errorf(CodeBadRequest, "deployment %q is %s and cannot become %s: tiers change within SERVERLESS or within DEDICATED only; make a new deployment", d.Name, d.ComputeTier, compute)
	}
	if in.Database != nil && in.Database.Dedicated() && compute != "" && !compute.Dedicated() {
		return Errorf(CodeBadRequest, "deployment %q is %s, whose database is shared; database_tier is for DEDICATED tiers only", d.Name, compute)
	}
	if in.Compute != nil && !in.Compute.Dedicated() && d.DatabaseTier.Dedicated() {
		return Errorf(CodeBadRequest, "deployment %q has a database of tier %s and cannot become %s; make a new deployment", d.Name, d.DatabaseTier, compute)
	}
	return nil
}

func tierOr(in *Tier, stored Tier) Tier {
	if in != nil {
		return *in
	}
	return stored
}
