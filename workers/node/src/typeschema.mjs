/**
 * JSON schemas of TypeScript types.
 *
 * @typedef {Record<string, any>} Schema
 */

/** How deep objects may be nested; what is deeper is left open. */
const DEPTH = 16;

/** Classes of the language whose JSON is not that of their members. @type {Record<string, Schema>} */
const KNOWN = {
  Date: { type: 'string', format: 'date-time' },
  URL: { type: 'string', format: 'uri' },
  RegExp: {},
  Map: { type: 'object' },
  Set: { type: 'array' },
  Buffer: {},
  Uint8Array: {},
  Promise: {},
  Function: {},
};

/** What clients see of a message. */
const MESSAGE = {
  title: 'BaseMessage',
  type: 'object',
  properties: {
    id: { type: 'string' },
    type: { type: 'string', enum: ['human', 'ai', 'system', 'developer', 'tool', 'function', 'remove', 'generic'] },
    content: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'object' } }] },
    name: { type: 'string' },
    additional_kwargs: { type: 'object' },
    response_metadata: { type: 'object' },
    tool_calls: { type: 'array', items: { type: 'object' } },
    tool_call_id: { type: 'string' },
  },
  required: ['type', 'content'],
};

/**
 * The schema of a type; undefined where nothing is known of it.
 *
 * @param {any} ts the compiler
 * @param {any} checker
 * @param {any} type
 * @returns {Schema | undefined}
 */
export function schemaOf(ts, checker, type) {
  const { Never, Any, Unknown } = ts.TypeFlags;
  if (type.flags & (Never | Any | Unknown)) return undefined;
  const reader = new Reader(ts, checker);
  const schema = reader.read(type, 0);
  return Object.keys(reader.definitions).length > 0 ? { ...schema, definitions: reader.definitions } : schema;
}

/** Reads one type with all it is made of. */
class Reader {
  #ts;
  #checker;
  /** The objects being read: a type that meets itself becomes a definition. @type {Map<any, {name?: string}>} */
  #reading = new Map();
  /** @type {Record<string, Schema>} */
  definitions = {};

  /** @param {any} ts @param {any} checker */
  constructor(ts, checker) {
    this.#ts = ts;
    this.#checker = checker;
  }

  /** @param {any} type @param {number} depth @returns {Schema} */
  read(type, depth) {
    const { TypeFlags } = this.#ts;
    const { flags } = type;
    if (depth > DEPTH || flags & (TypeFlags.Any | TypeFlags.Unknown | TypeFlags.Never | TypeFlags.NonPrimitive)) return flags & TypeFlags.NonPrimitive ? { type: 'object' } : {};
    if (type.isUnion()) return this.#union(type, depth);
    if (type.isStringLiteral() || type.isNumberLiteral()) return { type: typeof type.value, const: type.value };
    if (flags & TypeFlags.BooleanLiteral) return { type: 'boolean', const: type.intrinsicName === 'true' };
    if (flags & TypeFlags.StringLike) return { type: 'string' };
    if (flags & TypeFlags.NumberLike) return { type: 'number' };
    if (flags & TypeFlags.BigIntLike) return { type: 'string' };
    if (flags & TypeFlags.BooleanLike) return { type: 'boolean' };
    if (flags & TypeFlags.Null) return { type: 'null' };
    if (flags & (TypeFlags.Object | TypeFlags.Intersection)) return this.#object(type, depth);
    const constraint = flags & TypeFlags.Instantiable ? this.#checker.getBaseConstraintOfType(type) : undefined;
    return constraint && constraint !== type ? this.read(constraint, depth + 1) : {};
  }

