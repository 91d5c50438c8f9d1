package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

func (a *app) telemetryCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "telemetry", Short: "Show what the installation sends to its collector"}
	cmd.AddCommand(a.telemetryStatusCommand(), a.telemetryPreviewCommand())
	return cmd
}

func (a *app) telemetryStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show queue, last success, last error, licence and its expiry", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			s, err := c.TelemetryStatus(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(s)
			}
			return a.table([]string{"WHAT", "HOW IT IS"}, statusRows(s))
		},
	}
}

func statusRows(s client.TelemetryStatus) [][]string {
	rows := [][]string{{"mode", s.Mode}}
	if s.Reason != "" {
		rows = append(rows, []string{"reason", s.Reason})
	}
	if s.URL != "" {
		rows = append(rows, []string{"collector", s.URL})
	}
	rows = append(rows, []string{"licence", s.License.Status})
	for _, f := range []struct {
		name string
		at   *time.Time
	}{{"licence verified", s.License.VerifiedAt}, {"licence expires", s.License.ExpiresAt}} {
		if f.at != nil {
			rows = append(rows, []string{f.name, f.at.Format(time.RFC3339)})
		}
	}
	if s.License.LastError != "" {
		rows = append(rows, []string{"licence error", s.License.LastError})
	}
	if s.Mode != "online" {
		return rows
	}
	rows = append(rows, []string{"sent", streams(s)})
	rows = append(rows, queueRows("billing", s.Billing)...)
	return append(rows, queueRows("operational", s.Operational)...)
}

func streams(s client.TelemetryStatus) (list string) {
	for _, f := range []struct {
		name string
		on   bool
	}{{"billing", s.Streams.Billing}, {"usage", s.Streams.Usage}, {"metrics", s.Streams.Metrics}, {"traces", s.Streams.Traces}, {"logs", s.Streams.Logs}} {
		if f.on {
			list += " " + f.name
		}
	}
	return list[min(1, len(list)):]
}

func queueRows(name string, q client.TelemetryQueue) [][]string {
	rows := [][]string{{name + " queue", fmt.Sprintf("%d items, %d bytes; sent %d, dropped %d, refused %d, corrupt %d", q.Items, q.Bytes, q.Sent, q.Dropped, q.Refused, q.Corrupt)}}
	if q.LastSuccess != nil {
		rows = append(rows, []string{name + " last success", q.LastSuccess.Format(time.RFC3339)})
	}
	if q.LastError != "" {
		rows = append(rows, []string{name + " last error", fmt.Sprintf("%s (attempts that failed: %d)", q.LastError, q.Failed)})
	}
	if q.NextAttempt != nil {
		rows = append(rows, []string{name + " next attempt", q.NextAttempt.Format(time.RFC3339)})
	}
	return rows
}

func (a *app) telemetryPreviewCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "preview", Short: "Print exactly what would be sent now", Args: cobra.NoArgs,
		Long: "Print the requests that would be sent to the collector now, without the licence: what waits in the queues, then what\n" +
			"was gathered since the last export. It sends nothing and changes nothing.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return usage(cmd, errors.New("--limit must be from 1 to 1000"))
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			list, more, err := c.TelemetryPreview(cmd.Context(), limit)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"requests": list, "more": more})
			}
			return a.printRequests(list, more)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "queued items shown at most, of each queue")
	return cmd
}

func (a *app) printRequests(list []client.TelemetryRequest, more bool) error {
	for _, r := range list {
		var body bytes.Buffer
		if err := json.Indent(&body, r.Body, "", "  "); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "POST %s\n%s\n\n", r.Path, body.String())
	}
	switch {
	case more:
		fmt.Fprintln(a.out, "… and more; raise --limit to see it.")
	case len(list) == 0:
		fmt.Fprintln(a.out, "Nothing would be sent now.")
	}
	return nil
}
