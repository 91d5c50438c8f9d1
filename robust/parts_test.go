package robust_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

const partsPython = `
from langgraph_sdk import Auth

auth = Auth()

@auth.authenticate
async def who(headers):
    if headers.get(b"x-key") != b"k":
        raise Auth.exceptions.HTTPException(status_code=418, detail="no", headers={"x-pot": "tea"})
    return {"identity": "ann", "permissions": ["p"], "org": 7}

@auth.on.threads.create
async def own(ctx, value):
    value["metadata"] = {"owner": ctx.user.identity}
    return {"owner": ctx.user.identity}

@auth.on
async def deny(ctx, value):
    return False

async def lengths(texts):
    return [[float(len(text)), 1.0] for text in texts]
`

const partsNode = `
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

export const auth = new Auth()
  .authenticate((request) => {
    if (request.headers.get("x-key") !== "k") throw new HTTPException(418, { message: "no", headers: { "x-pot": "tea" } });
    return { identity: "ann", permissions: ["p"], org: 7 };
  })
  .on("threads:create", ({ user, value }) => { value.metadata = { owner: user.identity }; return { owner: user.identity }; })
  .on("*", () => false);

export const lengths = (texts) => texts.map((text) => [text.length, 1]);
`

// partsFiles are the sources of the parts above, by language, and how a spec names an export of them.
var partsFiles = map[slipway.Language][2]string{slipway.Python: {"parts.py", partsPython}, slipway.Node: {"parts.mjs", partsNode}}

// The parts of an application say the same in both languages, as the server hears it.
func TestRealWorkersLoadTheSameParts(t *testing.T) {
	t.Parallel()
	for _, language := range both {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			w := workerWithParts(t, language)
			for _, name := range []agent.PartName{agent.PartAuth, agent.PartEmbed, agent.PartEncryption} {
				if w.Info().Loaded(name) == nil {
					t.Fatalf("%s: got %+v", name, w.Info().Parts[name])
				}
			}
			authenticates(t, w)
			authorises(t, w)
			if got, err := agent.Embed(t.Context(), w, []string{"a", "abc"}); err != nil || !reflect.DeepEqual(got, [][]float32{{1, 1}, {3, 1}}) {
				t.Errorf("vectors: got %v, %v", got, err)
			}
		})
	}
}

func authenticates(t *testing.T, w agent.Worker) {
	t.Helper()
	request := agent.Authentication{Method: "POST", URL: "http://localhost/threads?q=1", Path: "/threads", Query: "q=1", Headers: [][2]string{{"X-Key", "k"}}}
	user, err := agent.Authenticate(t.Context(), w, request)
	if err != nil || !same(t, user, `{"identity":"ann","display_name":"ann","is_authenticated":true,"permissions":["p"],"org":7}`) {
		t.Errorf("user: got %s, %v", user, err)
	}
	request.Headers = nil
	_, err = agent.Authenticate(t.Context(), w, request)
	refused := new(agent.HTTPRefusal)
	if !errors.As(err, &refused) || refused.Status != 418 || refused.Detail != "no" || !reflect.DeepEqual(refused.Headers, [][2]string{{"x-pot", "tea"}}) {
		t.Errorf("refusal: got %#v", err)
	}
}

func authorises(t *testing.T, w agent.Worker) {
	t.Helper()
	user := json.RawMessage(`{"identity":"ann","permissions":["p"]}`)
	own, err := agent.Authorize(t.Context(), w, agent.Authorization{User: user, Resource: "threads", Action: "create", Value: json.RawMessage(`{}`)})
	if err != nil || !own.Allow || !same(t, own.Filter, `{"owner":"ann"}`) || !same(t, own.Value, `{"metadata":{"owner":"ann"}}`) {
		t.Errorf("verdict: got %+v, %v", own, err)
	}
	other, err := agent.Authorize(t.Context(), w, agent.Authorization{User: user, Resource: "threads", Action: "read", Value: json.RawMessage(`{}`)})
	if err != nil || other.Allow {
		t.Errorf("verdict on another action: got %+v, %v; want a refusal", other, err)
	}
}

// What a worker of one language has encrypted with LANGGRAPH_AES_KEY, those of the other read.
func TestWorkersReadWhatTheOthersEncrypted(t *testing.T) {
	t.Parallel()
	workers := []agent.Worker{workerWithParts(t, slipway.Python), workerWithParts(t, slipway.Node)}
	const clear = `{"a":1,"secret":{"deep":[1,"ä",null]}}`
	for i, w := range workers {
		sealed, err := agent.Encrypt(t.Context(), w, agent.Sealing{Kind: "json", Model: "thread", Field: "metadata", Value: json.RawMessage(clear)})
		if err != nil || !strings.Contains(string(sealed), `"a":1`) || strings.Contains(string(sealed), "deep") {
			t.Fatalf("encrypted by worker %d: got %s, %v", i, sealed, err)
		}
		for _, reader := range workers {
			if got, err := agent.Decrypt(t.Context(), reader, agent.Sealing{Kind: "json", Model: "thread", Field: "metadata", Value: sealed}); err != nil || !same(t, got, clear) {
				t.Errorf("encrypted by worker %d: got %s, %v", i, got, err)
			}
		}
	}
}

// workerWithParts starts a real worker that has loaded the parts of its language.
func workerWithParts(t *testing.T, language slipway.Language) agent.Worker {
	t.Helper()
	p, file := program(t, language), partsFiles[language]
	write(t, filepath.Join(p.Dir, file[0]), file[1])
	p.Env = append(append([]string{}, p.Env...), "LANGGRAPH_AES_KEY=sixteen byte key", "LANGGRAPH_AES_JSON_KEYS=secret", "PATH="+os.Getenv("PATH"))
	p.Parts = agent.Parts{
		Auth: &agent.CodePart{Path: "./" + file[0] + ":auth"}, Embed: &agent.EmbedPart{Spec: "./" + file[0] + ":lengths"},
		Encryption: &agent.EncryptionPart{AES: true},
	}
	served, up := pool(t, p, nil), make(arrivals, 1)
	t.Cleanup(served.Stop)
	if err := served.Start(up); err != nil {
		t.Fatal(err)
	}
	w, ok := <-up
	if !ok {
		t.Fatal("the worker did not start")
	}
	return w
}

// same says whether two texts are the same JSON.
func same(t *testing.T, got json.RawMessage, want string) bool {
	t.Helper()
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		return false
	}
	return reflect.DeepEqual(a, b)
}
