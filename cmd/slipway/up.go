package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/cli"
	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

// upSettings are the settings of `slipway up`.
type upSettings struct {
	dataDir         string
	listen          string
	publicURL       string
	noExample       bool
	detach          bool
	allowFileRepos  []string
	allowHTTPGit    []string
	sources         []string
	allowRegistries []string
	build           buildSettings
	liftCaps        bool
	keep            keepSettings
	access          accessSettings
	oidc            oidcSettings
	remote          remoteSettings
	databaseURL     string // "" = SQLite in the data directory
	databaseFile    string
	failAt          failpoint
	telemetry       telemetrySettings
	args            []string // the settings as a command line, for the platform that --detach starts
}

const (
	exampleName     = "example"
	exampleTemplate = "agent-js"
	// answerLimit is how long a detached platform may take until it answers.
	answerLimit = 15 * time.Second
)

func upCommand() *cobra.Command {
	var s upSettings
	cmd := &cobra.Command{
		Use: "up", Short: "Start slipway on this machine", Args: cobra.NoArgs,
		Long: "Start the whole platform on this machine: control service, builder, listener and gateway in this process, each\n" +
			"deployment's agent server in a process of its own. Ctrl-C stops all of them; SIGTERM stops the platform alone,\n" +
			"and the next `slipway up` adopts the agent servers that still run.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := settingsOf(cmd, os.Getenv, "detach")
			if err := given.read(); err != nil {
				return err
			}
			s.args = given.args("data-dir", "listen", "no-example", "database-url", "database-url-file", "license")
			dir, err := cli.DataDir(cmd.Flag("data-dir").Value.String(), os.Getenv)
			if err != nil {
				return err
			}
			s.dataDir = dir
			if s.failAt, err = readFailpoint(os.Getenv); err != nil {
				return err
			}
			if err := s.check(); err != nil {
				return err
			}
			if s.databaseURL, err = readDatabaseURL(s.databaseURL, s.databaseFile, os.Getenv); err != nil {
				return err
			}
			if err := s.telemetry.read(os.Getenv); err != nil {
				return err
			}
			if s.detach {
				return upDetached(cmd.Context(), s)
			}
			return upForeground(cmd.Context(), s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.listen, "listen", "127.0.0.1:7400", "address of the control service and the gateway")
	flags.StringVar(&s.publicURL, "public-url", "", "address at which clients reach --listen, when it is another (a proxy, a name); upload and deployment addresses begin with it")
	flags.StringVar(&s.databaseURL, "database-url", "", "PostgreSQL (14 or newer) for all records, such as postgres://user:password@host:5432/database; also "+databaseURLEnv+"; without it, SQLite files in the data directory")
	flags.StringVar(&s.databaseFile, "database-url-file", "", "file that holds the --database-url, so that no process list shows the password; also "+databaseFileEnv)
	flags.BoolVar(&s.noExample, "no-example", false, "do not deploy the example")
	flags.BoolVar(&s.detach, "detach", false, "go on in the background; 'slipway down' stops it")
	flags.StringArrayVar(&s.allowFileRepos, "allow-file-repos", nil, "allow file:// git repositories below this directory (repeatable)")
	flags.StringArrayVar(&s.allowHTTPGit, "allow-http-git", nil, "allow the git host HOST:PORT to be spoken to without TLS (repeatable)")
	flags.StringSliceVar(&s.sources, "sources", defaultSources(), "sources that deployments may have; internal_container opens a registry to push images to")
	flags.StringSliceVar(&s.allowRegistries, "allow-registry", nil, "other registry whose images internal_container may name, with the credentials of 'docker login' (repeatable)")
	flags.BoolVar(&s.liftCaps, "lift-resource-caps", false, "let resource specs ask for more than 8 cores, and limits of more than 16")
	s.keep.flags(cmd)
	s.access.flags(cmd)
	s.oidc.flags(cmd)
	flags.String("config", "", "YAML or JSON file with a member for each of these settings; the command line goes before the environment, that before the file (also SLIPWAY_CONFIG)")
	s.remote.flags(cmd)
	s.telemetry.flags(cmd)
	s.build.flags(cmd, "0 = all builds are those of slipway builder processes,")
	return cmd
}

// check refuses settings that cannot be meant.
func (s upSettings) check() error {
	if err := s.build.check(0); err != nil {
		return err
	}
	if _, err := s.served(); err != nil {
		return err
	}
	if err := s.keep.check(); err != nil {
		return err
	}
	if err := s.access.check(); err != nil {
		return err
	}
	if _, err := s.oidc.config(); err != nil {
		return err
	}
	if err := s.remote.check(); err != nil {
		return err
	}
	if s.publicURL == "" {
		return nil
	}
	u, err := url.Parse(s.publicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("--public-url %q is no address; give one such as https://agents.example.com", s.publicURL)
	}
	return nil
}

// base is the address that answers name: the public one, else that of this machine.
func (s upSettings) base(local string) string {
	if s.publicURL == "" {
		return local
	}
	return strings.TrimRight(s.publicURL, "/")
}

// upForeground runs the platform until it is told to stop.
func upForeground(ctx context.Context, s upSettings) error {
	where := installation{dir: s.dataDir}
	if err := where.prepare(); err != nil {
		return err
	}
	lock, err := where.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (%w); choose another address with --listen", s.listen, errors.Unwrap(err))
	}
	p, err := openPlatform(ctx, where, s, l)
	if err != nil {
		l.Close()
		return err
	}
	defer p.close()
	if err := where.saveRunning(running{PID: os.Getpid(), URL: p.url}); err != nil {
		return err
	}
	announce(os.Stdout, p.url, where)
	if !s.noExample {
		go showExample(ctx, p.url, p.credentials, os.Stdout)
	}
	return p.run(ctx)
}

