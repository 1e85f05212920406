import { lineOfError, lineOfField } from '../base/json-line.js'
import { RelayError } from '../base/errors.js'
import { type Fixture, fixtureBody } from './fixture.js'
import { fixtureHeader, fixtureSchema, LARGEST_BODY } from './fixture-schema.js'

/** What is wrong, and in which field. */
type Complaint = readonly [path: readonly PropertyKey[], why: string]

const BODIES = ['body', 'bodyBase64', 'payload'] as const

/**
 * Reads a fixture file's text; `name` is what the file is called in errors.
 * @throws RelayError `usage` naming file, line and field: not JSON, or not as `fixture.schema.json` has it.
 */
export function parseFixture(text: string, name: string): Fixture {
  const json = text.replace(/^\uFEFF/, '')
  return checkFixture(parseJson(json, name), json, name)
}

/** The same of a text that was parsed. @throws RelayError `usage` as {@link parseFixture} */
export function checkFixture(value: unknown, json: string, name: string): Fixture {
  // The value itself, as the schema's copy would lack a header called __proto__.
  if (isFixture(value)) return value
  const [path, why] = complaintAbout(value) ?? [[], 'not a fixture']
  const field = path.length > 0 ? `${path.map(String).join('.')}: ` : ''
  throw new RelayError('usage', `${name}, line ${lineOfField(json, path)}: ${field}${why}`)
}

/** @throws RelayError `usage` naming file and line. */
export function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new RelayError('usage', `${name}, line ${lineOfError(text)}: not JSON`, { cause })
  }
}

function isFixture(value: unknown): value is Fixture {
  return complaintAbout(value) === undefined
}

function complaintAbout(value: unknown): Complaint | undefined {
  const { success, data, error } = fixtureSchema.safeParse(value)
  if (!success) return firstOf(error.issues)
  return complaintAboutHeaders(value) ?? complaintAboutBody(data)
}

function firstOf([issue]: readonly { code: string; path: PropertyKey[]; message: string }[]): Complaint {
  if (!issue) return [[], 'not a fixture']
  const { path, message } = issue
  if (issue.code === 'unrecognized_keys' && 'keys' in issue && Array.isArray(issue.keys))
    return [[...path, String(issue.keys[0])], 'no such field']
  return [path, issue.code === 'invalid_key' ? "must be a header's name" : message]
}

/** The schema leaves out what is called so. */
function complaintAboutHeaders(value: unknown): Complaint | undefined {
  const { headers }: Fixture = Object(value)
  const header: unknown = Object.getOwnPropertyDescriptor(headers, '__proto__')?.value
  const wrong = header === undefined ? undefined : fixtureHeader.safeParse(header).error
  return wrong && [['headers', '__proto__'], wrong.issues[0]?.message ?? '']
}

function complaintAboutBody(fixture: Pick<Fixture, (typeof BODIES)[number]>): Complaint | undefined {
  const [field, second] = BODIES.filter((name) => fixture[name] !== undefined)
  if (!field) return [[], `must have one of ${BODIES.join(', ')}`]
  if (second) return [[second], `must not be beside ${field}`]
  const { body, bodyBase64 } = fixture
  // A text is not made bytes just to count them.
  const bytes = body === undefined ? fixtureBody(fixture) : undefined
  if ((bytes?.byteLength ?? Buffer.byteLength(body ?? '')) > LARGEST_BODY)
    return [[field], `must be at most ${LARGEST_BODY / 1_048_576} MiB`]
  const exact = bodyBase64 === undefined || Buffer.from(bytes ?? []).toString('base64') === bodyBase64
  return exact ? undefined : [['bodyBase64'], 'must be base64']
}
