package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/client"
)

// Credentials is the file credentials.json that `slipway up` writes into its data directory.
type Credentials struct {
	URL      string `json:"url"`
	APIKey   string `json:"api_key"`
	TenantID string `json:"tenant_id"`
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

// connect finds the server: flags, then environment, then the credentials of a local installation.
func (a *app) connect() (*client.Client, error) {
	url, key := a.url, a.apiKey
	if url == "" {
		url = a.getenv("SLIPWAY_URL")
	}
	if key == "" {
		key = a.getenv("SLIPWAY_API_KEY")
	}
	if url != "" && key != "" {
		return client.New(url, key), nil
	}
	dir, err := DataDir(a.dataDir, a.getenv)
	if err != nil {
		return nil, err
	}
	local, err := ReadCredentials(dir)
	if errors.Is(err, os.ErrNotExist) {
		if url != "" {
			return nil, fmt.Errorf("no API key for %s: give one with --api-key or SLIPWAY_API_KEY", url)
		}
		return nil, fmt.Errorf("no slipway is known here (%s has no %s); start one with `slipway up`, or name one with --url and --api-key", dir, CredentialsFile)
	}
	if err != nil {
		return nil, err
	}
	if url == "" {
		url = local.URL
	}
	if key == "" {
		key = local.APIKey
	}
	return client.New(url, key), nil
}
