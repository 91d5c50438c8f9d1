package gateway

import "time"

// Config are the settings of a Gateway. Zero values mean the defaults named.
type Config struct {
	// Prefix is what every deployment's path starts with; "/d/".
	Prefix string
	// Wait is how long a request waits for a revision that serves; 10 s.
	Wait time.Duration
	// DialTimeout bounds connecting to an agent server; 2 s.
	DialTimeout time.Duration
	// IdlePerHost is how many idle connections to one agent server are kept; 256.
	IdlePerHost int
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = "/d/"
	}
	if c.Wait == 0 {
		c.Wait = 10 * time.Second
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = 2 * time.Second
	}
	if c.IdlePerHost == 0 {
		c.IdlePerHost = 256
	}
	return c
}
