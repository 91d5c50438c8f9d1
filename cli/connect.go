package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/client"
)

// Credentials is the file credentials.json that `slipway up` writes into its data directory.
type Credentials struct {
	URL      string `json:"url"`
	APIKey   string `json:"api_key"`
	TenantID string `json:"tenant_id"` // that the key acts in; `slipway tenants use` changes it
}

// CredentialsFile is the name of the credentials file inside the data directory.
const CredentialsFile = "credentials.json"

// DataDir returns the data directory of the local installation: the flag's value, else SLIPWAY_DATA_DIR, else ~/.slipway.
func DataDir(flag string, getenv func(string) string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	if dir := getenv("SLIPWAY_DATA_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("there is no home directory to keep data in; name one with --data-dir or SLIPWAY_DATA_DIR")
	}
	return filepath.Join(home, ".slipway"), nil
}

// ReadCredentials reads the credentials of the installation in dir.
func ReadCredentials(dir string) (Credentials, error) {
	path := filepath.Join(dir, CredentialsFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, err
	}
	var c Credentials
	if err := json.Unmarshal(raw, &c); err != nil {
		return Credentials{}, fmt.Errorf("%s is not valid JSON (%w); remove it and run `slipway up` again", path, err)
	}
	return c, nil
}

// connect finds the server: flags, then environment, then the credentials of a local installation; and the tenant in the same
// order, where the last is what `slipway tenants use` chose for the installation's own key.
func (a *app) connect() (*client.Client, error) {
	c, chosen, err := a.server()
	if err != nil {
		return nil, err
	}
	if chosen == "" || uuidPattern.MatchString(chosen) {
		return c.InTenant(strings.ToLower(chosen)), nil
	}
	t, err := tenantNamed(context.Background(), c, chosen) // bounded by the client's own time limit
	if err != nil {
		return nil, err
	}
	return c.InTenant(t.ID), nil
}

// chosenTenant is the id or name of the tenant to act in, "" to leave it to the server.
func (a *app) chosenTenant() string {
	_, chosen, _ := a.server()
	return chosen
}

// server finds the server and, apart from it, the tenant that was chosen.
func (a *app) server() (c *client.Client, tenant string, err error) {
	url, key, tenant := firstOf(a.url, a.getenv("SLIPWAY_URL")), firstOf(a.apiKey, a.getenv("SLIPWAY_API_KEY")), firstOf(a.tenant, a.getenv("SLIPWAY_TENANT"))
	if url != "" && key != "" {
		return client.New(url, key), tenant, nil
	}
	dir, local, err := a.local()
	if errors.Is(err, os.ErrNotExist) {
		if url != "" {
			return nil, "", fmt.Errorf("no API key for %s: give one with --api-key or SLIPWAY_API_KEY", url)
		}
		return nil, "", fmt.Errorf("no slipway is known here (%s has no %s); start one with `slipway up`, or name one with --url and --api-key", dir, CredentialsFile)
	}
	if err != nil {
		return nil, "", err
	}
	if key == "" { // the choice goes with the key it was made for
		tenant = firstOf(tenant, local.TenantID)
	}
	return client.New(firstOf(url, local.URL), firstOf(key, local.APIKey)), tenant, nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
