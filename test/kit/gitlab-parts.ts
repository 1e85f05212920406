import type { FullReply, Received } from './receiver.js'

/** What a token may do, and whose it is. */
export interface GitLabToken {
  readonly kind: 'personal' | 'oauth'
  readonly username: string
  readonly scopes: readonly string[]
  /** Of a personal token: its last day, `2026-12-31`. */
  readonly expiresAt?: string
  /** Of one of an application: when it ends, in milliseconds, and the refresh token that ends with it. */
  readonly ends?: number
  readonly refresh?: string
  readonly clientId?: string
  revoked?: boolean
}

/** A request of a signed-in user. */
export interface GitLabCall {
  readonly request: Received
  readonly token: GitLabToken
  /** Path below that of the project, without its query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly body: Readonly<Record<string, unknown>>
  /** Address of the server, with its path. */
  readonly url: string
}

/** `render_api_error!` of lib/api/helpers.rb. */
export function apiError(status: number, message: unknown): FullReply {
  return { status, body: { message } }
}

export function userOf(username: string) {
  const id = username === 'mona' ? 1 : 2
  return {
    id,
    username,
    name: username,
    state: 'active',
    locked: false,
    avatar_url: null,
    web_url: `http://x/${username}`,
  }
}

/** Pages of a list, with the headers of lib/gitlab/pagination/offset_header_builder.rb. */
export function paged<T>(
  all: readonly T[],
  { query, request, url }: Pick<GitLabCall, 'query' | 'request' | 'url'>,
  show: (item: T) => unknown,
  most = 100,
): FullReply {
  const size = Number(query.get('per_page') ?? 20)
  if (!(size >= 1 && size <= most))
    return { status: 400, body: { error: 'per_page does not have a valid value' } }
  const page = Number(query.get('page') ?? 1)
  const isLast = page * size >= all.length
  const next = new URL(request.path, url)
  next.searchParams.set('page', String(page + 1))
  return {
    headers: {
      'x-page': String(page),
      'x-per-page': String(size),
      'x-next-page': isLast ? '' : String(page + 1),
      ...(!isLast && { link: `<${next.href}>; rel="next"` }),
    },
    body: all.slice((page - 1) * size, page * size).map(show),
  }
}
