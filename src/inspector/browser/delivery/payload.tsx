import { useMemo, useState } from 'hono/jsx/dom'
import { BASE } from '../../address.js'
import type { DeliveryDetail } from '../../api.js'
import { formatSize } from '../../view/format.js'
import { type JsonTree, parseTree } from '../model/json-tree.js'
import { copy } from '../ui/copy.js'
import { RawView } from './raw-view.js'
import { TreeView } from './tree-view.js'

/** Reading a longer text as a tree would block the page for more than a blink. Characters. */
const MAX_TREE = 8_388_608

type Way = 'tree' | 'raw'

/** The payload: as a tree, or its bytes as text. */
export function Payload({ detail }: { readonly detail: DeliveryDetail }) {
  const [chosen, setWay] = useState<Way>('tree')
  const { body, json, n, size } = detail
  const tree = useMemo(() => treeOf(json), [json])
  const way = tree ? chosen : 'raw'
  return (
    <section class="section" aria-labelledby="payload-title">
      <div class="section-head">
        <h2 id="payload-title">
          Payload <span class="section-count">{formatSize(size)}</span>
        </h2>
        {tree ? (
          <div class="switch" role="group" aria-label="Show the payload as">
            <Choice way="tree" text="Tree" current={way} onChoose={setWay} />
            <Choice way="raw" text="Raw" current={way} onChoose={setWay} />
          </div>
        ) : null}
        <span class="section-tools">
          {body === null ? null : (
            <button
              type="button"
              class="link"
              onClick={() => void copy('the payload', Promise.resolve(body))}
            >
              Copy
            </button>
          )}
          <a class="link" href={`${BASE}/api/deliveries/${n}/body`} download>
            Download
          </a>
        </span>
      </div>
      {way === 'tree' && tree ? (
        <TreeView tree={tree} />
      ) : body === null ? (
        <NotText />
      ) : (
        <RawView text={body} />
      )}
    </section>
  )
}

function NotText() {
  return <p class="quiet">The body is not UTF-8 text. Download it to see its bytes.</p>
}

function treeOf(json: string | null): JsonTree | null {
  return json === null || json.length > MAX_TREE ? null : parseTree(json)
}

interface ChoiceProps {
  readonly way: Way
  readonly text: string
  readonly current: Way
  readonly onChoose: (way: Way) => void
}

function Choice({ way, text, current, onChoose }: ChoiceProps) {
  return (
    <button type="button" aria-pressed={way === current ? 'true' : 'false'} onClick={() => onChoose(way)}>
      {text}
    </button>
  )
}
