package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/webhook"
)

// remoteSettings are about what is elsewhere: listeners and the far ends of webhooks.
type remoteSettings struct {
	patience   time.Duration
	publicOnly bool
}

func (s *remoteSettings) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&s.publicOnly, "webhooks-public-only", false, "deliver webhooks to public addresses only, never to private networks or this machine")
	flags.DurationVar(&s.patience, "listener-offline-after", time.Minute, "how long a listener may be silent before it counts as offline (10s to 1h)")
}

func (s remoteSettings) check() error {
	if s.patience < 10*time.Second || s.patience > time.Hour {
		return fmt.Errorf("--listener-offline-after is %s; give 10s to 1h", s.patience)
	}
	return nil
}

func (s remoteSettings) sender() slipway.WebhookSender {
	cfg := webhook.Config{Clock: now}
	if s.publicOnly {
		cfg.Refuse = webhook.PublicOnly
	}
	return webhook.New(cfg)
}
