package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

func (a *app) webhooksCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "webhooks", Short: "Addresses that are told what happens to deployments"}
	cmd.AddCommand(
		a.webhooksListCommand(), a.webhooksCreateCommand(), a.webhooksPatchCommand(), a.webhooksDeleteCommand(), a.webhooksRotateCommand(),
		a.webhooksPingCommand(), a.webhooksDeliveriesCommand(), a.webhooksRedeliverCommand(),
	)
	return cmd
}

func (a *app) webhooksListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the webhooks", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := everyPage(func(limit, offset int) ([]client.Webhook, int, error) {
				return c.Webhooks(cmd.Context(), limit, offset)
			})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			rows := make([][]string, 0, len(all))
			for _, w := range all {
				rows = append(rows, []string{plain(w.URL, " "), wantedEvents(w), webhookState(w), w.ID})
			}
			return a.table([]string{"ADDRESS", "EVENTS", "STATE", "ID"}, rows)
		},
	}
}

func wantedEvents(w client.Webhook) string {
	if len(w.Events) == 0 {
		return "all"
	}
	return strings.Join(w.Events, ",")
}

func webhookState(w client.Webhook) string {
	switch {
	case !w.Enabled && w.Note != nil:
		return "disabled: " + plain(*w.Note, " ")
	case !w.Enabled:
		return "disabled"
	case w.FailingSince != nil:
		return "failing for " + age(*w.FailingSince)
	}
	return "enabled"
}

func (a *app) webhooksCreateCommand() *cobra.Command {
	var events []string
	cmd := &cobra.Command{
		Use: "create URL", Short: "Make a webhook and show its secret, this once", Args: cobra.ExactArgs(1),
		Example: "  slipway webhooks create https://example.com/hook --events deployment.revision_switched,revision.status_changed",
		RunE: func(cmd *cobra.Command, args []string) error {
			in := client.WebhookChange{URL: &args[0]}
			if len(events) > 0 {
				in.Events = &events
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			made, err := c.CreateWebhook(cmd.Context(), in)
			return a.secretShown("created", made, err)
		},
	}
	cmd.Flags().StringSliceVar(&events, "events", nil, "events to be told; without it all of them")
	return cmd
}

// secretShown prints a webhook's new secret, the one time it is known.
func (a *app) secretShown(what string, w client.Webhook, err error) error {
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(w)
	}
	_, err = fmt.Fprintf(a.out, "%s %s\n\n  secret  %s\n\nIt signs every delivery (header Slipway-Signature) and is shown this once.\n", what, w.ID, w.Secret)
	return err
}

func (a *app) webhooksPatchCommand() *cobra.Command {
	var address string
	var events []string
	var every, enable, disable bool
	cmd := &cobra.Command{
		Use: "patch ID", Short: "Change the address or the events of a webhook, disable or enable it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := webhookChange(address, events, every, enable, disable)
			if err != nil {
				return usage(cmd, err)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			w, err := c.PatchWebhook(cmd.Context(), args[0], in)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(w)
			}
			_, err = fmt.Fprintf(a.out, "changed %s: %s, events %s, %s\n", w.ID, plain(w.URL, " "), wantedEvents(w), webhookState(w))
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&address, "to", "", "new address")
	flags.StringSliceVar(&events, "events", nil, "events to be told from now on")
	flags.BoolVar(&every, "all-events", false, "be told all events")
	flags.BoolVar(&enable, "enable", false, "deliver again")
	flags.BoolVar(&disable, "disable", false, "deliver nothing any more")
	return cmd
}

func webhookChange(address string, events []string, every, enable, disable bool) (in client.WebhookChange, err error) {
	if len(events) > 0 && every || enable && disable {
		return in, errors.New("give either --events or --all-events, and either --enable or --disable")
	}
	if address != "" {
		in.URL = &address
	}
	if every {
		events = []string{}
	}
	if events != nil {
		in.Events = &events
	}
	if enable || disable {
		in.Enabled = &enable
	}
	if in == (client.WebhookChange{}) {
		return in, errors.New("there is nothing to change; give --to, --events, --all-events, --enable or --disable")
	}
	return in, nil
}

func (a *app) webhooksDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete ID", Short: "Delete a webhook with its log", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			if err := c.DeleteWebhook(cmd.Context(), args[0]); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"deleted": args[0]})
			}
			_, err = fmt.Fprintf(a.out, "deleted %s\n", args[0])
			return err
		},
	}
}

func (a *app) webhooksRotateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rotate ID", Short: "Give a webhook another secret, which counts at once, and show it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			w, err := c.RotateWebhook(cmd.Context(), args[0])
			return a.secretShown("rotated", w, err)
		},
	}
}

func (a *app) webhooksPingCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ping ID", Short: "Send a webhook a test delivery", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.queued(cmd.Context(), args[0], func(ctx context.Context, c *client.Client) (client.Delivery, error) {
				return c.PingWebhook(ctx, args[0])
			})
		},
	}
}

func (a *app) webhooksRedeliverCommand() *cobra.Command {
	return &cobra.Command{
		Use: "redeliver ID DELIVERY", Short: "Send one delivery of a webhook again", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.queued(cmd.Context(), args[0], func(ctx context.Context, c *client.Client) (client.Delivery, error) {
				return c.Redeliver(ctx, args[0], args[1])
			})
		},
	}
}

// queued makes a delivery and says where its outcome is to be seen.
func (a *app) queued(ctx context.Context, webhookID string, deliver func(context.Context, *client.Client) (client.Delivery, error)) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	d, err := deliver(ctx, c)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(d)
	}
	_, err = fmt.Fprintf(a.out, "delivery %s is on its way; see `slipway webhooks deliveries %s`\n", d.ID, webhookID)
	return err
}

func (a *app) webhooksDeliveriesCommand() *cobra.Command {
	var status string
	var limit int
	cmd := &cobra.Command{
		Use: "deliveries ID", Short: "List what a webhook was sent, newest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > pageSize {
				return usage(cmd, fmt.Errorf("--limit is %d; give 1 to %d", limit, pageSize))
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			list, _, err := c.Deliveries(cmd.Context(), args[0], status, limit, 0)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			rows := make([][]string, 0, len(list))
			for _, d := range list {
				rows = append(rows, []string{age(d.CreatedAt), d.Event, d.Status, strconv.Itoa(d.Attempts), outcomeOf(d), d.ID})
			}
			return a.table([]string{"AGE", "EVENT", "STATUS", "ATTEMPTS", "ANSWER", "ID"}, rows)
		},
	}
	cmd.Flags().StringVar(&status, "status", "", "only those that are pending, delivered or failed")
	cmd.Flags().IntVar(&limit, "limit", 20, "how many of the newest")
	return cmd
}

// outcomeOf is what the last attempt came to.
func outcomeOf(d client.Delivery) string {
	switch {
	case d.Error != nil && *d.Error != "":
		return plain(*d.Error, " ")
	case d.ResponseCode != nil:
		return strconv.Itoa(*d.ResponseCode)
	}
	return "-"
}
