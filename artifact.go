package slipway

import (
	"context"
	"path"
	"regexp"
	"strings"
	"time"
)

// ArtifactPart is one directory of an artifact as an archive in the blob store: the bundle, or one of the directories that
// bundles share.
type ArtifactPart struct {
	Path string `json:"path"` // relative to the data directory: "bundles/<hex>", "layers/node-…", "tools/tsx-…"
	Blob string `json:"blob"` // digest of the archive
	Size int64  `json:"size"` // of the archive, in bytes
}

// Artifact is what is known of a built artifact besides the revisions that name its digest.
type Artifact struct {
	Digest string
	// Parts are what a machine without the artifact makes it from; nil = it was built where it runs.
	Parts []ArtifactPart
	// CollectedAt is when it was given up to make room; zero = it is there. A revision that needs it again is built again.
	CollectedAt time.Time
	CreatedAt   time.Time
}

// Collected says whether the artifact was given up.
func (a Artifact) Collected() bool { return !a.CollectedAt.IsZero() }

// MaxArtifactParts bounds the directories of one artifact.
const MaxArtifactParts = 100

var partForm = regexp.MustCompile(`^(bundles/[0-9a-f]{64}|(layers|tools)/[A-Za-z0-9][A-Za-z0-9._-]{0,199})$`)

// ValidDigest says whether text is a digest as blobs and artifacts have it.
func ValidDigest(text string) bool { return digestForm.MatchString(text) }

// ValidPart says whether a path may be that of a part.
func ValidPart(p string) bool { return partForm.MatchString(p) && path.Clean(p) == p }

// ValidParts checks the parts of an artifact: exactly one is the bundle of that digest.
func ValidParts(digest string, parts []ArtifactPart) error {
	var problems Problems
	if !ValidDigest(digest) {
		problems.Add([]any{"body", "artifact_digest"}, "%q is no digest; give sha256: and 64 hexadecimal digits", digest)
	}
	if len(parts) == 0 || len(parts) > MaxArtifactParts {
		problems.Add([]any{"body", "parts"}, "%d parts were given; give 1 to %d", len(parts), MaxArtifactParts)
		return problems.Err()
	}
	bundle, seen := false, map[string]bool{}
	for i, p := range parts {
		switch {
		case !ValidPart(p.Path) || seen[p.Path]:
			problems.Add([]any{"body", "parts", i, "path"}, "%q is no place of a part; give bundles/, layers/ or tools/ and a name, each once", p.Path)
		case strings.HasPrefix(p.Path, "bundles/") && p.Path != BundlePath("bundles", digest):
			problems.Add([]any{"body", "parts", i, "path"}, "%q is not the bundle of %s; an artifact has its own bundle only", p.Path, digest)
		}
		if !ValidDigest(p.Blob) {
			problems.Add([]any{"body", "parts", i, "blob"}, "%q is no digest; give sha256: and 64 hexadecimal digits", p.Blob)
		}
		bundle, seen[p.Path] = bundle || p.Path == BundlePath("bundles", digest), true
	}
	if !bundle {
		problems.Add([]any{"body", "parts"}, "the bundle of %s is missing; give it as %s", digest, BundlePath("bundles", digest))
	}
	return problems.Err()
}

// ArtifactRecords keep what is known of artifacts, and whose turn it is to build; they are part of Tx.
type ArtifactRecords interface {
	// Artifact returns what is known; CodeNotFound if nothing is.
	Artifact(digest string) (Artifact, error)
	Artifacts() ([]Artifact, error)
	// PutArtifact inserts or replaces by digest.
	PutArtifact(a Artifact) error
	// DeleteArtifact removes a record; an unknown digest is no error.
	DeleteArtifact(digest string) error

	// TakeBuildTurn records that a build of the tenant begins: ClaimBuild gives the next one to somebody else.
	TakeBuildTurn(tenantID string, now time.Time) error
	// Uploads returns every slot, also those that nothing has come to yet.
	Uploads() ([]Upload, error)
	// DeleteUpload removes a slot; an unknown id is no error.
	DeleteUpload(id string) error
}

// Depot is where an artifact goes that is to run on another machine than the one that built it.
type Depot interface {
	// Store uploads the parts of the bundle below root that the depot lacks, for the build that holds the lease, and returns
	// all of them.
	Store(ctx context.Context, job BuildJob, root string, digest string, shared []string) ([]ArtifactPart, error)
}
