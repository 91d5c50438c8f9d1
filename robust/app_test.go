package robust_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/bus/local"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/store/sqlite"
	"github.com/slipway-dev/slipway/worker/supervise"
	"github.com/slipway-dev/slipway/worker/workertest"
)

const appPython = `
import asyncio, contextlib, pathlib
from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import PlainTextResponse, StreamingResponse
from langgraph_sdk import get_client

@contextlib.asynccontextmanager
async def lifespan(app):
    pathlib.Path("started").write_text("yes")
    yield
    pathlib.Path("stopped").write_text("yes")

app = FastAPI(lifespan=lifespan)

@app.get("/hello/{name}")
async def hello(name: str, q: str = ""):
    return PlainTextResponse(f"hello {name} {q}", 201, {"x-app": "yes"})

@app.post("/echo")
async def echo(request: Request):
    return PlainTextResponse(await request.body())

@app.get("/ticks")
async def ticks():
    async def parts():
        while True:
            yield b"tick\n"
            await asyncio.sleep(0.005)
    return StreamingResponse(parts())

@app.get("/loop")
async def loop():
    return PlainTextResponse((await get_client().http.client.get("/from-inside")).text)

@app.get("/threads-inside")
async def threads_inside():
    return [t["thread_id"] for t in await get_client().threads.search()]

@app.websocket("/ws")
async def ws(socket: WebSocket):
    await socket.accept()
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        if message.get("text") == "bye":
            return await socket.close(4001, "bye")
        if message.get("text") is not None:
            await socket.send_text(message["text"])
        else:
            await socket.send_bytes(message["bytes"])

wrapped = FastAPI(lifespan=lifespan)
wrapped.router.routes.extend(app.router.routes)

@wrapped.middleware("http")
async def stamp(request, call_next):
    response = await call_next(request)
    response.headers["x-stamp"] = request.url.path
    return response
`

const appNode = `
import { writeFileSync } from "node:fs";
import { createNodeWebSocket } from "@hono/node-ws";
import { Client } from "@langchain/langgraph-sdk";
import { Hono } from "hono";
import { stream } from "hono/streaming";

const routes = (app, upgradeWebSocket) => {
  app.get("/hello/:name", (c) => c.text("hello " + c.req.param("name") + " " + c.req.query("q"), 201, { "x-app": "yes" }));
  app.post("/echo", (c) => new Response(c.req.raw.body));
  app.get("/ticks", (c) => stream(c, async (out) => {
    while (!out.aborted) {
      await out.write("tick\n");
      await out.sleep(5);
    }
  }));
  app.get("/loop", async (c) => {
    const answer = await globalThis[Symbol.for("langgraph_api:fetch")](globalThis[Symbol.for("langgraph_api:url")] + "/from-inside");
    return c.text(await answer.text());
  });
  app.get("/threads-inside", async (c) => c.json((await new Client().threads.search()).map((t) => t.thread_id)));
  if (upgradeWebSocket) app.get("/ws", upgradeWebSocket(() => ({
    onMessage(event, ws) {
      if (event.data === "bye") ws.close(4001, "bye");
      else ws.send(event.data);
    },
  })));
  return app;
};

export const app = new Hono();
const sockets = createNodeWebSocket({ app });
export const injectWebSocket = sockets.injectWebSocket;
routes(app, sockets.upgradeWebSocket);

export const wrapped = new Hono();
wrapped.use("*", async (c, next) => {
  await next();
  c.res.headers.set("x-stamp", c.req.path);
});
routes(wrapped);
`

// appProgram is program with an HTTP app of its own.
func appProgram(t *testing.T, language slipway.Language, name string) supervise.Program {
	t.Helper()
	p := program(t, language)
	file := map[slipway.Language]string{slipway.Python: "web.py", slipway.Node: "web.mjs"}[language]
	write(t, filepath.Join(p.Dir, file), map[slipway.Language]string{slipway.Python: appPython, slipway.Node: appNode}[language])
	p.Parts = agent.Parts{App: &agent.AppPart{Path: "./" + file + ":" + name, MiddlewareFirst: true}}
	return p
}

func languages(t *testing.T, check func(t *testing.T, language slipway.Language)) {
	for _, language := range []slipway.Language{slipway.Python, slipway.Node} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			check(t, language)
		})
	}
}

