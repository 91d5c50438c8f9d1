package main

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/controlapi"
	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/control/buildqueuetest"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/shelf"
	"github.com/slipway-dev/slipway/store/sqlite"
)

// TestTheQueueOverHTTP is the suite of build queues on the line of a builder elsewhere, which hands its artifacts over.
func TestTheQueueOverHTTP(t *testing.T) {
	buildqueuetest.Run(t, func(t *testing.T) *buildqueuetest.Bench {
		b, line, _ := benchElsewhere(t)
		b.Queue = line
		b.HandOver = func(t *testing.T, job slipway.BuildJob) slipway.BuildResult {
			t.Helper()
			result := b.Incomplete(t, job)
			parts, err := line.Store(t.Context(), job, "", result.ArtifactDigest, []string{"layers/node-1"})
			if err != nil {
				t.Fatal(err)
			}
			again, err := line.Store(t.Context(), job, "", result.ArtifactDigest, []string{"layers/node-1"})
			if err != nil || len(parts) != 2 || len(again) != 2 || parts[0] != again[0] || parts[1] != again[1] {
				t.Fatalf("handed over %+v, and once more %+v, %v", parts, again, err)
			}
			result.Parts = parts
			return result
		}
		return b
	})
}

// benchElsewhere is a control service on the network, and the line of a builder of the organisation to it.
func benchElsewhere(t *testing.T) (*buildqueuetest.Bench, *builderLine, *controltest.World) {
	t.Helper()
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.OpenControl(filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	w := controltest.New(t, store, key, "http://slipway.test")
	server := httptest.NewServer(controlapi.New(w.Service, controlapi.Config{BaseURL: "http://slipway.test", Version: "test", Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(func() {
		server.CloseClientConnections() // a claim may wait there
		server.Close()
		_ = store.Close()
	})
	everything := slipway.Principal{ID: "key:everything", TenantID: w.Admin.TenantID, Role: slipway.RoleAdmin, Organisation: true}
	issued, err := w.CreateKey(t.Context(), everything, slipway.APIKeyCreate{Role: slipway.RoleBuilder, Organisation: true})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	things, err := shelf.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	b := buildqueuetest.On(w)
	whole := b.HandOver
	b.Incomplete = func(t *testing.T, job slipway.BuildJob) slipway.BuildResult {
		t.Helper()
		result := whole(t, job)
		for _, at := range []string{slipway.BundlePath("bundles", result.ArtifactDigest), "layers/node-1"} {
			if err := os.MkdirAll(filepath.Join(root, at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, at, "file"), []byte(at), 0o644); err != nil {
				t.Fatal(err)
			}
			digest, size, err := things.Packed(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			result.Parts = append(result.Parts, slipway.ArtifactPart{Path: at, Blob: digest, Size: size})
		}
		return result
	}
	return b, &builderLine{client: client.New(server.URL, issued.Key), shelf: things, sources: map[string]string{}}, w
}

// A builder with a key of one tenant sees nothing of another's builds, whatever lease it knows.
func TestATenantsBuilderBuildsForItAlone(t *testing.T) {
	t.Parallel()
	b, all, w := benchElsewhere(t)
	foreign := b.Create(t, "theirs", "desk")
	issued, err := w.CreateKey(t.Context(), w.Admin, slipway.APIKeyCreate{Role: slipway.RoleBuilder})
	if err != nil {
		t.Fatal(err)
	}
	own := client.New(all.client.Base(), issued.Key)
	if job, err := own.ClaimBuild(t.Context(), "own", 0); job != nil || err != nil {
		t.Errorf("claimed %+v, %v", job, err)
	}
	job, err := all.Claim(t.Context(), "all")
	if err != nil || job.DeploymentID != foreign {
		t.Fatalf("claimed %+v, %v", job, err)
	}
	for name, err := range map[string]error{
		"renew": own.RenewBuild(t.Context(), job.RevisionID, leaseOf(job)),
		"log":   own.AppendBuildLogs(t.Context(), job.RevisionID, leaseOf(job), []client.BuildLog{}),
		"fail":  own.FailBuild(t.Context(), job.RevisionID, leaseOf(job), "x"),
		"blobs": func() error {
			_, err := own.FindMissingBlobs(t.Context(), job.RevisionID, leaseOf(job), []string{})
			return err
		}(),
	} {
		if !client.IsStatus(err, 404) {
			t.Errorf("%s: %v, want 404", name, err)
		}
	}
	if err := all.Renew(t.Context(), job); err != nil {
		t.Errorf("the builder that holds it: %v", err)
	}
}
