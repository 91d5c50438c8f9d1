import { Hono } from 'hono';
import { stream } from 'hono/streaming';

const hello = new Hono();
hello.get('/:name', (c) => c.json({ name: c.req.param('name'), q: c.req.query('q') ?? null, user: c.get('auth')?.user.identity ?? null, url: c.req.url }));

/** Routes only. */
export const app = new Hono();
app.route('/hello', hello);
app.post('/echo', async (c) => new Response(c.req.raw.body.pipeThrough(upper()), { status: 201, headers: { 'x-kind': 'echo' } }));
app.get('/flood', (c) => stream(c, async (out) => { for (let i = 0; i < 16; i++) await out.write(new Uint8Array(64 * 1024).fill(120)); }));
app.get('/forever', (c) => stream(c, async (out) => {
  out.onAbort(() => console.log('client gone'));
  while (!out.aborted) {
    await out.write('tick');
    await out.sleep(5);
  }
}));
app.get('/cookies', () => new Response(null, { status: 204, headers: [['set-cookie', 'a=1'], ['set-cookie', 'b=2']] }));
app.get('/missing', (c) => c.notFound());
app.get('/broken', () => { throw new Error('broken on purpose'); });
app.get('/breaks', () => new Response(new ReadableStream({ pull(controller) { controller.error(new Error('half way')); } })));
app.get('/files/:path{.+}', (c) => c.text(c.req.param('path')));
app.all('/any/*', (c) => c.text(c.req.method));
app.get('/maybe/:id?', (c) => c.text(c.req.param('id') ?? 'none'));
app.get('/asks', async (c) => {
  const fetch = globalThis[Symbol.for('langgraph_api:fetch')];
  const answer = await fetch(`${globalThis[Symbol.for('langgraph_api:url')]}/threads?x=1`, { method: 'POST', body: '{}' });
  return c.json({ status: answer.status, text: await answer.text() });
});

function upper() {
  const text = new TextDecoder();
  return new TransformStream({ transform: (piece, out) => out.enqueue(new TextEncoder().encode(text.decode(piece).toUpperCase())) });
}

/** Middleware around everything. */
export const wrapped = new Hono();
wrapped.use('*', async (c, next) => {
  if (c.req.path === '/blocked') return c.text('no', 418);
  if (c.req.header('x-read')) await c.req.json();
  await next();
  c.res.headers.set('x-stamp', '1');
});
wrapped.get('/mine', (c) => c.json({ mine: true }));

/** Apps of other kinds. */
export const plain = { fetch: async (request) => new Response(new URL(request.url).pathname === '/plain' ? 'found' : 'not found', { status: new URL(request.url).pathname === '/plain' ? 200 : 404 }) };
export const bare = (request) => new Response(request.method);
export const wrong = () => 'text';
