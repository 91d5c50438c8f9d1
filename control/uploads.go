package control

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway"
)

// UploadSlot is where to put a source archive, and what to call it afterwards.
type UploadSlot struct {
	URL        string // absolute, signed, single-use, expiring
	ObjectPath string // the source_tarball_path of a later PATCH
}

// NewUpload makes a slot for a source archive of the deployment (control-plane reference 5).
func (s *Service) NewUpload(ctx context.Context, who slipway.Principal, deploymentID string) (UploadSlot, error) {
	if err := authorize(who, mayUpdate); err != nil {
		return UploadSlot{}, err
	}
	id := s.ids()
	u := slipway.Upload{
		ID: id, DeploymentID: deploymentID, TenantID: who.TenantID, ExpiresAt: s.clock().Add(s.cfg.UploadTTL).Truncate(time.Second),
		ObjectPath: "uploads/" + deploymentID + "/" + id + ".tar.gz",
	}
	err := s.store.Update(ctx, func(tx slipway.Tx) error {
		if _, err := visible(tx, who.TenantID, deploymentID); err != nil {
			return err
		}
		return tx.PutUpload(u)
	})
	if err != nil {
		return UploadSlot{}, wrap("make upload", err)
	}
	expires := strconv.FormatInt(u.ExpiresAt.Unix(), 10)
	url := fmt.Sprintf("%s/uploads/%s?expires=%s&signature=%s", s.cfg.BaseURL, id, expires, s.sign(id, expires))
	return UploadSlot{URL: url, ObjectPath: u.ObjectPath}, nil
}

func (s *Service) sign(id, expires string) string {
	mac := hmac.New(sha256.New, s.cfg.UploadKey)
	mac.Write([]byte("PUT " + id + " " + expires))
	return hex.EncodeToString(mac.Sum(nil))
}

// AcceptUpload stores the archive that a client PUTs to a signed URL; the signature is the whole authorisation.
// CodeForbidden: not signed by us or expired; CodeConflict: used before; CodeTooLarge; CodeBadRequest: no gzip archive, or
// cut short. size is the announced length in bytes, below 0 if nobody knows.
func (s *Service) AcceptUpload(ctx context.Context, id, expires, signature string, size int64, body io.Reader) error {
	if err := s.checkSignature(id, expires, signature); err != nil {
		return err
	}
	u, err := s.openSlot(ctx, id)
	if err != nil {
		return wrap("accept upload", err)
	}
	if size > s.cfg.UploadLimit {
		return s.tooLarge()
	}
	source := &sourceBody{Reader: body}
	buffered := bufio.NewReader(source)
	if magic, err := buffered.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return slipway.Errorf(slipway.CodeBadRequest, "the body is no gzip archive; send a .tar.gz of the source")
	}
	digest, stored, err := s.blob.Put(ctx, buffered, s.cfg.UploadLimit)
	if slipway.ErrorCode(err) == slipway.CodeTooLarge {
		return s.tooLarge()
	}
	if source.err != nil {
		return slipway.Errorf(slipway.CodeBadRequest, "the upload ended before the archive was complete; send it again")
	}
	if err != nil {
		return wrap("accept upload", err)
	}
	u.Digest, u.Size, u.UploadedAt = digest, stored, s.clock()
	return wrap("accept upload", s.store.Update(ctx, func(tx slipway.Tx) error {
		if _, err := unused(tx, id); err != nil {
			return err
		}
		return tx.PutUpload(u)
	}))
}

func (s *Service) tooLarge() error {
	return slipway.Errorf(slipway.CodeTooLarge, "the archive is larger than %d bytes; leave out what the graphs do not need", s.cfg.UploadLimit)
}

// sourceBody remembers that the client's side of an upload failed: that is not our fault.
type sourceBody struct {
	io.Reader
	err error
}

func (b *sourceBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

func (s *Service) checkSignature(id, expires, signature string) error {
	if !hmac.Equal([]byte(signature), []byte(s.sign(id, expires))) {
		return slipway.Errorf(slipway.CodeForbidden, "the upload address is not one of ours; ask for a new upload-url")
	}
	until, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || s.clock().Unix() >= until {
		return slipway.Errorf(slipway.CodeForbidden, "the upload address has expired; ask for a new upload-url")
	}
	return nil
}

func (s *Service) openSlot(ctx context.Context, id string) (u slipway.Upload, err error) {
	err = s.store.View(ctx, func(tx slipway.Tx) (err error) {
		u, err = unused(tx, id)
		return err
	})
	return u, err
}

func unused(tx slipway.Tx, id string) (slipway.Upload, error) {
	u, err := tx.Upload(id)
	if err == nil && !u.UploadedAt.IsZero() {
		return u, slipway.Errorf(slipway.CodeConflict, "an archive was uploaded to this address already; ask for a new upload-url")
	}
	return u, err
}
