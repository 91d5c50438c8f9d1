import { LoadError, article, named } from './loader.mjs';

/**
 * Embeddings of the store's index: `provider:model`, or a function or Embeddings object of the application (reference 15).
 */

/** The packages of the providers, and the classes in them. @type {Record<string, [string, string]>} */
const PROVIDERS = {
  openai: ['@langchain/openai', 'OpenAIEmbeddings'],
  azure_openai: ['@langchain/openai', 'AzureOpenAIEmbeddings'],
  bedrock: ['@langchain/aws', 'BedrockEmbeddings'],
  cohere: ['@langchain/cohere', 'CohereEmbeddings'],
  google_genai: ['@langchain/google-genai', 'GoogleGenerativeAIEmbeddings'],
  google_vertexai: ['@langchain/google-vertexai', 'VertexAIEmbeddings'],
  mistralai: ['@langchain/mistralai', 'MistralAIEmbeddings'],
  ollama: ['@langchain/ollama', 'OllamaEmbeddings'],
  pinecone: ['@langchain/pinecone', 'PineconeEmbeddings'],
  voyageai: ['@langchain/community/embeddings/voyage', 'VoyageEmbeddings'],
};

/** Turns texts into vectors. */
export class Embedder {
  /** @type {(texts: string[]) => Promise<number[][]>} */
  #embed;

  /** @param {(texts: string[]) => Promise<number[][]>} embed */
  constructor(embed) {
    this.#embed = embed;
  }

  /** Loads what a spec names. @param {string} spec @param {string} root */
  static async load(spec, root) {
    return new Embedder(isFile(spec) ? await own(spec, root) : await provided(spec));
  }

  /** One vector per text. @param {string[]} texts */
  async texts(texts) {
    if (texts.length === 0) return [];
    const vectors = (await this.#embed(texts)).map((vector) => Array.from(vector, Number));
    if (vectors.length !== texts.length) throw new Error(`the embedding function returned ${vectors.length} vectors for ${texts.length} texts`);
    return vectors;
  }
}

/** @param {string} spec */
function isFile(spec) {
  return /^\.{0,2}\/|\.[cm]?[jt]sx?(?::|$)/.test(spec);
}

/** @param {string} spec @param {string} root */
async function own(spec, root) {
  const found = await named(spec, root);
  if (typeof found?.embedDocuments === 'function') return (/** @type {string[]} */ texts) => found.embedDocuments(texts);
  if (typeof found === 'function') return async (/** @type {string[]} */ texts) => found(texts);
  throw new LoadError(`${spec} is ${article(found)}; a function of texts or an Embeddings object is needed`);
}

/** @param {string} spec */
async function provided(spec) {
  const [provider, model] = [spec.slice(0, spec.indexOf(':')), spec.slice(spec.indexOf(':') + 1)];
  const known = PROVIDERS[provider];
  if (!known) throw new LoadError(`the provider "${provider}" of the embedding model "${spec}" is not known; known are ${Object.keys(PROVIDERS).join(', ')}`);
  const [name, type] = known;
  const Embeddings = (await importPackage(name, spec))[type];
  if (typeof Embeddings !== 'function') throw new LoadError(`the package ${name} has no ${type} for the embedding model "${spec}"; install a newer version`);
  const made = new Embeddings({ model });
  return (/** @type {string[]} */ texts) => made.embedDocuments(texts);
}

/** @param {string} name @param {string} spec */
async function importPackage(name, spec) {
  try {
    return await import(`slipway-app:${name}`);
  } catch (error) {
    if (/** @type {any} */ (error)?.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new LoadError(`the embedding model "${spec}" needs the package ${name}: add it to the dependencies of package.json`, error);
  }
}
