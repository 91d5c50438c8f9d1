package slipway

import "time"

// IdempotencyClaim is the record of a request that bore an Idempotency-Key, from its beginning until it is forgotten
// (control-plane reference 1). It keeps a repetition from having a second effect.
type IdempotencyClaim struct {
	Scope    string // keyed hash of tenant, principal, method, path and key
	TenantID string
	Request  string // keyed hash of query and body
	Owner    string // the attempt that holds it; only that one may commit and answer
	// LeaseEnds is when an attempt that neither committed nor answered counts as dead, and another may take over.
	LeaseEnds time.Time
	Running   bool // not answered yet
	Committed bool // its effects are durable, so that nobody may carry it out again
	EndsAt    time.Time

	// The answer, once it is there. The body is sealed: it may hold a secret that is shown once.
	Status int
	Header map[string]string
	Sealed []byte // nil = it was too large to be kept
}

// IdempotencyRecords keeps claims; it is part of Tx.
type IdempotencyRecords interface {
	// IdempotencyClaim returns the claim of a scope.
	IdempotencyClaim(scope string) (IdempotencyClaim, error)
	// PutIdempotencyClaim inserts or replaces a claim by Scope.
	PutIdempotencyClaim(c IdempotencyClaim) error
	// DropIdempotencyClaim removes a claim; an absent one is no error.
	DropIdempotencyClaim(scope string) error
	// ExpireIdempotencyClaims removes at most limit claims whose EndsAt is not after now and returns when the next one ends,
	// zero without any.
	ExpireIdempotencyClaims(now time.Time, limit int) (next time.Time, err error)
	// TrimIdempotencyClaims removes the claims of a tenant that end first, but for the keep that end last.
	TrimIdempotencyClaims(tenantID string, keep int) error
	// FreeIdempotencyClaims removes every claim that runs uncommitted and ends the lease of the others that run.
	FreeIdempotencyClaims() error
}
