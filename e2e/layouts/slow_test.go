//go:build layouts

package layouts_test

import "testing"

// TestSlowLayouts needs minutes where nothing is cached: `make test-layouts`.
func TestSlowLayouts(t *testing.T) {
	t.Parallel()
	for _, l := range slow() {
		t.Run(l.name, func(t *testing.T) { l.check(t) })
	}
}

func slow() []layout {
	return []layout{
		{name: "py-pip", answers: agent("pip hi"), shows: "-m pip install"},
		{name: "py-python312", answers: agent("3.12 hi")},
		{name: "js-npm-workspaces", config: "apps/agent/langgraph.json", install: "npm ci", build: "npm run build", answers: agent("npm workspaces hi")},
		{name: "js-pnpm-workspace", config: "apps/agent/langgraph.json", install: "pnpm i --frozen-lockfile", answers: agent("pnpm workspace hi")},
		{name: "js-pnpm", answers: agent("pnpm hi"), shows: "$ pnpm i"},
		{name: "js-yarn1", answers: agent("yarn 1 hi"), shows: "$ yarn install --frozen-lockfile"},
		{name: "js-yarn-berry", answers: agent("yarn 4 hi"), shows: "$ yarn install --immutable"},
		{name: "js-bun", answers: agent("bun hi"), shows: "$ bun i"},
		{name: "js-node22", answers: agent("node 22 hi")},
	}
}
