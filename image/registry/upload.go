package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// startUpload answers POST blobs/uploads/: an upload begins, or is done at once when the tenant has the blob already
// (mount) or the body is all of it (digest). What lies in another tenant's repositories is never mounted.
func (r *Registry) startUpload(w http.ResponseWriter, req *http.Request, c *call) error {
	query := req.URL.Query()
	if digest := query.Get("mount"); digestForm.MatchString(digest) && c.has(digest) {
		return c.blobCreated(w, digest)
	}
	if err := r.sweep(c); err != nil {
		return err
	}
	c.reference = r.ids()
	release, err := c.space.hold(c.reference)
	if err != nil {
		return err
	}
	defer release()
	if err := c.space.openUpload(c.reference); err != nil {
		return err
	}
	if query.Has("digest") {
		return r.finishUpload(w, req, c)
	}
	return c.uploadState(w, 0, http.StatusAccepted)
}

func (s *space) openUpload(id string) error {
	if err := s.reserve(fileCost); err != nil {
		return err
	}
	f, err := os.OpenFile(s.uploadFile(id), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		s.release(fileCost)
		return err
	}
	return f.Close()
}

// sweep removes uploads that were given up and refuses a new one when there are too many.
func (r *Registry) sweep(c *call) error {
	entries, err := os.ReadDir(c.space.path("uploads"))
	if err != nil {
		return err
	}
	open, oldest := 0, r.clock().Add(-r.cfg.UploadTTL)
	for _, entry := range entries {
		info, err := entry.Info()
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		if info.ModTime().After(oldest) {
			open++
			continue
		}
		if release, err := c.space.hold(entry.Name()); err == nil {
			err = c.space.dropUpload(entry.Name())
			release()
			if err != nil {
				return err
			}
		}
	}
	if open >= r.cfg.MaxUploads {
		return refusal{http.StatusTooManyRequests, "TOOMANYREQUESTS", fmt.Sprintf("%d uploads are open already; finish or cancel some", open)}
	}
	return nil
}

// dropUpload removes an upload and what it counted for.
func (s *space) dropUpload(id string) error {
	size, err := s.uploaded(id)
	if missing(err) {
		return nil
	}
	if err = errors.Join(err, os.Remove(s.uploadFile(id))); err == nil {
		s.release(cost(size))
	}
	return err
}

func (s *space) uploaded(id string) (int64, error) {
	info, err := os.Stat(s.uploadFile(id))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// size returns how much of the call's upload has arrived.
func (c *call) size() (int64, error) {
	n, err := c.space.uploaded(c.reference)
	if missing(err) {
		return 0, unknownUpload()
	}
	return n, err
}

func (c *call) uploadStatus(w http.ResponseWriter) error {
	n, err := c.size()
	if err != nil {
		return err
	}
	return c.uploadState(w, n, http.StatusNoContent)
}

// uploadState tells how much has arrived and where the rest goes.
func (c *call) uploadState(w http.ResponseWriter, n int64, status int) error {
	h := w.Header()
	h.Set("Location", c.path("blobs", "uploads", c.reference))
	h.Set("Docker-Upload-UUID", c.reference)
	h.Set("Range", "0-"+strconv.FormatInt(max(n-1, 0), 10))
	h.Set("Content-Length", "0")
	w.WriteHeader(status)
	return nil
}

func (c *call) giveUp(w http.ResponseWriter) error {
	if _, err := c.size(); err != nil {
		return err
	}
	if err := c.space.dropUpload(c.reference); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// appendUpload answers PATCH: the next part, which must begin where the upload stands.
func (r *Registry) appendUpload(w http.ResponseWriter, req *http.Request, c *call) error {
	n, err := r.receive(req, c)
	if err != nil {
		return err
	}
	return c.uploadState(w, n, http.StatusAccepted)
}

// receive appends the body to the upload and returns its size then. What arrived of a body that was cut stays: the
// client asks how much that is and goes on.
func (r *Registry) receive(req *http.Request, c *call) (int64, error) {
	n, err := c.size()
	if err != nil {
		return 0, err
	}
	if start, ok := rangeStart(req.Header.Get("Content-Range")); ok && start != n {
		return 0, refusal{http.StatusRequestedRangeNotSatisfiable, uploadBad, fmt.Sprintf("the upload stands at byte %d; go on from there", n)}
	}
	if req.ContentLength > r.cfg.MaxBlob-n {
		return 0, r.tooLarge(c)
	}
	f, err := os.OpenFile(c.space.uploadFile(c.reference), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	written, err := io.CopyBuffer(&counted{f, c.space}, io.LimitReader(body{req.Body}, r.cfg.MaxBlob-n+1), make([]byte, 256<<10))
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, c.abandon(err)
	}
	if n+written > r.cfg.MaxBlob {
		return 0, r.tooLarge(c)
	}
	return n + written, nil
}

// tooLarge gives the room back that the upload takes.
func (r *Registry) tooLarge(c *call) error {
	if err := c.space.dropUpload(c.reference); err != nil {
		return err
	}
	return refusal{http.StatusRequestEntityTooLarge, sizeInvalid, fmt.Sprintf("a layer may have at most %d bytes", r.cfg.MaxBlob)}
}

// abandon drops the upload if err says that there is no room for it.
func (c *call) abandon(err error) error {
	var full refusal
	if errors.As(err, &full) && full.code == denied {
		return errors.Join(full, c.space.dropUpload(c.reference))
	}
	return err
}

// rangeStart reads the first number of "12-34", with or without the word "bytes" before it.
func rangeStart(header string) (int64, bool) {
	first, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(header, "bytes")), "-")
	n, err := strconv.ParseInt(first, 10, 64)
	return n, err == nil
}

// counted counts what it writes against the tenant's room.
type counted struct {
	f     *os.File
	space *space
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	if err := c.space.reserve(int64(len(p))); err != nil {
		return 0, err
	}
	n, err := c.f.Write(p)
	c.space.release(int64(len(p) - n))
	return n, err
}

// body makes the client's failures the client's.
type body struct{ io.Reader }

// Read implements io.Reader.
func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = refusal{http.StatusBadRequest, uploadBad, "the body ended before it was complete; ask for the upload's state and go on from there"}
	}
	return n, err
}

// finishUpload answers PUT: the last part, if any, and what all of it must come to.
func (r *Registry) finishUpload(w http.ResponseWriter, req *http.Request, c *call) error {
	digest := req.URL.Query().Get("digest")
	if !digestForm.MatchString(digest) {
		return badDigest(digest)
	}
	if _, err := r.receive(req, c); err != nil {
		return err
	}
	if err := c.space.keep(c.reference, digest); err != nil {
		return err
	}
	return c.blobCreated(w, digest)
}

// keep makes a blob of an upload, having read from the disk that it is what it is said to be.
func (s *space) keep(id, digest string) error {
	f, err := os.OpenFile(s.uploadFile(id), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if "sha256:"+hex.EncodeToString(sum.Sum(nil)) != digest {
		return errors.Join(badDigest(digest), s.dropUpload(id))
	}
	if _, err := os.Stat(s.blob(digest)); err == nil {
		return s.dropUpload(id)
	}
	return s.place(s.uploadFile(id), s.blob(digest))
}

func (c *call) blobCreated(w http.ResponseWriter, digest string) error {
	h := w.Header()
	h.Set("Location", c.path("blobs", digest))
	h.Set("Docker-Content-Digest", digest)
	h.Set("Content-Length", "0")
	w.WriteHeader(http.StatusCreated)
	return nil
}

func (c *call) has(digest string) bool {
	_, err := os.Stat(c.space.blob(digest))
	return err == nil
}
