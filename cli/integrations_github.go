package cli

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

// manifestLimit is how long GitHub keeps the code of a manifest.
const manifestLimit = time.Hour

func (a *app) githubCreateCommand() *cobra.Command {
	var in client.AppManifestRequest
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a GitHub App with a browser and add it as an integration",
		Long: "Make a GitHub App that may read code and write commit statuses. A page on this machine sends the browser to GitHub; what\n" +
			"GitHub makes goes to the control service, which keeps its keys sealed. Nothing secret passes through this command.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Name = args[0]
			c, err := a.connect()
			if err != nil {
				return err
			}
			made, err := a.makeApp(cmd.Context(), c, in)
			if err != nil {
				return err
			}
			link, err := c.InstallationLink(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"integration": made, "install_url": link})
			}
			_, err = fmt.Fprintf(a.out, "made %s (%s)\n\nNow install it where the repositories are:\n  %s\n", made.Name, made.ID, link)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.HostURL, "host", "", "address of a GitHub Enterprise Server (default https://github.com)")
	flags.StringVar(&in.APIURL, "api", "", "address of its API, if it is not at its usual place")
	flags.StringVar(&in.Organization, "org", "", "organization that shall own the app (default: your account)")
	return cmd
}

// makeApp serves the page that leads to GitHub and waits until the browser comes back.
func (a *app) makeApp(ctx context.Context, c *client.Client, in client.AppManifestRequest) (client.Integration, error) {
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return client.Integration{}, fmt.Errorf("cannot serve the page for the browser: %w", err)
	}
	here := "http://" + socket.Addr().String()
	in.RedirectURL = here + "/callback"
	manifest, err := c.DescribeApp(ctx, in)
	if err != nil {
		return client.Integration{}, errors.Join(err, socket.Close())
	}
	flow := &manifestFlow{client: c, manifest: manifest, done: make(chan converted, 1)}
	server := &http.Server{Handler: flow.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(socket) }() // it ends with Close
	defer server.Close()
	where := a.out
	if a.json {
		where = os.Stderr
	}
	fmt.Fprintf(where, "open this address in a browser on this machine:\n  %s\n", here)
	ctx, cancel := context.WithTimeout(ctx, manifestLimit)
	defer cancel()
	select {
	case result := <-flow.done:
		shut, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = server.Shutdown(shut) // lets the browser have its answer
		return result.made, result.err
	case <-ctx.Done():
		return client.Integration{}, ctx.Err()
	}
}

type converted struct {
	made client.Integration
	err  error
}

// manifestFlow is one app on its way.
type manifestFlow struct {
	client   *client.Client
	manifest client.AppManifest
	done     chan converted
}

const manifestPage = `<!doctype html><html lang="en"><meta charset="utf-8"><title>slipway: GitHub App</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}</style>
<h1>Make the GitHub App</h1><p>GitHub shows what the app may do and asks for your consent.</p>
<form action="{{.PostURL}}" method="post"><input type="hidden" name="manifest" value="{{.Manifest}}"><button>Go to GitHub</button></form></html>
`

func (f *manifestFlow) handler() http.Handler {
	page := template.Must(template.New("manifest").Parse(manifestPage))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.Execute(w, f.manifest) // the browser is gone if this fails
	})
	mux.HandleFunc("GET /callback", f.callback)
	return mux
}

// callback takes the code that GitHub gave. The state keeps others from planting an app of theirs.
func (f *manifestFlow) callback(w http.ResponseWriter, r *http.Request) {
	code, state := r.URL.Query().Get("code"), r.URL.Query().Get("state")
	if code == "" || state != f.manifest.IntegrationID {
		http.Error(w, "This is not the answer to this page's request; begin again.", http.StatusBadRequest)
		return
	}
	made, err := f.client.ConvertApp(r.Context(), f.manifest.IntegrationID, code)
	if err != nil {
		http.Error(w, Message(err), http.StatusBadGateway)
	} else {
		fmt.Fprintln(w, "The app is made. You may close this page.")
	}
	select {
	case f.done <- converted{made, err}:
	default: // the browser came twice
	}
}