// announce prints where the platform is and where its credentials are.
func announce(out io.Writer, url string, where installation) {
	fmt.Fprintf(out, "slipway is at %s (API: %s/docs)\ncredentials are in %s\n", url, url, where.path(cli.CredentialsFile))
}

// showExample deploys the example unless it is there, waits until it serves and prints how to talk to it.
func showExample(ctx context.Context, url string, c cli.Credentials, out io.Writer) {
	if err := example(ctx, client.New(url, c.APIKey), out); err != nil && ctx.Err() == nil {
		fmt.Fprintln(out, "the example is not available:", cli.Message(err))
	}
}

func example(ctx context.Context, c *client.Client, out io.Writer) error {
	d, found, err := c.DeploymentByName(ctx, exampleName)
	if err != nil {
		return err
	}
	if !found {
		template := exampleTemplate
		fmt.Fprintln(out, "deploying the example …")
		if d, err = c.CreateDeployment(ctx, client.DeploymentCreate{
			Name: exampleName, Source: "internal_template", SourceConfig: client.SourceConfig{TemplateID: &template},
		}); err != nil {
			return err
		}
	}
	if err := awaitDeployed(ctx, c, d); err != nil {
		return err
	}
	address := c.Base() + "/d/" + exampleName
	fmt.Fprintf(out, "the example is at %s; talk to it:\n\ncurl -s %s/runs/wait -H 'content-type: application/json' \\\n"+
		"  -d '{\"assistant_id\": \"agent\", \"input\": {\"messages\": [{\"role\": \"user\", \"content\": \"What time is it?\"}]}}'\n\n", address, address)
	return nil
}

// awaitDeployed waits until a deployment's latest revision serves.
func awaitDeployed(ctx context.Context, c *client.Client, d client.Deployment) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for d.LatestRevisionID != nil {
		r, err := c.Revision(ctx, d.ID, *d.LatestRevisionID)
		if err != nil {
			return err
		}
		if r.Status == "DEPLOYED" {
			return nil
		}
		if r.Ended() {
			return fmt.Errorf("its revision ended with %s: %s", r.Status, r.Reason())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return errors.New("it has no revision")
}

// upDetached starts the platform in a session of its own and returns when it answers and the example serves.
func upDetached(ctx context.Context, s upSettings) error {
	where := installation{dir: s.dataDir}
	if err := where.prepare(); err != nil {
		return err
	}
	if where.held() {
		return upAlready(ctx, s, where)
	}
	_ = os.Remove(where.path("running.json"))
	child, err := spawn(s, where)
	if err != nil {
		return err
	}
	url, err := awaitAnswer(ctx, where, child)
	if err != nil {
		return err
	}
	return afterStart(ctx, url, s, where)
}

// upAlready is `up --detach` where a platform runs already: that is what was asked for.
func upAlready(ctx context.Context, s upSettings, where installation) error {
	r, err := where.running()
	if err != nil {
		return fmt.Errorf("slipway is just starting in %s; try again in a moment", where.dir)
	}
	return afterStart(ctx, r.URL, s, where)
}

func afterStart(ctx context.Context, url string, s upSettings, where installation) error {
	announce(os.Stdout, url, where)
	if s.noExample {
		return nil
	}
	c, err := cli.ReadCredentials(where.dir)
	if err != nil {
		return err
	}
	return example(ctx, client.New(url, c.APIKey), os.Stdout)
}

// spawn starts this program again, in the background, with its output in the data directory.
func spawn(s upSettings, where installation) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find the program to start: %w", err)
	}
	log, err := os.OpenFile(where.path("slipway.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log: %w", err)
	}
	defer log.Close()
	args := append([]string{"up", "--data-dir", s.dataDir, "--listen", s.listen, "--no-example"}, s.args...)
	cmd := exec.Command(self, args...) // it outlives this process
	cmd.Env = os.Environ()             // what is secret is not among the arguments, which every user of the machine can list
	if s.databaseURL != "" {
		cmd.Env = append(cmd.Env, databaseURLEnv+"="+s.databaseURL)
	}
	if s.telemetry.license != "" {
		cmd.Env = append(cmd.Env, licenseEnv+"="+s.telemetry.license)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", self, err)
	}
	return cmd, nil
}

// awaitAnswer waits until the started platform answers, or ends and says why.
func awaitAnswer(ctx context.Context, where installation, child *exec.Cmd) (string, error) {
	ended := make(chan struct{})
	go func() { _ = child.Wait(); close(ended) }()
	for deadline := time.Now().Add(answerLimit); time.Now().Before(deadline); {
		if r, err := where.running(); err == nil && client.New(r.URL, "").OK(ctx) == nil {
			return r.URL, nil
		}
		select {
		case <-ended:
			return "", fmt.Errorf("slipway did not start: %s", lastLine(where.path("slipway.log")))
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return "", fmt.Errorf("slipway does not answer; its log is %s", where.path("slipway.log"))
}

func lastLine(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "slipway: ")
}
