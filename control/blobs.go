package control

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway"
)

// blobTTL is how long the address of a blob is good for: as long as a slow transfer takes.
const blobTTL = time.Hour

// blobURL is the path at which whoever has it may fetch or store one blob for a while; it begins at the service's root.
func (s *Service) blobURL(method, digest string) string {
	expires := strconv.FormatInt(s.clock().Add(blobTTL).Unix(), 10)
	return fmt.Sprintf("/blobs/%s?expires=%s&signature=%s", digest, expires, s.signBlob(method, digest, expires))
}

func (s *Service) signBlob(method, digest, expires string) string {
	mac := hmac.New(sha256.New, s.cfg.UploadKey)
	mac.Write([]byte("blob " + method + " " + digest + " " + expires))
	return hex.EncodeToString(mac.Sum(nil))
}

func (s *Service) checkBlob(method, digest, expires, signature string) error {
	if !hmac.Equal([]byte(signature), []byte(s.signBlob(method, digest, expires))) {
		return slipway.Errorf(slipway.CodeForbidden, "the address of the blob is not one of ours; ask for a new one")
	}
	until, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || s.clock().Unix() >= until {
		return slipway.Errorf(slipway.CodeForbidden, "the address of the blob has expired; ask for a new one")
	}
	return nil
}

// OpenBlob returns what a signed address leads to; the signature is the whole authorisation. CodeForbidden: not signed by us
// or expired; CodeNotFound.
func (s *Service) OpenBlob(ctx context.Context, digest, expires, signature string) (io.ReadCloser, error) {
	if err := s.checkBlob("GET", digest, expires, signature); err != nil {
		return nil, err
	}
	r, err := s.blob.Open(ctx, digest)
	return r, wrap("open blob", err)
}

// AcceptBlob stores what is PUT to a signed address. CodeForbidden: not signed by us or expired; CodeBadRequest: other bytes
// than the digest's; CodeTooLarge.
func (s *Service) AcceptBlob(ctx context.Context, digest, expires, signature string, body io.Reader) error {
	if err := s.checkBlob("PUT", digest, expires, signature); err != nil {
		return err
	}
	source := &sourceBody{Reader: body}
	got, _, err := s.blob.Put(ctx, source, MaxArtifactBlob)
	switch {
	case source.err != nil:
		return slipway.Errorf(slipway.CodeBadRequest, "the upload ended before it was complete; send it again")
	case err != nil:
		return wrap("accept blob", err)
	case got != digest:
		// What was sent is stored under its own name; nobody needs it, and the next collection takes it away.
		return slipway.Errorf(slipway.CodeBadRequest, "the body is %s, not %s; send the bytes of the digest", got, digest)
	}
	return nil
}
