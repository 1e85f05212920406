import { useEffect, useMemo } from 'hono/jsx/dom'
import { addressOf } from '../../address.js'
import type { DeliveryDetail, ListQuery } from '../../api.js'
import { counted } from '../../view/format.js'
import { Icon } from '../../view/icon.js'
import { Visible } from '../../view/visible.js'
import { useLoaded } from '../data/use-loaded.js'
import { NotLoaded, nameOf } from '../delivery/delivery-pane.js'
import { diffHeaders } from '../model/header-diff.js'
import { diffTrees } from '../model/json-diff.js'
import { parseTree } from '../model/json-tree.js'

interface ComparePaneProps {
  readonly n: number
  readonly other: number
  readonly query: ListQuery
}

/** How two deliveries differ: their payloads by path, and their headers. The older one is the one before. */
export function ComparePane({ n, other, query }: ComparePaneProps) {
  const [first, second] = n < other ? [n, other] : [other, n]
  const before = useLoaded<DeliveryDetail>(`deliveries/${first}`, () => false)
  const after = useLoaded<DeliveryDetail>(`deliveries/${second}`, () => false)
  useEffect(() => {
    document.title = `#${first} and #${second} compared · relay`
  }, [first, second])
  return (
    <section class="pane pane-detail" aria-label={`#${first} and #${second} compared`} data-scroller="detail">
      <NotLoaded loaded={before} n={first} query={query} />
      <NotLoaded loaded={after} n={second} query={query} />
      {before.value && after.value ? (
        <Comparison before={before.value} after={after.value} query={query} n={n} />
      ) : null}
    </section>
  )
}

interface ComparisonProps {
  readonly before: DeliveryDetail
  readonly after: DeliveryDetail
  readonly query: ListQuery
  readonly n: number
}

function Comparison({ before, after, query, n }: ComparisonProps) {
  const headers = useMemo(() => diffHeaders(before.headers, after.headers), [before, after])
  const link = (one: DeliveryDetail, sign: '−' | '+') => (
    <a
      class={sign === '+' ? 'change-added' : 'change-removed'}
      href={addressOf({ page: 'delivery', n: one.n, query })}
    >
      <span aria-hidden="true">{sign} </span>#{one.n} <Visible text={nameOf(one)} />
    </a>
  )
  return (
    <article class="detail">
      <header class="head">
        <div class="head-line">
          <a class="button button-quiet head-back" href={addressOf({ page: 'delivery', n, query })}>
            <Icon name="back" />#{n}
          </a>
        </div>
        <h1 tabindex={-1}>Compared</h1>
        <p class="head-subject">
          {link(before, '−')} with {link(after, '+')}
        </p>
      </header>
      <section class="section" aria-labelledby="payload-diff">
        <h2 id="payload-diff">Payload</h2>
        <PayloadDiff before={before} after={after} />
      </section>
      <section class="section" aria-labelledby="header-diff">
        <h2 id="header-diff">Headers</h2>
        {headers.length === 0 ? <p class="quiet">No header differs.</p> : null}
        <Changes
          changes={headers.map(({ name, ...values }) => ({ path: name, ...values }))}
          label="Headers that differ"
        />
      </section>
    </article>
  )
}

function PayloadDiff({ before, after }: Pick<ComparisonProps, 'before' | 'after'>) {
  const [left, right] = [before.json, after.json]
  const diff = useMemo(
    () => (left === null || right === null ? null : diffTrees(parseTree(left), parseTree(right))),
    [left, right],
  )
  if (!diff) return <p class="quiet">One of them carries no JSON.</p>
  if (diff.changes.length === 0) return <p class="quiet">No value differs.</p>
  const count = counted(diff.changes.length, 'difference')
  return (
    <>
      <p class="quiet">{diff.isCut ? `The first ${count}` : count}</p>
      <Changes changes={diff.changes} label="Values that differ" />
    </>
  )
}

interface ChangesProps {
  readonly changes: readonly { readonly path: string; readonly before?: string; readonly after?: string }[]
  readonly label: string
}

function Changes({ changes, label }: ChangesProps) {
  return (
    <ul class="changes" aria-label={label}>
      {changes.map(({ path, before, after }) => (
        <li>
          <code class="change-path">
            <Visible text={path === '' ? 'the whole value' : path} />
          </code>
          <Side text={before} sign="−" word="removed" />
          <Side text={after} sign="+" word="added" />
        </li>
      ))}
    </ul>
  )
}

/** Longer values are cut: their own pages have all of them. Characters. */
const MAX_SIDE = 600

interface SideProps {
  readonly text: string | undefined
  readonly sign: string
  readonly word: string
}

function Side({ text, sign, word }: SideProps) {
  if (text === undefined) return null
  return (
    <code class={`change change-${word}`}>
      <span aria-hidden="true">{sign} </span>
      <span class="sr-only">{word}: </span>
      <Visible text={text.slice(0, MAX_SIDE)} />
      {text.length > MAX_SIDE ? '…' : ''}
    </code>
  )
}
