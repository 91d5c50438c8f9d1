package control

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// tokenMark begins every push token, so that scanners find leaked ones.
const tokenMark = "slp_"

// PushToken lets a client push images for a while.
type PushToken struct {
	Token       string // the password; the user is oauth2accesstoken
	RegistryURL string // host and path without a scheme; repositories are below it
	ExpiresAt   time.Time
}

// NewPushToken makes a token that may push any repository below its registry URL, which is the tenant's, and nothing else
// (control-plane reference 5). CodeBadRequest: the deployment does not run pushed images; clients look for the words.
func (s *Service) NewPushToken(ctx context.Context, who slipway.Principal, deploymentID string) (PushToken, error) {
	if err := authorize(who, mayUpdate); err != nil {
		return PushToken{}, err
	}
	expires := s.clock().Add(s.cfg.PushTTL).Truncate(time.Second)
	err := s.store.Update(ctx, func(tx slipway.Tx) error {
		d, err := visible(tx, who.TenantID, deploymentID)
		if err != nil {
			return err
		}
		if d.Source != slipway.SourceInternalContainer {
			return slipway.Errorf(slipway.CodeBadRequest,
				"push tokens are only available for 'internal_docker' source deployments; %q has source %s, so make a new deployment", d.Name, d.Source)
		}
		return s.audit(tx, who, "create_push_token", d.ID, map[string]any{"name": d.Name, "expires_at": expires})
	})
	if err != nil {
		return PushToken{}, wrap("make push token", err)
	}
	return PushToken{
		Token:       s.signPush(who.TenantID, expires.Unix()),
		RegistryURL: RegistryHost(s.cfg.BaseURL) + "/" + slipway.RegistryPrefix + "/" + who.TenantID,
		ExpiresAt:   expires,
	}, nil
}

// RegistryHost is the host of the registry of an installation at this address. Registries have no path before /v2/, so
// only the host of the address counts.
func RegistryHost(baseURL string) string {
	_, rest, found := strings.Cut(baseURL, "://")
	if !found {
		rest = baseURL
	}
	host, _, _ := strings.Cut(rest, "/")
	return host
}

func (s *Service) signPush(tenantID string, expires int64) string {
	claim := tenantID + "." + strconv.FormatInt(expires, 10)
	mac := hmac.New(sha256.New, s.cfg.PushKey)
	mac.Write([]byte("PUSH " + claim))
	return tokenMark + claim + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// AuthorizePush returns the tenant whose repositories a push token is good for; CodeUnauthenticated if it is none of ours
// or has expired.
func (s *Service) AuthorizePush(token string) (tenantID string, err error) {
	parts := strings.Split(strings.TrimPrefix(token, tokenMark), ".")
	if len(parts) != 3 {
		return "", slipway.Errorf(slipway.CodeUnauthenticated, "the password is no push token; ask for one with POST push-token")
	}
	expires, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || !hmac.Equal([]byte(token), []byte(s.signPush(parts[0], expires))) {
		return "", slipway.Errorf(slipway.CodeUnauthenticated, "the push token is not one of ours; ask for one with POST push-token")
	}
	if s.clock().Unix() >= expires {
		return "", slipway.Errorf(slipway.CodeUnauthenticated, "the push token has expired; ask for a new one with POST push-token")
	}
	return parts[0], nil
}

// pinPatch pins the image that a request names, unless its revision is not made of a pushed image.
func (s *Service) pinPatch(ctx context.Context, who slipway.Principal, id string, in slipway.DeploymentPatch) (slipway.DeploymentPatch, error) {
	if in.SourceRevisionConfig.ImageURI == nil || s.images == nil {
		return in, nil
	}
	source := in.RevisionSource
	if source == nil {
		err := s.store.View(ctx, func(tx slipway.Tx) error {
			d, err := visible(tx, who.TenantID, id)
			source = &d.Source
			return err
		})
		if err != nil {
			return in, err
		}
	}
	var err error
	in.SourceRevisionConfig, err = s.pin(ctx, who, *source, in.SourceRevisionConfig)
	return in, err
}

// pin replaces the name of a pushed image by that of exactly the image it stands for now, so that no later push changes
// what a revision runs (control-plane reference 5, 10 row 6). It happens before any transaction: a registry may be slow.
func (s *Service) pin(ctx context.Context, who slipway.Principal, source slipway.Source, rev slipway.SourceRevisionConfig) (slipway.SourceRevisionConfig, error) {
	if rev.ImageURI == nil || s.images == nil || source != slipway.SourceInternalContainer || !s.inst.Serves(source) {
		return rev, nil
	}
	name, err := slipway.ParseImageName(*rev.ImageURI)
	if err != nil {
		return rev, nil // the rules of the ground refuse it with everything else that is wrong
	}
	digest, err := s.images.Resolve(ctx, who.TenantID, name)
	if slipway.ErrorCode(err) == slipway.CodeInvalid {
		var problems slipway.Problems
		problems.Add([]any{"body", "source_revision_config", "image_uri"}, "%s", err.Error())
		return rev, problems.Err()
	}
	if err != nil {
		return rev, err
	}
	pinned := name.Pinned(digest)
	rev.ImageURI = &pinned
	return rev, nil
}
