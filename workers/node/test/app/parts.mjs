import assert from 'node:assert/strict';

import { FakeEmbeddings } from '@langchain/core/utils/testing';
import { InMemoryStore, MemorySaver } from '@langchain/langgraph';
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';

export const auth = new Auth()
  .authenticate(async (request) => {
    const key = request.headers.get('x-key');
    const url = new URL(request.url);
    if (key === 'string') return 'ann';
    if (key === 'object') return { identity: 'bob', permissions: ['read'], org: { id: 7 }, seen: [request.method, url.pathname, url.searchParams.get('q')] };
    if (key === 'body') return { identity: JSON.parse(await request.text()).who };
    if (key === 'teapot') throw new HTTPException(418, { message: 'short and stout', headers: { 'x-pot': 'tea' } });
    if (key === 'plain') throw new Error('no such key');
    if (key === 'asserts') assert.equal(key, 'other', 'wrong key');
    if (key === 'mistake') return undefined.identity;
    if (key === 'nobody') return {};
    throw new HTTPException(401);
  })
  .on('threads:create', ({ value, user }) => {
    value.metadata = { ...value.metadata, owner: user.identity };
    return { owner: user.identity };
  })
  .on('threads', ({ event, resource, action, permissions }) => ({ said: `${event} ${resource} ${action} ${permissions}` }))
  .on('*:search', () => false)
  .on(['store:put', 'store:get'], ({ value, user }) => { value.namespace = [user.identity, ...value.namespace]; })
  .on('crons:read', () => { throw new HTTPException(409, { message: 'not now' }); })
  .on('crons:update', () => { throw new Error('yours it is not'); })
  .on('crons:delete', () => 7)
  .on('*', () => true);

export const silent = new Auth();
export const notAuth = { authenticate() {} };

export const lengths = async (texts) => texts.map((text) => [text.length, 1]);
export const embeddings = new FakeEmbeddings();
export const tooFew = () => [[1]];

export const saver = () => Object.assign(new MemorySaver(), { deleteForRuns: async () => {}, end: async () => console.log('saver closed') });
export const lame = { getTuple() {}, list() {}, put() {} };
export const store = async () => Object.assign(new InMemoryStore(), { stop: () => console.log('store closed') });
