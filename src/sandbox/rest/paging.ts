import type { Context } from 'hono'

type PagedContext = Pick<Context, 'req' | 'header'>

/** GitHub's page sizes (https://docs.github.com/rest/using-the-rest-api/using-pagination-in-the-rest-api). */
const PAGE_SIZE = { default: 30, max: 100 }

/** Page of a list that the query asks for. Sets `Link` when there are others. */
export function pageOf<T>(c: PagedContext, all: readonly T[]): readonly T[] {
  const size = pageSize(c)
  const number = Math.max(Math.trunc(Number(c.req.query('page'))) || 1, 1)
  const last = Math.max(Math.ceil(all.length / size), 1)
  const links: Record<string, number> = {
    ...(number > 1 && { prev: Math.min(number - 1, last) }),
    ...(number < last && { next: number + 1, last }),
    ...(number > 1 && { first: 1 }),
  }
  setLinks(
    c,
    Object.entries(links).map(([rel, page]) => [rel, { page: String(page) }]),
  )
  return all.slice((number - 1) * size, number * size)
}

/** Page of a list that starts at the query's cursor, `v1_` and the entry's id. Newest, and so largest, ids come first. */
export function cursorPageOf<T extends { readonly id: bigint }>(
  c: PagedContext,
  all: readonly T[],
): readonly T[] | undefined {
  const [, from] = /^(?:v1_(\d{1,20}))?$/.exec(c.req.query('cursor') ?? '') ?? ['', undefined]
  if (from === undefined && c.req.query('cursor')) return undefined
  const rest = from === undefined ? all : all.filter(({ id }) => id <= BigInt(from))
  const size = pageSize(c)
  const next = rest[size]
  if (next) setLinks(c, [['next', { cursor: `v1_${next.id}` }]])
  return rest.slice(0, size)
}

function pageSize(c: PagedContext): number {
  const wanted = Math.trunc(Number(c.req.query('per_page'))) || PAGE_SIZE.default
  return Math.min(Math.max(wanted, 1), PAGE_SIZE.max)
}

/** Links to this address with other parameters (RFC 8288). */
function setLinks(
  c: PagedContext,
  links: readonly (readonly [rel: string, query: Record<string, string>])[],
): void {
  const texts = links.map(([rel, query]) => {
    const url = new URL(c.req.url)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    return `<${url.href}>; rel="${rel}"`
  })
  if (texts.length > 0) c.header('Link', texts.join(', '))
}
