import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import type { RawAnswer } from '../kit/http.js'

/** The document with the service's contract. */
export const DOCUMENT = 'docs/openapi.yaml'

type Json = Readonly<Record<string, unknown>>

/** The parts of an OpenAPI document that are read here, as YAML gives them. */
export interface Document extends Json {
  readonly info: { readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>
}

export function readDocument(): Document {
  return parse(readFileSync(DOCUMENT, 'utf8'))
}

/** A route as a router lists it: `POST`, `/auth/token/:userId`. `ALL` is any method. */
export interface Route {
  readonly method: string
  readonly path: string
}

/** One operation of the document, `GET /auth/{provider}`, and the paths that it stands for. */
interface Operation extends Route {
  readonly name: string
  readonly pattern: RegExp
}

function operationsOf({ paths }: Document): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((each) => {
      const method = each.toUpperCase()
      const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]*')}$`)
      return { method, path, name: `${method} ${path}`, pattern }
    }),
  )
}

/** The operation that takes a request; of several the one with the fewest parameters, as a router finds it. */
function operationOf(operations: readonly Operation[], { method, path }: Route): Operation | undefined {
  const fitting = operations.filter(
    (each) => each.pattern.test(path) && (method === 'ALL' || each.method === method),
  )
  return fitting.toSorted((a, b) => a.path.split('{').length - b.path.split('{').length)[0]
}

/** What the application answers and the document lacks, and the other way round. */
export function differences(document: Document, routes: readonly Route[]): Record<string, string[]> {
  const operations = operationsOf(document)
  const served = new Set<Operation>()
  const undocumented = new Set<string>()
  for (const { method, path } of routes) {
    const found = operationOf(operations, { method, path: path.replaceAll(/:\w+/g, 'x') })
    if (found) served.add(found)
    else undocumented.add(`${method} ${path}`)
  }
  const unserved = operations.filter((each) => !served.has(each)).map(({ name }) => name)
  return { undocumented: [...undocumented], unserved }
}

/** Header lines that HTTP itself needs, which no operation lists. */
const PLAIN = new Set([
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
])

/** Compares answers with what the document says of them, and remembers which it has seen. */
export class Contract {
  readonly document: Document
  readonly #operations: readonly Operation[]
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  readonly #compiled = new Map<string, ValidateFunction>()
  /** Pointers to responses, and for a fixed choice of texts `<pointer> <text>`. */
  readonly #seen = new Set<string>()

  constructor(document: Document = readDocument()) {
    this.document = document
    this.#operations = operationsOf(document)
    this.#ajv.addSchema(document, 'document')
  }

  /** How an answer differs from the document; empty where it does not. `body`: the request's. */
  problems(request: Route & { readonly body?: string }, answer: RawAnswer): string[] {
    const operation = operationOf(this.#operations, { ...request, path: request.path.split('?', 1).join('') })
    if (!operation) return ['no operation']
    const place = `/paths/${escaped(operation.path)}/${operation.method.toLowerCase()}`
    const response = this.#resolved(`${place}/responses/${answer.status}`)
    if (response === undefined) return [`no status ${answer.status}`]
    return [...this.#requestProblems(place, request.body, answer), ...this.answerProblems(response, answer)]
  }

  /** The same for an answer that no operation lists, from the pointer to its response. */
  answerProblems(response: string, { headers, body }: RawAnswer): string[] {
    this.#seen.add(response)
    return [...this.#headerProblems(response, headers), ...this.#bodyProblems(response, headers, body)]
  }

  /**
   * What the document promises and no answer so far was: `GET /health 500 Internal error`. A response that several operations share is
   * one, `components/responses/InternalError`.
   */
  unseen(): string[] {
    const shared = Object.keys(this.#object('/components/responses')).map(
      (name) => `/components/responses/${name}`,
    )
    const own = this.#operations.flatMap(({ path, method }) => {
      const place = `/paths/${escaped(path)}/${method.toLowerCase()}/responses`
      return Object.keys(this.#object(place)).map((status) => this.#resolved(`${place}/${status}`) ?? '')
    })
    const all = [...new Set([...shared, ...own])]
    return all.flatMap((response) => [
      ...(this.#seen.has(response) ? [] : [readable(response)]),
      ...this.#textsOf(response).flatMap((text) =>
        this.#seen.has(`${response} ${text}`) ? [] : [`${readable(response)}: ${text}`],
      ),
    ])
  }

  /** A request that was accepted fits the document; one that was refused as invalid does not. */
  #requestProblems(place: string, body: string | undefined, answer: RawAnswer): string[] {
    const schema = `${place}/requestBody/content/application~1json/schema`
    const isInvalid = answer.body.startsWith('{"error":"Invalid request: ')
    if (body === undefined || this.#at(schema) === undefined || !(isInvalid || answer.status === 200))
      return []
    return this.#fits(schema, parseJson(body)) === isInvalid ? [`the request fits: ${isInvalid}`] : []
  }

  #headerProblems(response: string, headers: RawAnswer['headers']): string[] {
    const documented = Object.keys(this.#object(`${response}/headers`))
    const names = new Set(documented.map((name) => name.toLowerCase()))
    const others = Object.keys(headers).filter((name) => !PLAIN.has(name) && !names.has(name))
    const wrong = documented.filter((name) => {
      const header = this.#resolved(`${response}/headers/${name}`) ?? ''
      const value = headers[name.toLowerCase()]
      if (value === undefined) return this.#object(header)['required'] === true
      const isNumber = this.#object(`${header}/schema`)['type'] === 'integer'
      return !this.#fits(`${header}/schema`, isNumber ? Number(value) : value)
    })
    return [...others.map((name) => `header ${name} is not there`), ...wrong.map((name) => `header ${name}`)]
  }

  #bodyProblems(response: string, headers: RawAnswer['headers'], text: string): string[] {
    const type = headers['content-type']
    const content = this.#at(`${response}/content`)
    if (content === undefined) return text === '' ? [] : [`a body: ${text}`]
    const schema = `${response}/content/${escaped(type ?? '')}/schema`
    if (this.#at(schema) === undefined) return [`no content of type ${type}`]
    const body = type === 'application/json' ? parseJson(text) : text
    const { error } = Object(body)
    this.#seen.add(`${response} ${error}`)
    return this.#fits(schema, body) ? [] : [`body ${text}`]
  }

  /** The errors that a response may have, where the document lists them. */
  #textsOf(response: string): string[] {
    const { const: one, enum: several = one === undefined ? [] : [one] } = this.#object(
      `${response}/content/application~1json/schema/properties/error`,
    )
    return [several].flat().map(String)
  }

  #fits(schema: string, value: unknown): boolean {
    const validate =
      this.#compiled.get(schema) ?? this.#ajv.compile({ $ref: `document#${encodeURI(schema)}` })
    this.#compiled.set(schema, validate)
    return validate(value)
  }

  /** The pointer to what a pointer leads to, after a reference; undefined if there is nothing. */
  #resolved(pointer: string): string | undefined {
    const { $ref: to } = this.#object(pointer)
    if (typeof to === 'string') return to.slice(1)
    return this.#at(pointer) === undefined ? undefined : pointer
  }

  #object(pointer: string): Json {
    return Object(this.#at(pointer))
  }

  #at(pointer: string): unknown {
    const parts = pointer.split('/').slice(1)
    const names = parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    return names.reduce<unknown>((value, name) => Object(value)[name], this.document)
  }
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

function readable(pointer: string): string {
  return pointer.slice(1).replaceAll('~1', '/')
}

/** Undefined for text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
