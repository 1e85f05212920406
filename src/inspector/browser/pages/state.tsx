import { useEffect } from 'hono/jsx/dom'
import type { InstanceState, LiveEvent } from '../../api.js'
import { Empty } from '../../view/empty.js'
import { State } from '../../view/state.js'
import { nowStore } from '../data/now.js'
import { useLoaded } from '../data/use-loaded.js'
import { useStore } from '../model/store.js'

/** The running instance. */
export function StatePage() {
  const now = useStore(nowStore)
  const { value: state, problem } = useLoaded<InstanceState>('state', isChange)
  useEffect(() => {
    document.title = 'State · relay'
  }, [])
  return (
    <div class="pane pane-state" data-scroller="state">
      {state ? <State state={state} now={Math.max(now, Date.now())} /> : null}
      {problem && !state ? <Empty title={problem.message} /> : null}
    </div>
  )
}

/** Deliveries change the numbers of the targets. */
function isChange({ type }: LiveEvent): boolean {
  return type === 'state' || type === 'deliveries'
}