  /** @param {any} type @param {number} depth @returns {Schema} */
  #union(type, depth) {
    const { Undefined, Void } = this.#ts.TypeFlags;
    const members = type.types.filter((/** @type {any} */ member) => !(member.flags & (Undefined | Void)));
    const literals = members.filter((/** @type {any} */ member) => member.isStringLiteral() || member.isNumberLiteral());
    const others = distinct(members.filter((/** @type {any} */ member) => !literals.includes(member)).map((/** @type {any} */ member) => this.read(member, depth + 1)));
    const all = [...enums(literals.map((/** @type {any} */ literal) => literal.value)), ...booleans(others)];
    if (all.some((schema) => Object.keys(schema).length === 0)) return {};
    return all.length === 1 ? all[0] : { anyOf: all };
  }

  /** @param {any} type @param {number} depth @returns {Schema} */
  #object(type, depth) {
    const known = KNOWN[type.symbol?.name];
    if (known && this.#isForeign(type)) return known;
    if (this.#isMessage(type)) return this.#message();
    if (this.#checker.isTupleType(type)) return this.#tuple(type, depth);
    if (this.#checker.isArrayType(type)) return this.#array(this.#checker.getTypeArguments(type)[0], depth);
    if (type.getCallSignatures().length > 0) return {};
    return this.#once(type, () => this.#members(type, depth));
  }

  /** @param {any} item @param {number} depth @returns {Schema} */
  #array(item, depth) {
    const messages = item && this.#isMessage(item) ? { langgraph_type: 'messages' } : {};
    return { type: 'array', items: item ? this.read(item, depth + 1) : {}, ...messages };
  }

  /** @param {any} type @param {number} depth @returns {Schema} */
  #tuple(type, depth) {
    const items = this.#checker.getTypeArguments(type).map((/** @type {any} */ item) => this.read(item, depth + 1));
    const { minLength, hasRestElement } = type.target;
    return { type: 'array', items, minItems: minLength, ...(hasRestElement ? {} : { maxItems: items.length }) };
  }

  /** @param {any} type @param {() => Schema} make @returns {Schema} */
  #once(type, make) {
    const open = this.#reading.get(type);
    if (open) {
      open.name ??= this.#nameOf(type);
      return { $ref: `#/definitions/${open.name}` };
    }
    /** @type {{name?: string}} */
    const mine = {};
    this.#reading.set(type, mine);
    const schema = make();
    this.#reading.delete(type);
    if (mine.name === undefined) return schema;
    this.definitions[mine.name] = schema;
    return { $ref: `#/definitions/${mine.name}` };
  }

  /** @param {any} type @param {number} depth @returns {Schema} */
  #members(type, depth) {
    /** @type {Record<string, Schema>} */
    const properties = {};
    const required = [];
    for (const symbol of this.#checker.getPropertiesOfType(type)) {
      const found = this.#member(symbol, depth);
      if (!found) continue;
      properties[symbol.name] = found;
      if (!(symbol.flags & this.#ts.SymbolFlags.Optional) && !this.#mayBeMissing(symbol)) required.push(symbol.name);
    }
    const index = this.#checker.getIndexInfosOfType(type).find((/** @type {any} */ info) => info.keyType.flags & this.#ts.TypeFlags.String);
    const rest = index ? { additionalProperties: this.read(index.type, depth + 1) } : {};
    return { type: 'object', properties, ...(required.length > 0 ? { required } : {}), ...rest };
  }

  /** A property as data; methods are none. @param {any} symbol @param {number} depth @returns {Schema | undefined} */
  #member(symbol, depth) {
    if (symbol.flags & this.#ts.SymbolFlags.Method || symbol.name.startsWith('__@')) return undefined;
    const type = this.#checker.getTypeOfSymbol(symbol);
    if (this.#checker.getNonNullableType(type).getCallSignatures().length > 0) return undefined;
    const description = this.#ts.displayPartsToString(symbol.getDocumentationComment(this.#checker));
    return { ...this.read(type, depth + 1), ...(description ? { description } : {}) };
  }

  /** @param {any} symbol */
  #mayBeMissing(symbol) {
    const type = this.#checker.getTypeOfSymbol(symbol);
    return type.isUnion() && type.types.some((/** @type {any} */ member) => member.flags & this.#ts.TypeFlags.Undefined);
  }

  /** Whether a type is one of LangChain's messages. @param {any} type @returns {boolean} */
  #isMessage(type) {
    if (type.isUnion()) return type.types.every((/** @type {any} */ member) => this.#isMessage(member));
    if (type.symbol?.name === 'BaseMessage') return this.#isForeign(type);
    return type.isClassOrInterface?.() || type.target?.isClassOrInterface?.() ? (this.#checker.getBaseTypes(type.target ?? type) ?? []).some((/** @type {any} */ base) => this.#isMessage(base)) : false;
  }

  /** Whether a type comes from a package or the language itself. @param {any} type */
  #isForeign(type) {
    return (type.symbol.declarations ?? []).some((/** @type {any} */ d) => d.getSourceFile().isDeclarationFile);
  }

  /** @returns {Schema} */
  #message() {
    this.definitions.BaseMessage = MESSAGE;
    return { $ref: '#/definitions/BaseMessage' };
  }

  /** @param {any} type */
  #nameOf(type) {
    const own = type.aliasSymbol?.name ?? type.symbol?.name ?? 'Type';
    const base = own.startsWith('__') ? 'Type' : own;
    const taken = new Set([...Object.keys(this.definitions), ...[...this.#reading.values()].map((open) => open.name)]);
    for (let i = 1; ; i++) {
      const name = i === 1 ? base : `${base}${i}`;
      if (!taken.has(name)) return name;
    }
  }
}

/** @param {(string | number)[]} values @returns {Schema[]} one enum for each type of literals */
function enums(values) {
  const of = (/** @type {string} */ type) => values.filter((value) => typeof value === type);
  return ['string', 'number'].filter((type) => of(type).length > 0).map((type) => {
    return of(type).length === 1 ? { type, const: of(type)[0] } : { type, enum: of(type) };
  });
}

/** True and false together are a boolean. @param {Schema[]} schemas */
function booleans(schemas) {
  const halves = schemas.filter((schema) => schema.type === 'boolean' && 'const' in schema);
  if (halves.length < 2) return schemas;
  return [...schemas.filter((schema) => !halves.includes(schema)), { type: 'boolean' }];
}

/** @param {Schema[]} schemas */
function distinct(schemas) {
  return [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
}
