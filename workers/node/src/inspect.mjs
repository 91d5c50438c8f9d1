import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';

import { schemaOf } from './typeschema.mjs';

/**
 * A thread that reads the types of graphs from their TypeScript source (reference 16). It is told which exports of which
 * files are graphs and posts, for each, the JSON schemas of state, input, output and configuration, and which files they
 * depend on.
 *
 * @typedef {{id: string, file: string, name: string}} Subject
 * @typedef {{id: string, types: import('./describe.mjs').Types, files: Record<string, string>}} Finding
 */

/** What the compiler is asked about an export. */
const QUESTIONS = `
type Made<T> = T extends (...args: any[]) => infer R ? Awaited<R> : Awaited<T>;
type Graph<T> = T extends { "~OutputType": any } ? T
  : T extends { compile: (...args: any[]) => infer C } ? C
  : T extends { graph: infer G } ? G : never;
type Member<T, K extends string> = T extends { [key in K]: infer V } ? V : never;
type Options<T> = T extends { invoke(input: any, options?: infer O): any } ? NonNullable<O> : never;
type Context<T> = Options<T> extends { context?: infer C } ? NonNullable<C> : never;
type Whole<T, K extends string, L extends string> = [Member<T, K>] extends [never] ? Member<T, L> : Member<T, K>;
`;

/** @param {Subject} subject @param {number} i */
function questionsOf({ file, name }, i) {
  const from = JSON.stringify(importable(file));
  const named = name === 'default' ? `import type subject${i} from ${from};` : `import type { ${name} as subject${i} } from ${from};`;
  return `${named}
type Graph${i} = Graph<Made<typeof subject${i}>>;
export type state_${i} = Whole<Graph${i}, "~RunOutput", "~OutputType">;
export type input_${i} = Member<Graph${i}, "~InputType">;
export type output_${i} = Member<Graph${i}, "~OutputType">;
export type config_${i} = Context<Graph${i}>;
`;
}

/** TypeScript imports a file under the name it will have once compiled. @param {string} file */
function importable(file) {
  return file.replace(/\.tsx?$/, '.js').replace(/\.([cm])ts$/, '.$1js');
}

/** @param {string} root @returns {any} the application's own compiler, undefined where there is none */
function compiler(root) {
  try {
    return createRequire(path.join(root, 'slipway.cjs'))('typescript');
  } catch {
    return undefined;
  }
}

/**
 * @param {any} ts
 * @param {string} beside a file of the application
 * @returns {any} the application's compiler options, as far as they decide what types are
 */
function optionsOf(ts, beside) {
  const found = ts.findConfigFile(path.dirname(beside), ts.sys.fileExists, 'tsconfig.json');
  const read = found ? ts.readConfigFile(found, ts.sys.readFile).config : {};
  const { options } = ts.parseJsonConfigFileContent({ ...read, files: [beside], include: [] }, ts.sys, path.dirname(found ?? beside));
  const bundled = options.moduleResolution === undefined || options.moduleResolution <= ts.ModuleResolutionKind.Node10;
  return {
    ...options,
    ...(bundled ? { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler } : {}),
    strict: true, noEmit: true, skipLibCheck: true, allowJs: true, allowImportingTsExtensions: true, composite: false, incremental: false, noLib: false,
  };
}

/**
 * @param {any} ts
 * @param {Subject[]} subjects of one directory
 */
function inspect(ts, subjects) {
  const asking = path.join(path.dirname(subjects[0].file), '__slipway_schemas.mts');
  const text = QUESTIONS + subjects.map(questionsOf).join('');
  const options = optionsOf(ts, subjects[0].file);
  const program = ts.createProgram({ rootNames: [asking], options, host: hostWith(ts, options, asking, text) });
  const checker = program.getTypeChecker();
  const answers = new Map(checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(asking))).map((/** @type {any} */ s) => [s.name, s]));
  const files = dependencies(program, asking);
  subjects.forEach(({ id }, i) => {
    const type = (/** @type {string} */ what) => schemaOf(ts, checker, checker.getDeclaredTypeOfSymbol(answers.get(`${what}_${i}`)));
    /** @type {Finding} */
    const finding = { id, types: { state: type('state'), input: type('input'), output: type('output'), config: type('config') }, files };
    parentPort?.postMessage(finding);
  });
}

/** A host of the compiler that also knows the file of the questions. @param {any} ts @param {any} options @param {string} asking @param {string} text */
function hostWith(ts, options, asking, text) {
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.fileExists = (/** @type {string} */ name) => name === asking || fileExists.call(host, name);
  host.readFile = (/** @type {string} */ name) => (name === asking ? text : readFile.call(host, name));
  host.getSourceFile = (/** @type {string} */ name, /** @type {any[]} */ ...rest) => {
    return name === asking ? ts.createSourceFile(name, text, rest[0]) : getSourceFile.call(host, name, ...rest);
  };
  return host;
}

/** The application's own files that the answers depend on, with their hashes. @param {any} program @param {string} asking */
function dependencies(program, asking) {
  const names = program.getSourceFiles().map((/** @type {any} */ file) => file.fileName);
  const own = names.filter((/** @type {string} */ name) => name !== asking && !name.includes('/node_modules/') && existsSync(name));
  return Object.fromEntries(own.map((/** @type {string} */ name) => [name, createHash('sha256').update(readFileSync(name)).digest('hex')]));
}

function main() {
  const { root, subjects } = workerData;
  os.setPriority(0, os.constants.priority.PRIORITY_BELOW_NORMAL); // Of this thread only: runs come first.
  const ts = compiler(root);
  if (!ts) return parentPort?.postMessage({ missing: 'typescript' });
  const directories = new Set(subjects.map((/** @type {Subject} */ s) => path.dirname(s.file)));
  for (const directory of directories) {
    inspect(ts, subjects.filter((/** @type {Subject} */ s) => path.dirname(s.file) === directory));
  }
}

main();
