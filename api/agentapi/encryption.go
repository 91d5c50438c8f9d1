package agentapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

const (
	encryptionHeader = "X-Encryption-Context"
	// maxEncryptionContext bounds what is stored beside every value.
	maxEncryptionContext = 4096
)

// withEncryptionContext reads what the client says to the application's encryption handlers: a JSON object in base64
// (reference 13, custom parts).
func withEncryptionContext(r *http.Request) (*http.Request, error) {
	text := r.Header.Get(encryptionHeader)
	if text == "" {
		return r, nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return r, slipway.Errorf(slipway.CodeInvalid, "the header %s is no base64: %w; send a JSON object in base64", encryptionHeader, err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil || len(raw) > maxEncryptionContext {
		return r, slipway.Errorf(slipway.CodeInvalid, "the header %s is no JSON object of at most %d bytes in base64", encryptionHeader, maxEncryptionContext)
	}
	return r.WithContext(agent.WithEncryptionContext(r.Context(), raw)), nil
}
