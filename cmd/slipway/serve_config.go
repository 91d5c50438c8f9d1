package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// appConfig is what the graph configuration says to the agent server; each key can be overridden by its environment
// variable (agent-server reference 18).
type appConfig struct {
	Checkpointer struct {
		TTL *struct {
			Strategy agent.TTLStrategy `json:"strategy"`
			Default  *float64          `json:"default_ttl"` // minutes
			Interval *float64          `json:"sweep_interval_minutes"`
			Limit    *int              `json:"sweep_limit"`
		} `json:"ttl"`
	} `json:"checkpointer"`
	HTTP     httpConfig    `json:"http"`
	Auth     authConfig    `json:"auth"`
	Webhooks webhookConfig `json:"webhooks"`
	Store    struct {
		TTL *struct {
			RefreshOnRead *bool    `json:"refresh_on_read"`
			Default       *float64 `json:"default_ttl"` // minutes
			Interval      *float64 `json:"sweep_interval_minutes"`
		} `json:"ttl"`
		Index *agent.Index `json:"index"`
	} `json:"store"`
}

// readAppConfig reads the bundle's configuration under the environment's.
func readAppConfig(config json.RawMessage, getenv func(string) string) (appConfig, error) {
	var c appConfig
	if len(config) > 0 {
		if err := json.Unmarshal(config, &c); err != nil {
			return c, fmt.Errorf("the graph configuration cannot be read: %w", err)
		}
	}
	override := func(name string, key any) error {
		if raw := getenv(name); raw != "" {
			if err := json.Unmarshal([]byte(raw), key); err != nil {
				return fmt.Errorf("%s is not the JSON it should be: %w", name, err)
			}
		}
		return nil
	}
	err := errors.Join(
		override("LANGGRAPH_CHECKPOINTER", &c.Checkpointer), override("LANGGRAPH_STORE", &c.Store), override("LANGGRAPH_AUTH", &c.Auth),
		override("LANGGRAPH_HTTP", &c.HTTP), override("LANGGRAPH_WEBHOOKS", &c.Webhooks),
	)
	return c, errors.Join(err, c.check(), c.Auth.check(), c.HTTP.check(), c.Webhooks.resolve(getenv))
}

func (c appConfig) check() error {
	if t := c.Checkpointer.TTL; t != nil {
		if t.Strategy != "" && t.Strategy != agent.TTLDelete && t.Strategy != agent.TTLKeepLatest {
			return fmt.Errorf("checkpointer.ttl.strategy is %q; use delete or keep_latest", t.Strategy)
		}
		if t.Limit != nil && *t.Limit < 1 {
			return fmt.Errorf("checkpointer.ttl.sweep_limit is %d; give a whole number from 1", *t.Limit)
		}
		if err := errors.Join(positive("checkpointer.ttl.default_ttl", t.Default), positive("checkpointer.ttl.sweep_interval_minutes", t.Interval)); err != nil {
			return err
		}
	}
	if x := c.index(); x != nil {
		if err := x.Check(); err != nil {
			return err
		}
	}
	if t := c.Store.TTL; t != nil {
		return errors.Join(positive("store.ttl.default_ttl", t.Default), positive("store.ttl.sweep_interval_minutes", t.Interval))
	}
	return nil
}

func positive(name string, minutes *float64) error {
	if minutes != nil && !(*minutes > 0 && *minutes <= agent.MaxMinutes) {
		return fmt.Errorf("%s is %v; give a number of minutes above 0 and at most %d", name, *minutes, agent.MaxMinutes)
	}
	return nil
}

// threadTTL returns what threads without a TTL of their own get; nil = none.
func (c appConfig) threadTTL() *agent.TTL {
	t := c.Checkpointer.TTL
	if t == nil || t.Default == nil {
		return nil
	}
	ttl := agent.TTL{Strategy: agent.TTLDelete, Minutes: *t.Default}
	if t.Strategy != "" {
		ttl.Strategy = t.Strategy
	}
	return &ttl
}

func (c appConfig) threadSweep() (every time.Duration, limit int) {
	t := c.Checkpointer.TTL
	if t == nil {
		return 0, 0
	}
	if t.Limit != nil {
		limit = *t.Limit
	}
	return pause(t.Interval), limit
}

// index returns what of an item gets a vector; nil = nothing does.
func (c appConfig) index() *agent.Index {
	if c.Store.Index == nil || c.Store.Index.Embed == "" {
		return nil
	}
	return c.Store.Index
}

func (c appConfig) items() agent.ItemRules {
	t := c.Store.TTL
	if t == nil {
		return agent.ItemRules{}
	}
	return agent.ItemRules{KeepOnRead: t.RefreshOnRead != nil && !*t.RefreshOnRead, DefaultTTL: t.Default}
}

func (c appConfig) itemSweep() time.Duration {
	if c.Store.TTL == nil {
		return 0
	}
	return pause(c.Store.TTL.Interval)
}

// pause turns minutes into a duration; 0 = the default.
func pause(minutes *float64) time.Duration {
	if minutes == nil {
		return 0
	}
	return max(time.Duration(*minutes*float64(time.Minute)), time.Second)
}
