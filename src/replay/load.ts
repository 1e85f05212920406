import { randomUUID } from 'node:crypto'
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import { z } from 'zod/mini'
import type { Cancellable } from '../base/wait.js'
import { decodeText, NotText, withoutMark } from '../base/decode.js'
import { errorReason, RelayError } from '../base/errors.js'
import { readBounded, TooManyBytes } from '../base/bytes.js'
import { MAX_MAX_BODY } from '../base/settings.js'
import { fieldsOf, parseJson } from '../json/parse.js'
import { lineOf } from '../json/text.js'
import { isScheme } from '../senders/senders.js'
import { type Fixture, fixtureBody, type NamedFixture, PAYLOAD_ENCODINGS, toFixture } from './fixture.js'

export interface LoadOptions extends Cancellable {
  /** Event, source and scheme of a file with a bare payload. Default: `github`, and the source's name. */
  readonly event?: string | undefined
  readonly provider?: string | undefined
  readonly scheme?: string | undefined
  /** How the caller gives the event, in messages. Default: `--event push`. */
  readonly eventWords?: string | undefined
  /** Stream that `-` names. */
  readonly stdin?: Readable | undefined
}

/** A fixture that exists and may not have been read yet. */
export interface FoundFixture {
  readonly name: string
  /** Reads and checks the fixture. @throws RelayError as {@link findFixtures} */
  readonly load: () => Fixture
}

/** Largest file in bytes. JSON can write each byte of a body as six characters; the headers have a mebibyte. */
const MAX_FILE = 6 * MAX_MAX_BODY + 1_048_576
const TOO_LARGE = `must be at most ${MAX_MAX_BODY / 1_048_576} MiB`
const BODIES = ['body', 'bodyBase64', 'payload'] as const
/** Descriptions of error codes that are not clear by themselves. */
const FILE_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'not UTF-8',
}

const text = (form: RegExp, what: string) =>
  z.string(`must be ${what}`).check(z.regex(form, `must be ${what}`))

const headerValue = text(
  /^[\t\x20-\x7e\x80-\xff]*$/,
  'text in latin1 without control characters, or a list of such',
)

/**
 * Schema of a fixture file, which can contain any delivery of the journal. `fixtures/fixture.schema.json` is its JSON
 * Schema.
 */
export const fixtureSchema = z
  .strictObject(
    {
      $schema: z
        .optional(z.string('must be an address'))
        .check(z.describe('Where this schema is, for editors.')),
      relay: z.literal(1, "must be 1, the format's version").check(z.describe("The format's version.")),
      provider: text(/^[a-z][a-z0-9-]{0,99}$/, 'a lower-case name like github').check(
        z.describe('What sends it: github, gitea, gitlab-host or sandbox, or the first word of the scheme.'),
      ),
      source: z
        .optional(text(/^[a-z][a-z0-9-]{0,99}$/, 'a lower-case name like github'))
        .check(z.describe('What received it, by name; the provider if absent.')),
      scheme: z
        .optional(
          text(/^[\x21-\x7e][\x20-\x7e]{0,499}$/, 'a scheme like stripe').check(
            z.refine(isScheme, 'names no scheme that relay knows'),
          ),
        )
        .check(z.describe('How it is signed, as the settings write it; the provider if absent.')),
      event: text(/^[A-Za-z0-9_.: /-]{1,100}$/, 'the name of an event, like push').check(
        z.describe('The event as the provider names it in its header or body.'),
      ),
      delivery: text(/^[\x21-\x7e]{1,200}$/, '1 to 200 visible ASCII characters').check(
        z.describe("The provider's id of the delivery."),
      ),
      headers: z
        .record(
          z.string().check(z.regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/)),
          z.union(
            [headerValue, z.array(headerValue).check(z.minLength(1, 'must not be an empty list'))],
            'must be text in latin1 without control characters, or a list of such',
          ),
          'must be an object of headers',
        )
        .check(z.describe('The headers as received, without those of the connection and credentials.')),
      query: z
        .optional(text(/^[\x21\x22\x24-\x7e]{1,16384}$/, '1 to 16,384 visible ASCII characters without #'))
        .check(z.describe('The query of the address at which it arrived, without the question mark.')),
      body: z
        .optional(
          z.string('must be text').check(
            z.maxLength(MAX_MAX_BODY, TOO_LARGE),
            z.refine(
              (body) => !/\p{Surrogate}/u.test(body),
              'has half a character; bodyBase64 can hold any bytes',
            ),
          ),
        )
        .check(z.describe("The body's exact text, when it is UTF-8.")),
      bodyBase64: z
        .optional(
          z
            .string('must be text')
            .check(z.maxLength(Math.ceil(MAX_MAX_BODY / 3) * 4, TOO_LARGE))
            .check(z.regex(/^[A-Za-z0-9+/]*={0,2}$/, 'must be base64')),
        )
        .check(
          z.meta({
            description: "The body's exact bytes, when they are not UTF-8.",
            contentEncoding: 'base64',
          }),
        ),
      payload: z
        .optional(z.union([z.looseObject({}), z.array(z.unknown())], 'must be an object or a list'))
        .check(z.describe('Instead of a body: the JSON or the fields that are sent.')),
      encoding: z
        .optional(z.enum(PAYLOAD_ENCODINGS, `must be one of ${PAYLOAD_ENCODINGS.join(', ')}`))
        .check(z.describe('How the payload is written as a body; compact if absent.')),
      secret: z
        .optional(text(/^[\x21-\x7e]{1,200}$/, '1 to 200 visible ASCII characters'))
        .check(
          z.describe(
            "A key of the fixture's own, for everybody: signs it where the receiver's secret is not given.",
          ),
        ),
    },
    'must be an object',
  )
  .check(
    z.meta({
      title: 'A webhook delivery, as relay stores it in a file',
      dependentRequired: { encoding: ['payload'] },
      oneOf: [{ required: ['body'] }, { required: ['bodyBase64'] }, { required: ['payload'] }],
    }),
  )

