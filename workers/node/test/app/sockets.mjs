import { createNodeWebSocket } from '@hono/node-ws';
import { Hono } from 'hono';

/** An app that takes WebSockets as on a Node server. */
export const app = new Hono();
const { injectWebSocket, upgradeWebSocket } = createNodeWebSocket({ app });
export { injectWebSocket };

app.get('/ws', async (c, next) => (c.req.query('key') === 'wrong' ? c.text('no', 401) : next()), upgradeWebSocket((c) => ({
  onOpen: (_, socket) => socket.send(`hello ${c.req.query('key')} ${c.req.header('x-a')}`),
  onMessage: ({ data }, socket) => {
    if (data === 'bye') return socket.close(4001, 'as you said');
    if (data === 'flood') for (let i = 0; i < 16; i++) socket.send(new Uint8Array(64 * 1024).fill(i));
    else socket.send(typeof data === 'string' ? data.toUpperCase() : new Uint8Array(data).reverse());
  },
  onClose: ({ code, reason }) => console.log(`closed ${code} ${reason}`),
})));
app.get('/plain', (c) => c.text('plain'));
