package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
)

// What keeps slipway from its database is told with the remedy, and never with the password.
func TestRefusalsNameTheRemedy(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	as := func(user, password string) string {
		return strings.Replace(url, pgtest.User+"@", user+":"+password+"@", 1)
	}
	for _, test := range []struct{ name, url, want string }{
		{"no URL", "postgres://u:hunter2@[", "give one such as postgres://user:password@host:5432/database"},
		{"unreachable", "postgres://u:hunter2@127.0.0.1:1/x", "check that it runs and that the database URL names the right host and port"},
		{"wrong password", as(pgtest.Locked, "hunter2"), `refuses the password of user "locked"; correct it`},
		{"no such user", as("nobody-there", "hunter2"), `does not let user "nobody-there" in`},
		{"no such database", strings.Replace(as(pgtest.User, "hunter2"), "/test_", "/other_", 1), "create it with: createdb -O slipway other_"},
		{"no right", as(pgtest.Locked, pgtest.LockedPassword), "GRANT CREATE, CONNECT ON DATABASE"},
		{"several schemas", url + "&search_path=a,b", "names no single schema"},
	} {
		s, err := postgres.OpenControl(context.Background(), test.url)
		if err == nil {
			t.Errorf("%s: opened", test.name)
			_ = s.Close()
			continue
		}
		if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %q, want it to say %q", test.name, err, test.want)
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), pgtest.LockedPassword) {
			t.Errorf("%s: the password is in %q", test.name, err)
		}
	}
}

func TestSchemaOfTheURL(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), pgtest.URL(t)
	openControl(t, url+"&search_path=other")
	if n := schemas(t, url, "other"); n != 1 {
		t.Errorf("got %d schemas named other, want 1", n)
	}
	has := func(want bool) {
		t.Helper()
		if got, err := postgres.HasAgent(ctx, url, "agent_x"); err != nil || got != want {
			t.Errorf("there is a store: %v (%v), want %v", got, err, want)
		}
	}
	for range 2 { // dropping what is not there is no error
		has(false)
		openAgent(t, url, "agent_x")
		has(true)
		if err := postgres.DropAgent(ctx, url, "agent_x"); err != nil {
			t.Fatal(err)
		}
		if err := postgres.DropAgent(ctx, url, "agent_x"); err != nil {
			t.Fatal(err)
		}
		if n := schemas(t, url, "agent_x"); n != 0 {
			t.Errorf("the schema is there after it was dropped")
		}
	}
}

func schemas(t *testing.T, url, name string) (n int) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if err := c.QueryRow(ctx, "SELECT count(*) FROM pg_namespace WHERE nspname = $1", name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