/** Reads every fixture of {@link findFixtures}, one at a time. @throws RelayError as {@link findFixtures} */
export async function* readFixtures(
  paths: readonly string[],
  options: LoadOptions = {},
): AsyncGenerator<NamedFixture> {
  for await (const { name, load } of findFixtures(paths, options)) yield { name, fixture: load() }
}

/**
 * Finds the fixtures that paths name: standard input (`-`), a file, or every `*.json` in a folder and its subfolders
 * except `*.schema.json`, ordered by name. A regular file is read when it is loaded; anything that can be read only
 * once, such as a pipe, is read and checked here. Other JSON is a bare payload if `event` names its event; its bytes
 * become the body, and it gets a new delivery id.
 * @throws RelayError `usage` naming the file: missing, unreadable, not UTF-8, not a fixture (with line and field), or a
 * folder without such files; `too_large`; and the signal's reason
 */
export async function* findFixtures(
  paths: readonly string[],
  options: LoadOptions = {},
): AsyncGenerator<FoundFixture> {
  for (const given of paths)
    for (const file of await filesOf(given)) {
      options.signal?.throwIfAborted()
      yield await find(file, options)
    }
}

async function filesOf(given: string): Promise<readonly string[]> {
  if (given === '-') return [given]
  try {
    if (!(await stat(given)).isDirectory()) return [given]
    const entries = await readdir(given, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => !entry.isDirectory() && /(?<!\.schema)\.json$/.test(entry.name))
    if (files.length === 0) throw new RelayError('usage', `${given}: has no fixtures (*.json)`)
    return files.map(({ parentPath, name }) => path.join(parentPath, name)).toSorted()
  } catch (cause) {
    throw unreadable(given, cause)
  }
}

async function find(file: string, options: LoadOptions): Promise<FoundFixture> {
  const { stdin, signal } = options
  const name = file === '-' ? 'standard input' : file
  try {
    // The file is not opened to find out, which would consume a pipe.
    if (file !== '-' && statSync(file).isFile())
      return { name, load: () => parse(readRegular(file), name, options) }
    const source = file === '-' ? stdin : createReadStream(file)
    if (!source) throw new RelayError('usage', 'There is no standard input to read')
    const bytes = await readBounded(signal ? addAbortSignal(signal, source) : source, MAX_FILE)
    const fixture = parse(bytes, name, options)
    return { name, load: () => fixture }
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw unreadable(name, cause)
  }
}

function readRegular(file: string): Uint8Array {
  try {
    if (statSync(file).size > MAX_FILE) throw new TooManyBytes(MAX_FILE)
    return readFileSync(file)
  } catch (cause) {
    throw unreadable(file, cause)
  }
}

function unreadable(name: string, cause: unknown): RelayError {
  if (cause instanceof RelayError) return cause
  if (cause instanceof TooManyBytes) return new RelayError('too_large', `${name}: too large for a fixture`)
  if (cause instanceof NotText) return new RelayError('usage', `${name} ${cause.message}`, { cause })
  const code = errorReason(cause)
  return new RelayError('usage', `${name}: ${FILE_ERRORS[code] ?? `cannot be read (${code})`}`, { cause })
}

