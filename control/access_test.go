package control_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
)

// counted is a store that counts its transactions.
type counted struct {
	slipway.Store
	views, updates atomic.Int64
}

func (c *counted) View(ctx context.Context, fn func(slipway.Tx) error) error {
	c.views.Add(1)
	return c.Store.View(ctx, fn)
}

func (c *counted) Update(ctx context.Context, fn func(slipway.Tx) error) error {
	c.updates.Add(1)
	return c.Store.Update(ctx, fn)
}

// second is another control service on the world's database, as another process would be.
func second(t *testing.T, w *controltest.World, store slipway.Store, cfg control.Config, verifier slipway.TokenVerifier) *control.Service {
	t.Helper()
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return control.New(cfg, control.Deps{
		Store: store, Blob: &controltest.Blob{}, Sealer: key, Clock: w.Now, IDs: w.NextID, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
		Verifier: verifier,
	})
}

// database is a real database that lives as long as the test.
func database(t *testing.T) slipway.Store {
	t.Helper()
	store, err := openStore(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestAuthenticationAsksTheDatabaseOnce(t *testing.T) {
	t.Parallel()
	store := &counted{Store: database(t)}
	w := newWorldOn(t, store)
	k := newKey(t, w.Service, w.Admin, slipway.APIKeyCreate{Role: slipway.RoleViewer})
	store.views.Store(0)
	store.updates.Store(0)
	for range 100 {
		if _, err := w.Authenticate(t.Context(), control.Credential{Key: k.Key}); err != nil {
			t.Fatal(err)
		}
	}
	if views, updates := store.views.Load(), store.updates.Load(); views != 1 || updates != 0 {
		t.Errorf("100 requests made %d queries and %d writes, want 1 and 0", views, updates)
	}
	for range 2 { // the second has nothing to write
		if err := w.FlushKeyUse(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if updates := store.updates.Load(); updates != 1 {
		t.Errorf("the use of keys took %d writes, want 1", updates)
	}
	keys, err := w.Keys(t.Context(), w.Admin, false, slipway.APIKeyQuery{Limit: 10})
	if err != nil || len(keys) != 1 || keys[0].LastUsedAt.IsZero() {
		t.Errorf("keys = %+v, %v, want one with the time of its last use", keys, err)
	}
}

func newKey(t *testing.T, s *control.Service, who slipway.Principal, in slipway.APIKeyCreate) control.IssuedKey {
	t.Helper()
	k, err := s.CreateKey(t.Context(), who, in)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestRevocationCountsAtOnce(t *testing.T) {
	t.Parallel()
	store := database(t)
	w := newWorldOn(t, store)
	other := second(t, w.World, store, control.Config{}, nil)
	k := newKey(t, w.Service, w.Admin, slipway.APIKeyCreate{Role: slipway.RoleAdmin})
	enters := func(s *control.Service) bool {
		_, err := s.Authenticate(t.Context(), control.Credential{Bearer: k.Key})
		return err == nil
	}
	if !enters(w.Service) || !enters(other) {
		t.Fatal("a new key is not valid")
	}
	if err := w.RevokeKey(t.Context(), w.Admin, k.ID); err != nil {
		t.Fatal(err)
	}
	if enters(w.Service) {
		t.Error("a revoked key is valid where it was revoked")
	}
	other.Hear(slipway.News{})
	if enters(other) {
		t.Error("a revoked key is valid in another process that has heard of a change")
	}
}

func TestRevocationReachesAProcessThatHearsNothing(t *testing.T) {
	t.Parallel()
	store := database(t)
	w := newWorldOn(t, store)
	other := second(t, w.World, store, control.Config{}, nil)
	k := newKey(t, w.Service, w.Admin, slipway.APIKeyCreate{Role: slipway.RoleAdmin})
	if _, err := other.Authenticate(t.Context(), control.Credential{Key: k.Key}); err != nil {
		t.Fatal(err)
	}
	if err := w.RevokeKey(t.Context(), w.Admin, k.ID); err != nil {
		t.Fatal(err)
	}
	w.Advance(5 * time.Second)
	if _, err := other.Authenticate(t.Context(), control.Credential{Key: k.Key}); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
		t.Errorf("after five seconds: %v, want CodeUnauthenticated", err)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := newKey(t, w.Service, w.Admin, slipway.APIKeyCreate{Name: "ci", Role: slipway.RoleEditor, ExpiresAt: w.Now().Add(24 * time.Hour)})
	fresh, err := w.RotateKey(t.Context(), w.Admin, old.ID, slipway.Rotation{Grace: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if fresh.Name != "ci" || fresh.Role != slipway.RoleEditor || fresh.Key == old.Key || !fresh.ExpiresAt.After(old.ExpiresAt) {
		t.Errorf("new key = %+v, want the rights of %+v and a life as long", fresh.APIKey, old.APIKey)
	}
	valid := func(key string) bool {
		_, err := w.Authenticate(t.Context(), control.Credential{Key: key})
		return err == nil
	}
	if !valid(old.Key) || !valid(fresh.Key) {
		t.Error("within the grace both keys must be valid")
	}
	if _, err := w.RotateKey(t.Context(), w.Admin, old.ID, slipway.Rotation{}); slipway.ErrorCode(err) != slipway.CodeBadRequest {
		t.Errorf("rotating twice: %v, want CodeBadRequest", err)
	}
	w.Advance(time.Hour)
	if valid(old.Key) || !valid(fresh.Key) {
		t.Error("after the grace only the new key must be valid")
	}
	if _, err := w.RotateKey(t.Context(), w.Admin, fresh.ID, slipway.Rotation{}); err != nil || valid(fresh.Key) {
		t.Errorf("without a grace the old key must end at once (%v)", err)
	}
}

// verifier is a slipway.TokenVerifier that knows its tokens by heart.
type verifier map[string]slipway.Identity

func (v verifier) Verify(_ context.Context, token string) (slipway.Identity, error) {
	if token == "down" {
		return slipway.Identity{}, slipway.Errorf(slipway.CodeUnavailable, "the identity provider cannot be reached")
	}
	id, ok := v[token]
	if ok && id.Role == "" {
		return slipway.Identity{Subject: id.Subject}, slipway.Errorf(slipway.CodeForbidden, "the token gives no role")
	}
	if !ok {
		return id, slipway.Errorf(slipway.CodeUnauthenticated, "the token is not valid")
	}
	return id, nil
}

func TestWhoIsLetIn(t *testing.T) {
	t.Parallel()
	store := database(t)
	w := newWorldOn(t, store)
	admin := w.Admin
	admin.Organisation = true
	tenant, err := w.CreateTenant(t.Context(), admin, "second")
	if err != nil {
		t.Fatal(err)
	}
	s := second(t, w.World, store, control.Config{}, verifier{
		"one":  {Subject: "ann", Role: slipway.RoleEditor, Tenants: []string{tenant.ID}},
		"two":  {Subject: "bob", Role: slipway.RoleViewer, Tenants: []string{tenant.ID, w.Admin.TenantID}},
		"gone": {Subject: "cyd", Role: slipway.RoleViewer, Tenants: []string{w.NextID()}},
		"all":  {Subject: "dee", Role: slipway.RoleAdmin, Organisation: true},
		"none": {Subject: "fay"},
	})
	proxy := func(role slipway.Role) *control.ProxyUser { return &control.ProxyUser{Name: "eve", Role: role} }
	for name, c := range map[string]struct {
		given    control.Credential
		want     slipway.Code
		who, in  string
		mentions string
	}{
		"token of one tenant":         {control.Credential{Bearer: "one"}, "", "user:ann", tenant.ID, ""},
		"token of another tenant":     {control.Credential{Bearer: "one", TenantID: w.Admin.TenantID}, slipway.CodeForbidden, "user:ann", "", ""},
		"token of two, none chosen":   {control.Credential{Bearer: "two"}, slipway.CodeForbidden, "user:bob", "", "requires workspace specification"},
		"token of two, one chosen":    {control.Credential{Bearer: "two", TenantID: tenant.ID}, "", "user:bob", tenant.ID, ""},
		"token of a tenant not here":  {control.Credential{Bearer: "gone"}, slipway.CodeForbidden, "user:cyd", "", ""},
		"token of the organisation":   {control.Credential{Bearer: "all"}, slipway.CodeForbidden, "user:dee", "", "requires workspace specification"},
		"token of no role":            {control.Credential{Bearer: "none", TenantID: tenant.ID}, slipway.CodeForbidden, "user:fay", "", "no role"},
		"token not valid":             {control.Credential{Bearer: "x.y.z"}, slipway.CodeUnauthenticated, "", "", ""},
		"issuer down":                 {control.Credential{Bearer: "down"}, slipway.CodeUnavailable, "", "", ""},
		"header alone":                {control.Credential{TenantID: tenant.ID}, slipway.CodeUnauthenticated, "", "", ""},
		"header from the proxy":       {control.Credential{TenantID: tenant.ID, Proxy: proxy("viewer")}, "", "proxy:eve", tenant.ID, ""},
		"header and no role":          {control.Credential{TenantID: tenant.ID, Proxy: proxy("")}, slipway.CodeUnauthenticated, "", "", ""},
		"header and an unknown role":  {control.Credential{TenantID: tenant.ID, Proxy: proxy("root")}, slipway.CodeUnauthenticated, "", "", ""},
		"proxy and no tenant":         {control.Credential{Proxy: proxy("admin")}, slipway.CodeUnauthenticated, "", "", ""},
		"a bad key beside the header": {control.Credential{Key: "slw_x", TenantID: tenant.ID, Proxy: proxy("admin")}, slipway.CodeUnauthenticated, "", "", ""},
	} {
		who, err := s.Authenticate(t.Context(), c.given)
		if slipway.ErrorCode(err) != c.want || who.ID != c.who || who.TenantID != c.in {
			t.Errorf("%s: %q in %q, %v; want %q in %q, code %q", name, who.ID, who.TenantID, err, c.who, c.in, c.want)
		}
		if c.mentions != "" && !strings.Contains(fmt.Sprint(err), c.mentions) {
			t.Errorf("%s: %v lacks %q", name, err, c.mentions)
		}
	}
}

func TestDeploymentsNotEnabled(t *testing.T) {
	t.Parallel()
	store := database(t)
	w := newWorldOn(t, store)
	s := second(t, w.World, store, control.Config{DeploymentsOff: true}, nil)
	for reach, want := range map[control.Reach]slipway.Code{
		control.ReachTenant: slipway.CodeForbidden, control.ReachDeployment: slipway.CodeForbidden, control.ReachDeployments: slipway.CodeForbidden,
		control.ReachAccess: "", control.ReachOrganisation: "",
	} {
		_, err := s.Admit(t.Context(), control.Credential{Key: w.Key}, control.Call{Reach: reach})
		if slipway.ErrorCode(err) != want || want != "" && !strings.Contains(err.Error(), "not enabled") {
			t.Errorf("reach %q: %v, want %q", reach, err, want)
		}
	}
}

func TestAuditTellsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	who := w.Admin
	who.Address, who.RequestID = "192.0.2.7", "req-1"
	d := w.create()
	in := slipway.DeploymentPatch{Secrets: &[]slipway.Secret{{Name: "TOKEN", Value: canary + "2"}, {Name: "MORE", Value: "m"}}}
	in.SourceConfig.InstallCommand = p("make all")
	if _, err := w.Patch(t.Context(), who, d.ID, in); err != nil {
		t.Fatal(err)
	}
	found, err := w.Audit(t.Context(), w.Admin, slipway.AuditQuery{Operation: "update_deployment"})
	if err != nil || len(found) != 1 {
		t.Fatalf("entries = %+v, %v", found, err)
	}
	e, got := found[0], map[string]string{}
	for _, c := range e.Changes {
		got[c.Field] = string(c.Before) + " -> " + string(c.After)
	}
	mask := `"` + slipway.MaskedSecret + `"`
	for field, want := range map[string]string{
		"source_config.install_command": `null -> "make all"`, "secrets.TOKEN": mask + " -> " + mask, "secrets.MORE": "null -> " + mask,
		"secrets.SHORT": mask + " -> null",
	} {
		if !strings.HasSuffix(got[field], strings.TrimPrefix(want, "null")) {
			t.Errorf("%s: %s, want %s", field, got[field], want)
		}
	}
	if e.Address != "192.0.2.7" || e.RequestID != "req-1" || e.Subject != d.ID || e.Outcome != slipway.OutcomeSuccess {
		t.Errorf("entry = %+v", e)
	}
	text, _ := json.Marshal(found)
	if strings.Contains(string(text), canary) {
		t.Errorf("a secret's value stands in %s", text)
	}
}

func TestRefusalsAreRecordedOnceAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	who := slipway.Principal{ID: "key:viewer", TenantID: w.Admin.TenantID, Role: slipway.RoleViewer, Address: "192.0.2.8"}
	for range 5 {
		w.Refused(t.Context(), who, "delete_deployment", "d")
	}
	w.Refused(t.Context(), who, "delete_deployment", "e")
	w.Advance(time.Minute)
	w.Refused(t.Context(), who, "delete_deployment", "d")
	w.Refused(t.Context(), slipway.Principal{}, "delete_deployment", "d") // nobody knows who
	found, err := w.Audit(t.Context(), w.Admin, slipway.AuditQuery{Outcome: slipway.OutcomeRefused})
	if err != nil || len(found) != 3 || found[0].Principal != "key:viewer" || found[0].Address != "192.0.2.8" {
		t.Errorf("refusals = %+v, %v; want three of key:viewer", found, err)
	}
}

func TestSecretsAreShownToTheRolesThatMayReadThem(t *testing.T) {
	t.Parallel()
	store := database(t)
	w := newWorldOn(t, store)
	d := w.create()
	s := second(t, w.World, store, control.Config{SecretReaders: []slipway.Role{slipway.RoleAdmin}}, nil)
	value := func(d control.Deployment) string {
		for _, secret := range d.Secrets {
			if secret.Name == "TOKEN" {
				return secret.Value
			}
		}
		return ""
	}
	editor, deploy := w.Admin, w.Admin
	editor.Role, deploy.DeploymentID = slipway.RoleEditor, d.ID
	for name, c := range map[string]struct {
		service *control.Service
		who     slipway.Principal
		want    string
	}{
		"the role": {s, w.Admin, canary}, "another role": {s, editor, slipway.MaskedSecret}, "a deploy key": {s, deploy, slipway.MaskedSecret},
		"without the setting": {w.Service, w.Admin, slipway.MaskedSecret},
	} {
		got, err := c.service.Get(t.Context(), c.who, d.ID)
		if err != nil || value(got) != c.want {
			t.Errorf("%s: %q, %v; want %q", name, value(got), err, c.want)
		}
	}
	list, err := s.List(t.Context(), w.Admin, slipway.DeploymentQuery{Limit: 10})
	if err != nil || len(list) != 1 || value(list[0]) != canary {
		t.Errorf("list = %+v, %v", list, err)
	}
	reads, err := w.Audit(t.Context(), w.Admin, slipway.AuditQuery{Operation: "read_secrets"})
	if err != nil || len(reads) != 2 || !strings.Contains(reads[0].Detail, "TOKEN") || strings.Contains(reads[0].Detail, canary) {
		t.Errorf("reads = %+v, %v; want one for each of the two", reads, err)
	}
}

func TestSweepKeepsWhatIsYoung(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	w.Advance(399 * 24 * time.Hour)
	w.patch(d.ID)
	count := func() int {
		found, err := w.Audit(t.Context(), w.Admin, slipway.AuditQuery{})
		if err != nil || w.SweepAudit(t.Context()) != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	before := count()
	if after := count(); after != before {
		t.Errorf("a sweep before the time took %d entries", before-after)
	}
	w.Advance(2 * 24 * time.Hour)
	count()
	if after := count(); after == before || after == 0 {
		t.Errorf("after the retention %d of %d entries are left, want the young ones", after, before)
	}
}