// The HTTP apps of real frameworks, FastAPI and Hono, keep the promises of pools.
func TestRealAppsPassTheSuiteOfApps(t *testing.T) {
	t.Parallel()
	languages(t, func(t *testing.T, language slipway.Language) {
		p := appProgram(t, language, "app")
		workertest.RunApp(t, func(t *testing.T) agent.Workers { return pool(t, p, nil) })
	})
}

// served is an agent server over real workers.
func served(t *testing.T, p supervise.Program, parts ...agent.PartName) (url string, stop func()) {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.OpenAgent(filepath.Join(dir, "agent.db"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	bus, err := local.Open(filepath.Join(dir, "bus"), "a", log)
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{
		Instance: "a", Graphs: map[string]engine.Graph{"echo": {Language: p.Language}}, DrainGrace: time.Millisecond,
		Parts: map[slipway.Language][]agent.PartName{p.Language: parts},
	}
	workers := supervise.New(supervise.Config{Programs: []supervise.Program{p}}, store, time.Now, log, func(l supervise.Line) { t.Log(l.Text) })
	ids := func() string { return uuid.Must(uuid.NewV7()).String() }
	e := engine.New(cfg, store, bus, workers, time.Now, ids, log)
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	api := agentapi.New(agentapi.Over(e), agentapi.Config{IDs: ids, Log: log, App: agentapi.AppConfig{There: p.Parts.App != nil}})
	e.AnswerLoopback(api.ServeExchange)
	srv := httptest.NewServer(api)
	var once sync.Once
	return srv.URL, func() {
		once.Do(func() {
			srv.CloseClientConnections()
			if err := e.Drain(context.Background()); err != nil {
				t.Error(err)
			}
			srv.Close()
			_ = bus.Close()
			_ = store.Close()
		})
	}
}

// A real app before the real API: its routes, its middleware around the built-in ones, its streams, its client of its own
// server, and its shutdown.
func TestRealAppsInFrontOfTheAPI(t *testing.T) {
	t.Parallel()
	languages(t, func(t *testing.T, language slipway.Language) {
		p := appProgram(t, language, "wrapped")
		url, stop := served(t, p, agent.PartApp)
		defer stop()
		send := func(method, path, body string) (*http.Response, string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			raw, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp, string(raw)
		}
		if resp, _ := awaitApp(send); resp.StatusCode != 201 || resp.Header.Get("X-App") != "yes" || resp.Header.Get("X-Stamp") != "/hello/you" {
			t.Errorf("its own route: got %d %v", resp.StatusCode, resp.Header)
		}
		resp, body := send("POST", "/threads", `{"thread_id":"0199f0a0-0000-7000-8000-000000000001"}`)
		if resp.StatusCode != 200 || resp.Header.Get("X-Stamp") != "/threads" {
			t.Errorf("a built-in route through its middleware: got %d %v %s", resp.StatusCode, resp.Header, body)
		}
		resp, body = send("POST", "/runs/stream", `{"assistant_id":"echo","input":{"x":1}}`)
		if resp.StatusCode != 200 || !strings.Contains(body, "event: end") || resp.Header.Get("X-Stamp") == "" {
			t.Errorf("a stream through its middleware: got %d %v %s", resp.StatusCode, resp.Header, body)
		}
		if _, body = send("GET", "/threads-inside", ""); !strings.Contains(body, "0199f0a0-0000-7000-8000-000000000001") {
			t.Errorf("its client of its own server: got %s", body)
		}
		firstTick(t, url)
		stop()
		if language == slipway.Python {
			for _, file := range []string{"started", "stopped"} {
				if _, err := os.Stat(filepath.Join(p.Dir, file)); err != nil {
					t.Errorf("its lifespan: %v", err)
				}
			}
		}
	})
}

// awaitApp asks until the worker is there: a server without its app answers 503.
func awaitApp(send func(method, path, body string) (*http.Response, string)) (resp *http.Response, body string) {
	for range 10 {
		if resp, body = send("GET", "/hello/you?q=x", ""); resp.StatusCode != http.StatusServiceUnavailable {
			break
		}
	}
	return resp, body
}

func firstTick(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/ticks", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != "tick\n" {
		t.Errorf("an endless stream: got %q, %v", line, err)
	}
}
