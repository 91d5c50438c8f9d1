// Package feedback asks a LangSmith service for addresses at which the users of an application say what they think of a
// run: one for each key, without credentials of their own.
package feedback

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// answerLimit bounds what is read of an answer, in bytes.
const answerLimit = 1 << 20

// lifetimeHours is how long the addresses are good for.
const lifetimeHours = 3

// Service is where feedback is collected. It is safe for concurrent use.
type Service struct {
	endpoint, key string
	client        *http.Client
}

// New makes the service of an endpoint such as https://api.smith.langchain.com and a key of it.
func New(endpoint, key string, client *http.Client) *Service {
	return &Service{endpoint: strings.TrimSuffix(endpoint, "/"), key: key, client: client}
}

type token struct {
	RunID   string         `json:"run_id"`
	Key     string         `json:"feedback_key"`
	Expires map[string]int `json:"expires_in"`
}

// URLs returns an address for each key, in one request.
func (s *Service) URLs(ctx context.Context, runID string, keys []string) (map[string]string, error) {
	wanted := make([]token, 0, len(keys))
	for _, key := range keys {
		wanted = append(wanted, token{runID, key, map[string]int{"days": 0, "hours": lifetimeHours, "minutes": 0}})
	}
	body, err := json.Marshal(wanted)
	if err != nil {
		return nil, fmt.Errorf("encode a request for feedback addresses: %w", err)
	}
	var made []struct {
		URL string `json:"url"`
	}
	if err := s.post(ctx, "/feedback/tokens", body, &made); err != nil {
		return nil, err
	}
	if len(made) != len(keys) {
		return nil, fmt.Errorf("the feedback service answered %d addresses for %d keys", len(made), len(keys))
	}
	urls := make(map[string]string, len(keys))
	for i, key := range keys {
		urls[key] = made[i].URL
	}
	return urls, nil
}

func (s *Service) post(ctx context.Context, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask for feedback addresses: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", s.key)
	res, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask for feedback addresses: %w", err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, answerLimit))
	if err != nil {
		return fmt.Errorf("read the feedback service's answer: %w", err)
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("the feedback service answers %s", res.Status) // its text may hold the key
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the feedback service's answer is not what it should be: %w", err)
	}
	return nil
}
