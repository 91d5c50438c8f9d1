package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// The kinds of manifest, by media type; "" is none of them.
const (
	ociImage    = "application/vnd.oci.image.manifest.v1+json"
	ociIndex    = "application/vnd.oci.image.index.v1+json"
	dockerImage = "application/vnd.docker.distribution.manifest.v2+json"
	dockerIndex = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// descriptor refers to content by its digest.
type descriptor struct {
	MediaType string   `json:"mediaType"`
	Digest    string   `json:"digest"`
	URLs      []string `json:"urls"`
	Platform  *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// manifest is an image, or an index of images for several platforms.
type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        *descriptor  `json:"config"`
	Layers        []descriptor `json:"layers"`
	Manifests     []descriptor `json:"manifests"`
}

func (m manifest) index() bool { return m.Config == nil }

// mediaType is what the content says of itself, so that it need not be kept beside it.
func (m manifest) mediaType() string {
	switch {
	case m.MediaType != "":
		return m.MediaType
	case m.index():
		return ociIndex
	}
	return ociImage
}

func badManifest(format string, args ...any) error {
	return refusal{http.StatusBadRequest, "MANIFEST_INVALID", fmt.Sprintf(format, args...)}
}

// parseManifest reads a manifest; contentType is what the client calls it, "" if it does not say.
func parseManifest(content []byte, contentType string) (manifest, error) {
	var m manifest
	if err := json.Unmarshal(content, &m); err != nil || m.SchemaVersion != 2 {
		return m, badManifest("the body is no manifest of schema version 2")
	}
	contentType, _, _ = strings.Cut(contentType, ";")
	if contentType = strings.TrimSpace(contentType); contentType != "" && contentType != m.mediaType() {
		return m, badManifest("the manifest is of type %q and was sent as %q", clip(m.mediaType()), clip(contentType))
	}
	switch m.mediaType() {
	case ociImage, dockerImage:
		if m.Config == nil {
			return m, badManifest("the manifest of an image names its config")
		}
	case ociIndex, dockerIndex:
		if m.Config != nil || m.Manifests == nil {
			return m, badManifest("an index names manifests and no config")
		}
	default:
		return m, badManifest("manifests of type %q are not kept here; push an OCI or Docker (schema 2) image", clip(m.mediaType()))
	}
	return m, nil
}

func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

// putManifest keeps a manifest under its digest and, if it was sent to one, makes the tag stand for it.
func (r *Registry) putManifest(w http.ResponseWriter, req *http.Request, c *call) error {
	content, err := io.ReadAll(io.LimitReader(body{req.Body}, maxManifest+1))
	if err != nil {
		return err
	}
	if len(content) > maxManifest {
		return refusal{http.StatusRequestEntityTooLarge, sizeInvalid, fmt.Sprintf("a manifest may have at most %d bytes", maxManifest)}
	}
	m, err := parseManifest(content, req.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if err := c.complete(m); err != nil {
		return err
	}
	digest, err := c.keepManifest(content)
	if err != nil {
		return err
	}
	r.log.Info("image pushed", "tenant_id", c.tenant, "repository", c.name, "reference", c.reference, "digest", digest)
	w.Header().Set("Location", c.path("manifests", digest))
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusCreated)
	return nil
}

func (c *call) keepManifest(content []byte) (string, error) {
	sum := sha256.Sum256(content)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	named := digestForm.MatchString(c.reference)
	if named && c.reference != digest {
		return "", badDigest(c.reference)
	}
	if err := c.space.write(c.space.manifest(c.name, digest), content); err != nil || named {
		return digest, err
	}
	return digest, c.space.write(c.space.tag(c.name, c.reference), []byte(digest))
}

// complete sees to it that everything a manifest refers to is here, so that an image that was pushed can be pulled.
func (c *call) complete(m manifest) error {
	for _, d := range m.Manifests {
		if !digestForm.MatchString(d.Digest) || !exists(c.space.manifest(c.name, d.Digest)) {
			return refusal{http.StatusNotFound, "MANIFEST_BLOB_UNKNOWN", "the index refers to the manifest " + clip(d.Digest) + ", which was not pushed to this repository"}
		}
	}
	var blobs []descriptor
	if m.Config != nil {
		blobs = append([]descriptor{*m.Config}, m.Layers...)
	}
	for i, d := range blobs {
		if len(d.URLs) > 0 && i > 0 && digestForm.MatchString(d.Digest) {
			continue // a layer that is kept elsewhere
		}
		if !digestForm.MatchString(d.Digest) || !c.has(d.Digest) {
			return refusal{http.StatusNotFound, "MANIFEST_BLOB_UNKNOWN", "the manifest refers to the blob " + clip(d.Digest) + ", which was not pushed"}
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lookUp returns the manifest that a tag or digest of a repository stands for, with its digest; missing(err) without one.
func (s *space) lookUp(name, reference string) (digest string, content []byte, err error) {
	if digest = reference; !digestForm.MatchString(reference) {
		text, err := os.ReadFile(s.tag(name, reference))
		if err != nil {
			return "", nil, err
		}
		if digest = string(text); !digestForm.MatchString(digest) {
			return "", nil, fmt.Errorf("registry: the tag %s of %s holds no digest", reference, name)
		}
	}
	content, err = os.ReadFile(s.manifest(name, digest))
	return digest, content, err
}

func (c *call) getManifest(w http.ResponseWriter, req *http.Request) error {
	digest, content, err := c.space.lookUp(c.name, c.reference)
	if missing(err) {
		return refusal{http.StatusNotFound, "MANIFEST_UNKNOWN", "the repository " + c.name + " has no manifest " + c.reference}
	}
	if err != nil {
		return err
	}
	var m manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return errors.Join(errors.New("registry: a kept manifest is no JSON"), err)
	}
	h := w.Header()
	h.Set("Content-Type", m.mediaType())
	h.Set("Docker-Content-Digest", digest)
	h.Set("Content-Length", strconv.Itoa(len(content)))
	if req.Method == http.MethodHead {
		return nil
	}
	_, err = w.Write(content)
	return ignored(err)
}
