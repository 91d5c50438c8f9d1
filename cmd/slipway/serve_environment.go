package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway"
)

// defaultListen is where an agent server listens that nobody has told otherwise.
const defaultListen = "127.0.0.1:2024"

// unusedVariable is a variable of other servers of this family that has no effect here.
type unusedVariable struct{ name, reason string }

// unused lists them (agent-server reference 18): they are accepted and told.
func unused() []unusedVariable {
	const (
		database = "data are kept in the deployment's own store; SLIPWAY_DATABASE_URL of the platform puts them into PostgreSQL"
		redis    = "no cache server is needed"
		pool     = "the pool of connections sizes itself"
		license  = "no licence is needed"
		protocol = "the thread protocol v2 is not part of this version"
		a2a      = "A2A is not part of this version"
	)
	return []unusedVariable{
		{"DATABASE_URI", database}, {"POSTGRES_URI", database}, {"REDIS_URI", redis}, {"REDIS_CLUSTER", redis}, {"REDIS_KEY_PREFIX", redis},
		{"REDIS_MAX_CONNECTIONS", redis}, {"LANGGRAPH_POSTGRES_POOL_MAX_SIZE", pool}, {"LANGGRAPH_POSTGRES_POOL_MIN_SIZE", pool},
		{"BG_JOB_ISOLATED_LOOPS", "user code runs in processes of its own and blocks nothing"},
		{"LANGGRAPH_CLOUD_LICENSE_KEY", license}, {"LANGSMITH_LICENSE_KEY", license},
		{"LSD_PROTOCOL_V2_BUFFER_SIZE", protocol}, {"A2A_A2UI_ENABLED", a2a}, {"A2A_A2UI_TOOL_CALL_RESULTS", a2a}, {"A2A_ALLOWED_TOOL_CALL_RESULTS", a2a},
	}
}

// listenAddress is the flag's, else that of LANGGRAPH_SERVER_HOST and LANGGRAPH_SERVER_PORT or PORT. A port
// without a host is that of every address, of IPv4 and IPv6.
func listenAddress(flag string, getenv func(string) string) (string, error) {
	port, name := getenv("LANGGRAPH_SERVER_PORT"), "LANGGRAPH_SERVER_PORT"
	if port == "" {
		port, name = getenv("PORT"), "PORT"
	}
	host := strings.Trim(getenv("LANGGRAPH_SERVER_HOST"), "[]")
	switch {
	case flag != "":
		return flag, nil
	case port == "" && host == "":
		return defaultListen, nil
	case port == "":
		return net.JoinHostPort(host, "2024"), nil
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", fmt.Errorf("%s=%q: must be a port from 0 to 65535", name, port)
	}
	return net.JoinHostPort(host, port), nil
}

// withEnv reads a variable as the application sees it: of this process, else of the configuration's env. What is the agent
// server's alone comes from the process only.
func withEnv(bundle slipway.Bundle, getenv func(string) string) func(string) string {
	return func(name string) string {
		if value := getenv(name); value != "" || private(name) {
			return value
		}
		return bundle.Env[name]
	}
}
