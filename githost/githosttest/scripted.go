package githosttest

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

// Scripted is the World of a Server.
func Scripted(t *testing.T, kind slipway.HostKind, hosts slipway.GitHosts) *World {
	t.Helper()
	s := NewServer(t, kind)
	open := func(i slipway.Integration, secrets slipway.IntegrationSecrets) slipway.GitHost {
		host, err := hosts.Open(i, secrets)
		if err != nil {
			t.Fatal(err)
		}
		return host
	}
	bad, gone := s.Secrets(), s.Integration()
	bad.Token, gone.HostURL = "wrong", GoneURL
	if s.app != nil {
		bad.PrivateKey = newApp(t).pem
	}
	w := &World{
		Host: open(s.Integration(), s.Secrets()), Refused: open(s.Integration(), bad), Gone: open(gone, s.Secrets()), Lists: kind != slipway.HostGeneric, TellsDeletions: true,
		NewRepository: func(t testing.TB, name string) string { return s.CreateRepository(t, "acme/"+name) },
		PushURL:       s.PushURL,
		Deliveries:    func(testing.TB, int) []Delivery { return s.Deliveries() }, // a push ends after its delivery
	}
	if kind != slipway.HostGeneric {
		w.States = func(_ testing.TB, _, commit string) []slipway.CommitState {
			var states []slipway.CommitState
			for _, status := range s.Statuses(commit) {
				states = append(states, status.State)
			}
			return states
		}
	}
	return w
}

// PushURL is the address at which a test pushes to a repository.
func (s *Server) PushURL(repoURL string) string {
	return strings.Replace(repoURL, "://", "://git:"+Token+"@", 1)
}