function parse(
  bytes: Uint8Array,
  name: string,
  { event, provider = 'github', scheme, eventWords = '--event push' }: LoadOptions,
): Fixture {
  let text: string
  try {
    text = decodeText(bytes)
  } catch (cause) {
    throw unreadable(name, cause)
  }
  const value = parseFile(text, name)
  if (typeof value === 'object' && value !== null && 'relay' in value) return check(value, text, name)
  if (event === undefined)
    throw new RelayError(
      'usage',
      `${name}: not a fixture but a bare payload, which holds no signature; to send it, give its event, as with ${eventWords}`,
    )
  const headers = [['Content-Type', 'application/json']] as const
  return toFixture({ provider, scheme, event, deliveryId: randomUUID(), headers, body: withoutMark(bytes) })
}

/**
 * Parses the content of a fixture file. `name` is the file's name in errors.
 * @throws RelayError `usage` naming file, line and field when it does not match `fixture.schema.json`
 */
export function parseFixture(text: string, name: string): Fixture {
  return check(parseFile(text, name), text, name)
}

function parseFile(text: string, name: string): unknown {
  try {
    return parseJson(text)
  } catch (cause) {
    throw new RelayError('usage', `${name}, line ${lineOf(text)}: not JSON`, { cause })
  }
}

function check(value: unknown, text: string, name: string): Fixture {
  // Returns the value itself, because the schema's copy would lack a header called __proto__.
  if (isFixture(value)) return value
  const problem = problemOf(value) ?? ([[], 'not a fixture'] as const)
  throw new RelayError('usage', `${name}, line ${lineOf(text, problem[0])}: ${problemText(problem)}`)
}

/** Checks a fixture that a program made. Returns what is wrong, with the field: `headers: must be …`. */
export function fixtureProblem(value: unknown): string | undefined {
  const problem = problemOf(value)
  return problem && problemText(problem)
}

function problemText([path, why]: Problem): string {
  return path.length > 0 ? `${path.map(String).join('.')}: ${why}` : why
}

type Problem = readonly [path: readonly PropertyKey[], why: string]

function isFixture(value: unknown): value is Fixture {
  return problemOf(value) === undefined
}

/** Finds the first problem and its field. Undefined for a valid fixture. */
function problemOf(value: unknown): Problem | undefined {
  const { data, error } = fixtureSchema.safeParse(value)
  if (error) {
    const [issue] = error.issues
    if (issue?.code === 'unrecognized_keys') return [[...issue.path, issue.keys[0] ?? ''], 'no such field']
    if (issue?.code === 'invalid_key') return [issue.path, "must be a header's name"]
    return [issue?.path ?? [], issue?.message ?? 'not a fixture']
  }
  const [field, second] = BODIES.filter((name) => data[name] !== undefined)
  if (!field) return [[], `must have one of ${BODIES.join(', ')}`]
  if (second) return [[second], `not together with ${field}`]
  if (data.encoding !== undefined && field !== 'payload') return [['encoding'], `not together with ${field}`]
  // Counting the bytes of a text needs no copy of it.
  const bytes = data.body === undefined ? fixtureBody(data) : undefined
  if ((bytes?.byteLength ?? Buffer.byteLength(data.body ?? '')) > MAX_MAX_BODY) return [[field], TOO_LARGE]
  const isExact =
    data.bodyBase64 === undefined || Buffer.from(bytes ?? []).toString('base64') === data.bodyBase64
  return isExact ? undefined : [['bodyBase64'], 'must be base64']
}

/** Folder of the fixtures in this package. */
export function packagedFolder(): string {
  // Resolves a file of the package, since a folder cannot be resolved.
  const file = createRequire(import.meta.url).resolve('webhook-relay/package.json')
  return path.join(path.dirname(file), 'fixtures')
}

/** Events with a packaged fixture, `event` or `event.action`, sorted. */
export function packagedEvents(provider: string): string[] {
  const folder = path.join(packagedFolder(), provider)
  const names = existsSync(folder) ? readdirSync(folder).map((file) => path.basename(file, '.json')) : []
  return names.filter((name) => !name.endsWith('.form')).toSorted()
}

/** Files of the examples of each sender, by their events. They do not change while relay runs. */
const examples = new Map<string, ReadonlyMap<string, string>>()

/**
 * Finds the packaged examples of a sender: the name of each file, by the event that is in it, whose characters not
 * every file system takes. Empty for a sender without any.
 */
export function packagedExamples(provider: string): ReadonlyMap<string, string> {
  const known = examples.get(provider)
  if (known) return known
  const found = new Map(
    packagedEvents(provider).map((name) => {
      const text = readFileSync(path.join(packagedFolder(), provider, `${name}.json`), 'utf8')
      return [String(fieldsOf(parseJson(text))['event']), name] as const
    }),
  )
  examples.set(provider, found)
  return found
}

/** Reads the fixture of one of {@link packagedEvents}. @throws RelayError `usage` if the file was damaged */
export function packagedFixture(provider: string, event: string): Fixture {
  const file = path.join(packagedFolder(), provider, `${event}.json`)
  return parseFixture(readFileSync(file, 'utf8'), file)
}
